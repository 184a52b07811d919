"""Rows of one run's output that chosen rows of its inputs reached, as rows of the written files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from govtool.app.rdd.hops import program_hop_forward
from govtool.app.records.opened import OpenedWrite
from govtool.app.trace.file_rows import MAX_ROWS, Rows, merged, rows_by_file
from govtool.records.recordset import RecordSet
from govtool.records.trace.back import ReachedRows, StagePosition, count_rows
from govtool.records.trace.segment import EXACT, Grade

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.plan.nodes import Relation
    from govtool.store import Commit, Reader

_NOT_FOUND = "its rows are not found again in the files that it wrote"


@dataclass(slots=True)
class ReachedOutput:
    """The rows that a run reached.

    Attributes:
        rows: Affected rows of its output, by file.
        count: How many.
        total: Rows of its output that are there; None where they could not be read.
        grade: How exact they are.
        lost: Why rows may be missing.
        keeps_out: Whether selected rows may keep others out.
    """

    rows: Rows = field(default_factory=dict)
    count: int = 0
    total: int | None = 0
    grade: Grade = EXACT
    lost: tuple[str, ...] = ()
    keeps_out: bool = False


def rows_forward(write: OpenedWrite, chosen: tuple[ReachedRows, ...], total: int) -> ReachedOutput:
    """The rows of a run's output that chosen rows of its inputs reached."""
    lineage = write.lineage
    reached = ReachedOutput(total=total, grade=lineage.graded(EXACT))
    if not chosen:
        return reached
    found = RecordSet(lineage, chosen).go_next_all()
    for part in found.parts:
        if isinstance(part, StagePosition):
            _place(write, part, reached)
    return reached


def _place(write: OpenedWrite, part: StagePosition, reached: ReachedOutput) -> None:
    """Find rows of the output in the written files."""
    count = count_rows(write.executor, part.rows)
    if not count:
        return
    written = write.in_output(part)
    if written is None:
        reached.count, reached.lost = count, (f"{write.run.run}: {_NOT_FOUND}",)
        return
    (records,) = written.parts
    reached.count = count_rows(write.executor, records.rows)
    reached.grade = write.lineage.graded(records.grade)
    for _, rows in rows_by_file(written) if reached.count <= MAX_ROWS else ():
        for place, ids in rows.items():
            reached.rows.setdefault(place, set()).update(ids)


def lines_forward(
    store: Reader, commit: Commit, run: RecordRun, left: Relation, rows: Rows, reached: ReachedOutput
) -> ReachedOutput:
    """The rows that an RDD program reached, as lines of the files that it wrote.

    Args:
        store: The store.
        commit: Programs are those of this commit.
        run: The program.
        left: The files that it wrote and that are still there.
        rows: Affected lines of its inputs.
        reached: How certain these are.

    Raises:
        EvidenceError: The program cannot be run again.
    """
    from govtool.app.rdd.lines import lines_of

    reached.total = sum(1 for file in left.files for _ in lines_of(file))
    if sum(map(len, rows.values())) > MAX_ROWS:
        return replace(reached, lost=(*reached.lost, f"more than {MAX_ROWS:,} rows reach {run.run}"))
    if not any(rows.values()):
        return reached
    trace, outputs, found = program_hop_forward(store, commit, run, rows, 1)
    reached.rows = merged(found)
    reached.count = sum(map(len, reached.rows.values()))
    for grade in (*((s.exactness, s.why) for s in trace.steps), *((o.exactness, o.why) for o in outputs)):
        reached.grade = reached.grade.worst(Grade(*grade))
    return replace(reached, keeps_out=True)  # a function of the user's may do anything with what it does not see


def united(groups: Iterable[Rows]) -> int:
    """Return the number of rows in some groups, each once."""
    return len({(place, row) for rows in groups for place, ids in rows.items() for row in ids})
