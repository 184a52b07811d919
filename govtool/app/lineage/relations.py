"""The column lineage of some SQL without a store, per written relation.

Value flow, ``conditional`` and ``window`` are *contributed* edges between columns; what only decides which rows there
are (joins, filters, grouping …) is *referenced* by the relation as a whole (Zhang, Miao, Wang: "LineageX"). Fields
below a column count as the column; temporary tables that something reads are passed through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from govtool.answers.coverage import Coverage
from govtool.answers.lineage import LineageAnswer, LineageEdge, SqlLineage
from govtool.app.ingest.sql_meter import SqlMeter, counting
from govtool.app.ingest.sql_options import (
    Progress,
    SourceText,
    SqlRequest,
    extract_scripts,
    options,
    root_of,
    schema_diagnostics,
    scripts,
    unmatched_relations,
)
from govtool.model import (
    CONTRIBUTED,
    HIDDEN,
    ROW_SET,
    ROWS,
    STEERING,
    ColumnRef,
    Derivation,
    Diagnostic,
    Edge,
    EdgeKind,
)
from govtool.names import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.files import Script

QUERY_TARGET = ""
"""The name of a bare SELECT's result, so that its columns read ``.name``."""

_NOT_WRITTEN = frozenset({"drop"})


def summarise(
    derivations: Iterable[Derivation],
    diagnostics: Iterable[Diagnostic] = (),
    *,
    id: object = None,
    semantics: str = "precise",
    context: Iterable[Derivation] | None = None,
) -> SqlLineage:
    """Fold derivations into one answer.

    Args:
        derivations: Of statements that were resolved against each other.
        diagnostics: What the extractor said about the same statements.
        id: What the answer is called.
        semantics: ``precise`` ignores the columns of UNION ALL arms as references, ``lineagex`` counts them.
        context: Derivations in which temporary tables are looked up, if not only among ``derivations``.
    """
    written = [d for d in derivations if d.mode not in _NOT_WRITTEN and d.target_kind != "function"]
    through = _Passage(written if context is None else list(context))
    counted = ROW_SET if semantics == "lineagex" else ROW_SET - {EdgeKind.UNION_ALL}
    summary = _Summary(through, counted)
    queries: set[str] = set()
    for derivation in written:
        if derivation.target in through.temporary:
            continue
        if derivation.target_kind == "query":
            queries.add(derivation.target)
            summary.add(QUERY_TARGET, derivation)
        else:
            summary.add(derivation.target, derivation)
    reports = tuple(_renamed(d, queries) for d in diagnostics)
    return SqlLineage(
        id=id,
        edges=_edges(summary.contributed),
        referenced=_edges(summary.referenced),
        unclear=tuple(
            LineageEdge(source, to, tuple(sorted(why))) for (to, source), why in sorted(summary.unclear.items())
        ),
        columns={target: tuple(names) for target, names in sorted(summary.columns.items())},
        sources=tuple(sorted(summary.sources)),
        targets=tuple(sorted(target for target in summary.columns if target)),
        diagnostics=reports,
        error=next((d for d in reports if d.severity == "error"), None),
    )


class _Summary:
    """Edges by target column and source column, while derivations are added."""

    def __init__(self, through: _Passage, counted: frozenset[EdgeKind]) -> None:
        self.through = through
        self.counted = counted
        self.contributed: dict[tuple[str, str], set[EdgeKind]] = {}
        self.referenced: dict[tuple[str, str], set[EdgeKind]] = {}
        self.unclear: dict[tuple[str, str], set[str]] = {}
        self.columns: dict[str, dict[str, None]] = {}
        """Column names by target, in order."""
        self.sources: set[str] = set()

    def add(self, target: str, derivation: Derivation) -> None:
        names = self.columns.setdefault(target, {})
        for column in derivation.columns:
            names.setdefault(column_of(column.path))
        if any(edge.target_path == HIDDEN for edge in derivation.edges):
            names.setdefault(HIDDEN)  # columns behind a * that are not known
        for edge in derivation.edges:
            self._add_edge(target, edge)
            dataset = edge.source.dataset
            self.sources.update(self.through.datasets(dataset))
            if dataset in self.through.temporary:
                for source, kind in self.through.rows(dataset, self.counted):
                    self.referenced.setdefault((f"{target}.{ROWS}", source), set()).add(kind)

    def _add_edge(self, target: str, edge: Edge) -> None:
        reached = f"{target}.{column_of(edge.target_path)}"
        if edge.kind in CONTRIBUTED and edge.target_path != ROWS and edge.source.path != ROWS:
            for source, kind in self.through.columns(edge.source, edge.kind):
                self.contributed.setdefault((reached, source), set()).add(kind)
            for source, reason in self.through.unclear(edge.source):
                self.unclear.setdefault((reached, source), set()).add(reason)
        elif edge.kind in self.counted and edge.source.path != ROWS:
            for source, _ in self.through.columns(edge.source, edge.kind):
                self.referenced.setdefault((f"{target}.{ROWS}", source), set()).add(edge.kind)
            for source, reason in self.through.unclear(edge.source):
                self.unclear.setdefault((f"{target}.{ROWS}", source), set()).add(reason)
        elif edge.kind is EdgeKind.OPAQUE:
            for source in self.through.candidates(edge.source):
                self.unclear.setdefault((reached, source), set()).add(_reason(edge))


