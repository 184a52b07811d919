"""``govtool graph export``."""

from __future__ import annotations

from govtool.cli.formats import chosen
from govtool.cli.graph_files import GraphArgument, ZoomedOption
from govtool.cli.options import AtOption, BranchOption, FormatOption, OutputOption, StoreOption
from govtool.cli.ui import Ui

FORMATS = ("json", "dot", "graphml", "prov-json")


def graph_export(
    ui: Ui,
    graph: GraphArgument,
    zoomed: ZoomedOption = None,
    format: FormatOption = None,
    output: OutputOption = None,
    at: AtOption = None,
    branch: BranchOption = None,
    store: StoreOption = None,
) -> None:
    """Write a provenance graph, or a view of it with modules zoomed out.

      govtool graph export dealers -o dealers.graphml
      govtool graph export run.json --zoomed M_dealer1 --format dot -o dealers.dot

    Formats: json, dot, graphml, and prov-json, which has no values and no structure of operators.
    """
    from govtool.api.workflow import provenance_graph

    outputs = chosen(format, output, FORMATS)
    found = provenance_graph(graph, zoomed=zoomed, store=store, ref=at, branch=branch)
    for form, file in outputs:
        ui.show(found.export(form), file)
