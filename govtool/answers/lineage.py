"""The column lineage of SQL, without a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from govtool.answers.answer import Answer, Cell, require_coverage
from govtool.answers.diagnostics import diagnostic_object
from govtool.answers.ingest import reading_hint
from govtool.model import ROWS

if TYPE_CHECKING:
    from govtool.answers.coverage import Coverage
    from govtool.answers.ingest import SourceLines
    from govtool.model import Diagnostic


class LineageEdge(NamedTuple):
    """A source column and what it reaches: a column, or with ``dataset.*`` the rows of a relation."""

    source: str
    target: str
    kinds: tuple[str, ...]
    """Labels of ``EdgeKind``, strongest first."""


@dataclass(frozen=True, slots=True)
class SqlLineage:
    """The lineage of one unit of SQL: a file, or the ``sql`` of one batch line."""

    id: object
    edges: tuple[LineageEdge, ...] = ()
    """Contributed, sorted by target and source."""
    referenced: tuple[LineageEdge, ...] = ()
    """Sources that shape the rows of a target (``dataset.*``), sorted likewise."""
    columns: Mapping[str, tuple[str, ...]] | None = None
    """The columns of each written relation in their order."""
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    unclear: tuple[LineageEdge, ...] = ()
    """Possible sources of a column, each with the reason why it is only possible (``ambiguous`` …)."""
    error: Diagnostic | None = None
    """The first thing of which nothing was understood."""

    @property
    def all_edges(self) -> tuple[LineageEdge, ...]:
        """Contributed, unclear and referenced edges, in this order."""
        return (*self.edges, *self.unclear, *self.referenced)


@dataclass(frozen=True, slots=True)
class LineageAnswer(Answer):
    """The lineage of SQL: one ``SqlLineage`` a file, and the figures of the whole."""

    schema: ClassVar[str] = "lineage/1"
    fields: ClassVar[tuple[str, ...]] = ("target", "source", "kinds", "file")
    types: ClassVar[Mapping[str, str]] = {"kinds": "texts"}

    results: tuple[SqlLineage, ...]
    coverage: Coverage
    diagnostics: tuple[Diagnostic, ...]
    """Everything that was not understood or is doubtful, of all files."""
    text: SourceLines = field(repr=False, compare=False)
    """Finds the source line of a diagnostic."""

    def body(self) -> Mapping[str, object]:
        """One object a file, in ``results``."""
        return {"results": [to_object(result, with_files=True) for result in self.results]}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row an edge: target, source, kinds (strongest first), file."""
        for result in self.results:
            for edge in result.all_edges:
                yield edge.target, edge.source, edge.kinds, str(result.id)

    def check_coverage(self, *, strict: bool = False, min_coverage: float | None = None) -> None:
        """Refuse the answer where too little was understood.

        Args:
            strict: Demand that everything was understood, and that there was no error.
            min_coverage: Demand this share of the statements, in percent.

        Raises:
            EvidenceError: one of these demands is not met, or nothing at all was understood (``evidence.coverage``).
        """
        require_coverage(
            self.coverage,
            strict=strict,
            min_coverage=min_coverage,
            hint=reading_hint("sql", self.diagnostics),
            diagnostics=self.diagnostics,
        )


def to_object(lineage: SqlLineage, *, with_files: bool = False) -> dict[str, object]:
    """The JSON value of the lineage of one unit: the output line of the batch protocol."""
    referenced: dict[str, list[str]] = {}
    for edge in lineage.referenced:
        referenced.setdefault(edge.target[: -len(ROWS) - 1], []).append(edge.source)
    error = lineage.error
    return {
        "id": lineage.id,
        "edges": [[edge.source, edge.target] for edge in lineage.edges],
        "kinds": [list(edge.kinds) for edge in lineage.edges],
        "referenced": {target: sorted(set(sources)) for target, sources in sorted(referenced.items())},
        "unclear": [[edge.source, edge.target, *edge.kinds] for edge in lineage.unclear],
        "columns": {target: list(names) for target, names in (lineage.columns or {}).items()},
        "tables": {"sources": list(lineage.sources), "targets": list(lineage.targets)},
        "diagnostics": [diagnostic_object(d, with_file=with_files) for d in lineage.diagnostics],
        "error": error and {"code": error.code, "message": error.message, "line": error.line, "column": error.column},
    }
