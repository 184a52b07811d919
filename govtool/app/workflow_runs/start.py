"""``govtool workflow run`` and ``govtool.run_workflow``: workflows in Python, scripts of SQL and dbt projects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from govtool.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from govtool.app.versions.index import Progress
    from govtool.model.workflow_run import WorkflowRun
    from govtool.workflow.modules.workflow import Workflow


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A workflow to run, with all options; ``check`` refuses those that its kind does not have.

    Attributes:
        workflow: The workflow; or ``FILE.py[:NAME]``, a ``.sql`` file, a dbt project or its ``target`` folder.
        inputs: The folder of its inputs.
        state: The folder of the sequence; None: ``NAME.state`` in the working folder.
        executions: How many executions the sequence is to have in all.
        mode: How much is captured, of ``MODES``.
        settings: Settings of a new Spark session.
        spark: A Spark session.
        dialect: What SQL is written in; empty: Spark SQL, or what the dbt project's adapter speaks.
        follow_links: Read what links in the folder of inputs lead to outside of it.
        store: The store; None: that of the environment or the project.
        branch: The branch to commit to.
    """

    workflow: Workflow | str | os.PathLike[str]
    inputs: Path | None = None
    state: Path | None = None
    executions: int | None = None
    mode: str = "columns"
    settings: Mapping[str, str] | None = None
    spark: Any = None
    dialect: str = ""
    follow_links: bool = False
    store: str | None = None
    branch: str | None = None

    def check(self, *, sql: bool) -> None:
        """Refuse what a workflow of this kind would ignore.

        Raises:
            UnknownNameError: There is no such mode (``usage.unknown-mode``).
            UsageError: An option does not apply (``usage.arguments``).
        """
        from govtool.app.workflow_runs.run import MODES

        if self.mode not in MODES:
            raise UnknownNameError.of_few("mode", self.mode, MODES)
        if not sql and self.dialect:
            raise UsageError(
                "--dialect applies only to SQL", code="usage.arguments", hint="a workflow in Python has none"
            )
        only_python = {
            "--executions": self.executions is not None,
            "--untracked": self.mode == "untracked",
            "--records=eager": self.mode == "eager",
            "--conf": bool(self.settings),
            "a Spark session": self.spark is not None,
        }
        for name, is_given in only_python.items():
            if sql and is_given:
                raise UsageError(
                    f"{name} applies only to workflows in Python", code="usage.arguments", hint="leave it out"
                )


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run did.

    Attributes:
        run: The run; of an untracked one, nothing is in the store.
        folder: The folder of the sequence.
        notes: What users should know, in lines.
        is_idle: True if all executions were done before.
    """

    run: WorkflowRun
    folder: Path
    notes: tuple[str, ...] = ()
    is_idle: bool = False


def run(request: RunRequest, progress: Progress | None = None) -> RunOutcome:
    """Run what is still to run, and commit it.

    Args:
        request: The workflow and its options.
        progress: Called with (executions that are whole, all); SQL has one execution and does not call it.

    Raises:
        UnknownNameError: There is no such mode, or no such workflow in the file.
        UsageError: The workflow breaks rules, inputs are missing, or an option does not apply.
        EngineError: Spark is missing, or a module or a statement failed. The last whole execution stays.
        StoreError: There is no store, or it cannot be written.
    """
    from govtool.app.project.links import require_inside
    from govtool.app.project.project import store_uri
    from govtool.app.workflow_runs.programs.opening import is_sql_program
    from govtool.workflow.modules.workflow import Workflow

    program = None if isinstance(request.workflow, Workflow) else os.fspath(request.workflow)
    sql = program if program is not None and is_sql_program(program) else None
    request.check(sql=sql is not None)
    if request.mode != "untracked":
        store_uri(request.store)  # one that the user has not agreed to is refused before anything is read
    if request.inputs is not None:
        require_inside(request.inputs, follow_links=request.follow_links)
    return _run_python(request, program, progress) if sql is None else _run_sql(request, Path(sql))


def _run_sql(request: RunRequest, place: Path) -> RunOutcome:
    from govtool.app.project.project import existing_branch, open_store
    from govtool.app.workflow_runs.inputs import InputFolder
    from govtool.app.workflow_runs.programs.opening import open_program
    from govtool.app.workflow_runs.programs.recorded import find_recorded_run
    from govtool.app.workflow_runs.programs.run import run_sql

    store, inputs = open_store(request.store), request.inputs
    if inputs is not None:
        InputFolder(inputs).check()
    program, state = open_program(place, store, request.state, request.dialect, inputs)
    branch = existing_branch(store, request.branch)
    try:
        done = run_sql(program, inputs, state, store, branch)
    except UnknownNameError as error:
        if error.code == "usage.unknown-relation" and inputs is None and not error.hint:
            error.hint = "--inputs FOLDER, the folder of NAME.csv and NAME.parquet that it reads"
        raise
    head = store.head(branch)
    assert head is not None
    found = find_recorded_run(store, head, done.run).run
    return RunOutcome(found, done.folder, tuple(f"note: {each}" for each in done.notes))


def _run_python(request: RunRequest, program: str | None, progress: Progress | None) -> RunOutcome:
    from govtool.app.project.project import open_store
    from govtool.app.workflow_runs.load import absolute_target, load_workflow
    from govtool.app.workflow_runs.run import Mode, WorkflowRequest, run_workflow

    store = None if request.mode == "untracked" else open_store(request.store)
    flow = cast("Workflow", request.workflow) if program is None else load_workflow(program)
    if request.inputs is None:
        raise UsageError("the folder of inputs is missing", code="usage.arguments", hint="--inputs DIR")
    wanted = WorkflowRequest(
        flow,
        request.inputs,
        request.state,
        request.executions,
        cast("Mode", request.mode),
        request.settings,
        "" if program is None else absolute_target(program),
    )
    done = run_workflow(wanted, store, branch=request.branch, spark=request.spark, progress=progress)
    resumed = (
        f"{each.id} was ended before it was committed; it is now, with {len(each.executions)} executions"
        for each in done.resumed
    )
    notes = tuple(f"warning: {each}" for each in (*resumed, *done.warnings))
    return RunOutcome(done.run, done.state, notes, is_idle=not done.executions)
