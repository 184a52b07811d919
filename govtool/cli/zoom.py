"""What ``govtool zoom out`` and ``govtool zoom in`` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.cli.formats import chosen
from govtool.cli.graph import bound
from govtool.cli.graph_files import GraphOptions
from govtool.cli.ui import Ui

if TYPE_CHECKING:
    from govtool.api.workflow import WorkflowGraph

VIEWS = ("dot", "graphml")
"""Formats that show the view itself and not the difference."""


def show_zoom(ui: Ui, options: GraphOptions, direction: str, module: list[str], zoomed: list[str] | None) -> None:
    """Zoom, and show the difference or the view."""
    from govtool.render.workflow import FORMATS, render_workflow

    outputs = chosen(options.format, options.output, (*FORMATS, *VIEWS))
    graph = options.opened(ui)
    before = graph.zoom_out(*_before(graph, direction, zoomed))
    after = before.zoom_out(*module) if direction == "out" else before.zoom_in(*module)
    for form, file in outputs:
        if form in VIEWS:
            ui.show(after.export(form), file)
        else:
            answer = after.difference(before)
            ui.show(render_workflow(form, answer, bound(options.limit, options.all, form)), file)


def _before(graph: WorkflowGraph, direction: str, zoomed: list[str] | None) -> list[str]:
    if zoomed is not None:
        return zoomed
    return [] if direction == "out" else list(graph.modules)
