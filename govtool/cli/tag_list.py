"""``govtool tag list``: the tags of the store."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.options import FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def tag_list(ui: Ui, format: FormatOption = None, output: OutputOption = None, store: StoreOption = None) -> None:
    """The tags of the store and what they name.

    govtool tag list
    govtool tag list --format csv
    """
    from govtool.app.project.project import open_store
    from govtool.app.versions.branches import list_tags
    from govtool.render.branches import FORMATS, render

    outputs = chosen(format, output, FORMATS)
    opened = open_store(store)
    found = list_tags(opened)
    for form, file in outputs:
        ui.show(render(form, "tag", found, opened.uri), file)
