"""Traces through stored RDD programs: the answers of ``trace back`` and ``trace forward``.

Positions that the run kept answer where they are; else the program's operators are built again and run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from govtool.answers.trace import BACK, FORWARD, TraceReport
from govtool.app.rdd.open import run_again
from govtool.app.rdd.program_records import input_records, program_records
from govtool.app.records.dataset_names import input_name
from govtool.app.records.runs import no_rows
from govtool.app.trace.runs import go_back_from
from govtool.app.versions.version import version_of
from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.app.rdd.open import OpenedProgram
    from govtool.app.rdd.program_records import ProgramRecords
    from govtool.app.trace.report import TraceRequest
    from govtool.model.records import RecordRun
    from govtool.store import Commit, Reader


@run_again()
def program_back(store: Reader, commit: Commit, run: RecordRun, request: TraceRequest) -> TraceReport:
    """The input rows behind rows of a program's result.

    Raises:
        EvidenceError: see ``open_program``.
        UsageError: The condition is mistaken, or no row meets it (``usage.no-rows``).
    """
    from govtool.app.rdd.conditions import line_condition

    line_condition(request.where)  # a mistake is reported before Spark starts
    chosen = program_records(store, commit, run, kept=not request.verify).where(request.where)
    _require(chosen, request)
    found = chosen.go_back() if request.step else chosen.go_back_all()
    report = _report(store, commit, BACK, found, request)
    if not request.all_runs:
        return report
    hops, ends = go_back_from(store, commit, (run.run, found.file_rows()), report.trace.inputs, request)
    return replace(report, hops=hops, ends=ends)


@run_again()
def program_forward(store: Reader, commit: Commit, run: RecordRun, request: TraceRequest) -> TraceReport:
    """The rows of a program's result that rows of an input reached.

    Raises:
        EvidenceError: see ``open_program``.
        UsageError: The condition is mistaken, or no row meets it (``usage.no-rows``).
    """
    from govtool.app.rdd.conditions import line_condition

    line_condition(request.where)
    name = input_name(run, request.dataset)
    chosen = input_records(store, commit, run, name, kept=not request.verify).where(request.where)
    count = _require(chosen, request)
    found = chosen.go_next() if request.step else chosen.go_next_all()
    report = _report(store, commit, FORWARD, found, request)
    return replace(report, trace=replace(report.trace, output=name, selected=count))


def _require(chosen: ProgramRecords, request: TraceRequest) -> int:
    """Refuse a choice of no rows, unless they may be in files that were refused."""
    count = chosen.count()
    if not count and not chosen.opened.refused:
        raise no_rows(request.dataset, request.where)
    return count


def _report(store: Reader, commit: Commit, direction: str, found: ProgramRecords, request: TraceRequest) -> TraceReport:
    from govtool.app.rdd.open import OpenedProgram

    trace, opened = found.answer(request.limit), found.opened
    lazy = isinstance(opened, OpenedProgram)
    return TraceReport(
        version=version_of(store, commit),
        direction=direction,
        where=request.where,
        trace=trace,
        between=found.between(request.limit),
        outputs=found.outputs(request.limit) if direction == FORWARD else (),
        verified=_verified(opened) if request.verify and isinstance(opened, OpenedProgram) else None,
        engine="Spark" if lazy else "kept positions",
        records=found,
        opened=opened,
    )


def _verified(opened: OpenedProgram) -> bool:
    """Run the program again; return whether it gives the written lines, each as often.

    Raises:
        UsageError: There is nothing to compare with (``usage.verify``).
    """
    from govtool.spark.rdd import checks

    if opened.node.details.get("written") is None and not opened.node.recorded:
        raise UsageError(
            f"the files that {opened.run.run} wrote, or read, are gone or have changed: there is nothing to compare",
            code="usage.verify",
        )
    return not checks.differences(opened.node)
