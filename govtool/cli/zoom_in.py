"""``govtool zoom in``."""

from __future__ import annotations

from govtool.cli.graph_files import (
    GraphOption,
    GraphOptions,
    GraphRunOption,
    ModuleOption,
    ZoomedOption,
    graph_name,
)
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
from govtool.cli.zoom import show_zoom


def zoom_in(
    ui: Ui,
    module: ModuleOption,
    graph: GraphOption = None,
    run: GraphRunOption = None,
    zoomed: ZoomedOption = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Show the inside of some modules again.

      govtool zoom in --graph dealers -m M_dealer1
      govtool zoom in --graph dealers -m M_agg --zoomed M_agg --zoomed M_and

    Without --zoomed all modules are zoomed out before.
    Formats: table, plain, json, jsonl, csv, markdown for the difference; dot, graphml for the view.
    """
    options = GraphOptions(graph_name(graph, run), format, output, limit, all, at, branch, store)
    show_zoom(ui, options, "in", module, zoomed)
