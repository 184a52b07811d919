"""Column graphs as Graphviz DOT and as Mermaid: a box a dataset, a node a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from govtool.model import KIND_BY_LABEL, VALUE_FLOW
from govtool.names import join_name, split_name
from govtool.render.text import printable

_VALUE = frozenset(label for label, kind in KIND_BY_LABEL.items() if kind in VALUE_FLOW)


@dataclass(slots=True)
class Drawing:
    """The content of a drawing: columns by dataset, and edges by column name."""

    datasets: dict[str, dict[str, str]] = field(default_factory=dict)
    """``{dataset: {column: node id}}``"""
    edges: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """``{(node id, node id): kinds}``"""
    _count: int = 0

    def add_node(self, dataset: str, column: str) -> str:
        """The id of a column's node, made if there was none."""
        columns = self.datasets.setdefault(dataset, {})
        if column not in columns:
            columns[column] = f"n{self._count}"
            self._count += 1
        return columns[column]

    def add_edge(self, source: str, target: str, kinds: Sequence[str]) -> None:
        """Join two columns given by their full names."""
        ends = (self.add_node(*_parts(source)), self.add_node(*_parts(target)))
        self.edges.setdefault(ends, set()).update(kinds)


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
            yield f"    {node} [label={_dot_text(column)}];"
        yield "  }"
    for (source, target), kinds in drawing.edges.items():
        yield f"  {source} -> {target} [label={_dot_text(', '.join(_ordered(kinds)))}, style={_style(kinds)}];"
    yield "}"


def mermaid(drawing: Drawing) -> Iterator[str]:
    """A Mermaid flowchart: value flow as arrows, all else as dotted arrows."""
    yield "flowchart LR"
    for number, (dataset, columns) in enumerate(drawing.datasets.items()):
        yield f'  subgraph d{number}["{_mermaid_text(dataset or "query")}"]'
        for column, node in columns.items():
            yield f'    {node}["{_mermaid_text(column)}"]'
        yield "  end"
    for (source, target), kinds in drawing.edges.items():
        arrow = "-->" if kinds & _VALUE else "-.->"
        yield f'  {source} {arrow}|"{_mermaid_text(", ".join(_ordered(kinds)))}"| {target}'


def _ordered(kinds: set[str]) -> list[str]:
    """Kinds as they rank; behind them why others are not known."""
    return sorted(kinds, key=lambda label: (KIND_BY_LABEL.get(label, len(KIND_BY_LABEL)), label))


def _style(kinds: set[str]) -> str:
    if kinds & _VALUE:
        return "solid"
    return "dashed" if kinds & {"conditional", "window"} else "dotted"


def _dot_text(text: str) -> str:
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _mermaid_text(text: str) -> str:
    """Mermaid has entity codes in place of escapes: ``#quot;``."""
    escaped = printable(text).replace("#", "#35;")
    for ch, entity in (('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;"), ("\\", "#92;")):
        escaped = escaped.replace(ch, entity)
    return escaped
