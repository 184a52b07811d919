"""Replays of recorded runs: the question, its inputs, its answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.answers.replay import ReplayedChange, ReplayReport
from govtool.app.history import version_of
from govtool.app.record_runs import find_writer, input_name, no_rows
from govtool.app.records import OpenedWrite, open_write
from govtool.app.sidecars import sidecar_use
from govtool.errors import UsageError
from govtool.records.replay.changes import Change, Exclusion
from govtool.records.replay.compare import replay
from govtool.records.replay.files import replacement
from govtool.records.trace.recordset import is_called

if TYPE_CHECKING:
    from govtool.records.replay.answer import ReplayAnswer
    from govtool.records.trace.lineage import Lineage
    from govtool.store import Commit, Reader


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A replay.

    Attributes:
        run: The id of a run or of an application, or ``JOB~n``.
        without: Inputs, each with the condition of rows that are left out.
        replaced: Inputs, each with the Parquet file or folder that is read instead.
        output: The dataset that is meant, where a run wrote several.
        limit: The most rows of each kind that are listed.
        script: A script with its arguments that is run over the traced rows; then nothing else is changed.
        chosen: With a script: the output rows whose inputs it gets; None: all.
    """

    run: str
    without: tuple[tuple[str, str], ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    output: str | None = None
    limit: int = 1000
    script: tuple[str, ...] = ()
    chosen: str | None = None


def replay_run(store: Reader, commit: Commit, request: ReplayRequest) -> ReplayReport:
    """Evaluate a recorded write over changed inputs, and compare it with what was written.

    Raises:
        UsageError: see ``find_writer``; a change is mistaken, its files cannot be read, or no row meets a condition.
        UnknownNameError: there is no such run or input.
        AmbiguousNameError: the run made several writes (``usage.ambiguous-run``).
        EvidenceError: inputs are gone or have changed (``evidence.changed``).
        EngineError: no engine evaluates the plan exactly, or Spark is needed and missing.
    """
    run = find_writer(store, commit, request.output, request.run)
    if run.program:
        if request.script:
            raise UsageError(
                "a script is replayed for runs of DataFrames and SQL; this one is of RDDs", code="usage.rdd"
            )
        from govtool.app.rdd_replay import replay_program

        return replay_program(store, commit, run, request)
    opened = open_write(store, commit, run, sidecar_use(True))
    changes: list[Change] = [Exclusion(input_name(run, name), where) for name, where in request.without]
    changes += [replacement(input_name(run, name), place) for name, place in request.replaced]
    if request.script:
        answer = _replayed_script(opened, request)
    else:
        answer = replay(opened.lineage, changes)
        _require_rows(opened.lineage, request.without)
    return ReplayReport(
        version=version_of(store, commit),
        changes=tuple(map(_stated, changes)),
        replay=answer,
        limit=request.limit,
        engine=opened.executor.engine,
        refusals=tuple(opened.executor.refusals),
        script=request.script,
    )


def _replayed_script(opened: OpenedWrite, request: ReplayRequest) -> ReplayAnswer:
    if request.without or request.replaced:
        raise UsageError("--script goes without --without and --with", code="usage.arguments")
    rows = opened.rows(request.chosen).kept()
    if request.chosen is not None and not rows.count():
        raise no_rows(opened.run.output, request.chosen)
    return rows.replay(script=request.script)


def _require_rows(lineage: Lineage, without: Iterable[tuple[str, str]]) -> None:
    """Refuse a condition that leaves out nothing: it is a mistake more often than a question.

    Raises:
        UsageError: No row meets it (``usage.no-rows``).
    """
    for name, where in without:
        known = any(is_called(leaf, name) for leaf in lineage.leaves())
        if known and not lineage.input(name, where).count():
            raise no_rows(name, where)


def conditions(inputs: Sequence[str], where: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Inputs with the conditions of rows that are left out; those of one input are alternatives.

    Raises:
        UsageError: They are not as many (``usage.arguments``).
    """
    if len(inputs) != len(where):
        raise UsageError("each --without needs a --where, and each --where a --without", code="usage.arguments")
    found: dict[str, str] = {}
    for name, condition in zip(inputs, where, strict=True):
        found[name] = f"({found[name]}) OR ({condition})" if name in found else condition
    return tuple(found.items())


def replaced_inputs(given: Mapping[str, str] | Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """Inputs with the file or folder that is read instead: a mapping, or texts ``DATASET=FILE``.

    Raises:
        UsageError: A text is none such (``usage.arguments``).
    """
    if isinstance(given, Mapping):
        return tuple(given.items())
    found = []
    for text in given or ():
        dataset, _, file = text.partition("=")
        if not (dataset and file):
            raise UsageError(f"{text!r} is not DATASET=FILE", code="usage.arguments", location="replaced")
        found.append((dataset, file))
    return tuple(found)


def script_words(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """A script and its arguments: words, or a text as a shell takes it.

    Raises:
        UsageError: A quote is not closed, or there is no word (``usage.arguments``).
    """
    import shlex

    if given is None:
        return ()
    try:
        words = tuple(shlex.split(given) if isinstance(given, str) else given)
    except ValueError as error:
        raise UsageError(f"{given!r} is no script: {error}", code="usage.arguments", location="script") from error
    if not words:
        raise UsageError("no script is given", code="usage.arguments", location="script")
    return words


def _stated(change: Change) -> ReplayedChange:
    if isinstance(change, Exclusion):
        return ReplayedChange(change.dataset, change.where or "the rows of a trace")
    return ReplayedChange(change.dataset, "", tuple(file.uri for file in change.files))
