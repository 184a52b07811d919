"""``govtool subgraph``."""

from __future__ import annotations

from govtool.cli.graph_files import (
    GraphOption,
    GraphOptions,
    GraphRunOption,
    NodeArgument,
    graph_name,
    show_answer,
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


def subgraph(
    ui: Ui,
    node: NodeArgument,
    graph: GraphOption = None,
    run: GraphRunOption = None,
    limit: LimitOption = None,
    all: AllOption = False,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Show what a node of a provenance graph comes from, what comes of it, and what else that needs.

      govtool subgraph n41 --graph dealers
      govtool subgraph C2 --graph run.json -f json

    Siblings are the other inputs of what comes of the node: with them a deletion can be judged in the subgraph alone.
    Formats: table, plain, json, jsonl, csv, markdown.
    """
    options = GraphOptions(graph_name(graph, run), format, output, limit, all, at, branch, store)
    show_answer(ui, options, options.opened(ui).subgraph(node))
