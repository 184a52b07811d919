"""Recorded programs: runs of plain PySpark and Spark SQL under ``govtool run --records``, an action a module.

Nothing but what such a run leaves in the store is read: its runs, one an action, and the exact plans of them.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.errors import AmbiguousNameError, UnknownNameError

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.model.run import Run
    from govtool.store import Commit, Reader

WORKFLOW_SOURCE = "workflow:"
"""The prefix of sources whose actions are those of modules."""
_RUN_SOURCE = "run:"
SQL_SOURCE = "sql:"
"""The prefix of sources of SQL that was run without Spark; then the program's name and the run."""
_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class ProgramAction:
    """An action of a program.

    Attributes:
        run: What the store knows of it.
        record: Its exact plan and files; None where its rows cannot be traced.
        label: What its number is called by beside actions of other runs; empty: the number of its execution.
        unreadable: Why its record cannot be read; empty where it is not damaged.
    """

    run: Run
    record: RecordRun | None
    label: str = ""
    unreadable: str = ""

    @property
    def output(self) -> str:
        """The dataset that it wrote; empty for rows that went to the driver."""
        if self.record is not None:
            return self.record.output
        return self.run.outputs[0].dataset if self.run.outputs else ""

    @property
    def number(self) -> str:
        """The number of its execution in the application, unique in the program."""
        return self.label or self.run.id.rpartition("/")[2]

    @property
    def application(self) -> str:
        """The application that it is an action of."""
        return application_of(self.run)

    @property
    def plan(self) -> str:
        """A digest of what it does, literals aside."""
        return self.record.plan if self.record is not None else self.run.plan


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """One run of a program: the actions of an application.

    Attributes:
        application: The application, which is the id of the run.
        job: The script, or the job that the source is called by.
        actions: Its actions in the order in which they began; those that failed aside.
        status: ``complete``, or that of an action that was not.
        started: ISO 8601, UTC.
        ended: ISO 8601, UTC.
        error: Why an action failed.
    """

    application: str
    job: str
    actions: tuple[ProgramAction, ...]
    status: str
    started: str
    ended: str
    error: str


def application_of(run: Run) -> str:
    """Return the application that a run is an action of."""
    return run.application or run.id.rpartition("/")[0]


def read_programs(store: Reader, commit: Commit, *, of_workflows: bool = False) -> list[RecordedProgram]:
    """The recorded programs of a commit, the newest first.

    Args:
        store: The store.
        commit: Its version.
        of_workflows: Also runs of workflows, whose actions are the writes at the boundaries of modules.

    Raises:
        StoreError: The store cannot be read.
        IntegrityError: A damaged fragment holds records of which nothing else is known.
    """
    from govtool.app.records.unreadable import runs_beside_damage
    from govtool.app.runs.lookup import read_history

    known, lost = runs_beside_damage(store, commit)
    if not known and not lost:
        return []
    records: dict[str, RecordRun | str] = {each.run.id: each.why() for each in lost}
    records.update((each.run, each) for each in known)
    recorded = {each.application for each in known} | {application_of(each.run) for each in lost}
    by_application: dict[tuple[str, str], list[Run]] = {}
    for run in read_history(store, commit).runs:
        application = application_of(run)
        if application in recorded and (of_workflows or not run.source.startswith(WORKFLOW_SOURCE)):
            by_application.setdefault((application, run.source), []).append(run)
    found = [_program(*key, runs, records) for key, runs in by_application.items()]
    return sorted(
        (each for each in found if each.actions), key=lambda each: (each.started, each.application), reverse=True
    )


def _program(
    application: str, source: str, runs: Sequence[Run], records: Mapping[str, RecordRun | str]
) -> RecordedProgram:
    ordered = sorted(runs, key=_order)
    spoiled = next((run for run in ordered if run.status != "complete"), None)
    actions = [_action(run, records.get(run.id)) for run in ordered if run.status == "complete"]
    return RecordedProgram(
        application,
        _job(source),
        tuple(each for each in actions if each.record is not None or each.unreadable or each.run.outputs),
        "complete" if spoiled is None else spoiled.status,
        min((run.started or "" for run in ordered), default=""),
        max((run.ended or "" for run in ordered), default=""),
        "" if spoiled is None else spoiled.error,
    )


