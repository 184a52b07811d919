"""Discovery of a project's sources, for the ``govtool.toml`` that ``govtool init`` writes.

Folders are looked through, and files are recognised by their endings and first bytes: dbt projects, SQL, event logs of
Spark, OpenLineage events, PROV documents, query logs, and databases in files. Nothing is parsed or run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from govtool.app.project.dialects import StatedDialect, stated_dialect
from govtool.config import CONFIG_FILE, load_config
from govtool.config_sources import SourceSettings
from govtool.errors import UsageError

_NOT_NAMED = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "target", "dbt_packages", "dbt_modules", "site-packages"})
_MAX_FILES = 20_000
_MAX_READ = 1_000
"""Number of files whose first bytes are read; beyond it, files of SQL are known by their names."""
_MAX_DEPTH = 8
_HEAD = 65_536
_SCHEMA_HEAD = 200
_PROV_MARKS = (b'"wasGeneratedBy"', b'"prov:type"', b'"prov:label"', b'"prov:entity"', b'"prov:activity"')
_LINE_COMMENT = re.compile(rb"^[ \t]*--.*$", re.MULTILINE)
_DEFINITION = re.compile(rb"\{%[-+]?\s*(?P<closing>end)?(?:macro|test|data_test|materialization|docs)\b[^%]*%\}")
"""The tags around what dbt keeps for later."""
_DATA = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".log", ".provn", ".jsonld", ".gz", ".zst", "")
_DATABASES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")
_ENGINES = ("sqlite", "duckdb")
_ORDER = ("dbt", "sql", "catalog", "log", "spark", "openlineage", "prov")


@dataclass(frozen=True, slots=True)
class WrittenSources:
    """The ``govtool.toml`` that was written."""

    file: Path
    sources: tuple[SourceSettings, ...]
    dialects: Mapping[str, StatedDialect]
    """Those of sources of SQL that files of the project state, by path."""
    overlooked: tuple[str, ...] = ()
    """What of the folder was not looked at, as it is too large."""

    @property
    def needs_dialect(self) -> bool:
        """True if there is SQL whose dialect nothing tells."""
        return any(source.kind == "sql" and source.paths[0] not in self.dialects for source in self.sources)


def write_config(folder: Path, store: str | None, *, append: bool = False) -> WrittenSources | None:
    """Write ``govtool.toml`` with the sources below a folder; None where it has one, or holds no sources.

    Args:
        folder: The project's folder.
        store: The store that a new file names; None: none.
        append: Add the sources to a file that lists none.

    Raises:
        UsageError: It cannot be written, or the file that is there is not valid (``usage.config``).
    """
    file = folder / CONFIG_FILE
    there = file.exists()
    if there and (not append or load_config(folder).sources):
        return None
    sources, overlooked = discover_sources(folder)
    if not sources:
        return None
    paths = [source.paths[0] for source in sources if source.kind == "sql"]
    dialects = {path: stated for path in paths if (stated := stated_dialect(folder, path)) is not None}
    text = "\n" + config_text(sources, dialects) if there else config_text(sources, dialects, store)
    try:
        with file.open("a" if there else "x", encoding="utf-8", newline="\n") as out:
            out.write(text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot write it: {reason}", code="usage.config", location=str(file)) from error
    return WrittenSources(file, sources, dialects, overlooked)


@dataclass(slots=True)
class _Search:
    """A folder while it is looked through."""

    projects: list[str] = field(default_factory=list)
    """The dbt projects in it."""
    unread: int = _MAX_READ
    """Number of files whose first bytes may still be read."""
    overlooked: dict[str, None] = field(default_factory=dict)

    def may_read(self) -> bool:
        """Count a file that is to be read; False if enough were read."""
        self.unread -= 1
        return self.unread >= 0


def discover_sources(root: Path) -> tuple[tuple[SourceSettings, ...], tuple[str, ...]]:
    """The sources below a folder, their paths relative to it, by kind and path; and what was not looked at."""
    from govtool.capture.sql.files import is_sql

    search = _Search()
    projects = search.projects
    kinds: dict[str, str | None] = {}
    for number, file in enumerate(_files(root, search)):
        if number == _MAX_FILES:
            search.overlooked[f"files after the first {_MAX_FILES:,}"] = None
            break
        kinds[file.relative_to(root).as_posix()] = _sql(file, search) if is_sql(file.name) else _kind(file, search)
    settings = [SourceSettings("sql" if _raw(root, each) else "dbt", (_dbt_path(root, each),)) for each in projects]
    settings += [
        SourceSettings("catalog", (f"{kind}:///{place}",)) for place, kind in kinds.items() if kind in _ENGINES
    ]
    scripts = [place for place, kind in kinds.items() if kind == "sql"]
    # SQL beside the settings themselves: the whole folder is one source.
    if not projects and any("/" not in place for place in scripts):
        settings.append(SourceSettings("sql", (".",)))
    else:
        settings += _grouped("sql", scripts, projects)
    for kind_ in _ORDER[3:]:
        places = [place for place, kind in kinds.items() if kind == kind_]
        settings += _grouped(kind_, places, [place for place, kind in kinds.items() if kind != kind_])
    ordered = tuple(sorted(settings, key=lambda each: (_ORDER.index(each.kind), each.paths)))
    return ordered, tuple(search.overlooked)


def _grouped(kind: str, places: Iterable[str], others: Sequence[str]) -> list[SourceSettings]:
    """The sources of a kind: each the topmost folder that holds none of the others, below the root.

    Files beside others are listed, those of one folder as one source; files of the root are a source each.
    """
    mixed = {parent for other in others for parent in _folders_of(other)}
    mixed.update(others)
    whole: set[str] = set()
    listed: dict[str, list[str]] = {}
    for place in places:
        folders = _folders_of(place)
        found = next((folder for folder in folders if folder not in mixed), None)
        if found is not None:
            whole.add(found)
        else:
            listed.setdefault(folders[-1] if folders else place, []).append(place)
    sources = [SourceSettings(kind, (folder,)) for folder in whole]
    for folder, files in listed.items():
        sources.append(SourceSettings(kind, tuple(sorted(files)), f"{kind}:{folder}" if len(files) > 1 else None))
    return sources


def _folders_of(place: str) -> list[str]:
    """The folders that a file is in, from the top; not the root."""
    return [parent.as_posix() for parent in PurePosixPath(place).parents][-2::-1]


def config_text(
    sources: Iterable[SourceSettings], dialects: Mapping[str, StatedDialect], store: str | None = None
) -> str:
    """The text of a ``govtool.toml`` with these sources."""
    lines = [] if store is None else [f"store = {_toml(store)}", ""]
    lines += ["# What `govtool ingest` brings up to date; see docs/store.md."]
    for source in sources:
        lines += ["", "[[sources]]", f'kind = "{source.kind}"']
        lines += _place_lines(source)
        stated = dialects.get(source.paths[0])
        if stated is not None:
            lines.append(f"dialect = {_toml(stated.dialect)}    # as {_toml(stated.file)[1:-1]} states")
        elif source.kind == "sql":
            lines.append('# dialect = "postgres"    # snowflake, bigquery, spark …; by default generic SQL')
    return "\n".join((*lines, ""))


def _place_lines(source: SourceSettings) -> list[str]:
    if len(source.paths) == 1:
        return [f"{'url' if source.kind == 'catalog' else 'path'} = {_toml(source.paths[0])}"]
    name = [] if source.name is None else [f"name = {_toml(source.name)}"]
    return [*name, "path = [", *(f"    {_toml(path)}," for path in source.paths), "]"]


def _toml(text: str) -> str:
    """A basic string of TOML, which escapes as JSON does but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _files(root: Path, search: _Search) -> Iterator[Path]:
    """The files below a folder but those of dbt projects, whose folders are noted."""
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        if "dbt_project.yml" in files:
            search.projects.append(here.relative_to(root).as_posix())
            folders[:] = []
            continue
        folders[:] = sorted(f for f in folders if _is_looked_at(f) and f not in _SKIPPED)
        if folders and len(here.relative_to(root).parts) >= _MAX_DEPTH:
            search.overlooked[f"folders more than {_MAX_DEPTH} deep"] = None
            folders[:] = []
        yield from (here / name for name in sorted(files) if _is_looked_at(name))


