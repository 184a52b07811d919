"""The cases of ``fixtures/lineage``: SQL with the lineage that a careful data engineer reads out of it.

A file holds cases, separated by a line of at least ten dashes. A case is headers (``# key: value``), SQL, a line
``-- =>`` and the expected lines. ``fixtures/lineage/README.md`` describes the format for those who add cases.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.model import HIDDEN, ROWS, Derivation, EdgeKind
from govtool.names import split_name

if TYPE_CHECKING:
    from govtool.capture.sql.extract import Extraction

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "lineage"

HEADERS = frozenset(
    {
        "title",
        "dialect",
        "schema",
        "default_schema",
        "default_catalog",
        "relation_from",
        "file",
        "paths",
        "variables",
        "note",
    }
)

_SEPARATOR = re.compile(r"^-{10,}[ \t]*$", re.MULTILINE)
_HEADER = re.compile(r"# ([a-z_]+):[ \t]*(.*)\Z")
_ARROW = "-- =>"


@dataclass(frozen=True, slots=True)
class Case:
    """One case: what is given, and what is expected."""

    file: str
    line: int
    title: str
    dialect: str
    sql: str
    expected: tuple[str, ...]
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The name of the test: folder, file and title."""
        return f"{self.file}:{self.title}"

    def json_header(self, key: str) -> object:
        """The value of a header that holds JSON; None without it."""
        text = self.headers.get(key)
        return None if text is None else json.loads(text)


def load_cases(folder: Path = FOLDER) -> list[Case]:
    """All cases below a folder, in order of file and line."""
    return [case for path in sorted(folder.rglob("*.sql")) for case in read_cases(path, folder)]


def read_cases(path: Path, folder: Path = FOLDER) -> list[Case]:
    """The cases of one file.

    Raises:
        ValueError: A case has no title, no ``-- =>``, an unknown header, or its lines are not sorted.
    """
    text = path.read_text(encoding="utf-8")
    cases = []
    start = 0
    for match in [*_SEPARATOR.finditer(text), None]:
        end = len(text) if match is None else match.start()
        chunk = text[start:end]
        if chunk.strip():
            cases.append(_case(chunk, path.relative_to(folder).as_posix(), text.count("\n", 0, start) + 1))
        start = len(text) if match is None else match.end() + 1
    return cases


def _case(chunk: str, file: str, line: int) -> Case:
    lines = chunk.strip("\n").split("\n")
    headers: dict[str, str] = {}
    while lines and (match := _HEADER.match(lines[0])):
        headers[match[1]] = match[2].strip()
        lines.pop(0)
    where = f"{file}:{line}"
    unknown = headers.keys() - HEADERS
    if unknown or "title" not in headers or _ARROW not in lines:
        raise ValueError(f"{where}: a case needs a title and a line '-- =>', and knows no header {sorted(unknown)}")
    arrow = lines.index(_ARROW)
    expected = tuple(item.strip() for item in lines[arrow + 1 :] if item.strip())
    if list(expected) != sorted(expected):
        raise ValueError(f"{where}: {headers['title']}: expected lines are not sorted")
    for item in expected:
        sources = item.partition(" <- ")[2].split(", ")
        if " <- " in item and sources != sorted(sources):
            raise ValueError(f"{where}: {headers['title']}: sources are not sorted in {item!r}")
    dialect = headers.get("dialect", Path(file).parts[0])
    return Case(file, line, headers["title"], dialect, "\n".join(lines[:arrow]).strip("\n") + "\n", expected, headers)


def run_case(case: Case) -> Extraction:
    """Extract the lineage of a case."""
    from govtool.capture.sql.extract import Options, extract
    from govtool.capture.sql.files import Script
    from govtool.capture.sql.schemas.supplied import schema_from_mapping

    given = case.json_header("schema")
    default_catalog = case.headers.get("default_catalog")
    default_schema = case.headers.get("default_schema")
    schema = None
    if given is not None:
        schema = schema_from_mapping(
            given, case.dialect, default_catalog=default_catalog, default_schema=default_schema
        )
    variables = case.json_header("variables") or {}
    assert isinstance(variables, dict)
    options = Options(
        dialect=case.dialect,
        default_catalog=default_catalog,
        default_schema=default_schema,
        schema=schema,
        relation_from=case.headers.get("relation_from"),
        variables=variables,
    )
    return extract([Script(case.headers.get("file", "case.sql"), case.sql)], options)


def lines_of(extraction: Extraction, *, full_paths: bool = False, expected: Iterable[str] = ()) -> list[str]:
    """An extraction in the notation of the cases, sorted.

    Args:
        extraction: What the extractor answered.
        full_paths: Keep struct and JSON paths; otherwise they are cut to the column, as in the batch form.
        expected: The lines of the case. Notes of severity ``info``, candidates of ``ambiguous``, and ``@`` lines
            (modes) are only written where the case names them.
    """
    wanted = list(expected)
    edges: dict[str, set[str]] = defaultdict(set)
    for derivation in extraction.derivations:
        target = _dataset(derivation.target)
        if derivation.mode not in ("declare", "drop"):
            for column in derivation.columns:
                edges[f"{target}.{column.path}"]
        for edge in derivation.edges:
            path = edge.source.path if full_paths else column_of(edge.source.path)
            source = _dataset(edge.source.dataset)
            whole = path in (ROWS, HIDDEN) and edge.kind in (EdgeKind.READ, EdgeKind.OPAQUE)
            name = source if whole else f"{source}.{path}"
            into = ROWS if edge.target_path == HIDDEN else edge.target_path
            edges[f"{target}.{into}"].add(f"{name} {edge.kind.label}")
    lines = [f"{target} <- {', '.join(sorted(sources))}".rstrip() for target, sources in edges.items()]
    lines.extend(_modes(extraction.derivations, wanted))
    named = {item for item in wanted if item.startswith("! ")}
    for note in extraction.diagnostics:
        short, long = f"! {note.code}", f"! {note.code}: {', '.join(note.candidates)}"
        if long in named:
            lines.append(long)
        elif note.severity != "info" or short in named:
            lines.append(short)
    return sorted(set(lines))


def _modes(derivations: Iterable[Derivation], wanted: list[str]) -> list[str]:
    if not any(item.startswith("@ ") for item in wanted):
        return []
    return [f"@ {_dataset(d.target)} {d.mode} {d.target_kind}" for d in derivations]


def _dataset(name: str) -> str:
    """Queries are written without a name, temp tables without their session."""
    if name.startswith("query:"):
        return ""
    parts = split_name(name)
    return f"temp.{parts[-1]}" if parts[0] == "temp" and len(parts) > 2 else name


def column_of(path: str) -> str:
    """The column of a path: ``address`` for ``address.zip``, ``payload`` for ``payload['user'].id``."""
    first = split_name(path)[0]
    if first.startswith('"'):
        end = first.index('"', 1)
        while first[end + 1 : end + 2] == '"':
            end = first.index('"', end + 2)
        return first[: end + 1]
    return first.partition("[")[0]
