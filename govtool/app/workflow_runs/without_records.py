"""A run again, without some records: the recorded executions, and only invocations that the records reach.

Each invocation is called as it was, on what its inputs and state are now. Where its results are the recorded ones, what
comes after is not called again. So this holds for modules whose results depend on what they receive alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.workflow_runs.calls import ModuleCalls
from govtool.app.workflow_runs.reuse import InvocationCache
from govtool.errors import EngineError
from govtool.model.workflow_run import BoundaryRelation, ModuleInvocation, WorkflowRun

if TYPE_CHECKING:
    from govtool.workflow.modules.run_tuples import RunFiles
    from govtool.workflow.modules.schedule import Schedule, ScheduledUse

Gone = Mapping[str, Collection[int]]
"""By the path of a relation that came in, the rows that are deleted."""


@dataclass(slots=True)
class ReplayedRun:
    """What a run again made.

    Attributes:
        relations: Relations that differ from the recorded ones, by the path of those.
        failed: Relations that cannot be made again, by path, with the reason.
        invocations: What was called.
    """

    relations: dict[str, BoundaryRelation] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    invocations: list[ModuleInvocation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RunReplayer:
    """Runs a recorded run again.

    Attributes:
        run: The run.
        files: Its plans and rows.
        schedule: The schedule of its program.
        frames: Reads and writes relations, and leaves rows out.
    """

    run: WorkflowRun
    files: RunFiles
    schedule: Schedule
    frames: Any

    def without(
        self, gone: Gone, wanted: Iterable[str], folder: Path, known: Mapping[str, BoundaryRelation] | None = None
    ) -> ReplayedRun:
        """Run again without some rows.

        Args:
            gone: The rows.
            wanted: Paths of the relations that are wanted; only what they are made of is called.
            folder: Where new relations are written.
            known: Relations whose rows without the records are known already, by path: they are not made again.
        """
        pass_ = _Replay(self, folder, known or {})
        for number, (path, rows) in enumerate(gone.items()):
            place = folder / f"source{number}"
            pass_.found.relations[path] = self.frames.without(self.run.relations[path], rows, place)
        for each in required_for(self.run, wanted, pass_.known):
            if each.is_known:
                pass_.take(each)
            else:
                pass_.invoke(each.invocation)
        return pass_.found


@dataclass(frozen=True, slots=True)
class RequiredInvocation:
    """An invocation that some relations hang on.

    Attributes:
        invocation: The invocation.
        paths: The relations that it made, and that are read or wanted.
        is_known: All that is read of it is known: it need not be called, nor what it received be made.
    """

    invocation: ModuleInvocation
    paths: frozenset[str]
    is_known: bool


def required_for(run: WorkflowRun, wanted: Iterable[str], known: Collection[str] = ()) -> list[RequiredInvocation]:
    """The invocations that some relations hang on, in order; those of which all is known hang on nothing.

    State counts by its slot: an invocation that left it as it was may change it when it is called again. So that is
    never known.
    """
    needed, slots = set(wanted), set[str]()
    found = []
    for each in reversed([each for each in run.invocations if each.execution <= run.whole]):
        received = {path for _, path, _ in each.inputs}
        new = {slot: path for _, slot, path in each.new_state}
        own = {slot for _, slot, _ in each.state} | new.keys()
        read = {path for _, path in each.outputs if path in needed} - received
        read |= {path for slot, path in new.items() if slot in slots or path in needed}
        if not (read or own & slots):
            continue
        is_known = read <= set(known) and own & slots <= new.keys()
        found.append(RequiredInvocation(each, frozenset(read), is_known))
        if is_known:
            slots -= own
        else:
            needed |= received | set(each.indirect)
            slots |= own
    return found[::-1]


class _Replay:
    def __init__(self, replayer: RunReplayer, folder: Path, known: Mapping[str, BoundaryRelation]) -> None:
        self._replayer = replayer
        self._folder = folder
        self._uses = {use.node: use for use in replayer.schedule.uses}
        self._digests = InvocationCache()
        self.found = ReplayedRun()
        self.known = dict(known)
        self._state: dict[str, BoundaryRelation | None] = {}
        """The state of each slot as it is now, once an invocation was called again or taken as known."""
        self._lost: dict[str, str] = {}
        """State that cannot be made again, by slot, with the reason."""

    def take(self, required: RequiredInvocation) -> None:
        """Take what is known of an invocation; what it received need not have been made."""
        each, recorded = required.invocation, self._replayer.run.relations
        for path in required.paths:
            self._keep(path, self.known[path])
        for _, slot, path in each.new_state:
            if path in required.paths:
                self._state[slot] = self.found.relations.get(path, recorded[path])

    def invoke(self, each: ModuleInvocation) -> None:
        """Call a module again if anything that it received is another one."""
        use = self._uses[each.node]
        recorded = self._replayer.run.relations
        inputs = {name: self.found.relations.get(path, recorded[path]) for name, path, _ in each.inputs}
        found = {name: self.found.relations.get(path, recorded[path]) for name, _, path in each.state}
        before = {name: self._state.get(slot, found.get(name)) for name, slot in use.slots.items()}
        reason = self._obstacle(each, use)
        if reason:
            self._fail(each, reason)
        elif self._is_another(each, inputs, before):
            self._call(each, use, inputs, before)
        elif any(path in self.found.relations or path in self.found.failed for path in each.indirect):
            self._fail(each, _left_for(each))
        else:
            self._state.update((slot, recorded[path]) for _, slot, path in each.new_state)

    def _is_another(
        self,
        each: ModuleInvocation,
        inputs: Mapping[str, BoundaryRelation],
        before: Mapping[str, BoundaryRelation | None],
    ) -> bool:
        recorded = {name: path for name, path, _ in each.inputs}
        state = {name: path for name, _, path in each.state}
        return any(one.path != recorded[name] for name, one in inputs.items()) or any(
            (None if one is None else one.path) != state.get(name) for name, one in before.items()
        )

    def _obstacle(self, each: ModuleInvocation, use: ScheduledUse) -> str:
        reasons = [self.found.failed.get(path, "") for _, path, _ in each.inputs]
        reasons += [self._lost.get(slot, "") for slot in use.slots.values()]
        return next(filter(None, reasons), "")

    def _fail(self, each: ModuleInvocation, reason: str) -> None:
        self.found.failed.update((path, reason) for _, path in each.outputs)
        self.found.failed.update((path, reason) for _, _, path in each.new_state)
        self._lost.update((slot, reason) for _, slot, _ in each.new_state)

    def _call(
        self,
        each: ModuleInvocation,
        use: ScheduledUse,
        inputs: Mapping[str, BoundaryRelation],
        before: Mapping[str, BoundaryRelation | None],
    ) -> None:
        reason = self._doubt(each)
        if reason:
            self._fail(each, reason)
            return
        calls = ModuleCalls(self._replayer.frames, each.execution, self._folder / str(each.execution))
        try:
            outputs, after, _ = calls.evaluate(use, inputs, before)
        except EngineError as error:
            self._fail(each, error.message)
            return
        self.found.invocations.append(each)
        self._settle(each, use, before, outputs, after)

    def _settle(
        self,
        each: ModuleInvocation,
        use: ScheduledUse,
        before: Mapping[str, BoundaryRelation | None],
        outputs: Mapping[str, BoundaryRelation],
        after: Mapping[str, BoundaryRelation],
    ) -> None:
        """Keep what is another one than recorded."""
        received = {path for _, path, _ in each.inputs}
        for name, made in each.outputs:
            if made not in received:
                self._keep(made, outputs[name])
        recorded = {name: path for name, _, path in each.new_state}
        found = {name: path for name, _, path in each.state}
        for name, slot in use.slots.items():
            path: str | None = recorded.get(name) or found.get(name)
            now = after.get(name) or before[name]
            if now is None:  # it starts without rows, and nothing was added as yet
                self._state[slot] = None
                if name in recorded:
                    self.found.relations[recorded[name]] = BoundaryRelation("", "parquet", "", ())
                continue
            # A version that is as recorded gets the recorded place: what reads it is not called again.
            is_same = path is not None and self._same(path, now)
            self._state[slot] = self._replayer.run.relations[path] if path is not None and is_same else now
            if name in recorded:
                self._keep(recorded[name], now)

    def _keep(self, path: str, now: BoundaryRelation) -> None:
        recorded = self._replayer.run.relations[path]
        if _column_names(now) != _column_names(recorded):  # as of a pivot, or of an inferred schema
            columns = ", ".join(_column_names(now))
            self.found.failed[path] = f"{Path(path).name} has other columns without the records: {columns}"
        elif not self._same(path, now):
            self.found.relations[path] = now

    def _same(self, path: str, now: BoundaryRelation) -> bool:
        recorded = self._replayer.run.relations[path]
        return now.path == path or self._digests.digest(now) == self._digests.digest(recorded)

    def _doubt(self, each: ModuleInvocation) -> str:
        """Why an invocation called again may give other rows, although nothing is another one."""
        if each.indirect:  # in this process nobody left them
            return _left_for(each)
        for path in (*(path for _, path in each.outputs), *(path for _, _, path in each.new_state)):
            plan = self._replayer.files.plan(path)
            name = "" if plan is None else not_deterministic(plan.root)
            if name:
                return (
                    f"module {each.module} (node {each.node}, execution {each.execution}): {name} is not deterministic"
                )
        return ""


def _left_for(each: ModuleInvocation) -> str:
    return (
        f"module {each.module} (node {each.node}, execution {each.execution}) can reach values outside of relations, "
        "which jobs of earlier calls may have decided: hand them on as relations or state"
    )


def _column_names(relation: BoundaryRelation) -> list[str]:
    return [each["name"] for each in json.loads(relation.schema)["fields"]] if relation.schema else []


def not_deterministic(root: Any) -> str:
    """A function of a plan that gives another result each time; empty if there is none."""
    from govtool.functions.facts import NON_DETERMINISTIC
    from govtool.records.plan.expressions import Call, Udf
    from govtool.records.plan.nodes import Sample
    from govtool.records.plan.tree import walk, walk_nodes

    for node in walk_nodes(root):
        if isinstance(node, Sample):
            return "a sample"
        for term in walk(node):
            if isinstance(term, Udf) and not term.deterministic:
                return term.reference.qualname
            if isinstance(term, Call) and (not term.deterministic or term.name in NON_DETERMINISTIC):
                return term.name
    return ""
