"""``govtool zoom``, ``subgraph`` and ``depends``: questions about a provenance graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from govtool.cli.graph_files import GraphOptions, ModuleOption, NodeArgument, ZoomedOption, show_answer
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_EVIDENCE, EXIT_FINDINGS, EXIT_OK

if TYPE_CHECKING:
    from govtool.api.workflow_graph import WorkflowGraph

VIEWS = ("dot", "graphml")
"""Formats that show the view itself and not the difference."""
_DEFAULT = GraphOptions()


def show_zoom(ui: Ui, options: GraphOptions, direction: str, module: list[str], zoomed: list[str] | None) -> None:
    """Zoom, and show the difference or the view."""
    from govtool.render.workflow_graph import FORMATS, render_workflow

    outputs = options.outputs((*FORMATS, *VIEWS))
    graph = options.opened(ui)
    before = graph.zoom_out(*_before(graph, direction, zoomed))
    after = before.zoom_out(*module) if direction == "out" else before.zoom_in(*module)
    for form, file in outputs:
        if form in VIEWS:
            ui.show(after.export(form), file, private=True)
        else:
            answer = after.difference(before)
            ui.show(render_workflow(form, answer, options.bound(form)), file, private=True)


def _before(graph: WorkflowGraph, direction: str, zoomed: list[str] | None) -> list[str]:
    if zoomed is not None:
        return zoomed
    return [] if direction == "out" else list(graph.modules)


def zoom_out(ui: Ui, module: ModuleOption, options: GraphOptions = _DEFAULT, zoomed: ZoomedOption = None) -> None:
    """Show each invocation of some modules as one node.

      govtool zoom out --graph dealers -m M_dealer1 -m M_agg
      govtool zoom out --graph run.json -m M_dealer1 -f dot -o dealers.dot

    All invocations of a module are zoomed together: M#2 is not a module. The inputs and outputs of an invocation
    stay; its inside is hidden. The difference is shown; as dot and graphml, the view.
    """
    show_zoom(ui, options, "out", module, zoomed)


def zoom_in(ui: Ui, module: ModuleOption, options: GraphOptions = _DEFAULT, zoomed: ZoomedOption = None) -> None:
    """Show the inside of some modules again.

      govtool zoom in --graph dealers -m M_dealer1
      govtool zoom in --graph dealers -m M_agg --zoomed M_agg --zoomed M_and

    Without --zoomed, all modules count as zoomed out. The difference is shown; as dot and graphml, the view.
    """
    show_zoom(ui, options, "in", module, zoomed)


def subgraph(ui: Ui, node: NodeArgument, options: GraphOptions = _DEFAULT) -> None:
    """Show the ancestors and descendants of a node in a provenance graph, and the siblings.

      govtool subgraph n41 --graph dealers
      govtool subgraph C2 --graph run.json -f json

    Siblings are the other inputs of the descendants: with them a deletion can be judged in the subgraph alone.
    """
    show_answer(ui, options, options.opened(ui).subgraph(node))


def depends(
    ui: Ui,
    node: NodeArgument,
    on: Annotated[
        list[str], typer.Option("--on", metavar="TOKEN", help="A record; several are deleted together. Repeatable.")
    ],
    options: GraphOptions = _DEFAULT,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if the node depends on them.")] = False,
) -> int:
    """Show whether a node of a provenance graph would be gone without some records.

      govtool depends n41 --graph dealers --on C2
      govtool depends n41 --graph dealers --on C2 --on C3 --exit-code

    This is necessity: of two alternatives neither is needed alone. The answer also has the lineage: all records from
    which the node comes. Exit code 3 if only a new run can decide.
    """
    answer = options.opened(ui).depends(node, on)
    show_answer(ui, options, answer)
    if answer.depends == "unknown":
        return EXIT_EVIDENCE
    return EXIT_FINDINGS if answer.depends and exit_code else EXIT_OK


depends.spellings = {"--fail-on=depends": "--exit-code"}  # type: ignore[attr-defined]  # the former name
