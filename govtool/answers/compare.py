"""The answer of ``compare static runtime``: edges that only texts or only runs know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import GraphAnswer
from govtool.wording import count

if TYPE_CHECKING:
    from govtool.query.compare import EvidenceComparison


@dataclass(frozen=True, slots=True)
class ComparisonAnswer(GraphAnswer):
    """Dead SQL (only in the text) and dynamic code (only ran)."""

    schema: ClassVar[str] = "compare/1"
    fields: ClassVar[tuple[str, ...]] = ("side", "target", "source", "kind", "reason", "place")

    result: EvidenceComparison

    @property
    def differs(self) -> bool:
        """True if only one side knows anything."""
        return self.result.differs

    def body(self) -> Mapping[str, object]:
        """Edges that both know are counted; the others and the datasets of one side are listed."""
        result = self.result
        return {
            "datasets": result.datasets,
            "both": result.both,
            "only": [
                {
                    "side": one.side,
                    "target": one.flow.target,
                    "source": one.flow.source,
                    "kind": one.flow.kind,
                    "reason": one.reason,
                    "place": one.place,
                }
                for one in result.only
            ],
            "unmatched": [
                {"side": one.side, "dataset": one.dataset, "edges": one.edges, "reason": one.reason, "place": one.place}
                for one in result.unmatched
            ],
        }

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Datasets that one side makes, then edges that one side knows, a row each."""
        for found in self.result.unmatched:
            yield found.side, found.dataset, count(found.edges, "edge"), "", found.reason, found.place
        for one in self.result.only:
            yield one.side, one.flow.target, one.flow.source, one.flow.kind, one.reason, one.place
