"""Column graphs as SVG: layered from left to right by networkx, written by the XML library.

A box a dataset, a line a column, coloured by its mark; the kind of an edge is its tooltip.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from govtool.render.layout.text import printable, width
from govtool.render.pictures.drawing import COLOURS, Drawing, edge_label, edge_style
from govtool.wording import xml_text

if TYPE_CHECKING:
    import networkx as nx

_CELL = 7.0
"""Width of a character at 11 px, monospaced."""
_ROW, _GAP, _BETWEEN, _MARGIN = 20.0, 24.0, 90.0, 16.0
_DASHES = {"solid": "", "dashed": "6 3", "dotted": "2 3"}


@dataclass(frozen=True, slots=True)
class _Box:
    """The place of a dataset."""

    x: float
    y: float
    width: float
    height: float


def svg(drawing: Drawing) -> Iterator[str]:
    """One SVG document in one line, but for its header."""
    boxes = _boxes(drawing)
    notes = [printable(line) for line in drawing.note.splitlines()]
    right = [box.x + box.width for box in boxes.values()] + [_MARGIN + width(line) * _CELL for line in notes]
    wide = max(right, default=0.0) + _MARGIN
    high = max((box.y + box.height for box in boxes.values()), default=0.0) + _MARGIN + _ROW * len(notes)
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {wide:g} {high:g}",
            "width": f"{wide:g}",
            "height": f"{high:g}",
            "font-family": "ui-monospace, Menlo, Consolas, monospace",
            "font-size": "11",
        },
    )
    ElementTree.SubElement(root, "title").text = "Lineage"
    ElementTree.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": "#ffffff"})
    places = _places(drawing, boxes)
    for ends in drawing.edges:
        _draw_edge(root, drawing, ends, places)
    for dataset, box in boxes.items():
        _draw_box(root, drawing, dataset, box)
    for place, line in enumerate(reversed(notes)):
        _text(root, _MARGIN, high - _MARGIN - place * _ROW, line)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield ElementTree.tostring(root, encoding="unicode")


def _boxes(drawing: Drawing) -> dict[str, _Box]:
    """The places of datasets: columns of boxes from left to right, each layer from the top."""
    boxes: dict[str, _Box] = {}
    x = _MARGIN
    for layer in _layers(drawing):
        y = widest = _MARGIN
        for dataset in layer:
            names = [dataset or "query", *(f"  {column}" for column in drawing.datasets[dataset])]
            wide = max(width(printable(name)) for name in names) * _CELL + 20
            high = _ROW * (1 + len(drawing.datasets[dataset])) + 8
            boxes[dataset] = _Box(x, y, wide, high)
            y += high + _GAP
            widest = max(widest, wide)
        x += widest + _BETWEEN
    return boxes


def _layers(drawing: Drawing) -> list[list[str]]:
    """Datasets by their distance from the sources; those of a cycle are in one layer, the order by their neighbours."""
    import networkx as nx

    owner = {node: dataset for dataset, columns in drawing.datasets.items() for node in columns.values()}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(drawing.datasets)
    graph.add_edges_from((owner[a], owner[b]) for a, b in drawing.edges if owner[a] != owner[b])
    condensed = nx.condensation(graph)
    rank: dict[str, float] = {}
    layers = []
    for generation in nx.topological_generations(condensed):
        names = [name for part in generation for name in condensed.nodes[part]["members"]]
        layer = sorted(names, key=lambda name: (_middle(graph, name, rank), name))
        rank.update((name, float(place)) for place, name in enumerate(layer))
        layers.append(layer)
    return layers


def _middle(graph: nx.DiGraph[str], name: str, rank: Mapping[str, float]) -> float:
    """The mean place of the sources of a dataset that are placed already."""
    known = [rank[source] for source in graph.predecessors(name) if source in rank]
    return sum(known) / len(known) if known else 0.0


def _places(drawing: Drawing, boxes: Mapping[str, _Box]) -> dict[str, tuple[_Box, float]]:
    """The box of each node, and the height of its line."""
    return {
        node: (boxes[dataset], boxes[dataset].y + _ROW * (number + 1.5))
        for dataset, columns in drawing.datasets.items()
        for number, node in enumerate(columns.values())
    }


def _draw_edge(
    root: ElementTree.Element, drawing: Drawing, ends: tuple[str, str], places: Mapping[str, tuple[_Box, float]]
) -> None:
    (source, y1), (target, y2) = places[ends[0]], places[ends[1]]
    x1, x2 = source.x + source.width, target.x
    bend = max(40.0, (x2 - x1) / 2)
    path = f"M{x1:g} {y1:g} C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
    kinds = drawing.edges[ends]
    dashes = _DASHES[edge_style(kinds)]
    options = {"d": path, "fill": "none", "stroke": "#59636e"} | ({"stroke-dasharray": dashes} if dashes else {})
    line = ElementTree.SubElement(root, "path", options)
    ElementTree.SubElement(line, "title").text = xml_text(edge_label(drawing, ends))
    ElementTree.SubElement(
        root, "path", {"d": f"M{x2:g} {y2:g} l-7 -3.5 v7 z", "fill": "#59636e"}
    )  # the head of the arrow


def _draw_box(root: ElementTree.Element, drawing: Drawing, dataset: str, box: _Box) -> None:
    size = {"x": f"{box.x:g}", "y": f"{box.y:g}", "width": f"{box.width:g}", "height": f"{box.height:g}"}
    ElementTree.SubElement(root, "rect", {**size, "rx": "6", "fill": "#f6f8fa", "stroke": "#59636e"})
    _text(root, box.x + 8, box.y + 15, dataset or "query", bold=True)
    for number, (column, node) in enumerate(drawing.datasets[dataset].items(), 1):
        y = box.y + _ROW * number + 2
        colour = COLOURS.get(drawing.marks.get(node, ""))
        if colour:
            place = {"x": f"{box.x + 4:g}", "y": f"{y:g}", "width": f"{box.width - 8:g}", "height": f"{_ROW - 2:g}"}
            ElementTree.SubElement(root, "rect", {**place, "rx": "3", "fill": colour})
        _text(root, box.x + 16, y + 13, column)


def _text(root: ElementTree.Element, x: float, y: float, content: str, *, bold: bool = False) -> None:
    options = {"x": f"{x:g}", "y": f"{y:g}", "fill": "#1f2328"} | ({"font-weight": "600"} if bold else {})
    ElementTree.SubElement(root, "text", options).text = xml_text(content)
