"""What a deletion makes of each row: deleted, kept, recomputed or unknown, and the rows that appear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.workflow.annotate.circuit import NONE
from govtool.workflow.queries.survival import Survival, propagate
from govtool.workflow.why import QueryProvenance

Status = Literal["deleted", "kept", "recomputed", "unknown"]
Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RowStatus:
    """A row of the result before a deletion, and what becomes of it.

    Attributes:
        before: Its values.
        status: What becomes of it.
        after: Its values then; None where it is gone or not known.
    """

    before: Values
    status: Status
    after: Values | None = None


@dataclass(frozen=True, slots=True)
class RowDeletion:
    """The rows of a result after a deletion.

    Attributes:
        rows: Every row before, as often as it was there.
        gains: Rows that appear.
        gains_possible: Rows may appear that are not among ``gains``.
        is_replayed: Whether a re-run decided what propagation could not.
    """

    rows: tuple[RowStatus, ...]
    gains: tuple[Values, ...]
    gains_possible: bool
    is_replayed: bool = False

    @property
    def is_certain(self) -> bool:
        """True if nothing is left open."""
        return not self.gains_possible and all(row.status != "unknown" for row in self.rows)


def propagated(found: QueryProvenance, gone: Array) -> RowDeletion:
    """What propagation over the annotations says of a deletion.

    Args:
        found: The query's provenance.
        gone: The source nodes that are deleted.
    """
    state = propagate(found.query, found.counts, gone)
    return _Statuses(found, state).deletion()


class _Statuses:
    def __init__(self, found: QueryProvenance, state: Survival) -> None:
        self._state = state
        columns = [column.to_pylist() for column in found.query.table.read(*found.query.columns)]
        count = found.query.table.count
        self._values: list[Values] = list(zip(*columns, strict=True)) if columns else [()] * count
        self._times = found.query.times()
        nodes = found.annotations
        self._low, self._high = state.low[nodes], state.high[nodes]
        self._unknown = np.zeros(count, bool)
        self._changed: list[dict[int, Any]] = [{} for _ in found.query.columns]
        self._nodes: list[Array | None] = []
        for at, column in enumerate(found.query.columns):
            cells = found.cells.get(column.id)
            self._nodes.append(cells)
            if cells is not None and count:
                self._unknown |= (cells != NONE) & state.unknown[cells]
                changed = cells[(cells != NONE) & state.values.changed[cells]]
                self._changed[at] = state.values.read(changed, column.type)
        self.rows: list[RowStatus] = []
        self.gains: list[Values] = []
        self.gains_possible = state.gains_possible

    def deletion(self) -> RowDeletion:
        """All rows."""
        for at in range(len(self._values)):
            self._row(at)
        return RowDeletion(tuple(self.rows), tuple(self.gains), self.gains_possible)

    def _row(self, at: int) -> None:
        times, low, high = int(self._times[at]), int(self._low[at]), int(self._high[at])
        if high == 0 and times == 0:
            return
        before = self._values[at]
        if self._unknown[at]:
            self._of_unknown_value(before, times, high)
            return
        after = self._after(at)
        kept = min(low, times)
        same: Status = "kept" if after == before or _alike(after, before) else "recomputed"
        self.rows += [RowStatus(before, same, after)] * kept
        doubtful = min(high, times) - kept
        self.rows += [RowStatus(before, "unknown")] * doubtful
        self.rows += [RowStatus(before, "deleted")] * (times - kept - doubtful)
        self.gains += [after] * (low - kept)
        self.gains_possible |= high > max(low, times)

    def _of_unknown_value(self, before: Values, times: int, high: int) -> None:
        doubtful = min(high, times)
        self.rows += [RowStatus(before, "unknown")] * doubtful
        self.rows += [RowStatus(before, "deleted")] * (times - doubtful)
        self.gains_possible |= high > times

    def _after(self, at: int) -> Values:
        values = list(self._values[at])
        for place, cells in enumerate(self._nodes):
            if cells is not None:
                values[place] = self._changed[place].get(int(cells[at]), values[place])
        return tuple(values)


def _alike(one: Values, other: Values) -> bool:
    """Return whether values are equal; NaN equals NaN."""
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def statuses(rows: Sequence[RowStatus]) -> dict[str, int]:
    """How many rows have each status."""
    found: dict[str, int] = {}
    for row in rows:
        found[row.status] = found.get(row.status, 0) + 1
    return found
