"""``govtool zoom out``."""

from __future__ import annotations

from govtool.cli.graph_files import GraphOptions, ModuleOption, ZoomedOption, graph_command
from govtool.cli.ui import Ui
from govtool.cli.zoom import show_zoom


@graph_command
def zoom_out(ui: Ui, options: GraphOptions, module: ModuleOption, zoomed: ZoomedOption = None) -> None:
    """Show each invocation of some modules as one node.

      govtool zoom out --graph dealers -m M_dealer1 -m M_agg
      govtool zoom out --graph run.json -m M_dealer1 -f dot -o dealers.dot

    All invocations of a module are zoomed together: M#2 is no module. The inputs and outputs of an
    invocation stay; what happens between them goes.
    Formats: table, plain, json, jsonl, csv, markdown for the difference; dot, graphml for the view.
    """
    show_zoom(ui, options, "out", module, zoomed)
