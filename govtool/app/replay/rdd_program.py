"""Replays of stored RDD programs: the lines of the result without some input lines, or with other files."""

from __future__ import annotations

from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.answers.replay import ReplayedChange, ReplayReport
from govtool.app.rdd.open import OpenedProgram, open_program, run_again
from govtool.app.rdd.records import program_input
from govtool.app.rdd.written import VALUE
from govtool.app.records.dataset_names import input_name, inputs_of
from govtool.app.records.runs import no_rows
from govtool.app.versions.version import version_of
from govtool.errors import EvidenceError, UsageError
from govtool.records.replay.answer import ReplayAnswer
from govtool.records.trace.leaf_names import unknown_input

if TYPE_CHECKING:
    from govtool.app.replay.request import ReplayRequest
    from govtool.model.records import RecordRun
    from govtool.store import Commit, Reader


@run_again()
def replay_program(store: Reader, commit: Commit, run: RecordRun, request: ReplayRequest) -> ReplayReport:
    """Run a stored program again without some input lines, or over other files, and compare the lines of its result.

    Raises:
        UsageError: Lines are left out and files replaced, several inputs are changed, no row meets a condition, or
            there is no such file.
        EvidenceError: Inputs are gone or have changed (``evidence.changed``); see ``open_program``.
    """
    if len(request.without) + len(request.replaced) != 1:
        raise UsageError(
            "a replay of an RDD program can change only one input", code="usage.not-replayable",
            hint="--without DATASET --where EXPR, or --with DATASET=FILE",
        )  # fmt: skip
    if request.replaced:
        change, answer = _replaced(store, commit, run, *request.replaced[0])
    else:
        change, answer = _excluded(store, commit, run, *request.without[0])
    return ReplayReport(
        version=version_of(store, commit), changes=(change,), replay=answer, limit=request.limit, engine="Spark"
    )


def _opened(store: Reader, commit: Commit, run: RecordRun) -> OpenedProgram:
    """A program over the files that it read.

    Raises:
        EvidenceError: They are gone or have changed (``evidence.changed``).
    """
    opened = open_program(store, commit, run)
    if opened.refused:
        raise EvidenceError(
            f"{opened.refused[0].file} {opened.refused[0].reason}: the run cannot be replayed", code="evidence.changed"
        )
    return opened


def _excluded(
    store: Reader, commit: Commit, run: RecordRun, dataset: str, where: str
) -> tuple[ReplayedChange, ReplayAnswer]:
    """The program without lines of an input."""
    opened = _opened(store, commit, run)
    name = input_name(run, dataset)
    excluded = program_input(opened, name).where(where)
    if not excluded.count():
        raise no_rows(dataset, where)
    after = excluded.position.replayed(opened.node, without=True)
    return ReplayedChange(name, where), _answer(opened, after)


def _replaced(
    store: Reader, commit: Commit, run: RecordRun, dataset: str, place: str
) -> tuple[ReplayedChange, ReplayAnswer]:
    """The program over another file, or folder, in place of an input."""
    name = input_name(run, dataset)
    if name not in inputs_of(run):
        raise unknown_input(dataset, inputs_of(run))
    from govtool.spark.rdd.saved import UNREADABLE

    path = Path(place).absolute()
    if not path.exists() or UNREADABLE.search(str(path)):
        why = "no file" if not path.exists() else "a path that Hadoop takes for a pattern"
        raise UsageError(f"{why} for {dataset!r}", code="usage.path", location=place)
    opened = _opened(store, commit, run)
    other = open_program(store, commit, run, {name: f"file:{path}"})
    return ReplayedChange(name, "", (path.as_uri(),)), _answer(opened, other.node.rdd)


def _answer(opened: OpenedProgram, again: Any) -> ReplayAnswer:
    """The lines of a program that are gone and new.

    Args:
        opened: The program as it was.
        again: The RDD of its result after the change.
    """
    from govtool.spark.rdd import worker

    written = opened.node.details.get("written")
    if written is not None:
        before = opened.context.spark_context.textFile(written)
    else:
        before = opened.node.rdd.map(worker.shown)
    after = again.map(worker.shown)
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
