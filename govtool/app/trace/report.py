"""A question about rows, and its answer from one run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from govtool.answers.trace import FORWARD, TraceReport
from govtool.app.records.opened import OpenedWrite
from govtool.app.versions.version import version_of
from govtool.errors import UsageError
from govtool.records.cells import column_key, json_value, zoned
from govtool.records.plan.expressions import Named
from govtool.records.plan.nodes import Limit, Project
from govtool.records.recordset import RecordSet
from govtool.records.trace.answer import InputAnswer
from govtool.records.trace.back import StagePosition, count_rows
from govtool.records.trace.positions import KEPT
from govtool.records.trace.segment import EXACT, Grade
from govtool.records.trace.traced_rows import SHOWN

if TYPE_CHECKING:
    from govtool.store import Commit, Reader

ALL_ROWS = (1 << 31) - 1
"""A limit that no page reaches; Spark's limits are 32-bit."""
_NOT_FOUND = Grade("superset", "the rows are not found again in the written files: shown as the plan gives them")


def row_limit(limit: int | None) -> int:
    """A limit of rows; None is all."""
    return ALL_ROWS if limit is None else limit


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """A question about rows.

    Attributes:
        dataset: A dataset or its path: an output for a trace back, an input for a trace forward.
        where: A Spark SQL boolean expression over its columns.
        run: The write: the id of a run or of an application, or ``JOB~n``. By default that of the files which are
            there now: the write that left them, or that read them.
        step: Go one boundary only.
        all_runs: Go on into the runs that wrote the inputs, or that read the output, as far as the store knows.
        limit: The most rows that are listed of each dataset; counts are whole.
        verify: Evaluate the plan again and compare all its rows with the written ones.
        sidecars: Look keys up in sidecars.
        start: The boundary whose rows are chosen; None: those of the dataset.
    """

    dataset: str
    where: str
    run: str | None = None
    step: bool = False
    all_runs: bool = False
    limit: int = SHOWN
    verify: bool = False
    sidecars: bool = True
    start: str | None = None

    def __post_init__(self) -> None:
        """Refuse options that exclude each other."""
        if self.step and self.all_runs:
            raise UsageError("--step and --all-runs cannot be combined", code="usage.arguments", location="all_runs")
        if self.start is not None and self.all_runs:
            raise UsageError("--start and --all-runs cannot be combined", code="usage.arguments", location="all_runs")


def trace_report(
    opened: OpenedWrite,
    at: tuple[Reader, Commit],
    direction: str,
    request: TraceRequest,
    found: RecordSet,
    selected: tuple[str, int] | None = None,
) -> TraceReport:
    """The answer of a trace through one run.

    Args:
        opened: The write.
        at: The store and the commit.
        direction: ``back`` or ``forward``.
        request: The question.
        found: The rows that the trace came to.
        selected: Forward: the input, and how many rows of it were chosen.
    """
    limit = request.limit
    trace = found.answer(limit)
    if selected is not None:
        trace = replace(trace, output=selected[0], selected=selected[1])
    places = [part for part in found.joined_parts() if isinstance(part, StagePosition)]
    at_output = [part for part in places if direction == FORWARD and part.stage.above is None]
    return TraceReport(
        version=version_of(*at),
        direction=direction,
        where=request.where,
        trace=trace,
        between=tuple(_position_rows(found, part, limit) for part in places if part not in at_output),
        outputs=tuple(output_rows(opened, found, part, limit) for part in at_output),
        verified=opened.verified() if request.verify else None,
        unverified=opened.unverified if request.verify else (),
        engine=opened.executor.engine if opened.record is None else KEPT,
        refusals=tuple(opened.executor.refusals),
        records=found,
        opened=opened,
    )


def output_rows(opened: OpenedWrite, found: RecordSet, part: StagePosition, limit: int) -> InputAnswer:
    """Rows of an output, as records of the written files where they are found there."""
    written = opened.in_output(part)
    if written is not None:
        (rows,) = written.answer(limit).inputs
        return rows
    name = opened.run.output or opened.run.run
    return _position_rows(found, part, limit, name, EXACT if opened.gives_its_rows() else _NOT_FOUND)


def _position_rows(
    found: RecordSet, part: StagePosition, limit: int, name: str = "", grade: Grade | None = None
) -> InputAnswer:
    """Rows between two boundaries, which have no ids."""
    executor = found.lineage.executor
    visible = part.stage.segment.visible
    shown = Project(part.rows, tuple(Named(column, column.id, column.name) for column in visible))
    rows = tuple(
        {
            column_key(column.name): json_value(zoned(value, column.type))
            for column, value in zip(visible, row, strict=True)
        }
        for row in executor.fetch(Limit(shown, limit))
    )
    count = count_rows(executor, part.rows)
    worst = found.lineage.graded(part.grade if grade is None else found.lineage.loosely(part.grade.worst(grade)))

    def table() -> Any:
        return executor.arrow(shown).rename_columns([column_key(column.name) for column in visible])

    return InputAnswer(
        name or found.place_name(part), "", worst.exactness, worst.why, count, count > len(rows), rows, table=table
    )
