"""``govtool subgraph``."""

from __future__ import annotations

from govtool.cli.graph_files import GraphOptions, NodeArgument, graph_command, show_answer
from govtool.cli.ui import Ui


@graph_command
def subgraph(ui: Ui, options: GraphOptions, node: NodeArgument) -> None:
    """Show what a node of a provenance graph comes from, what comes of it, and what else that needs.

      govtool subgraph n41 --graph dealers
      govtool subgraph C2 --graph run.json -f json

    Siblings are the other inputs of what comes of the node: with them a deletion can be judged in the subgraph alone.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    show_answer(ui, options, options.opened(ui).subgraph(node))
