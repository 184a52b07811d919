"""``govtool workflow list``: the runs of workflows."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.graph import bound
from govtool.cli.options import (
    AllOption,
    AtOption,
    BranchOption,
    FormatOption,
    LimitOption,
    OutputOption,
    StoreOption,
)
from govtool.cli.ui import Ui


def workflow_list(
    ui: Ui,
    workflow: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only runs of this workflow.")] = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """The runs of workflows, the newest first.

    govtool workflow list
    govtool workflow list dealers --format json
    """
    from govtool.api.opening import open as open_version
    from govtool.render.workflow_runs import FORMATS, render_workflow_runs

    outputs = chosen(format, output, FORMATS)
    answer = open_version(store, ref=at, branch=branch).workflow_runs(workflow)
    for form, file in outputs:
        ui.show(render_workflow_runs(form, answer.head(bound(limit, all, form))), file)
    if not answer.runs:
        ui.hint("govtool workflow run WF.py --inputs DIR")
