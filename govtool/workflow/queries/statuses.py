"""What a deletion makes of each row: deleted, kept, recomputed or unknown, and the rows that appear."""

from __future__ import annotations

import datetime
import decimal
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.workflow.annotate.circuit import NONE
from govtool.workflow.queries.survival import Survival, propagate
from govtool.workflow.why import QueryProvenance

Status = Literal["deleted", "kept", "recomputed", "unknown"]
Values = tuple[Any, ...]
DIGITS = 9
"""Significant digits in which floats have to agree."""


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
    return deletion_of(found, state, state.gains_possible)


def deletion_of(found: QueryProvenance, state: Survival, gains_possible: bool) -> RowDeletion:
    """What a circuit after a deletion says of the rows of one result over it.

    Args:
        found: The result's provenance.
        state: The circuit after the deletion.
        gains_possible: Rows may come into this result that no candidate stands for.
    """
    return _Statuses(found, state, gains_possible).deletion()


class _Statuses:
    def __init__(self, found: QueryProvenance, state: Survival, gains_possible: bool) -> None:
        self._is_open = gains_possible
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
        self.gains_possible = gains_possible
        self._computed = [at for at, cells in enumerate(self._nodes) if cells is not None]
        self._possible: list[Values] = []  # rows that may appear, with the values that they had before

    def deletion(self) -> RowDeletion:
        """All rows."""
        for at in range(len(self._values)):
            self._row(at)
        rows, gains = stood_in(self.rows, self.gains, self._computed)
        if self.gains_possible or any(row.status == "unknown" for row in rows):
            rows = self._honest(rows)
        return RowDeletion(tuple(rows), tuple(gains), self.gains_possible)

    def _honest(self, rows: list[RowStatus]) -> list[RowStatus]:
        """Rows that are gone, unknown where another row may come to have their values."""
        others: dict[Any, set[Any]] = defaultdict(set)
        for values in self._possible:
            others[rest_of(values, self._computed)].add(None)
        for row in rows:
            if row.status == "unknown":
                others[rest_of(row.before, self._computed)].add(key_of(row.before))
        return [self._doubted(row, others) if row.status == "deleted" else row for row in rows]

    def _doubted(self, row: RowStatus, others: dict[Any, set[Any]]) -> RowStatus:
        like = others.get(rest_of(row.before, self._computed), set()) - {key_of(row.before)}
        return RowStatus(row.before, "unknown") if like or self._is_open else row

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
        self._may_appear(before, high > max(low, times))

    def _of_unknown_value(self, before: Values, times: int, high: int) -> None:
        doubtful = min(high, times)
        self.rows += [RowStatus(before, "unknown")] * doubtful
        self.rows += [RowStatus(before, "deleted")] * (times - doubtful)
        self._may_appear(before, high > times)

    def _may_appear(self, values: Values, may: bool) -> None:
        if may:
            self.gains_possible = True
            self._possible.append(values)

    def _after(self, at: int) -> Values:
        values = list(self._values[at])
        for place, cells in enumerate(self._nodes):
            if cells is not None:
                values[place] = self._changed[place].get(int(cells[at]), values[place])
        return tuple(values)


def stood_in(
    rows: Sequence[RowStatus], arrived: Sequence[Values], computed: Collection[int]
) -> tuple[list[RowStatus], list[Values]]:
    """Rows that are gone by their derivation, kept or recomputed where another row has their values afterwards.

    Args:
        rows: The rows before.
        arrived: Rows of the result after the deletion that none of them is as yet.
        computed: The positions of computed columns: rows that agree in all others are one row with other values.

    Returns:
        The rows, and those of ``arrived`` that stand for none.
    """
    found = list(rows)
    gone = [at for at, row in enumerate(found) if row.status == "deleted"]
    if not gone:
        return found, list(arrived)
    _exchange(found, gone)
    left = list(arrived)
    for columns in ((), computed):
        left = _match(found, gone, left, columns)
    return found, left


def _exchange(rows: list[RowStatus], gone: list[int]) -> None:
    """Keep rows that are gone where one that is recomputed comes to their values: that one is gone instead."""
    reached: dict[Any, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if row.status == "recomputed" and row.after is not None:
            reached[key_of(row.after)].append(at)
    for place, at in enumerate(gone):
        while (others := reached.get(key_of(rows[at].before))) and rows[at].status == "deleted":
            other = others.pop()
            rows[at] = RowStatus(rows[at].before, "kept", rows[other].after)
            rows[other] = RowStatus(rows[other].before, "deleted")
            gone[place] = at = other


def _match(
    rows: list[RowStatus], gone: Sequence[int], arrived: Sequence[Values], computed: Collection[int]
) -> list[Values]:
    """Match rows that are gone with others by all columns but some; return the others that are left."""
    left: dict[Any, list[Values]] = defaultdict(list)
    for values in arrived:
        left[rest_of(values, computed)].append(values)
    for at in gone:
        others = left.get(rest_of(rows[at].before, computed)) if rows[at].status == "deleted" else None
        if others:
            value = others.pop()
            same = key_of(value) == key_of(rows[at].before)
            rows[at] = RowStatus(rows[at].before, "kept" if same else "recomputed", value)
    return [value for values in left.values() for value in values]


def rest_of(row: Values, computed: Collection[int]) -> Any:
    """The key of a row's values that are not computed."""
    return key_of(tuple(value for at, value in enumerate(row) if at not in computed))


def key_of(row: Values) -> Any:
    """Values as a key: floats to nine digits, lists as multisets, moments in UTC."""
    return tuple(_key(value) for value in row)


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else float(f"{value:.{DIGITS - 1}e}") if abs(value) != float("inf") else value
    if isinstance(value, (list, tuple)):
        return tuple(sorted(map(_key, value), key=repr))
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)).isoformat()
    if isinstance(value, dict):
        return tuple((key, _key(item)) for key, item in value.items())
    return (type(value).__name__, value) if isinstance(value, (bool, decimal.Decimal)) else value


def _alike(one: Values, other: Values) -> bool:
    """Return whether values are equal; NaN equals NaN."""
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def statuses(rows: Sequence[RowStatus]) -> dict[str, int]:
    """How many rows have each status."""
    found: dict[str, int] = {}
    for row in rows:
        found[row.status] = found.get(row.status, 0) + 1
    return found
