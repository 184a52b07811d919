"""``govtool workflow``: run workflows of modules, and show their runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from govtool.cli.shared.common import name_store, selects
from govtool.cli.shared.formats import chosen
from govtool.cli.shared.options import (
    AtOption,
    BranchOption,
    FollowLinksOption,
    FormatOption,
    ListOptions,
    OutputOption,
    StoreOption,
)
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_OK, UsageError


def workflow_run(
    ui: Ui,
    workflow: Annotated[
        str,
        typer.Argument(
            metavar="WF.py[:NAME]|SCRIPT.sql|DBT",
            help="A workflow's file, a script of SQL, or a folder of a dbt project.",
        ),
    ],
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs", metavar="DIR", help="Folder of inputs: NAME.parquet, 1/NAME.csv, state/MODULE.NAME.csv …"
        ),
    ] = None,
    executions: Annotated[
        int | None,
        typer.Option(
            "--executions",
            metavar="N",
            min=1,
            help="Total number of executions of the sequence. Default: those with inputs, or one more.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="DIR", help="The folder of the sequence. Default: NAME.state."),
    ] = None,
    records: Annotated[
        bool,
        typer.Option(
            "--records",
            help="Record exact plans, so that rows can be traced. They hold literals. --records=eager keeps positions "
            "of rows, too, where plans do not determine them, at a cost.",
        ),
    ] = False,
    eager: Annotated[bool, typer.Option("--records-eager", hidden=True)] = False,
    untracked: Annotated[bool, typer.Option("--untracked", help="Capture nothing; no store is needed.")] = False,
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="NAME=VALUE", help="A setting of the Spark session. Repeatable."),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option("--dialect", metavar="NAME", help="SQL dialect. Default: Spark SQL, or the project's."),
    ] = None,
    follow_links: FollowLinksOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Run the executions of a workflow that are still to run, and commit what they did.

      govtool workflow run dealers.py --inputs data/ --records
      govtool workflow run dealers.py:flow --inputs data/ --executions 10 --state runs/dealers
      govtool workflow run dealers.py --inputs data/ --untracked
      govtool workflow run report.sql --inputs data/
      govtool workflow run shop/target --inputs data/

    SQL runs once, in DuckDB if that gives Spark SQL's results; its rows can be traced. A killed run leaves the state
    of its last complete execution; the same command continues from there.
    """
    from govtool.answers.workflow_runs import WorkflowRunAnswer
    from govtool.app.project.links import require_inside
    from govtool.app.project.project import open_store, store_uri
    from govtool.app.workflow_runs.load import absolute_target, load_workflow
    from govtool.app.workflow_runs.programs.opening import SqlRunRequest, is_sql_program, run_sql_program
    from govtool.app.workflow_runs.run import WorkflowRequest, capture_mode, require_inputs, run_workflow, settings_of
    from govtool.app.workflow_runs.run_options import RunOptions
    from govtool.render.workflow_runs import FORMATS, render_workflow_run

    outputs = chosen(format, output, FORMATS)
    mode = capture_mode(records, untracked, eager)
    known = settings_of(conf or ())
    is_sql = is_sql_program(workflow)
    RunOptions(executions, mode, known, dialect=dialect).check(sql=is_sql)
    if not untracked:
        store_uri(store)  # one that the user has not agreed to is refused before anything is read
    if inputs is not None:
        require_inside(inputs, follow_links=follow_links)
    if is_sql:
        done, found = run_sql_program(
            SqlRunRequest(Path(workflow), inputs, state, dialect or ""), open_store(store), branch
        )
        for note in done.notes:
            ui.note(f"note: {note}")
        for form, file in outputs:
            ui.show(render_workflow_run(form, WorkflowRunAnswer(found, str(done.folder))), file)
        name_store(ui, store)
        return
    opened = None if untracked else open_store(store)
    flow = load_workflow(workflow)
    request = WorkflowRequest(flow, require_inputs(inputs), state, executions, mode, known, absolute_target(workflow))
    with ui.progressing("executions") as progress:
        outcome = run_workflow(request, opened, branch=branch, progress=progress)
    for run in outcome.resumed:
        ui.note(
            f"warning: {run.id} was ended before it was committed; it is now, with {len(run.executions)} executions"
        )
    for warning in outcome.warnings:
        ui.note(f"warning: {warning}")
    answer = WorkflowRunAnswer(outcome.run, str(outcome.state))
    for form, file in outputs:
        ui.show(render_workflow_run(form, answer), file)
    if not untracked:
        name_store(ui, store)
    if not outcome.executions:
        ui.hint("nothing was left to run: all executions with inputs are done; --executions N for more")


workflow_run.spellings = {"--records=eager": "--records-eager"}  # type: ignore[attr-defined]
_DEFAULT = ListOptions()


@selects
def workflow_list(
    ui: Ui,
    workflow: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only runs of this workflow.")] = None,
    options: ListOptions = _DEFAULT,
) -> int:
    """List the runs of workflows, the newest first.

    govtool workflow list
    govtool workflow list dealers --format json
    """
    from govtool.api.opening import open as open_version
    from govtool.query.selection.select import nothing_selected
    from govtool.render.workflow_runs import FORMATS, render_workflow_runs

    outputs = options.outputs(FORMATS)
    answer = open_version(options.store, ref=options.at, branch=options.branch).workflow_runs(workflow)
    options.show(ui, outputs, render_workflow_runs, answer)
    if not answer.runs:
        if workflow is not None:
            raise nothing_selected("govtool workflow list")
        ui.hint("govtool workflow run WF.py --inputs DIR")
    return EXIT_OK


def workflow_show(
    ui: Ui,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]", help="An id, its beginning, or a workflow: its last run; NAME~1 the one before."
        ),
    ] = None,
    same: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="The run, as an option like that of other commands.")
    ] = None,
    execution: Annotated[
        int | None, typer.Option("--execution", metavar="N", help="Only the invocations of this execution.")
    ] = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Show one run of a workflow: the invocations of its modules, and what they received, kept and made.

    govtool workflow show dealers
    govtool workflow show dealers~1 --execution 3 --format json
    """
    from govtool.api.opening import open as open_version
    from govtool.render.workflow_runs import FORMATS, render_workflow_run

    outputs = chosen(format, output, FORMATS)
    name = run if run is not None else same
    if name is None or (run is not None and same is not None):
        raise UsageError("name one run", code="usage.arguments", hint="govtool workflow list")
    answer = open_version(store, ref=at, branch=branch).workflow_run(name, execution=execution)
    for form, file in outputs:
        ui.show(render_workflow_run(form, answer), file)
