"""Runs that have a provenance graph, of whichever kind: workflows, and recorded programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from govtool.answers.workflow_runs import UnlistedRuns
from govtool.app.workflow_runs.programs.actions import (
    WORKFLOW_SOURCE,
    RecordedProgram,
    find_program,
    read_programs,
    unknown_run,
)
from govtool.app.workflow_runs.stored import find_workflow_run, names_of, read_workflow_runs
from govtool.errors import GovtoolError, IntegrityError, UnknownNameError
from govtool.model.workflow_run import WorkflowRun, sorted_runs

if TYPE_CHECKING:
    from govtool.app.workflow_runs.programs.actions import ProgramAction
    from govtool.app.workflow_runs.programs.layout import ProgramLayout
    from govtool.app.workflow_runs.programs.replaced import PartitionHistory
    from govtool.records.plan.nodes import Plan
    from govtool.store import Commit, Reader
    from govtool.workflow.modules.run_graph import StateNodes
    from govtool.workflow.modules.run_tuples import RunFiles, RunGraph


@dataclass(frozen=True)
class RecordedRun:
    """A run of a workflow or of a program.

    Attributes:
        store: Where it is.
        commit: The version of the store.
        program: The program; None for a workflow.
        workflow: The run of a workflow; None for a program.
        notes: Where a program that is joined with other runs begins although a run wrote to that place; that a workflow
            is a program for it; and outputs of which a later write replaced a part.
        histories: The writes into outputs of which a later one replaced a part.
    """

    store: Reader
    commit: Commit
    program: RecordedProgram | None = None
    workflow: WorkflowRun | None = None
    notes: tuple[str, ...] = ()
    histories: tuple[PartitionHistory, ...] = ()

    @cached_property
    def run(self) -> WorkflowRun:
        """The run, with its invocations and relations. A program is one execution, an invocation an action."""
        return self.workflow if self.workflow is not None else self._layout.run

    @cached_property
    def _layout(self) -> ProgramLayout:
        from govtool.app.workflow_runs.programs.layout import lay_out

        assert self.program is not None
        return lay_out(self.program, self._plan)

    def _plan(self, action: ProgramAction) -> tuple[Plan | None, str]:
        return _plan_of(self.store, self.commit, action)

    @contextmanager
    def opened(self) -> Iterator[tuple[WorkflowRun, RunFiles]]:
        """The run over files that can be read, with its plans and rows.

        Raises:
            UsageError: The run has no records of rows (``usage.no-records``).
        """
        if self.workflow is not None:
            from govtool.app.workflow_runs.run_graph import StoredRunFiles, require_records

            require_records(self.workflow)
            yield self.workflow, StoredRunFiles(self.store, self.commit, self.workflow)
            return
        from govtool.app.workflow_runs.programs.files import opened_program

        with opened_program(self._layout) as opened:
            yield opened

    def graph(self, state_nodes: StateNodes = "read", *, pig_nodes: bool = False) -> RunGraph:
        """The provenance graph of the run.

        Args:
            state_nodes: Rows of state that were not read have nodes, too (``all``), or not (``read``).
            pig_nodes: Operators have the nodes of the paper's figures.

        Raises:
            UsageError: The run has no records of rows (``usage.no-records``), or a file of a workflow has changed since
                (``usage.changed``).
        """
        from govtool.workflow.modules.run_graph import build_run_graph

        with self.opened() as (run, files):
            return build_run_graph(run, files, state_nodes, pig_nodes=pig_nodes)

    def forgotten(self) -> tuple[str, ...]:
        """Why parts of the graph are black boxes whose private values were removed from the store."""
        from govtool.app.records.forgotten import CODE, has_forgotten_values
        from govtool.app.records.tables import read_plan

        if self.program is None or not has_forgotten_values(self.store):
            return ()
        found: list[str] = []
        for record in (each.record for each in self.program.actions if each.record is not None):
            try:
                read_plan(self.store, self.commit, record)
            except GovtoolError as error:
                found += [f"{record.run}: {error.message}"] if error.code == CODE else []
        return tuple(found)


def _plan_of(store: Reader, commit: Commit, action: ProgramAction) -> tuple[Plan | None, str]:
    """The plan of an action; or None, and the reason."""
    from govtool.app.records.tables import read_plan

    if action.record is None:
        return None, action.unreadable or "its plan was not recorded"
    try:
        return read_plan(store, commit, action.record), ""
    except GovtoolError as error:  # private values were removed, or a fragment is damaged
        return None, error.message


def find_recorded_run(store: Reader, commit: Commit, text: str, *, all_runs: bool = False) -> RecordedRun:
    """The run that a text names: see ``find_workflow_run`` for workflows, then ``find_program``.

    Args:
        store: The store.
        commit: Its version.
        text: The name.
        all_runs: It goes on through the runs that exchange files with it: see ``joined_program``. A workflow is a
            program then, of its writes.

    Raises:
        UnknownNameError: There is none (``usage.unknown-run``), with near names.
        AmbiguousNameError: Several begin so (``usage.ambiguous-run``).
    """
    from govtool.app.workflow_runs.programs.replaced import partition_histories

    found = _named_run(store, commit, text)
    found = _joined(found) if all_runs else found
    if found.program is None:
        return found
    histories = partition_histories(found.program)
    return replace(found, notes=(*found.notes, *(each.note for each in histories)), histories=histories)


def _joined(found: RecordedRun) -> RecordedRun:
    """A run with the others that exchange files with it; a workflow as it is where there are none."""
    from govtool.app.workflow_runs.programs.joined import joined_program

    @cache
    def plan_of(action_id: str) -> tuple[Plan | None, str]:
        return _plan_of(found.store, found.commit, actions[action_id])

    programs = read_programs(found.store, found.commit, of_workflows=True)
    actions = {action.run.id: action for each in programs for action in each.actions}
    own = [found.program] if found.program is not None else list(_writes_of(found, programs))
    for program in own:
        joined = joined_program(program, programs, lambda action: plan_of(action.run.id))
        if found.workflow is None:
            return replace(found, program=joined.program, notes=joined.notes)
        if any(not _is_of(action, found.workflow) for action in joined.program.actions):
            together = replace(joined.program, job=found.workflow.workflow)
            return replace(found, workflow=None, program=together, notes=(*joined.notes, _WRITES))
    return found


_WRITES = (
    "joined with other runs, a workflow is one of several programs: its writes are actions, and its modules are not "
    "called again"
)


def _writes_of(found: RecordedRun, programs: Sequence[RecordedProgram]) -> Iterator[RecordedProgram]:
    """The writes of a workflow's run as programs: one an application that it ran in."""
    for program in programs:
        if found.workflow is not None and any(_is_of(action, found.workflow) for action in program.actions):
            yield program


