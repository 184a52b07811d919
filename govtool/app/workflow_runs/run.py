"""Runs of workflows from the command line and from Python: session, state, executions, commit."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from govtool.app.project.spark_session import use_own_python
from govtool.app.workflow_runs.executions import ExecutionResult, WorkflowRunner, executions_to_run
from govtool.app.workflow_runs.frames import BoundaryFrames
from govtool.app.workflow_runs.inputs import InputFolder
from govtool.app.workflow_runs.source import source_digest
from govtool.app.workflow_runs.state import StateFolder
from govtool.app.workflow_runs.tracking import RunTracker, commit_interrupted, commit_run
from govtool.clock import iso, now
from govtool.errors import EngineError, GovtoolError
from govtool.model.workflow_run import WorkflowRun

if TYPE_CHECKING:
    from govtool.app.versions.index import Progress
    from govtool.store import Store
    from govtool.workflow.modules.workflow import Workflow

Mode = Literal["untracked", "columns", "records", "eager"]
MODES: tuple[Mode, ...] = ("untracked", "columns", "records", "eager")
"""How much is captured: nothing; lineage of columns; exact plans besides, so that rows can be traced."""


@dataclass(frozen=True, slots=True)
class WorkflowRequest:
    """A workflow to run.

    Attributes:
        flow: The workflow.
        inputs: The folder of its inputs.
        state: The folder of the sequence; None: ``NAME.state`` in the working folder.
        executions: How many executions the sequence is to have; None: those that have inputs, or one more.
        mode: How much is captured; ``eager``: records, and positions of rows that a plan does not determine.
        settings: Settings of a new Spark session.
        program: ``FILE.py`` or ``FILE.py:NAME`` that the workflow was read from; empty: from no file.
    """

    flow: Workflow
    inputs: Path
    state: Path | None = None
    executions: int | None = None
    mode: Mode = "columns"
    settings: Mapping[str, str] | None = None
    program: str = ""


@dataclass(frozen=True, slots=True)
class WorkflowOutcome:
    """What a run did.

    Attributes:
        run: The run; of an untracked one, nothing is in the store.
        executions: Its executions.
        state: The folder of the sequence.
        resumed: Runs that a killed process left, and that were committed with this one.
        warnings: What was lost of the capture.
    """

    run: WorkflowRun
    executions: tuple[ExecutionResult, ...]
    state: Path
    resumed: tuple[WorkflowRun, ...] = ()
    warnings: tuple[str, ...] = ()


def run_workflow(
    request: WorkflowRequest,
    store: Store | None = None,
    *,
    branch: str | None = None,
    spark: Any = None,
    progress: Progress | None = None,
) -> WorkflowOutcome:
    """Run the executions of a workflow that are still to run, and commit what they did.

    Args:
        request: The workflow, its inputs and its state.
        store: The store; None for an untracked run.
        branch: Where to commit.
        spark: The session; None: the active one, or a new one that is stopped at the end.
        progress: Called with (executions that are whole, all).

    Raises:
        InvalidWorkflowError: The workflow breaks rules; nothing ran.
        UsageError: Inputs are missing or not of their schema, or the state is another workflow's.
        EngineError: Spark is missing, or a module failed. The last whole execution stays, and is committed.
        StoreError: The commit could not be written. The executions stay; the next run commits them.
    """
    schedule = request.flow.validated()
    inputs = InputFolder(request.inputs)
    inputs.check()
    root = (request.state or Path(f"{request.flow.name}.state")).absolute()
    folder = StateFolder(root, request.flow.name)
    with ExitStack() as stack:
        pointer = stack.enter_context(folder.opened())
        ahead = executions_to_run(pointer.execution, request.executions, inputs.executions())
        inputs.check_all(schedule.inputs, ahead)  # what can be refused is refused before Spark starts
        resumed = commit_interrupted(store, root, pointer.execution, branch) if store is not None else ()
        if not ahead:
            run = _untracked(new_run(request, (), pointer.execution), (), pointer.execution)
            return WorkflowOutcome(run, (), root, resumed)
        session = stack.enter_context(spark_session(spark, request.flow.name, request.settings))
        run = new_run(request, (str(session.sparkContext.applicationId),), pointer.execution)
        runner = WorkflowRunner(schedule, BoundaryFrames(session), folder, inputs, pointer)
        tracker = runner.observer = (
            RunTracker(root, run, session, eager=request.mode == "eager") if store is not None else None
        )
        results: list[ExecutionResult] = []
        try:
            for _ in ahead:
                results.append(runner.execute())
                if progress is not None:
                    progress(len(results), len(ahead))
        except BaseException as error:
            if tracker is not None and store is not None:
                _commit_failed(store, folder, tracker, error, branch)
            raise
        if tracker is None or store is None:
            return WorkflowOutcome(_untracked(run, results, runner.pointer.execution), tuple(results), root, resumed)
        last = runner.pointer.execution
        made, warnings = commit_run(store, root, tracker.finish("complete", _now()), last, branch)
        return WorkflowOutcome(made, tuple(results), root, resumed, warnings)


def _untracked(run: WorkflowRun, results: Sequence[ExecutionResult], whole: int) -> WorkflowRun:
    """A run that nothing followed: its invocations are known, the files of its relations are not."""
    invocations = tuple(each for result in results for each in result.invocations)
    return replace(run, status="complete", ended=_now(), invocations=invocations, whole=whole)


def new_run(request: WorkflowRequest, applications: tuple[str, ...], whole: int) -> WorkflowRun:
    """A run that begins now, in some Spark applications."""
    from govtool.workflow.modules.unfold import unfolded

    started = _now()
    stamp = started[:19].replace("-", "").replace(":", "").replace("T", "-")
    edges = [(edge.source, edge.target, name) for edge in unfolded(request.flow).edges for name in edge.relations]
    return WorkflowRun(
        id=f"{request.flow.name}-{stamp}-{secrets.token_hex(3)}",
        workflow=request.flow.name,
        status="running",
        mode="records" if request.mode == "eager" else request.mode,
        applications=applications,
        started=started,
        ended="",
        error="",
        edges=tuple(edges),
        invocations=(),
        relations={},
        whole=whole,
        program=request.program,
        source=source_digest(request.flow),
    )


def _commit_failed(
    store: Store, folder: StateFolder, tracker: RunTracker, error: BaseException, branch: str | None
) -> None:
    """Commit what was whole before a failure; what goes wrong with that must not hide the failure."""
    reason = error.message if isinstance(error, GovtoolError) else type(error).__name__
    status = "failed" if isinstance(error, Exception) else "aborted"
    try:
        run = tracker.finish(status, _now(), reason.splitlines()[0])
        commit_run(store, folder.root, run, folder.current().execution, branch)
    except Exception as second:
        error.add_note(f"the run is not in the store: {second}")


def _now() -> str:
    return iso(now())


@contextmanager
def spark_session(spark: Any, name: str, settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    """The session: the one that is given, the active one, or a new one, stopped at the end.

    Raises:
        EngineError: Spark is not installed (``engine.spark-missing``), or does not start (``engine.spark``).
    """
    if spark is not None:
        yield spark
        return
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineError(
            "Spark is not installed", code="engine.spark-missing", hint="pip install 'govtool[spark]'"
        ) from error
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    use_own_python()
    builder = SparkSession.builder.appName(f"workflow {name}")
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in {**quiet, **(settings or {})}.items():
        builder = builder.config(name, value)
    try:
        made = builder.getOrCreate()
    except Exception as error:  # no Java, or one that is too old
        raise EngineError(
            f"Spark does not start: {str(error).splitlines()[0][:200]}",
            code="engine.spark",
            hint="Spark needs Java 17 or newer: set JAVA_HOME",
        ) from error
    try:
        yield made
    finally:
        made.stop()
