"""``govtool workflow show``: one run of a workflow."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui
from govtool.errors import UsageError


def workflow_show(
    ui: Ui,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]", help="An id, its beginning, or a workflow: its last run; NAME~1 the one before."
        ),
    ] = None,
    same: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="The same, as other commands take it.")
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
    """One run of a workflow: which modules were invoked, what they received, kept and made.

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
