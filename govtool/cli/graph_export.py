"""``govtool graph export``."""

from __future__ import annotations

from typing import Annotated

import typer

from govtool.cli.formats import chosen
from govtool.cli.graph_files import GraphRunOption, OptionalGraphArgument, ZoomedOption, graph_name
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui

FORMATS = ("json", "dot", "graphml", "prov-json")


def graph_export(
    ui: Ui,
    graph: OptionalGraphArgument = None,
    run: GraphRunOption = None,
    state_nodes: Annotated[
        str,
        typer.Option(
            "--state-nodes", metavar="read|all", help="With --run: nodes of state tuples that were read, or of all."
        ),
    ] = "read",
    pig_nodes: Annotated[
        bool,
        typer.Option("--pig-nodes", help="With --run: draw operators as the paper's figures draw Pig's statements."),
    ] = False,
    zoomed: ZoomedOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Write a provenance graph, or a view of it with modules zoomed out.

      govtool graph export dealers -o dealers.graphml
      govtool graph export --run dealers --state-nodes all --pig-nodes -o run.json
      govtool graph export run.json --zoomed M_dealer1 --format dot -o dealers.dot

    Formats: json, dot, graphml, and prov-json, which has no values and no structure of operators.
    """
    from govtool.api.workflow import provenance_graph

    outputs = chosen(format, output, FORMATS)
    name = graph_name(graph, run)
    found = provenance_graph(
        name, zoomed=zoomed, store=store, ref=at, branch=branch, state_nodes=state_nodes, pig_nodes=pig_nodes
    )
    for form, file in outputs:
        ui.show(found.export(form), file)
