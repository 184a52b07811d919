"""Calls of module functions: relations on disk become frames, and what they return becomes relations on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from govtool.app.workflow_runs.frames import first_line, mapping_of
from govtool.errors import EngineError, GovtoolError
from govtool.model.workflow_run import BoundaryRelation

if TYPE_CHECKING:
    from govtool.workflow.modules.definition import Module, RelationSchema
    from govtool.workflow.modules.schedule import ScheduledUse


class BoundaryEngine(Protocol):
    """Turns relations on disk into what module functions take, and back; ``BoundaryFrames`` does for Spark."""

    def read(self, relation: BoundaryRelation, declared: RelationSchema) -> Any:
        """A relation as a frame."""

    def empty(self, declared: RelationSchema) -> Any:
        """A relation without rows."""

    def write(
        self, frame: Any, place: Path, declared: RelationSchema, expected: BoundaryRelation | None
    ) -> BoundaryRelation:
        """Write a frame into a new folder."""

    def jobs_run(self) -> int | None:
        """How many jobs the engine has run so far; None: not known."""


class InvocationResult(NamedTuple):
    """What an invocation made.

    Attributes:
        outputs: Its outputs on disk, by name.
        state: The state that it changed, by name.
        ran_jobs: Jobs ran, or may have run, while its function did.
    """

    outputs: Mapping[str, BoundaryRelation]
    state: Mapping[str, BoundaryRelation]
    ran_jobs: bool


@dataclass(frozen=True, slots=True)
class ModuleCalls:
    """Calls modules within one execution.

    Attributes:
        frames: Reads and writes relations.
        number: The number of the execution.
        place: The folder of what its invocations write.
    """

    frames: BoundaryEngine
    number: int
    place: Path

    def evaluate(
        self,
        use: ScheduledUse,
        inputs: Mapping[str, BoundaryRelation],
        before: Mapping[str, BoundaryRelation | None],
    ) -> InvocationResult:
        """Outputs and changed state of an invocation, on disk.

        Args:
            use: The node.
            inputs: What it receives, by name.
            before: The state that it finds, by name; None: no rows.

        Raises:
            EngineError: The module failed, or returned what it must not.
        """
        module = use.module
        where = f"module {module.name} (node {use.node}, execution {self.number})"
        frames = self._read(module, inputs, before)
        jobs = self.frames.jobs_run()
        try:
            returned = module.function(*frames.values())
        except GovtoolError:
            raise
        except Exception as error:  # the user's function may raise anything: it fails this execution, by name
            raise EngineError(f"{where} failed: {first_line(error)}", code="engine.module") from error
        ran_jobs = jobs is None or jobs != self.frames.jobs_run()
        try:
            results = self._results(use, returned)
            if ran_jobs:  # they may have decided that state stays as it is
                results = {**{name: frames[name] for name in module.state_names}, **results}
            changed = [
                name
                for name in module.state_names
                if name in results and (ran_jobs or results[name] is not frames[name])
            ]
            outputs = {
                name: (None if ran_jobs else self._handed_on(use, name, results[name], frames, inputs))
                or self._written(use, name, results[name], None)
                for name in use.materialised
            }
            after = {name: self._written(use, name, results[name], before[name]) for name in changed}
        except EngineError as error:
            raise EngineError(f"{where}: {error.message}", code=error.code) from error
        return InvocationResult(outputs, after, ran_jobs)

    def _read(
        self, module: Module, inputs: Mapping[str, BoundaryRelation], before: Mapping[str, BoundaryRelation | None]
    ) -> dict[str, Any]:
        frames = {one.name: self._frame(inputs[one.name], one) for one in module.inputs}
        frames.update((one.name, self._frame(before[one.name], one)) for one in module.state)
        return frames

    def _frame(self, relation: BoundaryRelation | None, declared: RelationSchema) -> Any:
        return self.frames.empty(declared) if relation is None else self.frames.read(relation, declared)

    def _results(self, use: ScheduledUse, returned: Any) -> Mapping[str, Any]:
        module = use.module
        results = mapping_of(returned, module.output_names, module.name, bool(module.state))
        known = (*module.output_names, *module.state_names)
        strange = sorted(str(name) for name in results if name not in known)
        if strange:
            raise EngineError(
                f"it returned {', '.join(strange)}, which it does not declare; it declares {', '.join(known)}",
                code="engine.module",
            )
        lost = [name for name in module.output_names if results.get(name) is None]
        if lost:
            raise EngineError(f"it returned no {', '.join(lost)}", code="engine.module")
        return {name: frame for name, frame in results.items() if frame is not None}

    def _handed_on(
        self,
        use: ScheduledUse,
        name: str,
        frame: Any,
        frames: Mapping[str, Any],
        inputs: Mapping[str, BoundaryRelation],
    ) -> BoundaryRelation | None:
        """An input from another node that is handed on as it came: it stays where it is.

        An input of the workflow is written all the same: its file is the user's, who may write it again. So is one of
        a function that ran jobs: they may have decided that it is handed on.
        """
        declared = use.module.relation(name)
        if declared is None or declared.schema is not None:  # then it is checked, which a write does
            return None
        own = (inputs[other] for other in inputs if frames[other] is frame and use.sources[other] is not None)
        return next(own, None)

    def _written(self, use: ScheduledUse, name: str, frame: Any, before: BoundaryRelation | None) -> BoundaryRelation:
        """A relation on disk."""
        declared = use.module.relation(name)
        assert declared is not None
        try:
            return self.frames.write(frame, self.place / use.node / name, declared, before)
        except GovtoolError:
            raise
        except Exception as error:  # whatever its DataFrame raises now that it is evaluated
            raise EngineError(f"{name} could not be made: {first_line(error)}", code="engine.module") from error
