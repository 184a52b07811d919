"""``govtool graph list``."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui


def graph_list(
    ui: Ui,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """The provenance graphs of the store.

      govtool graph list

    Formats: table, plain, json, jsonl, csv, markdown.
    """
    from govtool.api.workflow import list_graphs
    from govtool.render.workflow import FORMATS, render_workflow

    outputs = chosen(format, output, FORMATS)
    answer = list_graphs(store, ref=at, branch=branch)
    for form, file in outputs:
        ui.show(render_workflow(form, answer), file)
