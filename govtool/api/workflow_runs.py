"""Workflows: run from Python, and questions of a graph about their runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from govtool.api.arguments import Texts, checked, texts
from govtool.api.opened import OpenedVersion

if TYPE_CHECKING:
    from govtool.answers.run_deletion import RunDeletionAnswer
    from govtool.answers.why import WhyAnswer
    from govtool.answers.workflow_runs import WorkflowRunAnswer, WorkflowRunsAnswer
    from govtool.app.project.requests import PathArgument
    from govtool.app.versions.index import Progress
    from govtool.workflow.modules.workflow import Workflow


class WorkflowQuestions(OpenedVersion):
    """The part of ``Graph`` that knows runs of workflows."""

    @checked
    def workflow_runs(self, workflow: str | None = None, *, limit: int | None = None) -> WorkflowRunsAnswer:
        """Runs of workflows, the newest first. Those whose records are damaged are in ``damaged`` of the answer.

        Args:
            workflow: Only runs of this workflow.
            limit: Runs to return at most; by default all.
        """
        from govtool.answers.workflow_runs import WorkflowRunsAnswer
        from govtool.app.versions.version import version_of
        from govtool.app.workflow_runs.programs.recorded import forgotten_runs, list_recorded_runs

        found = list_recorded_runs(self._reader, self._commit)
        own = tuple(run for run in found.runs if workflow in (None, run.workflow))
        damaged = tuple(each for each in found.damaged if workflow in (None, each.workflow) or not each.workflow)
        forgotten = forgotten_runs(self._reader, self._commit, own)
        version = version_of(self._reader, self._commit)
        return WorkflowRunsAnswer(version, own, forgotten=forgotten, damaged=damaged).head(limit)

    @checked
    def workflow_run(self, run: str, *, execution: int | None = None) -> WorkflowRunAnswer:
        """One run of a workflow, with the invocations of its modules.

        Args:
            run: Its id, the beginning of it, or a workflow's name: its last run; ``NAME~1`` is the last but one.
            execution: Only invocations of this execution.

        Raises:
            UnknownNameError: There is no such run, or no such execution of it (``usage.unknown-execution``).
            AmbiguousNameError: Several ids begin so.
        """
        from govtool.answers.workflow_runs import WorkflowRunAnswer
        from govtool.app.workflow_runs.programs.recorded import find_recorded_run, one_execution

        found = find_recorded_run(self._reader, self._commit, run).run
        return WorkflowRunAnswer(found if execution is None else one_execution(found, execution))

    @checked
    def workflow_why(
        self,
        run: str,
        rows: str,
        *,
        semirings: Texts = ("polynomial", "count"),
        values: Mapping[str, Mapping[str, float]] | None = None,
        exact: bool = False,
        capped: bool = False,
        all_runs: bool = False,
    ) -> WhyAnswer:
        """Rows that a run of a workflow wrote, with their provenance over the records that went into the run.

        Args:
            run: As for ``workflow_run``; it has to have records.
            rows: ``RELATION[key]``, or ``NODE/RELATION@EXECUTION[column=value]``; state is ``MODULE.RELATION``.
            semirings: As for ``govtool.why``.
            values: For ``cost``, ``trust`` and ``prob`` the value of each token.
            exact: Refuse what can only be sampled.
            capped: Write out the first 20 parts of long sums only, and how many more there are.
            all_runs: Go on through the runs that wrote the inputs of a program, and those that read its outputs.

        Raises:
            UnknownNameError: There is no such run, relation, execution, column or row.
            AmbiguousNameError: The relation was written several times, and several have such a row.
            UsageError: A semiring does not fit; the run has no records; a file has changed since.
        """
        from govtool.app.workflow_runs.opened import opened_run
        from govtool.app.workflow_runs.why import why_in_run

        with opened_run(self._reader, self._commit, run, all_runs=all_runs) as opened:
            return why_in_run(opened, rows, list(semirings), values=values, exact=exact, capped=capped)

    @checked
    def workflow_delete(
        self,
        run: str,
        tokens: Texts,
        *,
        mode: str = "auto",
        outputs: Texts = (),
        program: Workflow | str | None = None,
        spark: Any = None,
        all_runs: bool = False,
    ) -> RunDeletionAnswer:
        """Show the effects of deleted records on the rows that a workflow run wrote.

        Args:
            run: As for ``workflow_run``; it has to have records.
            tokens: The records that went into it.
            mode: ``propagate`` over the annotations, ``replay`` the recorded invocations, or ``auto``: replay only what
                propagation leaves unknown.
            outputs: Relations to judge, as ``RELATION`` or ``NODE/RELATION@EXECUTION``; by default the outputs of
                executions.
            program: The workflow to replay, or its file: ``FILE.py[:NAME]``; by default it is found by the digest of
                its source.
            spark: The session to replay in; by default the active one, or a new one.
            all_runs: As for ``workflow_why``.

        Raises:
            UnknownNameError: There is no such run, record, relation or mode.
            UsageError: A record is named twice; the program is not found; a file has changed since the run.
            EngineError: No engine evaluates the plans, or Spark is missing for a replay.
        """
        options: dict[str, Any] = {"mode": mode, "outputs": outputs, "program": program, "spark": spark}
        (answer,) = self.workflow_deletions(run, [tokens], all_runs=all_runs, **options)
        return answer

    @checked
    def workflow_deletions(
        self,
        run: str,
        deletions: Iterable[Texts],
        *,
        mode: str = "auto",
        outputs: Texts = (),
        program: Workflow | str | None = None,
        spark: Any = None,
        all_runs: bool = False,
    ) -> list[RunDeletionAnswer]:
        """Answer several deletions (see ``workflow_delete``) for one run, which is annotated once."""
        from govtool.app.workflow_runs.deletion import RunDeletionRequest, delete_in_run
        from govtool.app.workflow_runs.opened import opened_run

        lists = [list(texts(each)) for each in deletions]
        request = RunDeletionRequest(lists, mode, list(texts(outputs)), program, spark)
        with opened_run(self._reader, self._commit, run, all_runs=all_runs) as opened:
            return delete_in_run(opened, request)


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
    follow_links: bool = False,
) -> WorkflowRunAnswer:
    """Run the executions of a workflow that are still to run, and commit what they did.

    Args:
        workflow: The workflow, or its file: ``FILE.py[:NAME]``; or the path of a script of SQL or of a dbt project,
            which runs once, with records.
        inputs: The folder of its inputs: ``NAME.parquet``, ``NAME.csv`` …, in folders ``1``, ``2`` … for single
            executions, and ``state/`` for the initial state.
        executions: How many executions the sequence is to have in all. By default those with inputs of their own, or
            one more.
        state: The folder of the sequence; by default ``NAME.state`` here.
        mode: ``columns``, ``records`` (rows can be traced), ``eager`` (and positions of rows are kept, where a plan
            does not determine them) or ``untracked``.
        store: The store; by default as on the command line.
        branch: The branch to commit to.
        spark: The session; by default the active one, or a new one that is stopped at the end.
        progress: Called as ``progress(done, total)`` after each execution.
        dialect: What SQL is written in; by default Spark SQL, or what the dbt project's adapter speaks.
        follow_links: Read what links in the folder of inputs lead to outside of it, too.

    Raises:
        UnknownNameError: There is no such mode.
        UsageError: The workflow breaks rules, inputs are missing, or an option does not apply: SQL has no
            ``executions``, ``spark`` nor the modes ``eager`` and ``untracked``, Python no ``dialect``.
        EngineError: Spark is missing, or a module failed. The last whole execution stays.
        StoreError: There is no store, or it cannot be written.
    """
    from pathlib import Path

    from govtool.answers.workflow_runs import WorkflowRunAnswer
    from govtool.app.workflow_runs.start import RunRequest, run

    folder, kept = (None if place is None else Path(os.fspath(place)) for place in (inputs, state))
    request = RunRequest(
        workflow,
        folder,
        kept,
        executions,
        mode,
        spark=spark,
        dialect=dialect or "",
        follow_links=follow_links,
        store=None if store is None else os.fspath(store),
        branch=branch,
    )
    outcome = run(request, progress)
    return WorkflowRunAnswer(outcome.run, str(outcome.folder))
