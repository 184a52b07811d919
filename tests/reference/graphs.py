"""Deletion, zoom, subgraph and dependency over small graphs in plain Python, written from the specification alone.

A graph is a dictionary of nodes by id, each ``{"id", "type", "label", "kind", "module", "inv"}``, and a list of edges
``(source, target, side)`` in the order of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class PlainGraph:
    """Nodes by id and edges in order; ``side`` is ``None``, ``left`` or ``right``."""

    nodes: dict[Any, dict[str, Any]] = field(default_factory=dict)
    edges: list[tuple[Any, Any, str | None]] = field(default_factory=list)

    def into(self, node):
        """Sources of the edges into a node, in order."""
        return [s for s, t, _ in self.edges if t == node]

    def out_of(self, node):
        """Targets of the edges out of a node."""
        return [t for s, t, _ in self.edges if s == node]

    def left_operand(self, node):
        """The left operand of a difference: the marked one, else the first without a mark; None: it is 1."""
        marked = [s for s, t, side in self.edges if t == node and side == "left"]
        plain = [s for s, t, side in self.edges if t == node and side is None]
        return (marked or plain or [None])[0]


def delete(graph: PlainGraph, deleted) -> set:
    """Def. 4.2, by going over all nodes until nothing changes."""
    gone = set(deleted)
    while True:
        found = {node for node in graph.nodes if node not in gone and _falls(graph, node, gone)}
        if not found:
            return gone
        gone |= found


def _falls(graph, node, gone):
    sources = graph.into(node)
    label = graph.nodes[node]["label"]
    if not sources:
        return False
    if label == "⊖":
        return graph.left_operand(node) in gone
    if label in ("·", "⊗"):
        return any(s in gone for s in sources)
    return all(s in gone for s in sources)


def zoom_out(graph: PlainGraph, modules) -> PlainGraph:
    """Def. 4.1 with the decisions of the specification, step by step."""
    modules = set(modules)
    mine = {n for n, node in graph.nodes.items() if node["module"] in modules}
    starts = {n for n in mine if graph.nodes[n]["type"] in ("i", "s")}
    reached, queue = set(), list(starts)
    while queue:
        for target in graph.out_of(queue.pop()):
            type_ = graph.nodes[target]["type"]
            if type_ == "o" or (type_ in ("i", "s") and target not in mine) or target in reached:
                continue
            reached.add(target)
            queue.append(target)
    inside = {n for n in reached if graph.nodes[n]["type"] not in ("i", "s", "m")}
    inside |= {n for n in mine if is_free(graph, n) and not graph.out_of(n)}
    inside |= _constants(graph, inside)
    removed = inside | {n for n in mine if graph.nodes[n]["type"] == "s"}
    removed |= {
        n
        for n, node in graph.nodes.items()
        if node["type"] == "st" and graph.out_of(n) and all(t in removed for t in graph.out_of(n))
    }
    left = PlainGraph(
        {n: node for n, node in graph.nodes.items() if n not in removed},
        [edge for edge in graph.edges if edge[0] not in removed and edge[1] not in removed],
    )
    for module, inv in sorted(
        {(graph.nodes[n]["module"], graph.nodes[n]["inv"]) for n in mine if graph.nodes[n]["inv"]}
    ):
        name = f"zoom:{module}#{inv}"
        left.nodes[name] = {"id": name, "type": "zoom", "label": module, "kind": "p", "module": module, "inv": inv}
        for n in sorted(mine, key=str):
            node = graph.nodes[n]
            if (node["module"], node["inv"]) == (module, inv) and node["type"] in ("i", "o"):
                left.edges.append((n, name, None) if node["type"] == "i" else (name, n, None))
    return left


def _constants(graph, inside):
    """Values and operators that no tuple leads to and that are used inside only."""
    found: set = set()
    while True:
        more = {
            n
            for n, node in graph.nodes.items()
            if n not in inside | found
            and node["type"] in ("val", "op")
            and graph.out_of(n)
            and all(t in inside | found for t in graph.out_of(n))
            and is_free(graph, n)
        }
        if not more:
            return found
        found |= more


def is_free(graph, node):
    """Whether no tuple leads to an operator or a value: it is made of constants, or of the invocation alone."""
    return graph.nodes[node]["type"] in ("val", "op") and all(
        graph.nodes[s]["type"] == "m" or is_free(graph, s) for s in graph.into(node)
    )


def closure(graph: PlainGraph, node, *, backward: bool) -> set:
    """Ancestors or descendants."""
    found, queue = set(), [node]
    while queue:
        at = queue.pop()
        for other in graph.into(at) if backward else graph.out_of(at):
            if other not in found:
                found.add(other)
                queue.append(other)
    return found


def subgraph(graph: PlainGraph, node) -> tuple[set, set, set]:
    """Ancestors, descendants, siblings."""
    above, below = closure(graph, node, backward=True), closure(graph, node, backward=False)
    siblings = {s for d in below for s in graph.into(d)} - above - below - {node}
    return above, below, siblings


def induced(graph: PlainGraph, nodes) -> PlainGraph:
    """Some nodes with all edges between them."""
    return PlainGraph(
        {n: node for n, node in graph.nodes.items() if n in nodes},
        [edge for edge in graph.edges if edge[0] in nodes and edge[1] in nodes],
    )


def evaluate(graph: PlainGraph, deleted=()) -> tuple[dict, dict]:
    """A run over the tables that a graph stands for: multiplicities of p-nodes and values of v-nodes.

    Records count once, deleted ones not at all; ``calcBid`` is the sum of its arguments plus 7, a comparison is made.
    """
    times: dict = {}
    values: dict = {}
    for node in _in_order(graph):
        body = graph.nodes[node]
        if body["kind"] == "p":
            times[node] = 0 if node in deleted else _times(graph, node, times, values)
        else:
            values[node] = None if node in deleted else _value(graph, node, times, values)
    return times, values


def _in_order(graph):
    waiting = {node: len(graph.into(node)) for node in graph.nodes}
    ready = [node for node, count in waiting.items() if not count]
    for node in ready:
        for target in graph.out_of(node):
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return ready


def _times(graph, node, times, values):
    sources, label = graph.into(node), graph.nodes[node]["label"]
    if not sources:
        return 1
    if label == "⊖":
        left = graph.left_operand(node)
        rest = list(sources)
        rest.remove(left)
        return max(0, times[left] - sum(times[s] for s in rest))
    if label == "[<]":
        left = graph.left_operand(node)
        right = next(s for s in sources if s != left)
        return int(values[left] is not None and values[right] is not None and values[left] < values[right])
    counts = [times[s] for s in sources]
    if label == "·":
        found = 1
        for each in counts:
            found *= each
        return found
    return int(sum(counts) > 0) if label == "δ" else sum(counts)


def _value(graph, node, times, values):
    body, sources = graph.nodes[node], graph.into(node)
    label = body["label"]
    if label == "const":
        return body["value"]
    if label == "value":
        return values[sources[0]]
    if label == "calcBid":
        given = [values[s] for s in sources if values[s] is not None]
        return 7 + sum(given)
    if label == "⊗":
        (row,) = [s for s in sources if graph.nodes[s]["kind"] == "p"]
        (cell,) = [s for s in sources if graph.nodes[s]["kind"] == "v"]
        return (times[row], values[cell])
    found = [value for s in sources for count, value in [values[s]] if value is not None for _ in range(count)]
    if label == "COUNT":
        return len(found)
    return {"SUM": sum, "MIN": min}[label](found) if found else None
