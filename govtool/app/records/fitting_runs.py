"""What tells several writes that fit a question apart: when they ran, and how many rows of each meet its condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.app.runs.lookup import read_history
from govtool.errors import GovtoolError

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.store import Commit, Reader

_ALL_ROWS = "true"
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
        parts = [f"{self.run.run} → {self.run.output}" if self.run.output else self.run.run]
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
    times = {run.id: run.ended or run.started or "" for run in read_history(store, commit).runs}
    counted = bool(condition) and condition.strip().lower() != _ALL_ROWS and _size(writes) <= _MAX_BYTES
    return tuple(
        FittingRun(each, times.get(each.run, ""), _rows(each, condition) if counted else None) for each in writes
    )


def _size(writes: Sequence[RecordRun]) -> int:
    from govtool.records.split_plans import relation_of

    left = (relation_of(each.written, each.output) for each in writes)
    return sum(file.size for each in left if each is not None for file in each.files)


def _rows(run: RecordRun, condition: str) -> int | None:
    """The rows of the present files of a write that meet a condition; None where that is not known."""
    from govtool.app.records.engines import engines
    from govtool.records.execute.chain import ExecutorChain
    from govtool.records.execute.inputs import changed
    from govtool.records.lake.written import LiveTables
    from govtool.records.leaves import with_files
    from govtool.records.plan import codec
    from govtool.records.plan.nodes import Filter, outputs
    from govtool.records.split_plans import readable, relation_of
    from govtool.records.trace.back import count_rows
    from govtool.records.trace.selection import bound_condition

    left = relation_of(run.written, run.output)
    if left is None or run.program:
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