def _is_of(action: ProgramAction, run: WorkflowRun) -> bool:
    """Return whether an action is a write of a workflow's run."""
    return action.application in run.applications and action.run.source == f"{WORKFLOW_SOURCE}{run.workflow}"


def _named_run(store: Reader, commit: Commit, text: str) -> RecordedRun:
    try:
        return RecordedRun(store, commit, workflow=find_workflow_run(store, commit, text))
    except UnknownNameError as error:
        if error.code != "usage.unknown-run":
            raise
        programs = read_programs(store, commit)
        found = find_program(programs, text)
        if found is None:
            flows = names_of(*read_workflow_runs(store, commit))
            own = [name for each in programs for name in (each.job, each.application)]
            raise unknown_run(text, (*flows, *own)) from None
        return RecordedRun(store, commit, program=found)


def one_execution(run: WorkflowRun, number: int) -> WorkflowRun:
    """A run with the invocations of one execution only.

    Raises:
        UnknownNameError: It has no such execution (``usage.unknown-execution``).
    """
    own = tuple(each for each in run.invocations if each.execution == number)
    if not own:
        known = sorted({each.execution for each in run.invocations})
        raise UnknownNameError(
            f"the run {run.id} has no execution {number}",
            code="usage.unknown-execution",
            nearest=tuple(map(str, sorted(known, key=lambda each: abs(each - number))[:3])),
        )
    return replace(run, invocations=own)


@dataclass(frozen=True, slots=True)
class RunList:
    """The runs of a commit.

    Attributes:
        runs: The newest first; those of programs without inputs and files.
        damaged: What is not among them, because it cannot be read.
    """

    runs: tuple[WorkflowRun, ...]
    damaged: tuple[UnlistedRuns, ...]


def list_recorded_runs(store: Reader, commit: Commit) -> RunList:
    """All runs of both kinds, and what cannot be listed.

    Raises:
        StoreError: The store cannot be read.
    """
    from govtool.app.workflow_runs.programs.layout import summary_run

    runs, lost = read_workflow_runs(store, commit)
    damaged = [_unlisted(each.error(), each.id, each.workflow) for each in lost]
    programs: list[RecordedProgram] = []
    try:
        programs = read_programs(store, commit)
    except IntegrityError as error:  # a damaged fragment holds records of which nothing else is known
        damaged.append(_unlisted(error))
    return RunList(tuple(sorted_runs([*runs, *map(summary_run, programs)])), tuple(damaged))


def _unlisted(error: IntegrityError, run: str = "", workflow: str = "") -> UnlistedRuns:
    return UnlistedRuns(run, workflow, error.message, error.location or "", error.hint or "")


def forgotten_runs(store: Reader, commit: Commit, runs: Iterable[WorkflowRun]) -> frozenset[str]:
    """The ids of runs whose private values were removed from the store."""
    from govtool.app.records.forgotten import forgotten_applications

    lost = forgotten_applications(store, commit)
    return frozenset(run.id for run in runs if not lost.isdisjoint(run.applications))