def _action(run: Run, record: RecordRun | str | None) -> ProgramAction:
    return ProgramAction(run, None, unreadable=record) if isinstance(record, str) else ProgramAction(run, record)


def _job(source: str) -> str:
    """The program of a source."""
    if source.startswith(SQL_SOURCE):
        return source.removeprefix(SQL_SOURCE).rpartition(":")[0]
    return source.removeprefix(_RUN_SOURCE)


def _order(run: Run) -> tuple[str, int, str]:
    number = run.id.rpartition("/")[2]
    return (run.started or "", int(number) if number.isdecimal() else 0, run.id)


def find_program(programs: Sequence[RecordedProgram], text: str) -> RecordedProgram | None:
    """The run of a program that a text names; None if there is none.

    Args:
        programs: Those of ``read_programs``.
        text: An application, the beginning of one, an action of one, or a job: its last run; ``JOB~1`` is the last but
            one.

    Raises:
        AmbiguousNameError: Several applications begin so (``usage.ambiguous-run``).
    """
    for program in programs:
        if text == program.application or any(text == action.run.id for action in program.actions):
            return program
    job, tilde, back = text.rpartition("~")
    name, steps = (job, int(back)) if tilde and back.isdecimal() else (text, 0)
    own = [program for program in programs if program.job == name]
    if steps < len(own):
        return own[steps]
    begun = [program for program in programs if text and program.application.startswith(text)]
    if len(begun) > 1:
        raise AmbiguousNameError(
            f"{text!r} may be {len(begun)} runs",
            code="usage.ambiguous-run",
            nearest=tuple(program.application for program in begun[:_CANDIDATES]),
        )
    return begun[0] if begun else None


def unknown_run(text: str, names: Iterable[str]) -> UnknownNameError:
    """The error of a name that no run has."""
    return UnknownNameError(
        f"no run of a workflow or of a recorded program is called {text!r}",
        code="usage.unknown-run",
        nearest=tuple(difflib.get_close_matches(text, list(dict.fromkeys(names)), 3, 0.3)),
        hint="govtool workflow list",
    )


# ---- names of modules ------------------------------------------------------------------------------------------------


def short_names(datasets: Iterable[str]) -> dict[str, str]:
    """The shortest end of the name of each dataset, cut at slashes, that no other one has."""
    wanted = list(dict.fromkeys(datasets))
    found: dict[str, str] = {}
    length = 1
    while len(found) < len(wanted):
        ends = {name: _end(name, length) for name in wanted}
        times = Counter(ends.values())
        unique = {name: end for name, end in ends.items() if times[end] == 1 or length >= len(name.split("/"))}
        found = {**unique, **found}
        length += 1
    return found


def _end(name: str, length: int) -> str:
    """The last parts of a name. ``#`` is what parts a module from the number of its invocation."""
    return "/".join(name.rstrip("/").split("/")[-length:]).replace("#", "_")


def module_names(program: RecordedProgram) -> list[str]:
    """The module of each action: its target, numbered where different plans write one; ``query_7`` without a target.

    Actions of one plan and one target, as those of a loop, are invocations of one module. Literals do not count.
    """
    names = short_names(action.output for action in program.actions if action.output)
    plans: dict[str, list[str]] = {}
    found = []
    for action in program.actions:
        if not action.output:
            found.append(f"query_{action.number}")
            continue
        own = plans.setdefault(action.output, [])
        if action.plan not in own:
            own.append(action.plan)
        place = own.index(action.plan) + 1
        found.append(names[action.output] if place == 1 else f"{names[action.output]}.{place}")
    return found
