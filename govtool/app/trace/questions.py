"""Questions about rows: what is behind the rows of an output, and what rows of an input reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from govtool.answers.trace import BACK, FORWARD, HopAnswer, TraceReport
from govtool.app.rdd.program_records import program_records
from govtool.app.rdd.trace import program_back, program_forward
from govtool.app.records.dataset_names import input_name, name_among
from govtool.app.records.fitting_runs import EVERY_ROW
from govtool.app.records.opened import OpenedWrite
from govtool.app.records.opening import open_write
from govtool.app.records.runs import find_readers, find_writer, no_rows, only
from govtool.app.records.sidecars import sidecar_use
from govtool.app.records.writes import remedy, unreadable_inputs
from govtool.app.trace.report import TraceRequest, trace_report
from govtool.errors import EngineError, UsageError

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.recordset import RecordSet
    from govtool.records.trace.traced import TracedRecords
    from govtool.store import Commit, Reader


def record_set(store: Reader, commit: Commit, output: str | None, run: str | None = None) -> TracedRecords:
    """Every row of an output, to be traced back.

    Raises:
        UsageError: see ``find_writer`` and ``open_write``.
    """
    found = find_writer(store, commit, output, run)
    if found.program:
        return program_records(store, commit, found)
    reopened = partial(open_write, store, commit, found, sidecar_use(True), kept=True, in_part=True, evaluated=True)
    opened = reopened(chosen_by=EVERY_ROW)
    if not opened.untouched and not opened.lineage.rounded:
        return opened.rows()
    from govtool.app.records.written_records import WrittenRecords

    @cache
    def known() -> OpenedWrite:
        return reopened() if opened.untouched else opened

    def choose(condition: str) -> RecordSet | None:
        is_written = opened.output is not None and opened.record is None and opened.reads_order(condition)
        return known().rows(condition) if is_written else None

    return WrittenRecords(opened.rows(), lambda: known().rows(), choose)


def trace_back(store: Reader, commit: Commit, request: TraceRequest) -> TraceReport:
    """The input rows behind the rows of an output that meet a condition.

    Raises:
        UsageError: see ``find_writer``; nothing meets the condition (``usage.no-rows``).
        EngineError: no engine evaluates the plan exactly, or Spark is needed and missing.
    """
    condition = request.where if request.start is None else ""
    run = find_writer(store, commit, request.dataset, request.run, condition=condition)
    if run.program:
        _require_plan(request)
        return program_back(store, commit, run, request)
    if request.start is not None:
        return _from_boundary(store, commit, run, request, request.start, BACK)
    chosen_by = None if request.step or request.verify else request.where
    opened = _opened(store, commit, run, request, chosen_by=chosen_by, evaluated=True)
    selected = opened.selected(request.where)
    if selected == 0:
        raise no_rows(request.dataset, request.where)
    first = opened.rows(request.where).go_back()
    _require(opened, first.steps[0].rows, request)
    report = trace_report(opened, (store, commit), BACK, request, first if request.step else first.go_back_all())
    if selected is not None:
        report = replace(report, trace=replace(report.trace, selected=selected))
    if not request.all_runs:
        return report
    from govtool.app.trace.runs import hops_back
    from govtool.records.recordset import RecordSet

    assert isinstance(report.records, RecordSet)
    hops, ends = hops_back(store, commit, opened, report.records, report.trace.inputs, request)
    return replace(report, hops=hops, ends=ends)


def trace_forward(store: Reader, commit: Commit, request: TraceRequest) -> TraceReport:
    """The output rows that rows of an input reached.

    Raises:
        UsageError: see ``find_readers``; nothing meets the condition (``usage.no-rows``).
        EngineError: no engine evaluates the plan exactly, or Spark is needed and missing.
    """
    readers = find_readers(store, commit, request.dataset, request.run)

    def named(run: RecordRun) -> TraceRequest:
        return replace(request, dataset=name_among(run, request.dataset, readers))

    if not request.all_runs:
        run = only(store, commit, readers, request.dataset, every="--all-runs")
        return _forward(store, commit, run, named(run))
    from govtool.app.trace.forward_hops import ForwardHops

    found = ForwardHops(store, commit, request, lambda run: named(run).dataset)
    hops, ends = found.trace(readers, lambda run: _forward(store, commit, run, named(run)))
    first = next((report for report in found.reports if report.trace.selected), found.reports[0])
    others = tuple(HopAnswer(0, each.trace, each.outputs) for each in found.reports if each is not first)
    return replace(first, hops=(*others, *hops), ends=ends)


def _forward(store: Reader, commit: Commit, run: RecordRun, request: TraceRequest) -> TraceReport:
    if run.program:
        _require_plan(request)
        return program_forward(store, commit, run, request)
    if request.start is not None:
        return _from_boundary(store, commit, run, request, request.start, FORWARD)
    chosen_by = None if request.step or request.verify else EVERY_ROW
    opened = _opened(store, commit, run, request, chosen_by=chosen_by).as_written()
    found = _forward_through(opened, store, commit, request)
    if opened.lineage.refused and found.trace.selected and not any(rows.count for rows in found.outputs):
        around = None if request.step else opened.around_lost_inputs()
        if around is not None and around.lineage.reads(input_name(around.run, request.dataset)):
            return _forward_through(around, store, commit, request)
        return found
    if opened.untouched and any(rows.exactness != "exact" for rows in found.outputs):
        # By the cells that were not looked at, the written rows may be told apart.
        return _forward_through(_opened(store, commit, run, request), store, commit, request)
    return found


def _forward_through(opened: OpenedWrite, store: Reader, commit: Commit, request: TraceRequest) -> TraceReport:
    name = input_name(opened.run, request.dataset)
    chosen = opened.lineage.input(name, request.where).kept()
    count = chosen.count()
    _require(opened, count, request)
    found = chosen.go_next() if request.step else chosen.go_next_all()
    return trace_report(opened, (store, commit), FORWARD, request, found, (name, count))


def _from_boundary(
    store: Reader, commit: Commit, run: RecordRun, request: TraceRequest, start: str, direction: str
) -> TraceReport:
    """A trace of rows at a boundary, which are those of the plan, to one side."""
    use, is_back = sidecar_use(request.sidecars), direction == BACK
    opened = open_write(store, commit, run, use, in_part=True, evaluated=is_back)
    lineage = opened.lineage
    rows = lineage.at_boundary(start).all() if is_back else lineage.all().boundary(start)
    chosen = rows.where(request.where).kept()
    count = chosen.count()
    if not count and not opened.lineage.refused:
        raise no_rows(start, request.where)
    if is_back:
        found = chosen.go_back() if request.step else chosen.go_back_all()
        return trace_report(opened, (store, commit), BACK, request, found)
    found = chosen.go_next() if request.step else chosen.go_next_all()
    return trace_report(opened, (store, commit), FORWARD, request, found, (start, count))


def _require_plan(request: TraceRequest) -> None:
    if request.start is not None:
        raise UsageError("--start works for runs of DataFrames and SQL; this run is an RDD program", code="usage.rdd")


def _opened(
    store: Reader,
    commit: Commit,
    run: RecordRun,
    request: TraceRequest,
    chosen_by: str | None = None,
    *,
    evaluated: bool = False,
) -> OpenedWrite:
    """A write, by positions that it kept or by its plan; the last arguments are those of ``open_write``.

    Raises:
        EngineError: No input can be read again (``engine.not-exact``): no engine is started for it.
    """
    use, kept = sidecar_use(request.sidecars), not request.verify
    opened = open_write(store, commit, run, use, kept=kept, in_part=True, chosen_by=chosen_by, evaluated=evaluated)
    reason = next(iter(unreadable_inputs(opened.plan)), None)
    if reason is not None and opened.record is None and not opened.lineage.leaves():
        raise EngineError(f"the plan cannot be evaluated: {reason}", code="engine.not-exact", hint=remedy(reason))
    return opened


def _require(opened: OpenedWrite, count: int, request: TraceRequest) -> None:
    """Refuse a choice of no rows, unless they may be in files that were refused."""
    if not count and not opened.lineage.refused:
        raise no_rows(request.dataset, request.where)


def token_lines(report: TraceReport) -> Iterable[str]:
    """The tokens of all rows that have one, one per line: every row of the inputs, also beyond what is shown."""
    if report.direction == FORWARD or report.records is None:
        return (str(row["_id"]) for _, group in report.parts for row in group.rows if "_id" in row)
    further = (row for hop in report.hops for _, group in hop.parts for row in group.rows)
    return dict.fromkeys([*map(str, report.records.ids()), *(str(row["_id"]) for row in further if "_id" in row)])
