"""``govtool workflow list``: the runs of workflows."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.bundles import ListOptions
from govtool.cli.ui import Ui

_DEFAULT = ListOptions()


def workflow_list(
    ui: Ui,
    workflow: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only runs of this workflow.")] = None,
    options: ListOptions = _DEFAULT,
) -> None:
    """The runs of workflows, the newest first.

    govtool workflow list
    govtool workflow list dealers --format json
    """
    from govtool.api.opening import open as open_version
    from govtool.render.workflow_runs import FORMATS, render_workflow_runs

    outputs = options.outputs(FORMATS)
    answer = open_version(options.store, ref=options.at, branch=options.branch).workflow_runs(workflow)
    options.show(ui, outputs, render_workflow_runs, answer)
    if not answer.runs:
        ui.hint("govtool workflow run WF.py --inputs DIR")
