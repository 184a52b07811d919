"""Workflows: run from Python, and questions of a graph about their runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from govtool.api.arguments import checked
from govtool.api.opened import OpenedVersion
from govtool.errors import UnknownNameError

if TYPE_CHECKING:
    from govtool.answers.workflow_runs import WorkflowRunAnswer, WorkflowRunsAnswer
    from govtool.app.index import Progress
    from govtool.app.requests import PathArgument
    from govtool.workflow.modules.workflow import Workflow


class WorkflowQuestions(OpenedVersion):
    """The part of ``Graph`` that knows runs of workflows."""

    @checked
    def workflow_runs(self, workflow: str | None = None, *, limit: int | None = None) -> WorkflowRunsAnswer:
        """Runs of workflows, the newest first.

        Args:
            workflow: Only runs of this workflow.
            limit: Runs to return at most; by default all.
        """
        from govtool.answers.workflow_runs import WorkflowRunsAnswer
        from govtool.app.history import version_of
        from govtool.app.workflows.recorded import list_recorded_runs

        runs = list_recorded_runs(self._reader, self._commit)
        own = tuple(run for run in runs if workflow in (None, run.workflow))
        return WorkflowRunsAnswer(version_of(self._reader, self._commit), own).head(limit)

    @checked
    def workflow_run(self, run: str) -> WorkflowRunAnswer:
        """One run of a workflow, with the invocations of its modules.

        Args:
            run: Its id, the beginning of it, or a workflow's name: its last run; ``NAME~1`` is the last but one.

        Raises:
            UnknownNameError: There is no such run.
            AmbiguousNameError: Several ids begin so.
        """
        from govtool.answers.workflow_runs import WorkflowRunAnswer
        from govtool.app.workflows.recorded import find_recorded_run

        return WorkflowRunAnswer(find_recorded_run(self._reader, self._commit, run).run)


@checked
def run_workflow(
    workflow: Workflow | PathArgument,
    inputs: PathArgument | None = None,
    *,
    executions: int | None = None,
    state: PathArgument | None = None,
    mode: str = "columns",
    store: PathArgument | None = None,
    branch: str | None = None,
    spark: Any = None,
    progress: Progress | None = None,
    dialect: str | None = None,
) -> WorkflowRunAnswer:
    """Run the executions of a workflow that are still to run, and commit what they did.

    Args:
        workflow: The workflow; or the path of a script of SQL or of a dbt project, which runs once, with records.
        inputs: The folder of its inputs: ``NAME.parquet``, ``NAME.csv`` …, in folders ``1``, ``2`` … for single
            executions, and ``state/`` for the initial state.
        executions: How many executions the sequence is to have in all. By default those with inputs of their own, or
            one more.
        state: The folder of the sequence; by default ``NAME.state`` here.
        mode: ``columns``, ``records`` (rows can be traced) or ``untracked``.
        store: The store; by default as on the command line.
        branch: The branch to commit to.
        spark: The session; by default the active one, or a new one that is stopped at the end.
        progress: Called as ``progress(done, total)`` after each execution.
        dialect: What SQL is written in; by default Spark SQL, or what the dbt project's adapter speaks.

    Raises:
        UsageError: The workflow breaks rules, or inputs are missing.
        EngineError: Spark is missing, or a module failed. The last whole execution stays.
        StoreError: There is no store, or it cannot be written.
    """
    from pathlib import Path

    from govtool.answers.workflow_runs import WorkflowRunAnswer
    from govtool.app.project import open_store
    from govtool.app.workflows import run as runs

    folder, kept = (None if place is None else Path(os.fspath(place)) for place in (inputs, state))
    if isinstance(workflow, (str, os.PathLike)):
        from govtool.app.workflows.programs_open import SqlRunRequest, run_sql_program

        place = open_store(None if store is None else os.fspath(store))
        done, run = run_sql_program(
            SqlRunRequest(Path(os.fspath(workflow)), folder, kept, dialect or ""), place, branch
        )
        return WorkflowRunAnswer(run, str(done.folder))
    request = runs.WorkflowRequest(workflow, runs.require_inputs(folder), kept, executions, _mode(mode))
    opened = None if mode == "untracked" else open_store(None if store is None else os.fspath(store))
    outcome = runs.run_workflow(request, opened, branch=branch, spark=spark, progress=progress)
    return WorkflowRunAnswer(outcome.run, str(outcome.state))


def _mode(text: str) -> Any:
    import difflib

    from govtool.app.workflows.run import MODES

    if text not in MODES:
        raise UnknownNameError(
            f"no mode {text!r}",
            code="usage.unknown-mode",
            nearest=tuple(difflib.get_close_matches(text, MODES)),
            hint=f"one of {', '.join(MODES)}",
        )
    return text
