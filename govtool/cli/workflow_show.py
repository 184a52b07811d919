"""``govtool workflow show``: one run of a workflow."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def workflow_show(
    ui: Ui,
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="An id, its beginning, or a workflow: its last run; NAME~1 the one before."),
    ],
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """One run of a workflow: which modules were invoked, what they received, kept and made.

    govtool workflow show dealers
    govtool workflow show dealers~1 --format json
    """
    from govtool.api.opening import open as open_version
    from govtool.render.workflow_runs import FORMATS, render_workflow_run

    outputs = chosen(format, output, FORMATS)
    answer = open_version(store, ref=at, branch=branch).workflow_run(run)
    for form, file in outputs:
        ui.show(render_workflow_run(form, answer), file)
