"""The answer of ``diff`` of two runs: why they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from govtool.answers.answer import Cell, GraphAnswer
from govtool.answers.row_diff import EQUAL
from govtool.query.runs.aspects import ASPECTS

if TYPE_CHECKING:
    from govtool.answers.row_diff import RowDiff
    from govtool.model.run import Run
    from govtool.query.runs.aspects import Cause, RunChange
    from govtool.query.runs.diff import RunDifference


@dataclass(frozen=True, slots=True)
class RunDiffAnswer(GraphAnswer):
    """The differences of two runs, each with its first upstream cause."""

    schema: ClassVar[str] = "run-diff/1"
    fields: ClassVar[tuple[str, ...]] = ("aspect", "name", "what", "before", "after", "first cause")

    result: RunDifference
    row_diff: RowDiff | None = None
    """The rows of outputs that differ, with ``rows``; None: that was not requested."""

    @property
    def differs(self) -> bool:
        """True if anything differs; an output whose rows are equal within the requested tolerance does not."""
        if self.row_diff is None:
            return bool(self.result.changes)
        near = {each.after for each in self.row_diff.outputs if each.tolerance is not None and each.verdict == EQUAL}
        others = [each for each in self.result.changes if each.aspect != "output" or each.name not in near]
        return bool(others) or self.row_diff.differs

    def body(self) -> Mapping[str, object]:
        """Both runs, their differences, and what cannot be compared."""
        result = self.result
        return {
            "from": _end(result.first),
            "to": _end(result.second),
            "reproduced": result.reproduced,
            "changes": [run_change_object(change) for change in result.changes],
            "verdict": result.verdict,
            "outputs": [{"dataset": o.dataset, "verdict": o.verdict, "by": o.by} for o in result.outputs],
            "compared": {aspect: result.state(aspect) for aspect in ASPECTS},
            "unknown": [
                {"aspect": u.aspect, "name": u.name, "which": u.which, **({"why": u.why} if u.why else {})}
                for u in result.not_comparable
            ],
            **({} if self.row_diff is None else {"row_differences": [o.to_dict() for o in self.row_diff.outputs]}),
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row a difference."""
        for change in self.result.changes:
            yield change.aspect, change.name, change.what, change.before, change.after, cause_text(change)


def cause_text(change: RunChange) -> str:
    """``plan: filter (via staging ← raw)``; empty if no cause is known."""
    return "" if change.cause is None else cause_words(change.cause)


def cause_words(cause: Cause) -> str:
    """A cause with the way to it, unless that is one dataset, which the cause names itself."""
    is_named = len(cause.way) == 1 and cause.text.endswith(cause.way[0])
    way = "" if is_named else " ← ".join(cause.way)
    return f"{cause.kind}: {cause.text}" + (f" (via {way})" if way else "")


def _end(run: Run) -> dict[str, object]:
    return {"id": run.id, "job": run.job, "status": run.status, "started": run.started, "ended": run.ended}


def run_change_object(change: RunChange) -> dict[str, object]:
    """The JSON value of one difference."""
    cause = change.cause
    return {
        "aspect": change.aspect,
        "name": change.name,
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "cause": None
        if cause is None
        else {"kind": cause.kind, "text": cause.text, "way": list(cause.way), "runs": list(cause.runs)},
    }
