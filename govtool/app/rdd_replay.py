"""Replays of stored RDD programs: the lines of the result without some input lines, or with other files."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, Any

from govtool.answers.replay import ReplayedChange, ReplayReport
from govtool.app.history import version_of
from govtool.app.rdd_open import OpenedProgram, open_program
from govtool.app.rdd_records import VALUE, RddRecords, program_input
from govtool.app.record_runs import input_name, no_rows
from govtool.errors import EvidenceError, UsageError
from govtool.records.replay.answer import ReplayAnswer

if TYPE_CHECKING:
    from govtool.app.replay_request import ReplayRequest
    from govtool.model.records import RecordRun
    from govtool.store import Commit, Reader


def replay_program(store: Reader, commit: Commit, run: RecordRun, request: ReplayRequest) -> ReplayReport:
    """Run a stored program again without some input lines, and compare its lines with those that it gave.

    Raises:
        UsageError: An input is replaced, several inputs are changed, or no row meets a condition.
        EvidenceError: Inputs are gone or have changed (``evidence.changed``); see ``open_program``.
    """
    if request.replaced or len(request.without) != 1:
        raise UsageError(
            "a program of RDDs is replayed without rows of one input", code="usage.not-replayable",
            hint="--without DATASET --where EXPR",
        )  # fmt: skip
    ((dataset, where),) = request.without
    opened = open_program(store, commit, run)
    if opened.refused:
        raise EvidenceError(
            f"{opened.refused[0].file} {opened.refused[0].reason}: the run cannot be replayed", code="evidence.changed"
        )
    name = input_name(run, dataset)
    excluded = program_input(opened, name).where(where)
    if not excluded.count():
        raise no_rows(dataset, where)
    return ReplayReport(
        version=version_of(store, commit),
        changes=(ReplayedChange(name, where),),
        replay=_answer(opened, excluded),
        limit=request.limit,
        engine="Spark",
    )


def _answer(opened: OpenedProgram, excluded: RddRecords) -> ReplayAnswer:
    from govtool.spark.rdd import worker

    written = opened.node.details.get("written")
    if written is not None:
        before = opened.context.spark_context.textFile(written)
    else:
        before = opened.node.rdd.map(worker.shown)
    after = excluded.position.replayed(opened.node, without=True).map(worker.shown)
    gone, new = _difference(before, after), _difference(after, before)
    return ReplayAnswer(
        run=opened.run.run,
        output=opened.name,
        recorded=written is not None,
        columns=(VALUE,),
        reached=(),
        groups=None,
        before=before.count(),
        after=after.count(),
        gone=gone,
        changed=(),
        new=new,
    )


def _difference(some: Any, others: Any) -> tuple[tuple[str], ...]:
    """The lines of one RDD that another has not, or not as often, in order."""
    from govtool.spark.rdd import worker

    one, other = (each.map(worker.counted_once).reduceByKey(add) for each in (some, others))
    return tuple((text,) for text in sorted(one.leftOuterJoin(other).flatMap(worker.surplus).collect()))
