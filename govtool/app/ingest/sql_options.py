"""Shared parts of `lineage`, `ingest sql` and the batch protocol: dialects, schemas, options, reading scripts."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

from govtool.errors import UnknownNameError, UsageError
from govtool.given_files import absolute
from govtool.model import Diagnostic

if TYPE_CHECKING:
    from govtool.capture.sql.extract import Extraction, Options
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.schemas.supplied import Schema
    from govtool.capture.sql.stages import StageProgress
    from govtool.capture.sql.templates.macros import DbtProject
    from govtool.model.derivation import Derivation
    from govtool.model.fact import Fact

Progress = Callable[[int, int], None]

_ALIASES = {
    "postgresql": "postgres",
    "pg": "postgres",
    "mssql": "tsql",
    "sqlserver": "tsql",
    "sparksql": "spark",
    "ansi": "",
    "generic": "",
}


@dataclass(frozen=True, slots=True)
class SqlRequest:
    """SQL files and folders, and how to read them."""

    paths: tuple[str, ...]
    """Files, folders, or ``-`` for standard input."""
    dialect: str = ""
    schema: tuple[Path, ...] = ()
    tables: Mapping[str, object] | None = None
    """Columns by table, ``{table: [column]}`` or ``{table: {column: type}}``; goes before ``schema``."""
    default_catalog: str | None = None
    default_schema: str | None = None
    namespace: str | None = None
    source: str | None = None
    relation_from: str | None = None
    variables: Mapping[str, object] = field(default_factory=dict)
    catalog: str | None = field(default=None, repr=False)
    """The address of a database: its catalog is the schema, and its defaults are those of names."""
    explain: bool = False
    """True to ask that database, a PostgreSQL, about what the text leaves open."""
    follow_links: bool = False
    """True if symbolic links in folders are followed out of these."""
    workers: int | None = None
    """Processes of an ingest; None: one a core where there is much to read."""


@cache
def dialect_names() -> tuple[str, ...]:
    """Every dialect that can be named, sorted."""
    from sqlglot.dialects.dialect import Dialects

    return tuple(sorted(dialect.value for dialect in Dialects if dialect.value))


def check_dialect(name: str) -> str:
    """Return sqlglot's name of a dialect.

    Raises:
        UnknownNameError: there is no such dialect (``usage.unknown-dialect``).
    """
    lower = name.strip().lower()
    lower = _ALIASES.get(lower, lower)
    known = dialect_names()
    if lower and lower not in known:
        raise UnknownNameError(
            f"no dialect {name}",
            code="usage.unknown-dialect",
            nearest=tuple(difflib.get_close_matches(lower, [*known, *_ALIASES], n=3)),
            hint=f"one of {', '.join(known)}",
        )
    return lower


def read_schema(
    files: Sequence[Path], dialect: str, default_catalog: str | None, default_schema: str | None
) -> Schema | None:
    """Load and merge schema files; of two that describe one dataset the later wins."""
    if not files:
        return None
    from govtool.capture.sql.schemas.supplied import load_schema

    schema: Schema | None = None
    for file in files:
        loaded = load_schema(file, dialect, default_catalog, default_schema)
        schema = loaded if schema is None else schema.merged(loaded)
    return schema


def root_of(paths: Sequence[str]) -> Path:
    """The folder that file URIs are relative to: the one folder given, else what all paths have in common."""
    real = [absolute(path) for path in paths if path != "-"]
    if not real:
        return Path.cwd()
    folders = [path if os.path.isdir(path) else path.parent for path in real]  # noqa: PTH112 - one without rights
    root = folders[0]
    for folder in folders[1:]:
        while root not in (folder, *folder.parents):
            root = root.parent
    return root


def file_name(path: Path, root: Path) -> str:
    """The name of a file in messages and in the graph: from that folder, or else without any."""
    try:
        name = absolute(path).relative_to(root).as_posix()
    except ValueError:
        name = path.name
    return (name if name != "." else path.name).encode("utf-8", "backslashreplace").decode()


def scripts(
    request: SqlRequest, root: Path, stdin: IO[bytes] | None, folders: Mapping[Path, Path] | None = None
) -> Iterator[Script | Diagnostic]:
    """Read what the request names; ``folders`` are its ``project_folders``, where they are known.

    Raises:
        UsageError: a path does not exist, or there is no SQL in a folder.
    """
    from govtool.capture.sql.files import read_scripts

    named: set[str] = set()
    for item in read_scripts(request.paths, root=root, stdin=stdin, follow_links=request.follow_links):
        named.update([item.file or ""] if isinstance(item, Diagnostic) else ())
        yield item
    from govtool.capture.dbt.folders import project_folders
    from govtool.capture.dbt.project import links_out, unread_settings

    folders = project_folders(request.paths) if folders is None else folders
    yield from unread_settings(request.paths, root, folders)
    if not request.follow_links:
        yield from (note for note in links_out(request.paths, root, folders) if note.file not in named)


def extract_scripts(
    found: Sequence[Script | Diagnostic], settings: Options, report: Callable[[StageProgress], None] | None = None
) -> Extraction:
    """Extract; ``report`` is called with the stage now and then."""
    from govtool.capture.sql.extract import extract

    return extract(found, settings, report)


def facts_in(
    found: Sequence[Script | Diagnostic], settings: Options, derivations: Sequence[Derivation]
) -> tuple[Fact, ...]:
    """Return the facts that scripts, their comments and the property files of their dbt projects state."""
    by_file: dict[str, list[Derivation]] = {}
    for derivation in derivations:
        by_file.setdefault(derivation.statement.file, []).append(derivation)
    stated = statement_facts(found, settings, {derivation.target for derivation in derivations})
    return (*stated, *facts_beside(found, settings, lambda file: by_file.get(file, ())))


def statement_facts(
    found: Sequence[Script | Diagnostic],
    settings: Options,
    targets: Collection[str],
    only: Collection[str] | None = None,
) -> tuple[Fact, ...]:
    """Return the comments, tags and options that statements give to tables and columns.

    Args:
        found: The scripts.
        settings: How they are read.
        targets: The datasets of their lineage.
        only: The files whose facts are wanted; None: all.
    """
    from govtool.capture.sql.properties.tags import facts_of

    return facts_of(
        (item for item in found if not isinstance(item, Diagnostic)),
        dialect=settings.dialect,
        source=settings.source,
        namespace=settings.namespace,
        default_catalog=settings.default_catalog,
        default_schema=settings.default_schema,
        variables=settings.variables,
        projects=settings.projects,
        known=targets,
        only=only,
    )


def facts_beside(
    found: Sequence[Script | Diagnostic], settings: Options, of_file: Callable[[str], Iterable[Derivation]]
) -> tuple[Fact, ...]:
    """Return the facts beside statements: waivers in comments, and those of property files of dbt projects.

    Args:
        found: The scripts.
        settings: How they are read.
        of_file: The derivations of a file; looked up only for files with waivers.
    """
    from govtool.app.ingest.project_facts import project_facts
    from govtool.capture.sql.properties.waiver_comments import waivers_in

    waivers = waivers_in((item for item in found if not isinstance(item, Diagnostic)), of_file, settings.source)
    return (*waivers, *(project_facts(settings) if settings.projects else ()))


def unmatched_relations(found: Sequence[Script | Diagnostic], settings: Options) -> tuple[Diagnostic, ...]:
    """A warning if ``--relation-from`` was given and names no file's relation."""
    from govtool.capture.sql.options import relation_of

    pattern = settings.relation_from
    if not pattern or any(relation_of(item.file, settings) for item in found if item.file):
        return ()
    example = next((item.file for item in found if item.file), "")
    return (Diagnostic("relation-from", "warning", f"the pattern {pattern} fits no file, such as {example}"),)


