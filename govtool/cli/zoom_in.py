"""``govtool zoom in``."""

from __future__ import annotations

from govtool.cli.graph_files import GraphOptions, ModuleOption, ZoomedOption, graph_command
from govtool.cli.ui import Ui
from govtool.cli.zoom import show_zoom


@graph_command
def zoom_in(ui: Ui, options: GraphOptions, module: ModuleOption, zoomed: ZoomedOption = None) -> None:
    """Show the inside of some modules again.

      govtool zoom in --graph dealers -m M_dealer1
      govtool zoom in --graph dealers -m M_agg --zoomed M_agg --zoomed M_and

    Without --zoomed all modules are zoomed out before.
    Formats: table, plain, json, jsonl, csv, markdown for the difference; dot, graphml for the view.
    """
    show_zoom(ui, options, "in", module, zoomed)
