"""Column graphs as Graphviz DOT and as Mermaid: a box a dataset, a node a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from govtool.model import KIND_BY_LABEL, VALUE_FLOW
from govtool.names import join_name, split_name
from govtool.render.layout.text import printable

COLOURS = {
    "subject": "#d0e4ff",
    "breaks": "#ffc9c9",
    "unknown": "#eeccff",
    "changes": "#ffe8a3",
    "rows": "#ccf2f4",
    "passes": "#d3f9d8",
    "added": "#d3f9d8",
    "removed": "#ffc9c9",
    "changed": "#ffe8a3",
}
"""Fill of a node by its mark; light, for black text on any background."""
_SIGNS = {"added": "+ ", "removed": "- ", "changed": "~ "}
_VALUE = frozenset(label for label, kind in KIND_BY_LABEL.items() if kind in VALUE_FLOW)


@dataclass(slots=True)
class Drawing:
    """The content of a drawing: columns by dataset, and edges by column name."""

    datasets: dict[str, dict[str, str]] = field(default_factory=dict)
    """``{dataset: {column: node id}}``"""
    edges: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """``{(node id, node id): kinds}``"""
    marks: dict[str, str] = field(default_factory=dict)
    """Of nodes, by id, one of ``COLOURS``."""
    edge_marks: dict[tuple[str, str], str] = field(default_factory=dict)
    """Likewise of edges."""
    note: str = ""
    """Lines about what the picture leaves out."""
    _count: int = 0

    def add_node(self, dataset: str, column: str) -> str:
        """The id of a column's node, made if there was none."""
        columns = self.datasets.setdefault(dataset, {})
        if column not in columns:
            columns[column] = f"n{self._count}"
            self._count += 1
        return columns[column]

    def add_edge(self, source: str, target: str, kinds: Sequence[str], mark: str = "") -> None:
        """Join two columns given by their full names."""
        ends = (self.add_node(*_parts(source)), self.add_node(*_parts(target)))
        self.edges.setdefault(ends, set()).update(kinds)
        if mark:
            self.edge_marks[ends] = mark

    def mark(self, name: str, mark: str, *, only_known: bool = False) -> None:
        """Colour a column's node, which is made if there is none; ``only_known``: not then."""
        dataset, column = _parts(name)
        if mark and not (only_known and column not in self.datasets.get(dataset, {})):
            self.marks[self.add_node(dataset, column)] = mark


def _parts(name: str) -> tuple[str, str]:
    parts = split_name(name)
    return join_name(parts[:-1]), parts[-1]


def dot(drawing: Drawing) -> Iterator[str]:
    """Graphviz: value flow drawn solid, what steers a value dashed, what shapes the rows dotted."""
    yield "digraph lineage {"
    yield "  rankdir=LR;"
    yield '  node [shape=box, style=rounded, fontname="Helvetica", fontsize=10];'
    yield '  edge [fontname="Helvetica", fontsize=8];'
    for number, (dataset, columns) in enumerate(drawing.datasets.items()):
        yield f"  subgraph cluster_{number} {{"
        yield f"    label={_dot_text(dataset or 'query')};"
        for column, node in columns.items():
            colour = COLOURS.get(drawing.marks.get(node, ""))
            fill = f', style="rounded,filled", fillcolor="{colour}"' if colour else ""
            yield f"    {node} [label={_dot_text(column)}{fill}];"
        yield "  }"
    for ends, kinds in drawing.edges.items():
        yield f"  {ends[0]} -> {ends[1]} [label={_dot_text(edge_label(drawing, ends))}, style={edge_style(kinds)}];"
    if drawing.note:
        yield f"  label={_dot_text(_one_line(drawing.note))};"
    yield "}"


def mermaid(drawing: Drawing) -> Iterator[str]:
    """A Mermaid flowchart: value flow as arrows, all else as dotted arrows."""
    yield "flowchart LR"
    for number, (dataset, columns) in enumerate(drawing.datasets.items()):
        yield f'  subgraph d{number}["{_mermaid_text(dataset or "query")}"]'
        for column, node in columns.items():
            yield f'    {node}["{_mermaid_text(column)}"]'
        yield "  end"
    for ends, kinds in drawing.edges.items():
        arrow = "-->" if kinds & _VALUE else "-.->"
        yield f'  {ends[0]} {arrow}|"{_mermaid_text(edge_label(drawing, ends))}"| {ends[1]}'
    for mark in dict.fromkeys(drawing.marks.values()):
        nodes = ",".join(node for node, own in drawing.marks.items() if own == mark)
        yield f"  classDef {mark} fill:{COLOURS[mark]},color:#000"
        yield f"  class {nodes} {mark}"
    if drawing.note:
        yield f'  note0["{_mermaid_text(_one_line(drawing.note))}"]'


def edge_label(drawing: Drawing, ends: tuple[str, str]) -> str:
    """The kinds of an edge as they rank, with a sign if it was added, removed or changed."""
    return _SIGNS.get(drawing.edge_marks.get(ends, ""), "") + ", ".join(_ordered(drawing.edges[ends]))


def _ordered(kinds: set[str]) -> list[str]:
    """Kinds as they rank; behind them why others are not known."""
    return sorted(kinds, key=lambda label: (KIND_BY_LABEL.get(label, len(KIND_BY_LABEL)), label))


def edge_style(kinds: set[str]) -> str:
    """``solid`` for value flow, ``dashed`` for what steers a value, ``dotted`` for what shapes the rows."""
    if kinds & _VALUE:
        return "solid"
    return "dashed" if kinds & {"conditional", "window"} else "dotted"


def _one_line(note: str) -> str:
    return note.replace("\n", "; ")


def _dot_text(text: str) -> str:
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _mermaid_text(text: str) -> str:
    """Mermaid has entity codes in place of escapes: ``#quot;``."""
    escaped = printable(text).replace("#", "#35;")
    for ch, entity in (('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;"), ("\\", "#92;")):
        escaped = escaped.replace(ch, entity)
    return escaped