def renamed_models(found: Sequence[Script | Diagnostic], settings: Options) -> tuple[Diagnostic, ...]:
    """A warning if dbt would give models other names than those of their files."""
    from govtool.capture.dbt.project import configures_name

    models = (
        item.file
        for item in found
        if not isinstance(item, Diagnostic)
        and any(project.is_model(item.file) for project in settings.projects)
        and configures_name(item.text)
    )
    by_project = any(project.renames for project in settings.projects)
    named = "dbt_project.yml" if by_project else next(models, None)
    if named is None:
        return ()
    message = (
        f"{named} gives models another schema or alias, which is not applied: `ingest dbt target/` reads their names"
    )
    return (Diagnostic("dbt-names", "warning", message),)


def schema_diagnostics(settings: Options) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the supplied schema."""
    return () if settings.schema is None else settings.schema.diagnostics


def options(
    request: SqlRequest, source: str = "", *, evidence: bool = True, folders: Mapping[Path, Path] | None = None
) -> Options:
    """The extractor's options for a request; ``evidence`` keeps the text of statements, ``folders`` are its
    ``project_folders``, where they are known.

    Raises:
        UnknownNameError: the dialect is unknown.
        UsageError: a schema file cannot be read, or the address of the catalog is none.
        SourceError: the catalog cannot be read.
    """
    from govtool.capture.sql.options import Options

    if request.explain and request.catalog is None:
        raise UsageError("--explain needs a database", code="usage.arguments", hint="--catalog postgresql://host/db")
    if request.catalog is not None:
        if request.explain:
            from govtool.app.ingest.postgres_explain import check_explainable

            check_explainable(request.catalog)
        return _with_catalog(request, source, evidence=evidence, folders=folders)
    dialect = check_dialect(request.dialect)
    return Options(
        dialect=dialect,
        default_catalog=request.default_catalog,
        default_schema=request.default_schema,
        schema=_supplied(request, dialect),
        relation_from=request.relation_from,
        source=source,
        namespace=request.namespace or "default",
        variables=request.variables,
        projects=_projects(request, folders),
        evidence=evidence,
    )


def _supplied(request: SqlRequest, dialect: str) -> Schema | None:
    """The schema of the files and the tables that a request gives."""
    files = read_schema(request.schema, dialect, request.default_catalog, request.default_schema)
    if not request.tables:
        return files
    from govtool.capture.sql.schemas.supplied import schema_from_mapping

    given = schema_from_mapping(request.tables, dialect, request.default_catalog, request.default_schema)
    return given if files is None else files.merged(given)


def _projects(request: SqlRequest, folders: Mapping[Path, Path] | None) -> tuple[DbtProject, ...]:
    from govtool.capture.dbt.project import read_projects

    return read_projects(request.paths, root_of(request.paths), follow_links=request.follow_links, folders=folders)


def _with_catalog(request: SqlRequest, source: str, *, evidence: bool, folders: Mapping[Path, Path] | None) -> Options:
    """Options with a database's catalog as the schema; schemas that are given otherwise come first."""
    from govtool.capture.catalog.read import read_catalog
    from govtool.capture.sql.schemas.supplied import Schema

    assert request.catalog is not None
    catalog = read_catalog(request.catalog)
    plain = options(
        replace(
            request,
            catalog=None,
            explain=False,
            dialect=request.dialect or catalog.dialect,
            default_catalog=request.default_catalog or catalog.default_catalog,
            default_schema=request.default_schema or catalog.default_schema,
            namespace=request.namespace or catalog.namespace,
        ),
        source,
        evidence=evidence,
        folders=folders,
    )
    known = Schema(catalog.tables)
    return replace(plain, schema=known if plain.schema is None else known.merged(plain.schema))


