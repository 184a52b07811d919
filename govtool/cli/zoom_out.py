"""``govtool zoom out``."""

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


def zoom_out(
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
    """Show each invocation of some modules as one node.

      govtool zoom out --graph dealers -m M_dealer1 -m M_agg
      govtool zoom out --graph run.json -m M_dealer1 -f dot -o dealers.dot

    All invocations of a module are zoomed together: M#2 is no module. The inputs and outputs of an
    invocation stay; what happens between them goes.
    Formats: table, plain, json, jsonl, csv, markdown for the difference; dot, graphml for the view.
    """
    options = GraphOptions(graph_name(graph, run), format, output, limit, all, at, branch, store)
    show_zoom(ui, options, "out", module, zoomed)
