"""The nodes and edges of a view, one after the other, with the ids and words that files have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.sets import Array
from govtool.workflow import vocabulary as terms
from govtool.workflow.graph import NodeId, ProvenanceGraph
from govtool.workflow.values import ABSENT, Value
from govtool.workflow.zoom import GraphView

_CHUNK = 65_536
"""Nodes or edges that are held as Python values at a time."""


class NodeRow(NamedTuple):
    """A node of a file."""

    id: NodeId
    kind: str
    type: str
    label: str
    module: str | None
    invocation: int
    black_box: bool
    value: Value

    def body(self) -> dict[str, Any]:
        """The node in the JSON form; keys without a value are absent."""
        found: dict[str, Any] = {"id": self.id, "kind": self.kind, "type": self.type, "label": self.label}
        if self.module is not None:
            found |= {"module": self.module, "inv": self.invocation}
        if self.value is not ABSENT:
            found |= value_body(self.value)
        return {**found, "bb": True} if self.black_box else found


class EdgeRow(NamedTuple):
    """An edge of a file."""

    source: NodeId
    target: NodeId
    side: str | None

    def body(self) -> list[Any]:
        """The edge in the JSON form."""
        return [self.source, self.target] if self.side is None else [self.source, self.target, self.side]


def value_body(value: Value) -> dict[str, Any]:
    """A value in the JSON form: with its type where JSON has none for it; ``json``: its text, with ``NaN`` in it."""
    if isinstance(value, Decimal):
        return {"value": str(value), "value_type": "decimal"}
    if isinstance(value, float) and not np.isfinite(value):
        return {"value": str(value), "value_type": "float"}
    if isinstance(value, (list, dict)) and not _is_plain(value):
        return {"value": json.dumps(value, ensure_ascii=False), "value_type": "json"}
    return {"value": value}


def _is_plain(value: Value) -> bool:
    """Return whether JSON has what is in a list or an object, and no name in it is one of ours."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, float) and not np.isfinite(each):
            return False
        if isinstance(each, dict):
            if "value_type" in each:
                return False
            pending += each.values()
        elif isinstance(each, list):
            pending += each
    return True


def node_rows(view: GraphView) -> Iterator[NodeRow]:
    """The nodes of a view: those of the fine graph, then its zoom nodes."""
    shown = np.flatnonzero(~view.hidden)
    for start in range(0, len(shown), _CHUNK):
        yield from _rows_of(view.graph, shown[start : start + _CHUNK])
    for node in view.zoom_nodes:
        yield NodeRow(node.id, "p", "zoom", node.module, node.module, node.invocation, False, ABSENT)


def _rows_of(graph: ProvenanceGraph, nodes: Array) -> Iterator[NodeRow]:
    values = graph.values.of(nodes)
    columns = (graph.kind, graph.type, graph.module, graph.invocation, graph.black_box)
    kinds, types, modules, invocations, black_boxes = (column[nodes].tolist() for column in columns)
    labels = graph.labels.take(graph.label[nodes].astype(np.int64))
    for at, (node, id_) in enumerate(zip(nodes.tolist(), graph.ids_of(nodes), strict=True)):
        yield NodeRow(
            id_,
            terms.KINDS[kinds[at]],
            terms.TYPES[types[at]],
            labels[at],
            None if modules[at] < 0 else graph.modules[modules[at]],
            invocations[at],
            black_boxes[at],
            values.get(node, ABSENT),
        )


def edge_rows(view: GraphView) -> Iterator[EdgeRow]:
    """The edges of a view: those of the fine graph, then those of its zoom nodes."""
    graph, shown = view.graph, view.shown_edges
    sources, targets = np.asarray(graph.edges.source), np.asarray(graph.edges.target)
    for start in range(0, len(shown), _CHUNK):
        part = shown[start : start + _CHUNK]
        ends = (graph.ids_of(each[part].astype(np.int64)) for each in (sources, targets))
        sides = graph.side[part].tolist()
        for source, target, side in zip(*ends, sides, strict=True):
            yield EdgeRow(source, target, terms.SIDES[side])
    yield from zoom_edge_rows(view)


def zoom_edge_rows(view: GraphView) -> Iterator[EdgeRow]:
    """The edges of the zoom nodes of a view."""
    inputs, into, outputs, out_of = view.zoom_edges
    for id_, number in zip(view.graph.ids_of(inputs), into.tolist(), strict=True):
        yield EdgeRow(id_, view.zoom_nodes[number].id, None)
    for id_, number in zip(view.graph.ids_of(outputs), out_of.tolist(), strict=True):
        yield EdgeRow(view.zoom_nodes[number].id, id_, None)
