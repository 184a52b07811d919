"""The write that a question about rows is about: found by the files that it left or read, or by the name of its run."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from govtool.app.records.dataset_names import (
    inputs_of,
    is_called,
    leaves_read,
    read_by,
    readers_by_another_name,
    table_at,
    written_by,
)
from govtool.app.records.fitting_runs import fitting_runs, line_of, takes_all
from govtool.app.records.tables import read_untraceable
from govtool.app.records.unreadable import UnreadableRun, each_name, runs_beside_damage
from govtool.app.runs.lookup import job_and_steps, matching_runs, read_history
from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError
from govtool.names import renewed_text

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.query.runs.history import History
    from govtool.store import Commit, Reader

RECORDING = "govtool run --records -- job.py"
"""The command that records."""
NO_ROWS = "usage.no-rows"
"""The code of the error that no row meets a condition."""
_CANDIDATES = 20
"""So many writes are listed, the last ones: hints name the last."""


def find_writer(
    store: Reader, commit: Commit, output: str | None, run: str | None, *, named: str = "--run", condition: str = ""
) -> RecordRun:
    """The write behind an output: that of a run, else the one that left the files which are there now.

    Args:
        store: The store.
        commit: Writes are those of this commit.
        output: A dataset or its path; None with a run that wrote one.
        run: The id of a run or of an application, or ``JOB~n``.
        named: What stands before the run in the command, for a hint.
        condition: Where several writes fit, the rows of each that meet it are counted for the message.

    Raises:
        UsageError: The store has no records (``usage.no-records``), or no write left the files (``usage.no-run``).
        UnknownNameError: There is no such output or run.
        AmbiguousNameError: Several writes fit.
    """
    known = recorded(store, commit, concerning(run, output, UnreadableRun.writes))
    output = output and table_at(known, output, written_by)
    writes = known if run is None else of_run(store, commit, known, run)
    if output is not None:
        _refuse_other_run(known, writes, output, lambda each: (each.output,), f"run {run} wrote nothing to")
        writes = _of_dataset(store, commit, writes, output, lambda each: (each.output,), "no records of a write to")
    if run is None:
        writes = _still_there(writes, output or "")
    return only(store, commit, writes, output or run or "", named=named, condition=condition)


def find_readers(store: Reader, commit: Commit, dataset: str, run: str | None) -> list[RecordRun]:
    """The writes that read an input: those of a run, else those that read the files which are there now.

    Queries whose rows went to the driver count where there are no others.

    Raises:
        UsageError: The store has no records (``usage.no-records``), or no write read the files (``usage.no-run``).
        UnknownNameError: There is no such input or run.
    """
    known = recorded(store, commit, concerning(run, dataset, UnreadableRun.reads))
    dataset = table_at(known, dataset, read_by)
    writes = known if run is None else of_run(store, commit, known, run)
    _refuse_other_run(known, writes, dataset, inputs_of, f"run {run} did not read")
    found = _of_dataset(store, commit, writes, dataset, inputs_of, "no records of a run that read")
    if run is not None:
        return found
    there = _read_as_is(found, dataset)
    there += readers_by_another_name(known, there, dataset)
    return [each for each in there if each.output] or there  # rows that went to the driver left nothing to point at


Needed = Callable[["Sequence[RecordRun]", Sequence[UnreadableRun]], Sequence[UnreadableRun]]
"""The runs that a question may need, of those whose records cannot be read, beside those whose records can."""


def recorded(store: Reader, commit: Commit, needed: Needed = lambda known, lost: lost) -> list[RecordRun]:
    """All writes whose rows can be traced; without those in damaged fragments, if none of them is needed.

    Raises:
        UsageError: There are none (``usage.no-records``).
        IntegrityError: A damaged fragment may hold the records of a run that is needed (``store.corrupt-fragment``).
    """
    known, lost = recorded_beside_damage(store, commit)
    wanted = needed(known, lost)
    if wanted:
        raise wanted[0].damage.error(each.run.id for each in wanted if each.damage is wanted[0].damage)
    return known


def recorded_beside_damage(store: Reader, commit: Commit) -> tuple[list[RecordRun], list[UnreadableRun]]:
    """All writes whose rows can be traced, and the runs whose records cannot be read.

    Raises:
        UsageError: There are none (``usage.no-records``).
        IntegrityError: A damaged fragment holds runs of which nothing is known, or no records can be read
            (``store.corrupt-fragment``).
    """
    known, lost = runs_beside_damage(store, commit)
    if not known:
        if lost:
            raise lost[0].error()
        _refuse_untraceable(store, commit, lambda each: True)
        raise UsageError("this store has no records of rows", code="usage.no-records", hint=RECORDING)
    return known, lost


def concerning(
    run: str | None,
    dataset: str | None = None,
    names_of: Callable[[UnreadableRun], Iterable[str]] = UnreadableRun.datasets,
) -> Needed:
    """What a question needs about a run, if it names one, else about a dataset."""

    def needed(each: UnreadableRun) -> bool:
        if run is not None:
            return each.is_named(run)
        return dataset is None or any(is_called(name, dataset) for name in names_of(each))

    return lambda known, lost: list(filter(needed, lost))


def behind(run: str) -> Needed:
    """What a trace back from a run needs: the runs that wrote what it read, and those behind them."""

    def needed(known: Sequence[RecordRun], lost: Sequence[UnreadableRun]) -> Sequence[UnreadableRun]:
        names = {name for each in known if each.run == run for name in each_name(inputs_of(each))}
        steps = [({each.output}, each_name(inputs_of(each))) for each in known]
        names = _reached(names, [*steps, *((each.writes(), each.reads()) for each in lost)])
        return [each for each in lost if names & each.writes()]

    return needed


def ahead(dataset: str) -> Needed:
    """What a trace forward from a dataset needs: the runs that read it, and those that read what they wrote."""

    def needed(known: Sequence[RecordRun], lost: Sequence[UnreadableRun]) -> Sequence[UnreadableRun]:
        steps = [(each_name(inputs_of(each)), {each.output} - {""}) for each in known]
        steps += [(each.reads(), each.writes()) for each in lost]
        names = _reached({name for own, _ in steps for name in own if is_called(name, dataset)}, steps)
        return [each for each in lost if names & each.reads()]

    return needed


def _reached(names: set[str], steps: Sequence[tuple[set[str], set[str]]]) -> set[str]:
    """Names, and those that steps lead to, from any name of their first set to all of their second."""
    size = -1
    while size != len(names):
        size = len(names)
        names = names.union(*(to for own, to in steps if own & names))
    return names


def _refuse_untraceable(store: Reader, commit: Commit, fits: Callable[[RecordRun], bool]) -> None:
    """Refuse a write that is known, and whose rows cannot be traced.

    Raises:
        UsageError: ``usage.untraceable``, with the reason.
    """
    found = next((each for each in read_untraceable(store, commit) if fits(each)), None)
    if found is not None:
        reason, _, remedy = found.breaks[0].partition(": ")
        raise UsageError(
            f"rows of {line_of(found)} cannot be traced: {reason}", code="usage.untraceable", hint=remedy or None
        )


def of_run(
    store: Reader, commit: Commit, known: Sequence[RecordRun], text: str, *, with_queries: bool = False
) -> list[RecordRun]:
    """The writes of a run, of an application, or of ``JOB~n``.

    Args:
        store: The store.
        commit: Names are those of this commit.
        known: The runs that have records.
        text: The name.
        with_queries: A script means also its queries whose rows went to the driver, beside its writes.

    Raises:
        UnknownNameError: No run is called so (``usage.unknown-run``).
        UsageError: The run is known, but has no records (``usage.no-records``), or cannot have any
            (``usage.untraceable``).
    """
    found = [each for each in known if text in (each.run, each.application)]
    if found:
        return found
    history = read_history(store, commit)
    named = {run.id for run in matching_runs(history, text)}
    found = _of_script(history, known, text, with_queries) or [each for each in known if each.run in named]
    if found:
        return found
    _refuse_untraceable(store, commit, lambda each: text in (each.run, each.application) or each.run in named)
    if named:
        raise UsageError(f"the run {text!r} has no records of rows", code="usage.no-records", hint=RECORDING)
    names = list(dict.fromkeys(name for each in known for name in (each.run, each.application)))
    names += [name for run in history.runs for name in (run.job.partition(":")[0], run.job)]
    raise UnknownNameError(
        f"no run is called {text!r}",
        code="usage.unknown-run",
        nearest=tuple(difflib.get_close_matches(text, list(dict.fromkeys(names))[:2000], 3, 0.4)),
        hint="govtool runs",
    )


def _of_script(history: History, known: Sequence[RecordRun], text: str, with_queries: bool) -> list[RecordRun]:
    """The writes of the last application of a script, or of one before it (``job.py~1``); ``run:job.py`` is one, too.

    The jobs of a script that writes are called ``job.py:DATASET``. Queries whose rows went to the driver count where
    they are wanted, or where there are no others.
    """
    name, back = job_and_steps(renewed_text(text.removeprefix("run:")))
    records = {each.run: each for each in known}
    own = [run for run in history.runs if any(job == name or job.startswith(f"{name}:") for job in run.jobs)]
    applications = list(dict.fromkeys(records[run.id].application for run in own if run.id in records))
    # All of them are runs of a job that is called exactly so: it is found by that name.
    if all(name in run.jobs for run in own) or back >= len(applications):
        return []
    found = [records[run.id] for run in own if run.id in records]
    found = [each for each in found if each.application == applications[-1 - back]]
    return found if with_queries else [each for each in found if each.output] or found


def only(
    store: Reader,
    commit: Commit,
    writes: Sequence[RecordRun],
    what: str,
    *,
    named: str = "--run",
    every: str = "",
    condition: str = "",
) -> RecordRun:
    """The one write.

    Args:
        store: The store.
        commit: Writes are those of this commit.
        writes: What fits.
        what: What was looked for.
        named: What stands before the run in the command, for a hint.
        every: The option that takes all of them; empty if there is none.
        condition: Where several writes fit, the rows of each that meet it are counted for the message.

    Raises:
        AmbiguousNameError: There are several (``usage.ambiguous-run``).
    """
    if len(writes) == 1:
        return writes[0]
    listed = fitting_runs(store, commit, writes[-_CANDIDATES:], condition)
    best = next((each for each in reversed(listed) if each.rows), listed[-1]).run.run
    raise AmbiguousNameError(
        f"{len(writes)} writes fit {what!r}",
        code="usage.ambiguous-run",
        nearest=tuple(map(str, listed)),
        hint=f"all of them: {every}; one: {named} RUN" if every else f"choose one: {named} {best}",
    )


def no_rows(dataset: str, where: str) -> UsageError:
    """The error of a condition that no row meets."""
    if takes_all(where):
        return UsageError(f"{dataset} has no rows", code=NO_ROWS)
    return UsageError(
        f"no row of {dataset} meets {where!r}",
        code=NO_ROWS,
        hint="quote text with '…' within the expression; names of columns are those of the data",
    )


def _near(text: str, names: Sequence[str]) -> list[str]:
    """The names that a text may be meant for: as it is, or as the end of one."""
    ends = {name: "/".join(name.split("/")[-text.count("/") - 1 :]) for name in names}
    near = difflib.get_close_matches(text, list(dict.fromkeys(ends.values())), 3, 0.6)
    found = [name for end in near for name in names if ends[name] == end]
    found = found or difflib.get_close_matches(text, names, 3, 0.4)
    return found[:3] or [name for name in names if text.lower() in name.lower()]


def _refuse_other_run(
    known: Sequence[RecordRun],
    writes: Sequence[RecordRun],
    text: str,
    names_of: Callable[[RecordRun], Iterable[str]],
    problem: str,
) -> None:
    """Refuse a run that has nothing to do with a dataset, where others have.

    Raises:
        UsageError: ``usage.other-run``, with the runs that have.
    """

    def concerned(each: RecordRun) -> bool:
        return any(is_called(name, text) for name in names_of(each) if name)

    others = [each.run for each in known if concerned(each)]
    if others and not any(map(concerned, writes)):
        near = tuple(dict.fromkeys(others))[:_CANDIDATES]
        raise UsageError(f"{problem} {text!r}", code="usage.other-run", hint=f"--run {near[0]}, or leave --run out")


def _refuse_other_direction(
    known: Sequence[RecordRun], text: str, names_of: Callable[[RecordRun], Iterable[str]]
) -> None:
    """Refuse an output that no recorded run read, or an input that none wrote: the other direction is meant.

    Raises:
        UsageError: ``usage.no-run``.
    """
    if any(is_called(name, text) for each in known for name in names_of(each) if name):
        return
    wrote = next((each for each in known if each.output and is_called(each.output, text)), None)
    read = next((each for each in known if any(is_called(name, text) for name in inputs_of(each))), None)
    if wrote is not None:
        raise UsageError(
            f"no recorded run read {text!r}; {wrote.run} wrote it", code="usage.no-run", hint="govtool trace back"
        )
    if read is not None:
        raise UsageError(
            f"no recorded run wrote {text!r}; {read.run} read it", code="usage.no-run", hint="govtool trace forward"
        )


def _of_dataset(
    store: Reader,
    commit: Commit,
    writes: Sequence[RecordRun],
    text: str,
    names_of: Callable[[RecordRun], Iterable[str]],
    problem: str,
) -> list[RecordRun]:
    def concerned(each: RecordRun) -> bool:
        return any(is_called(name, text) for name in names_of(each) if name)

    found = list(filter(concerned, writes))
    names = sorted({name for each in found for name in names_of(each) if is_called(name, text)})
    # Each run keeps the relation in a folder of its own: the last one answers.
    if len(names) > 1 and text not in names:
        text = _of_last_run(store, commit, found, text, names_of)
        names = [text]
    if found:
        return [each for each in found if text not in names or text in names_of(each)]
    _refuse_untraceable(store, commit, concerned)
    _refuse_unrecorded(store, commit, text, names_of is inputs_of, problem)
    _refuse_other_direction(recorded(store, commit, concerning(None, text)), text, names_of)
    every = sorted({name for each in writes for name in names_of(each) if name})
    near = _near(text, every)
    raise UnknownNameError(
        f"{problem} {text!r}", code="usage.unknown-dataset", nearest=tuple(near or every[:3]), hint="govtool runs"
    )


def _refuse_unrecorded(store: Reader, commit: Commit, text: str, is_read: bool, problem: str) -> None:
    """Refuse a dataset of runs that are known, and of whose rows nothing is recorded."""
    others = [
        run
        for run in read_history(store, commit).runs
        if any(is_called(one.dataset, text) for one in (run.inputs if is_read else run.outputs))
    ]
    if others and all(run.status == "failed" for run in others):
        why = f"{problem} {text!r}: run {others[-1].id} failed"
        raise UsageError(why, code="usage.no-records", hint=f"govtool show {others[-1].id}")
    if others:
        did = "read" if is_read else "wrote"
        raise UsageError(
            f"{problem} {text!r}, though runs that {did} it are known", code="usage.no-records", hint=RECORDING
        )


def _of_last_run(
    store: Reader,
    commit: Commit,
    found: Sequence[RecordRun],
    text: str,
    names_of: Callable[[RecordRun], Iterable[str]],
) -> str:
    """The dataset that a text names where runs keep a relation in folders of their own: that of the last run.

    Raises:
        AmbiguousNameError: The datasets are of several relations (``usage.ambiguous-dataset``).
    """
    from govtool.query.runs.relation_names import relation_name

    runs = read_history(store, commit).runs
    folders = {run.application for run in runs}  # a run may have read the state that one before it left
    order = {run.id: number for number, run in enumerate(runs)}
    last: dict[str, tuple[int, str, str]] = {}
    for each in found:
        for name in names_of(each):
            if is_called(name, text):
                relation = relation_name(name, folders)
                last[relation] = max(last.get(relation, (-1, "", "")), (order.get(each.run, -1), each.run, name))
    newest = max(last.values())
    if len(last) == 1:
        return newest[2]
    names = sorted({name for each in found for name in names_of(each) if is_called(name, text)})
    raise AmbiguousNameError(
        f"{text!r} may be {len(names)} datasets",
        code="usage.ambiguous-dataset",
        nearest=tuple(names[:_CANDIDATES]),
        hint=f"choose a run: --run {newest[1]}",
    )


def _still_there(writes: Sequence[RecordRun], output: str) -> list[RecordRun]:
    """The writes that left files which are there now, be it in part: rows of each may meet a condition.

    Raises:
        UsageError: No write is there whole (``usage.no-run``).
    """
    from govtool.records.execute.inputs import changed
    from govtool.records.lake.written import LiveTables
    from govtool.records.split_plans import files_made, relation_of

    there: list[RecordRun] = []
    is_whole, live = False, LiveTables()
    for each in writes:
        left = relation_of(each.written, each.output)
        if left is None:
            continue
        gone = {file.uri for file in changed([left])}
        kept = sum(file.uri not in gone for file in live.of(left))
        if kept:
            there.append(each)
            is_whole = is_whole or kept == files_made(left)
    if is_whole:
        return there
    if there:
        raise UsageError(
            f"what is now in {output!r} is in part that of {there[-1].run}: its other files are gone, or were replaced",
            code="usage.no-run",
            nearest=tuple(line_of(each) for each in writes[-_CANDIDATES:]),
            hint=f"trace all that it wrote: --run {there[-1].run}",
        )
    if not writes[-1].written:
        raise UsageError(
            f"which files in {output!r} {writes[-1].run} wrote is not known: they are not on this machine, another "
            "write ran at the same time, or names of folders do not tell the values of partitions",
            code="usage.no-run",
            hint=f"trace it by its plan: --run {writes[-1].run}",
        )
    raise UsageError(
        f"what is now in {output!r} was not left by a write that is recorded",
        code="usage.no-run",
        nearest=tuple(line_of(each) for each in writes[-_CANDIDATES:]),
        hint=f"trace an earlier write: --run {writes[-1].run}",
    )


def _read_as_is(writes: Sequence[RecordRun], dataset: str) -> list[RecordRun]:
    """The writes that read the files which are there now; where none did, those that read some of them, beside others.

    Raises:
        UsageError: None read any of them (``usage.no-run``).
    """
    from govtool.records.execute.inputs import changed
    from govtool.records.lake.written import LiveTables

    found: list[RecordRun] = []
    in_part: list[RecordRun] = []
    live = LiveTables()
    for each in writes:
        own = [leaf for name, leaf in leaves_read(each) if is_called(name, dataset)]
        lost = len(changed(own))
        if lost < max(1, sum(len(leaf.files) for leaf in own)) and all(map(live.has, own)):
            (in_part if lost else found).append(each)
    if found or in_part:
        return found or in_part
    raise UsageError(
        f"what is now in {dataset!r} was not read by a write that is recorded",
        code="usage.no-run",
        nearest=tuple(line_of(each) for each in writes[-_CANDIDATES:]),
        hint=f"trace an earlier one: --run {writes[-1].run}",
    )