def lineage_of(
    request: SqlRequest,
    *,
    semantics: str = "precise",
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> LineageAnswer:
    """Read SQL, resolve all of it together, and answer for each file.

    Raises:
        UsageError: nothing to read, an unknown dialect, an unreadable schema.
    """
    if request.catalog is not None:  # without a store there is nothing that names would have to be told apart from
        request = replace(request, namespace=request.namespace or DEFAULT_NAMESPACE)
    from govtool.capture.dbt.folders import project_folders

    folders = project_folders(request.paths)
    settings = options(request, evidence=False, folders=folders)
    root = root_of(request.paths)
    found = list(scripts(request, root, stdin, folders))
    settings = _with_siblings(found, request, settings, root)
    extraction = extract_scripts(found, settings, SqlMeter(counting(progress)).report)
    if request.explain and request.catalog is not None:
        from govtool.app.ingest.postgres_explain import explained

        extraction = explained(request.catalog, found, settings, extraction)
    by_file: dict[str, list[Derivation]] = {item.file or "": [] for item in found}
    for derivation in extraction.derivations:
        by_file.setdefault(derivation.statement.file, []).append(derivation)
    reports: dict[str, list[Diagnostic]] = {}
    for diagnostic in extraction.diagnostics:
        reports.setdefault(diagnostic.file or "", []).append(diagnostic)
    results = [
        summarise(
            by_file.get(file, ()), reports.get(file, ()), id=file, semantics=semantics, context=extraction.derivations
        )
        for file in dict.fromkeys([*by_file, *reports])
    ]
    texts = {item.file: item.text for item in found if not isinstance(item, Diagnostic) and item.file == "<stdin>"}
    assumed = schema_diagnostics(settings) + unmatched_relations(found, settings)
    diagnostics = assumed + extraction.diagnostics
    return LineageAnswer(tuple(results), Coverage.of(extraction), diagnostics, SourceText(root, texts))


def _with_siblings(found: Sequence[Script | Diagnostic], request: SqlRequest, settings: Options, root: Path) -> Options:
    """The options with the columns of the dbt models that scripts ``ref`` and that were not to be read."""
    if not settings.projects:
        return settings
    from govtool.capture.dbt.siblings import referred_models
    from govtool.capture.sql.schemas.supplied import Schema

    read = [item for item in found if not isinstance(item, Diagnostic)]
    others = list(referred_models(read, request.paths, root, follow_links=request.follow_links))
    made = extract_scripts(others, replace(settings, evidence=False)).derivations if others else ()
    tables: dict[str, dict[str, str | None]] = {}
    for derivation in made:
        if derivation.columns_complete and derivation.columns:
            columns = tables.setdefault(derivation.target, {})
            columns.update({column_of(column.path): column.type for column in derivation.columns})
    known = Schema(tables)
    return replace(settings, schema=known if settings.schema is None else known.merged(settings.schema))


def column_of(path: str) -> str:
    """The column that a path lies in: ``address`` of ``address.zip``, ``payload`` of ``payload['user'].id``."""
    if "." not in path and "[" not in path:
        return path
    if path.startswith('"'):
        end = 1
        while end < len(path):
            if path[end] == '"':
                if path[end + 1 : end + 2] != '"':
                    return path[: end + 1]
                end += 1
            end += 1
        return path
    for i, ch in enumerate(path):
        if ch in ".[":
            return path[:i]
    return path


class _Passage:
    """Looks through temporary tables to what they were made of."""

    def __init__(self, derivations: list[Derivation]) -> None:
        made = {d.target for d in derivations if d.target_kind == "temporary"}
        read = {e.source.dataset for d in derivations for e in d.edges if e.source.dataset != d.target}
        self.temporary = made & read
        self._into: dict[ColumnRef, list[tuple[ColumnRef, EdgeKind]]] = {}
        self._from: dict[str, set[str]] = {}
        self._shaped: dict[str, list[tuple[ColumnRef, EdgeKind]]] = {}
        self._unclear: dict[ColumnRef, list[Edge]] = {}
        self._known: set[ColumnRef] = set()
        """Columns of temporary tables; any other is behind a ``*``."""
        for derivation in derivations:
            if derivation.target not in self.temporary:
                continue
            self._known.update(ColumnRef(derivation.target, column_of(column.path)) for column in derivation.columns)
            for edge in derivation.edges:
                self._from.setdefault(derivation.target, set()).add(edge.source.dataset)
                if edge.kind in ROW_SET and edge.source.path != ROWS:
                    self._shaped.setdefault(derivation.target, []).append((edge.source, edge.kind))
                elif edge.kind in CONTRIBUTED and ROWS not in (edge.source.path, edge.target_path):
                    column = ColumnRef(derivation.target, column_of(edge.target_path))
                    self._into.setdefault(column, []).append((edge.source, edge.kind))
                elif edge.kind is EdgeKind.OPAQUE:
                    column = ColumnRef(derivation.target, column_of(edge.target_path))
                    self._unclear.setdefault(column, []).append(edge)

    def columns(self, source: ColumnRef, kind: EdgeKind) -> Iterable[tuple[str, EdgeKind]]:
        """The lasting columns behind one column, each with the kind of the whole way."""
        start = ColumnRef(source.dataset, column_of(source.path))
        if source.dataset not in self.temporary:
            return ((start.text, kind),)
        return self._lasting(start, kind)

    def _lasting(self, start: ColumnRef, kind: EdgeKind) -> Iterator[tuple[str, EdgeKind]]:
        seen = {(start, kind)}
        stack = [(start, kind)]
        while stack:
            column, way = stack.pop()
            if column.dataset not in self.temporary:
                yield column.text, way
                continue
            for further, step in self._into.get(column, ()):
                found = (ColumnRef(further.dataset, column_of(further.path)), joined(step, way))
                if found not in seen:
                    seen.add(found)
                    stack.append(found)

    def unclear(self, source: ColumnRef) -> Iterable[tuple[str, str]]:
        """Return the possible sources of a column of a temporary table, and why they are only possible."""
        return self._unclear_behind(source) if source.dataset in self.temporary else ()

    def _unclear_behind(self, source: ColumnRef) -> Iterator[tuple[str, str]]:
        start = ColumnRef(source.dataset, column_of(source.path))
        seen, stack = {start}, [start]
        while stack:
            column = stack.pop()
            for edge in self._unclear.get(column, ()):
                for candidate in self.candidates(edge.source):
                    yield candidate, _reason(edge)
            behind = [ColumnRef(further.dataset, column_of(further.path)) for further, _ in self._into.get(column, ())]
            if column.dataset in self.temporary and column not in self._known:
                behind.append(ColumnRef(column.dataset, HIDDEN))
            for found in behind:
                if found not in seen:
                    seen.add(found)
                    stack.append(found)

    def candidates(self, source: ColumnRef) -> Iterator[str]:
        """A column that something may come from; of a temporary table, the lasting datasets behind it."""
        for dataset in self.datasets(source.dataset):
            yield f"{dataset}.{column_of(source.path) if dataset == source.dataset else HIDDEN}"

    def datasets(self, dataset: str) -> Iterable[str]:
        """The lasting datasets behind one dataset."""
        if dataset not in self.temporary:
            return (dataset,)
        return [found for found in self._behind(dataset) if found not in self.temporary]

    def rows(self, dataset: str, counted: frozenset[EdgeKind]) -> Iterator[tuple[str, EdgeKind]]:
        """The lasting columns that shaped the rows of a temporary table."""
        for found in self._behind(dataset):
            for source, kind in self._shaped.get(found, ()):
                if kind in counted:
                    for column, _ in self.columns(source, kind):
                        yield column, kind

    def _behind(self, dataset: str) -> Iterator[str]:
        seen = {dataset}
        stack = [dataset]
        while stack:
            current = stack.pop()
            yield current
            if current in self.temporary:
                for further in self._from.get(current, set()) - seen:
                    seen.add(further)
                    stack.append(further)


def joined(first: EdgeKind, second: EdgeKind) -> EdgeKind:
    """The kind of two contributed steps in a row: steering wins, then aggregation, then transformation."""
    for kind in (second, first):
        if kind in STEERING or kind in ROW_SET:
            return kind
    return max(first, second)


def _reason(edge: Edge) -> str:
    return (edge.reason or edge.kind.label).partition(":")[0]


def _edges(found: Mapping[tuple[str, str], set[EdgeKind]]) -> tuple[LineageEdge, ...]:
    return tuple(
        LineageEdge(source, target, tuple(kind.label for kind in sorted(kinds)))
        for (target, source), kinds in sorted(found.items())
    )


def _renamed(diagnostic: Diagnostic, queries: set[str]) -> Diagnostic:
    """Name the result of a bare SELECT as the rest of the answer does."""
    query, dot, column = (diagnostic.target or "").partition(".")
    return replace(diagnostic, target=QUERY_TARGET + dot + column) if query in queries else diagnostic
