"""The answer of ``compare oracle``: edges of the graph beside those that a warehouse recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.query.agreement import AGREE, ONLY_GRAPH, ONLY_ORACLE

if TYPE_CHECKING:
    from govtool.capture.warehouse_lineage import Export
    from govtool.query.agreement import Agreement, ComparedEdge


@dataclass(frozen=True, slots=True)
class OracleAnswer(GraphAnswer):
    """Edges that agree, and edges that only one side has, each with its reason."""

    schema: ClassVar[str] = "compare-oracle/1"
    fields: ClassVar[tuple[str, ...]] = ("outcome", "source", "target", "reason", "evidence")

    export: Export = field(repr=False)
    """The exports that were read."""
    agreement: Agreement
    differences: bool = False
    """True if edges that agree are left out."""
    limit: int | None = None
    """The number of edges at most; None: all."""

    @property
    def edges(self) -> tuple[ComparedEdge, ...]:
        """The edges of the answer: differences first, sorted."""
        return tuple(self._wanted()[: self.limit])

    @property
    def truncated(self) -> int:
        """Number of edges that ``limit`` leaves out."""
        wanted = len(self._wanted())
        return 0 if self.limit is None else max(0, wanted - self.limit)

    def head(self, limit: int | None) -> OracleAnswer:
        """The answer with at most ``limit`` edges; None leaves it as it is."""
        if limit is None or (self.limit is not None and self.limit <= limit):
            return self
        return replace(self, limit=limit)

    def body(self) -> Mapping[str, object]:
        """The summary of the input, the edges, and their counts."""
        left_off = self.truncated
        return {
            "oracle": self.export.format,
            "rows": self.export.rows,
            "left_out": dict(sorted(self.export.left_out.items())),
            "edges": [edge_object(edge) for edge in self.edges],
            "datasets": self.agreement.datasets,
            "unknown_datasets": list(self.agreement.unknown),
            "summary": self.summary(),
            **({"truncated": left_off} if left_off else {}),
        }

    def summary(self) -> dict[str, object]:
        """The number of edges by outcome, and the share that agrees, 0 to 1."""
        agreement = self.agreement
        return {
            "agree": agreement.count(AGREE),
            "only_graph": agreement.count(ONLY_GRAPH),
            "only_oracle": agreement.count(ONLY_ORACLE),
            "rate": None if agreement.rate is None else round(agreement.rate, 6),
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row an edge."""
        return ((edge.outcome, edge.source, edge.target, edge.reason, edge.evidence) for edge in self.edges)

    def _wanted(self) -> list[ComparedEdge]:
        wanted = [edge for edge in self.agreement.edges if not self.differences or edge.outcome != AGREE]
        return sorted(wanted, key=lambda edge: (edge.outcome == AGREE, edge.outcome, edge.target, edge.source))


def edge_object(edge: ComparedEdge) -> dict[str, object]:
    """The JSON value of one edge."""
    return {
        "outcome": edge.outcome.replace(" in ", "_").replace(" ", "_"),
        "source": edge.source,
        "target": edge.target,
        "reason": edge.reason or None,
        "evidence": edge.evidence or None,
    }