def _is_looked_at(name: str) -> bool:
    """False of hidden names, and of those that no source can have: with control characters, or bytes without text."""
    return not name.startswith(".") and not _NOT_NAMED.search(name)


def _raw(root: Path, project: str) -> bool:
    return not (root / project / "target" / "manifest.json").is_file()


def _dbt_path(root: Path, project: str) -> str:
    return project if _raw(root, project) else (Path(project) / "target").as_posix()


def _sql(file: Path, search: _Search) -> str | None:
    """``sql``; None of an empty file, and of one that only defines macros or tests, which nothing runs as they are."""
    if not file.is_file() or not search.may_read():
        return "sql"
    first, *commented = _LINE_COMMENT.sub(b"", _head(file)).split(b"{#")
    text = b"".join((first, *(piece.partition(b"#}")[2] for piece in commented)))
    depth, outside, end = 0, b"", 0
    for tag in _DEFINITION.finditer(text):
        if depth == 0:
            outside += text[end : tag.start()]
        depth = max(0, depth + (-1 if tag["closing"] else 1))
        end = tag.end()
    defines = end > 0 or file.stat().st_size == 0  # what cannot be read is not empty
    return None if defines and depth == 0 and not (outside + text[end:]).strip() else "sql"


def _kind(file: Path, search: _Search) -> str | None:
    """The kind of source, or of database, of a file; None if it is neither, or if enough files were read."""
    suffix = file.suffix.lower()
    if suffix not in (*_DATABASES, *_DATA) or file.name in ("package.json", "package-lock.json"):
        return None
    if not file.is_file():  # a pipe would be waited for
        return None
    if not search.may_read():
        search.overlooked[f"files of data after the first {_MAX_READ:,} files that were read"] = None
        return None
    return _database(file) if suffix in _DATABASES else _recognised(file)


