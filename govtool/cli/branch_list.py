"""``govtool branch list``: the branches of the store."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.options import FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def branch_list(ui: Ui, format: FormatOption = None, output: OutputOption = None, store: StoreOption = None) -> None:
    """The branches of the store and where they stand.

    govtool branch list
    govtool branch list --format json
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import list_branches
    from govtool.render.branches import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    found = list_branches(opened)
    for form, file in outputs:
        ui.show(render(form, "branch", found, opened.uri), file)
