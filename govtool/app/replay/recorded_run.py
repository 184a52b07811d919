"""Replays of recorded runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from govtool.answers.replay import ReplayedChange, ReplayReport
from govtool.app.records.dataset_names import input_name, inputs_of, is_called
from govtool.app.records.opened import OpenedWrite
from govtool.app.records.opening import open_write
from govtool.app.records.runs import concerning, find_writer, no_rows, recorded
from govtool.app.records.sidecars import sidecar_use
from govtool.app.records.unreadable import UnreadableRun
from govtool.app.replay.rdd_program import replay_program
from govtool.app.replay.request import ReplayRequest
from govtool.app.versions.version import version_of
from govtool.errors import UsageError
from govtool.records.plan.nodes import Relation
from govtool.records.replay.changes import Change, Exclusion
from govtool.records.replay.compare import replay
from govtool.records.replay.files import replacement
from govtool.records.trace.leaf_names import is_called as leaf_is_called
from govtool.records.trace.named_boundaries import boundary_called

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.lineage import Lineage
    from govtool.records.replay.answer import ReplayAnswer
    from govtool.store import Commit, Reader


def replay_run(store: Reader, commit: Commit, request: ReplayRequest) -> ReplayReport:
    """Evaluate a recorded write over changed inputs, and compare it with what was written.

    Raises:
        UsageError: see ``find_writer``; a change is mistaken, its files cannot be read, or no row meets a condition.
        UnknownNameError: there is no such run or input.
        AmbiguousNameError: the run made several writes (``usage.ambiguous-run``).
        EvidenceError: inputs are gone or have changed (``evidence.changed``).
        EngineError: no engine evaluates the plan exactly, or Spark is needed and missing.
    """
    run = find_writer(store, commit, request.output, request.run, named="govtool replay")
    if run.program:
        if request.script:
            raise UsageError(
                "--script works for runs of DataFrames and SQL; this run is an RDD program", code="usage.rdd"
            )
        if request.to is not None:
            raise UsageError("--to works for runs of DataFrames and SQL; this run is an RDD program", code="usage.rdd")
        return replay_program(store, commit, run, request)
    names = [name for name, _ in (*request.without, *request.replaced)]
    use, down_to = sidecar_use(True), names if request.all_runs else ()
    opened = open_write(store, commit, run, use, in_part=True, evaluated=request.all_runs, down_to=down_to)
    between = {name for name in names if _is_boundary(opened, name)}
    if not request.all_runs:
        _require_inputs(store, commit, run, [name for name in names if name not in between])
    read = tuple(dict.fromkeys(leaf.dataset for leaf in opened.lineage.leaves() if isinstance(leaf, Relation)))
    named = {
        name: name if name in between else next((each for each in read if is_called(each, name)), input_name(run, name))
        for name in names
    }
    changes: list[Change] = [Exclusion(named[name], where) for name, where in request.without]
    changes += [replacement(named[name], place) for name, place in request.replaced]
    if request.script:
        answer = _replayed_script(opened, request)
    else:
        at = () if request.to is None else opened.lineage.all().boundary(request.to).positions()
        answer = replay(opened.lineage, changes, at)
        _require_rows(opened.lineage, [(named[name], where) for name, where in request.without], between)
    return ReplayReport(
        version=version_of(store, commit),
        changes=tuple(map(_stated, changes)),
        replay=answer,
        limit=request.limit,
        engine=opened.executor.engine,
        refusals=tuple(opened.executor.refusals),
        script=request.script,
        evaluated=opened.lineage.evaluated,
    )


def _is_boundary(opened: OpenedWrite, name: str) -> bool:
    """Return whether a name is that of a boundary, and not of an input."""
    if any(is_called(each, name) for each in inputs_of(opened.run)):
        return False
    lineage = opened.lineage
    if any(leaf_is_called(leaf, name) for leaf in lineage.leaves()):
        return False
    return boundary_called(name, lineage.boundaries()) is not None


def _require_inputs(store: Reader, commit: Commit, run: RecordRun, names: Iterable[str]) -> None:
    """Refuse a change of what only other runs read.

    Raises:
        UsageError: ``usage.other-run``, with the option that goes on to them.
    """
    for name in names:
        if any(is_called(each, name) for each in inputs_of(run)):
            continue
        known = recorded(store, commit, concerning(None, name, UnreadableRun.reads))
        others = [each.run for each in known if any(is_called(one, name) for one in inputs_of(each))]
        if others:
            raise UsageError(
                f"{run.run} did not read {name!r}; {others[-1]} did",
                code="usage.other-run",
                hint="--all-runs goes on to the runs that wrote its inputs",
            )


def _replayed_script(opened: OpenedWrite, request: ReplayRequest) -> ReplayAnswer:
    if request.without or request.replaced:
        raise UsageError("--script cannot be combined with --without or --with", code="usage.arguments")
    rows = opened.rows(request.chosen)
    if request.chosen is None:
        return rows.replay(script=request.script)
    from govtool.records.replay.script import is_by_computed, replay_script, script_of

    kept = rows.kept()
    if not kept.count():
        raise no_rows(opened.run.output, request.chosen)
    return replay_script(kept, script_of(request.script), is_by_computed(rows))


def _require_rows(lineage: Lineage, without: Iterable[tuple[str, str]], between: Collection[str]) -> None:
    """Refuse a condition that leaves out nothing: it is a mistake more often than a question.

    Raises:
        UsageError: No row meets it (``usage.no-rows``).
    """
    for name, where in without:
        if name in between:
            left_out = lineage.all().boundary(name).where(where)
        elif any(leaf_is_called(leaf, name) for leaf in lineage.leaves()):
            left_out = lineage.input(name, where)
        else:
            continue
        if not left_out.count():
            raise no_rows(name, where)


def _stated(change: Change) -> ReplayedChange:
    if isinstance(change, Exclusion):
        return ReplayedChange(change.dataset, change.where or "the rows of a trace")
    return ReplayedChange(change.dataset, "", tuple(file.uri for file in change.files))
