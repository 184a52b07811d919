"""Rows of outputs that differ between two runs, each with the input rows behind it and the first cause."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.answers.row_diff import (
    CHANGED,
    DIFFERENT,
    EQUAL,
    GONE,
    NEW,
    UNKNOWN,
    DifferentRow,
    OutputRows,
    Row,
    RowDiff,
)
from govtool.answers.run_diff import cause_words
from govtool.app.row_diff.inputs import InputChange, behind, input_changes, kept_rows, value_key
from govtool.app.row_diff.keys import paired, row_key
from govtool.app.row_diff.sides import OutputSide, output_side
from govtool.app.row_diff.tolerance import beyond
from govtool.app.runs.lookup import read_history
from govtool.errors import GovtoolError
from govtool.query.runs.diff import difference_cause
from govtool.records.cells import zoned
from govtool.records.replay.compare import row_differences
from govtool.records.trace.computed import computed

if TYPE_CHECKING:
    from govtool.app.records.opened import OpenedWrite
    from govtool.model.run import Run
    from govtool.query.runs.diff import RunDifference
    from govtool.records.plan.expressions import Attribute
    from govtool.store import Commit, Reader


def row_diff(
    store: Reader,
    commit: Commit,
    found: RunDifference,
    limit: int | None = None,
    tolerance: float | None = None,
) -> RowDiff:
    """Compare the rows of the outputs of two runs.

    Args:
        store: The store.
        commit: Records are those of this commit.
        found: The runs and what differs between them.
        limit: The most rows of each kind that are listed and traced; None: all.
        tolerance: How far floats may be apart, as a share; None: they are equal up to the order of a sum.

    Raises:
        StoreError: A fragment cannot be read.
    """
    outputs = []
    cause = ""
    for old, new in _pairs(found.first, found.second):
        with tempfile.TemporaryDirectory(prefix="govtool-rows-") as folder:
            places = [Path(folder, side) for side in ("before", "after")]
            for place in places:
                place.mkdir()
            sides = (
                output_side(store, commit, found.first, old, places[0]),
                output_side(store, commit, found.second, new, places[1]),
            )
            rows = _compared(sides, limit, tolerance)
        if rows.verdict == DIFFERENT and not cause:
            cause = _cause(store, commit, found)
        outputs.append(replace(rows, cause=cause if rows.verdict == DIFFERENT else ""))
    return RowDiff(tuple(outputs))


def _pairs(first: Run, second: Run) -> list[tuple[str, str]]:
    """The outputs of both runs; where they have none in common, and one each, these two."""
    old, new = ([each.dataset for each in run.outputs] for run in (first, second))
    common = [name for name in old if name in new]
    if common or len(old) != 1 or len(new) != 1:
        return [(name, name) for name in common]
    return [(old[0], new[0])]


def _cause(store: Reader, commit: Commit, found: RunDifference) -> str:
    return cause_words(difference_cause(read_history(store, commit), found))


def _compared(sides: tuple[OutputSide, OutputSide], limit: int | None, tolerance: float | None) -> OutputRows:
    old, new = sides
    why = "; ".join(filter(None, (old.why, new.why)))
    answer = OutputRows(old.dataset, new.dataset, UNKNOWN, how=(old.how, new.how), why=why)
    if old.rows is None or new.rows is None or old.write is None or new.write is None:
        return answer
    types = {column.name: column.type for column in old.rows.columns}
    columns = tuple(column for column in new.rows.columns if types.get(column.name) == column.type)
    every = dict.fromkeys([*types, *(column.name for column in new.rows.columns)])
    names = tuple(column.name for column in columns)
    answer = replace(answer, columns=names, others=tuple(name for name in every if name not in names))
    try:
        return _different(answer, (old.write, new.write), sides, columns, limit, tolerance)
    except GovtoolError as error:
        if error.code == "usage.config-keys":
            raise
        return replace(answer, verdict=UNKNOWN, why="; ".join(filter(None, (why, error.message))))


def _different(
    answer: OutputRows,
    writes: tuple[OpenedWrite, OpenedWrite],
    sides: tuple[OutputSide, OutputSide],
    columns: Sequence[Attribute],
    limit: int | None,
    tolerance: float | None,
) -> OutputRows:
    assert sides[0].rows is not None
    assert sides[1].rows is not None
    second = writes[1]
    kept = (kept_rows(second, sides[0].rows, columns), kept_rows(second, sides[1].rows, columns))
    gone, new = row_differences(second.lineage, *kept, _unordered(writes, columns))
    if tolerance is not None:
        every = len(gone)
        gone, new = beyond(gone, new, tolerance)
        answer = replace(answer, tolerance=tolerance, within=every - len(gone))
    if not gone and not new:
        return replace(answer, verdict=DIFFERENT if answer.others else EQUAL)
    key, key_is = row_key(second.executor, kept, answer.after, _group_keys(second, answer.columns))
    left, changed, come = paired(gone, new, columns, key)
    times = Counter(map(value_key, gone)), Counter(map(value_key, new))
    listed = _Listed(writes, columns, input_changes(*writes), times)
    rows = [
        *listed.rows(((old, after) for old, after in changed[:limit]), CHANGED),
        *listed.rows(((old, None) for old in left[:limit]), GONE),
        *listed.rows(((None, after) for after in come[:limit]), NEW),
    ]
    counts = (len(left), len(changed), len(come))
    return replace(answer, verdict=DIFFERENT, key=key, key_is=key_is, counts=counts, rows=tuple(rows))


def _unordered(writes: Iterable[OpenedWrite], columns: Sequence[Attribute]) -> frozenset[int]:
    """The columns of lists that both plans collect in any order, by place."""
    names = [{c.name for c in w.lineage.stage.segment.visible if c.id in w.lineage.lists} for w in writes]
    return frozenset(place for place, column in enumerate(columns) if all(column.name in each for each in names))


def _group_keys(write: OpenedWrite, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that no aggregate or window computes, where others are."""
    visible = write.lineage.stage.segment.visible
    own = computed(write.plan.root) | write.lineage.blank
    steady = tuple(column.name for column in visible if column.id not in own and column.name in names)
    return steady if any(column.id in own for column in visible) else ()


class _Listed:
    """Rows with what is behind them.

    Args:
        writes: Both runs.
        columns: The columns of the rows.
        changes: What differs between the inputs.
        times: How often each row differs, by side.
    """

    def __init__(
        self,
        writes: tuple[OpenedWrite, OpenedWrite],
        columns: Sequence[Attribute],
        changes: dict[str, InputChange],
        times: tuple[Counter, Counter],  # type: ignore[type-arg]
    ) -> None:
        self._writes, self._columns, self._changes, self._times = writes, columns, changes, times

    def rows(self, pairs: Iterable[tuple[Row | None, Row | None]], kind: str) -> Iterator[DifferentRow]:
        """Rows of a kind, each before and after."""
        for before, after in pairs:
            found = DifferentRow(kind, self._shown(before), self._shown(after))
            try:
                given = tuple(self._counted(row, side) for side, row in enumerate((before, after)))
                inputs = behind(self._writes, given[0], given[1], self._columns, self._changes)
                yield replace(found, inputs=inputs)
            except GovtoolError as error:
                yield replace(found, why=error.message)

    def _counted(self, row: Row | None, side: int) -> tuple[Row, int] | None:
        return None if row is None else (row, max(1, self._times[side][value_key(row)]))

    def _shown(self, row: Row | None) -> Row | None:
        if row is None:
            return None
        return tuple(zoned(value, column.type) for value, column in zip(row, self._columns, strict=True))
