"""``govtool workflow``: run workflows of modules, and show their runs."""

from __future__ import annotations

from collections.abc import Sequence
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
from govtool.errors import EXIT_EVIDENCE, EXIT_OK, UsageError


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
    from govtool.app.workflow_runs.start import RunRequest, run
    from govtool.render.workflow_runs import FORMATS, render_workflow_run

    outputs = chosen(format, output, FORMATS)
    request = RunRequest(
        workflow,
        inputs,
        state,
        executions,
        _mode(records, eager, untracked),
        settings=_settings(conf or ()),
        dialect=dialect or "",
        follow_links=follow_links,
        store=store,
        branch=branch,
    )
    with ui.progressing("executions") as progress:
        outcome = run(request, progress)
    for note in outcome.notes:
        ui.note(note)
    answer = WorkflowRunAnswer(outcome.run, str(outcome.folder))
    for form, file in outputs:
        ui.show(render_workflow_run(form, answer), file)
    if not untracked:
        name_store(ui, store)
    if outcome.is_idle:
        ui.hint("nothing was left to run: all executions with inputs are done; --executions N for more")


def _mode(records: bool, eager: bool, untracked: bool) -> str:
    if (records or eager) and untracked:
        raise UsageError("--records contradicts --untracked", code="usage.arguments", hint="give one of them")
    if untracked:
        return "untracked"
    if eager:
        return "eager"
    return "records" if records else "columns"


def _settings(texts: Sequence[str]) -> dict[str, str]:
    """Settings of Spark from ``NAME=VALUE``."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{text!r} is no setting", code="usage.arguments", hint="--conf spark.master=local[4]")
        found[name] = value
    return found


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

    Runs whose records are damaged are named below the others, and the exit code is 3.
    """
    from govtool.api.opening import open as open_version
    from govtool.query.selection.select import nothing_selected
    from govtool.render.workflow_runs import FORMATS, render_workflow_runs

    outputs = options.outputs(FORMATS)
    answer = open_version(options.store, ref=options.at, branch=options.branch).workflow_runs(workflow)
    options.show(ui, outputs, render_workflow_runs, answer)
    if not answer.is_complete:
        return EXIT_EVIDENCE
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