def _database(file: Path) -> str | None:
    head = _head(file)
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    return "duckdb" if head[8:12] == b"DUCK" else None


def _recognised(file: Path) -> str | None:
    """The kind of a file of data, by its first bytes."""
    if file.suffix.lower() in (".provn", ".jsonld"):
        return "prov"
    head = _head(file)
    if b'"$schema"' in head[:_SCHEMA_HEAD]:
        return None  # a JSON Schema names the keys of what it describes
    if b'"SparkListenerLogStart"' in head[:500]:
        return "spark"
    if b'"eventTime"' in head and b'"producer"' in head and (b'"run"' in head or b'"dataset"' in head):
        return "openlineage"
    if head.lstrip().startswith(b"{") and any(mark in head for mark in _PROV_MARKS):
        return "prov"
    return "log" if _is_log(head) else None


def _is_log(head: bytes) -> bool:
    """True if a reader of query logs recognises a file that is not plain SQL."""
    from govtool.capture.logs.read import recognised_format

    try:
        form = recognised_format(head)
    except ValueError:
        return False
    return bool(form) and (form not in ("sql", "jsonl", "csv") or _names_queries(head))


def _names_queries(head: bytes) -> bool:
    """True of rows whose names are those of a query log: a text of SQL and a time."""
    first = head.partition(b"\n")[0].lower()
    texts = (b"query_text", b"sql_text", b"statement_text", b'"query"', b'"sql"')
    times = (b"start", b"time", b'"ts"')
    return any(text in first for text in texts) and any(time in first for time in times)


def _head(file: Path) -> bytes:
    """The first bytes, decompressed; none of what cannot be read."""
    from govtool.capture.compressed import UnreadableStreamError
    from govtool.capture.logs.stream import chunks

    head = b""
    try:
        with file.open("rb") as raw:
            for piece in chunks(raw):
                head += piece
                if len(head) >= _HEAD:
                    break
    except (OSError, UnreadableStreamError):
        return b""
    return head[:_HEAD]
