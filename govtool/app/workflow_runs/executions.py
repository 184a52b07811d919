"""Executions of a workflow, one after another, on the state that the last one left."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from govtool.app.workflow_runs.calls import BoundaryEngine, InvocationResult, ModuleCalls
from govtool.app.workflow_runs.left_values import LeftValues
from govtool.errors import UnknownNameError, UsageError
from govtool.model.workflow_run import BoundaryRelation, ModuleInvocation

if TYPE_CHECKING:
    from govtool.app.workflow_runs.reuse import InvocationCache
    from govtool.app.workflow_runs.state import SequencePointer, StateFolder
    from govtool.workflow.modules.schedule import Schedule, ScheduledUse


class WorkflowInputs(Protocol):
    """Where the inputs of executions and the initial state come from."""

    def find(self, name: str, execution: int) -> BoundaryRelation:
        """An input of an execution.

        Raises:
            UsageError: There is none.
        """

    def initial(self, slot: str) -> BoundaryRelation | None:
        """The initial version of a state relation; None: it starts without rows."""


class RunObserver(Protocol):
    """Is called for what ran, as it ran."""

    def invoked(self, invocation: ModuleInvocation, relations: Mapping[str, BoundaryRelation]) -> None:
        """A module was invoked, and its relations are written."""

    def executed(self, execution: int) -> None:
        """All modules of an execution ran. It is whole once the pointer names it, which happens next."""


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What an execution left.

    Attributes:
        execution: Its number.
        outputs: Its outputs, by node and relation.
        invocations: What ran, in order.
    """

    execution: int
    outputs: Mapping[tuple[str, str], BoundaryRelation]
    invocations: tuple[ModuleInvocation, ...]


class WorkflowRunner:
    """Runs the executions of one workflow. The state folder has to be open."""

    def __init__(
        self,
        schedule: Schedule,
        frames: BoundaryEngine,
        folder: StateFolder,
        inputs: WorkflowInputs,
        pointer: SequencePointer,
        observer: RunObserver | None = None,
        reuse: InvocationCache | None = None,
    ) -> None:
        """Prepare the initial state where there is none yet.

        Raises:
            UsageError: A state relation has neither an initial version nor a declared schema.
        """
        self.pointer = pointer
        self._schedule = schedule
        self._frames = frames
        self._folder = folder
        self._inputs = inputs
        self.observer = observer
        self.reuse = reuse
        self.left: LeftValues | None = None
        """What functions left for each other; followed where somebody observes."""
        self._initial = {slot: self._initial_state(slot) for slot in schedule.state if slot not in pointer.state}

    def execute(self) -> ExecutionResult:
        """Run the next execution; the pointer names it once it is whole.

        Raises:
            EngineError: A module failed, or returned what it must not (``engine.module``).
            UsageError: An input is missing or not of its schema.
        """
        if self.observer is not None and self.left is None:
            self.left = LeftValues({use.module.name: use.module.function for use in self._schedule.uses})
        number = self.pointer.execution + 1
        pass_ = _Execution(self, number, self._folder.place(number, secrets.token_hex(4)))
        for use in self._schedule.uses:
            pass_.invoke(use)
        pointer = replace(self.pointer, execution=number, state=pass_.state, invocations=pass_.counts)
        if self.observer is not None:
            self.observer.executed(number)
        self._folder.advance(pointer)
        self.pointer = pointer
        return ExecutionResult(number, pass_.kept, tuple(pass_.invocations))

    def _initial_state(self, slot: str) -> BoundaryRelation | None:
        found = self._inputs.initial(slot)
        declared = self._schedule.state[slot]
        if found is None and declared.schema is None:
            raise UnknownNameError(
                f"the state {slot} has no initial version and no declared schema",
                code="usage.missing-input",
                hint=f"write state/{slot}.parquet among the inputs, or declare its schema in the module",
            )
        return found


class _Execution:
    """The state of one execution on its way."""

    def __init__(self, runner: WorkflowRunner, number: int, place: Path) -> None:
        self.runner = runner
        self.number = number
        self.calls = ModuleCalls(runner._frames, number, place)
        self.state: dict[str, BoundaryRelation] = dict(runner.pointer.state)
        self.counts: dict[str, int] = dict(runner.pointer.invocations)
        self.made: dict[tuple[str, str], BoundaryRelation] = {}
        self.kept: dict[tuple[str, str], BoundaryRelation] = {}
        self.invocations: list[ModuleInvocation] = []

    def invoke(self, use: ScheduledUse) -> None:
        """Run one node: read its relations, call its function, write what it returned."""
        module, reuse = use.module, self.runner.reuse
        inputs = {name: self._input(use, name) for name in module.input_names}
        before = {name: self._version(use.slots[name]) for name in module.state_names}
        known = None if reuse is None else reuse.find(module, inputs, before, use.materialised)
        if known is not None:
            self._record(use, inputs, before, known, ())
            return
        left = self.runner.left
        indirect = () if left is None else left.reached(module.name)
        made = self.calls.evaluate(use, inputs, before)
        if reuse is not None:
            reuse.keep(module, inputs, before, made)
        invocation = self._record(use, inputs, before, made, indirect)
        if left is not None and invocation.hangs_on_jobs:
            left.called(invocation.reads)

    def _input(self, use: ScheduledUse, name: str) -> BoundaryRelation:
        source = use.sources[name]
        return self.runner._inputs.find(name, self.number) if source is None else self.made[(source, name)]

    def _version(self, slot: str) -> BoundaryRelation | None:
        return self.state.get(slot) or self.runner._initial.get(slot)

    def _record(
        self,
        use: ScheduledUse,
        inputs: Mapping[str, BoundaryRelation],
        before: Mapping[str, BoundaryRelation | None],
        result: InvocationResult,
        indirect: tuple[str, ...],
    ) -> ModuleInvocation:
        module, outputs, after = use.module, result.outputs, result.state
        self.counts[module.name] = self.counts.get(module.name, 0) + 1
        self.state.update((use.slots[name], each) for name, each in after.items())
        self.made.update(((use.node, name), each) for name, each in outputs.items())
        self.kept.update(((use.node, name), outputs[name]) for name in use.outputs)
        found = {name: each for name, each in before.items() if each is not None}
        invocation = ModuleInvocation(
            self.number,
            use.node,
            module.name,
            self.counts[module.name],
            tuple((name, each.path, use.sources[name] or "") for name, each in inputs.items()),
            tuple((name, use.slots[name], each.path) for name, each in found.items()),
            tuple((name, use.slots[name], each.path) for name, each in after.items()),
            tuple((name, each.path) for name, each in outputs.items()),
            use.outputs,
            result.ran_jobs,
            indirect,
        )
        self.invocations.append(invocation)
        if self.runner.observer is not None:
            every = (*inputs.values(), *found.values(), *after.values(), *outputs.values())
            self.runner.observer.invoked(invocation, {each.path: each for each in every})
        return invocation


def executions_to_run(done: int, wanted: int | None, numbered: tuple[int, ...]) -> range:
    """The executions that a run has before it.

    Args:
        done: The last whole execution.
        wanted: How many the sequence is to have; None: those that have inputs of their own, or one more.
        numbered: The executions with inputs of their own.

    Raises:
        UsageError: The sequence cannot have so many (``usage.arguments``).
    """
    if wanted is not None:
        if wanted < 1:
            raise UsageError(f"{wanted} executions", code="usage.arguments", hint="--executions 1")
        return range(done + 1, wanted + 1)
    last = max(numbered, default=0)
    return range(done + 1, max(last, done if numbered else done + 1) + 1)
