"""What tells several writes that fit a question apart: when they ran, and how many rows of each meet its condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.app.runs.lookup import read_history
from govtool.errors import GovtoolError

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.plan.nodes import Relation
    from govtool.store import Commit, Reader

EVERY_ROW = "true"
"""The condition that every row meets."""
_MAX_BYTES = 1 << 30
"""Files of all candidates up to which their rows are counted: a hint is to come at once."""


@dataclass(frozen=True, slots=True)
class FittingRun:
    """A write that fits a question.

    Attributes:
        run: The write.
        time: When it ended, in ISO 8601; empty: not known.
        rows: The rows of its present files that meet the condition; None: not counted.
    """

    run: RecordRun
    time: str = ""
    rows: int | None = None

    def __str__(self) -> str:
        parts = [line_of(self.run)]
        if self.time:
            parts.append(self.time[:19].replace("T", " "))
        if self.rows is not None:
            parts.append("1 row meets it" if self.rows == 1 else f"{self.rows} rows meet it")
        return " · ".join(parts)


def fitting_runs(
    store: Reader, commit: Commit, writes: Sequence[RecordRun], condition: str = ""
) -> tuple[FittingRun, ...]:
    """Writes with their times; with a condition, also with the rows of their present files that meet it.

    Rows are counted where DuckDB reads the files and the condition exactly, and the files are not too large.
    """
    from govtool.records.split_plans import relation_of

    times = {run.id: run.ended or run.started or "" for run in read_history(store, commit).runs}
    is_counted = bool(condition) and not takes_all(condition)
    lefts = [relation_of(each.written, each.output) if is_counted else None for each in writes]
    size = sum(file.size for left in lefts if left is not None for file in left.files)
    found = []
    for run, left in zip(writes, lefts, strict=True):
        rows = None if left is None or size > _MAX_BYTES else _rows(run, left, condition)
        found.append(FittingRun(run, times.get(run.run, ""), rows))
    return tuple(found)


def line_of(run: RecordRun) -> str:
    """A write in one line, for people."""
    return f"{run.run} → {run.output}" if run.output else run.run


def takes_all(condition: str) -> bool:
    """Return whether every row meets a condition."""
    return condition.strip().lower() == EVERY_ROW


def _rows(run: RecordRun, left: Relation, condition: str) -> int | None:
    """The rows of the present files that a write left which meet a condition; None where that is not known."""
    from govtool.app.records.engines import engines
    from govtool.records.execute.chain import ExecutorChain
    from govtool.records.execute.inputs import changed
    from govtool.records.lake.written import LiveTables
    from govtool.records.leaves import with_files
    from govtool.records.plan import codec
    from govtool.records.plan.nodes import Filter, outputs
    from govtool.records.split_plans import readable
    from govtool.records.trace.back import count_rows
    from govtool.records.trace.selection import bound_condition

    if run.program:
        return None
    gone = {file.uri for file in changed([left])}
    files = [file for file in LiveTables().of(left) if file.uri not in gone]
    session = codec.loads(run.written).session
    executor = ExecutorChain(engines(session)[:1], session)  # without a JVM
    rows = with_files(readable(left), {left.leaf: files})
    try:
        return count_rows(executor, Filter(rows, bound_condition(condition, outputs(rows), executor)))
    except GovtoolError:  # another engine would, or the condition is mistaken: the trace of the chosen run says so
        return None