_HEAD = 1024
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Control characters that the beginning of a text does not have, and that of a compressed file does."""


_MOST_TEXT = 32 << 20
"""Bytes of a file in which lines are looked for."""
_LONGEST_LINE = 100_000
"""Characters of a line that is shown: of a longer one the place has to do."""


class SourceText:
    """Finds the text of a source line again, to show it below a diagnostic."""

    def __init__(self, root: Path, texts: Mapping[str, str] | None = None) -> None:
        self._root = root
        self._lines: dict[str, list[str]] = {file: text.splitlines() for file, text in (texts or {}).items()}

    def line(self, diagnostic: Diagnostic) -> str | None:
        """The line that a diagnostic points to, or None if it cannot be had."""
        if diagnostic.file is None or diagnostic.line is None:
            return None
        if diagnostic.file not in self._lines:
            try:
                with (self._root / diagnostic.file).open("rb") as file:
                    data = file.read(min(_MOST_TEXT, os.fstat(file.fileno()).st_size))  # room for all is made at once
            except (OSError, ValueError):
                data = b""
            text = "" if _NO_TEXT.search(data, 0, _HEAD) else data.decode("utf-8-sig", "replace")
            self._lines[diagnostic.file] = text.splitlines()
        lines = self._lines[diagnostic.file]
        line = lines[diagnostic.line - 1] if 0 < diagnostic.line <= len(lines) else None
        return None if line is None or len(line) > _LONGEST_LINE else line
