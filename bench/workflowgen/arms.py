"""The three arms of a measurement, each running one execution after another on the same inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from bench.workflowgen.family import Family, OutputRow, Spec, read_parquet
from govtool.app.workflow_runs.executions import ExecutionResult, WorkflowRunner
from govtool.app.workflow_runs.frames import BoundaryFrames
from govtool.app.workflow_runs.inputs import InputFolder
from govtool.app.workflow_runs.reuse import InvocationCache
from govtool.app.workflow_runs.run import WorkflowRequest, new_run
from govtool.app.workflow_runs.state import SequencePointer, StateFolder
from govtool.app.workflow_runs.tracking import RunTracker, commit_run
from govtool.model.workflow_run import WorkflowRun

ARMS = ("hand", "untracked", "tracked")


class Arm(Protocol):
    """One way to run a spec."""

    def execute(self, execution: int) -> list[OutputRow]:
        """Run an execution, and return its outputs."""

    def settle(self) -> None:
        """Wait until what goes on behind an execution is done."""

    def finish(self) -> None:
        """End the run."""


class HandArm:
    """Plain PySpark."""

    def __init__(self, family: Family, spec: Spec, spark: Any, inputs: Path, folder: Path) -> None:
        self._family = family
        self._program = family.by_hand(spark, spec, inputs, folder)

    def execute(self, execution: int) -> list[OutputRow]:
        """See ``Arm``."""
        return self._family.rows(execution, self._program(execution))

    def settle(self) -> None:
        """See ``Arm``."""

    def finish(self) -> None:
        """See ``Arm``."""


class WorkflowArm:
    """A workflow, tracked if there is a store."""

    def __init__(
        self,
        family: Family,
        spec: Spec,
        spark: Any,
        inputs: Path,
        folder: Path,
        store: str | None = None,
        reuse: InvocationCache | None = None,
    ) -> None:
        self._family = family
        self._stack = contextlib.ExitStack()
        self._store = store
        self._folder = folder
        self.invocations: dict[str, int] = {}
        self.run: WorkflowRun | None = None
        flow = family.flow(spec)
        state = StateFolder(folder, flow.name)
        pointer: SequencePointer = self._stack.enter_context(state.opened())
        self._tracker: RunTracker | None = None
        if store is not None:
            request = WorkflowRequest(flow, inputs, folder, mode="records")
            self._tracker = RunTracker(
                folder, new_run(request, (str(spark.sparkContext.applicationId),), pointer.execution), spark
            )
        self._runner = WorkflowRunner(
            flow.validated(), BoundaryFrames(spark), state, InputFolder(inputs), pointer, self._tracker, reuse
        )

    def execute(self, execution: int) -> list[OutputRow]:
        """See ``Arm``."""
        result = self._runner.execute()
        if result.execution != execution:
            raise ValueError(f"execution {result.execution} ran, not {execution}")
        self.invocations = dict(self._runner.pointer.invocations)
        return self._family.rows(execution, output_rows(result))

    def settle(self) -> None:
        """See ``Arm``."""
        if self._tracker is not None:
            self._tracker.drain()

    def finish(self) -> None:
        """See ``Arm``; a tracked run is committed."""
        if self._tracker is not None and self._store is not None:
            from govtool.store import Store

            self.run = self._tracker.finish("complete", "")
            commit_run(Store.open(self._store), self._folder, self.run, self.run.whole)
        self._stack.close()


def output_rows(result: ExecutionResult) -> dict[str, list[dict[str, Any]]]:
    """The outputs of an execution as rows, by the names of relations."""
    return {name: read_parquet(Path(each.path)) for (_, name), each in result.outputs.items()}


def run_all(arm: Arm, family: Family, executions: Sequence[int], *, stop: bool = True) -> tuple[int, list[OutputRow]]:
    """Run executions, up to one that ends the run.

    Returns:
        How many ran, and all of their outputs.
    """
    rows: list[OutputRow] = []
    done = 0
    for execution in executions:
        own = arm.execute(execution)
        rows += own
        done += 1
        if stop and family.stops(own):
            break
    arm.finish()
    return done, rows
