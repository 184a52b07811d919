"""Random workflow graphs, in the JSON form: modules used several times, with state, operators, aggregates, functions."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import strategies as st
from reference.graphs import PlainGraph

from govtool.workflow.formats.read_json import read_json
from govtool.workflow.graph import ProvenanceGraph

MODULES = ("A", "B", "C")


class Drawing:
    """Draws one graph; every choice comes from one source of chance."""

    def __init__(self, seed: int, size: int = 8, *, positive: bool = False) -> None:
        self.random = random.Random(seed)
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[list[Any]] = []
        self.state: dict[str, list[str]] = {}
        self.outputs: list[tuple[str, str | None]] = []
        self.positive = positive
        self.uses: dict[str, int] = {}
        for _ in range(size):
            self.invocation()

    def node(self, type_: str, label: str, kind: str, module: str | None = None, inv: int = 0, **more: Any) -> str:
        id_ = f"n{len(self.nodes)}"
        body = {"id": id_, "kind": kind, "type": type_, "label": label, **more}
        if module is not None:
            body |= {"module": module, "inv": inv}
        self.nodes.append(body)
        return id_

    def edge(self, source: str, target: str, *side: str) -> None:
        self.edges.append([source, target, *side])

    def invocation(self) -> None:
        pick = self.random
        module = pick.choice(MODULES)
        inv = self.uses[module] = self.uses.get(module, 0) + 1
        call = self.node("m", module, "p", module, inv)
        tuples = [self.boundary("i", call, module, inv) for _ in range(pick.randint(0, 2))]
        tuples += [self.boundary("s", call, module, inv) for _ in range(pick.randint(0, 2))]
        cells = [cell for _, cell in tuples if cell]
        rows = [row for row, _ in tuples]
        for _ in range(pick.randint(0, 4) if rows else 0):
            self.operator(rows, cells, module, inv)
        for row in pick.sample(rows, min(len(rows), pick.randint(0, 2))):
            out = self.node("o", "·", "p", module, inv)
            self.edge(row, out)
            self.edge(call, out)
            cell = None
            if cells:
                cell = self.node("o", "value", "v", module, inv)
                self.edge(pick.choice(cells), cell)
            self.outputs.append((out, cell))
        made = [row for row in rows if row not in {r for r, _ in tuples}]
        if made and pick.random() < 0.6:  # state that another invocation, or another module, will read
            self.state.setdefault(pick.choice(MODULES), []).append(pick.choice(made))

    def boundary(self, type_: str, call: str, module: str, inv: int) -> tuple[str, str | None]:
        pick = self.random
        cell = None
        if type_ == "i" and self.outputs and pick.random() < 0.7:
            source, cell_source = pick.choice(self.outputs)
            if cell_source:
                cell = self.node("i", "value", "v", module, inv)
                self.edge(cell_source, cell)
        elif type_ == "s" and self.state.get(module) and pick.random() < 0.7:
            source = pick.choice(self.state[module])
        else:
            source = self.token("st" if type_ == "s" else "wi")
        row = self.node(type_, "·", "p", module, inv)
        self.edge(source, row)
        self.edge(call, row)
        return row, cell

    def token(self, type_: str) -> str:
        known = [node["id"] for node in self.nodes if node["type"] == type_]
        if known and self.random.random() < 0.4:
            return self.random.choice(known)  # a record that is read twice, perhaps by two modules
        return self.node(type_, f"t{len(self.nodes)}", "p")

    def operator(self, rows: list[str], cells: list[str], module: str, inv: int) -> None:
        pick = self.random
        label = pick.choice(["·", "+", "δ", "SUM", "COUNT", "MIN", "udf", "guard", *([] if self.positive else ["⊖"])])
        if label in ("SUM", "COUNT", "MIN"):
            return self.aggregate(label, rows, cells, module, inv)
        if label == "udf" or (label == "guard" and not cells):
            made = self.node("val", "calcBid", "v", module, inv, value=7, bb=True)
            for source in pick.sample(cells, min(len(cells), 2)) or [self.constant(module, inv)]:
                self.edge(source, made)
            cells.append(made)
            return None
        made = self.node("op", "[<]" if label == "guard" else label, "p", module, inv)
        if label == "guard":
            self.edge(pick.choice(cells), made)
            self.edge(self.constant(module, inv), made)
        else:
            for source in pick.choices(rows, k=pick.randint(1, 3)):
                self.edge(source, made)
        rows.append(made)
        return None

    def constant(self, module: str, inv: int) -> str:
        return self.node("val", "const", "v", module, inv, value=self.random.randint(-3, 9))

    def aggregate(self, label: str, rows: list[str], cells: list[str], module: str, inv: int) -> None:
        total = self.node("val", label, "v", module, inv)
        for row in self.random.choices(rows, k=self.random.randint(1, 4)):
            tensor = self.node("val", "⊗", "v", module, inv)
            self.edge(row, tensor)
            use_cell = cells and label != "COUNT" and self.random.random() < 0.3
            self.edge(self.random.choice(cells) if use_cell else self.constant(module, inv), tensor)
            self.edge(tensor, total)
        cells.append(total)

    def body(self) -> dict[str, Any]:
        return {"nodes": self.nodes, "edges": self.edges}


def graph_of(body: dict[str, Any]) -> ProvenanceGraph:
    """The graph of a JSON form."""
    return read_json(json.dumps(body).encode(), "graph.json")


def plain(body: dict[str, Any]) -> PlainGraph:
    """The same for the reference."""
    nodes = {n["id"]: {"module": None, "inv": 0, **n} for n in body["nodes"]}
    return PlainGraph(nodes, [(e[0], e[1], e[2] if len(e) > 2 else None) for e in body["edges"]])


bodies = st.builds(
    lambda seed, size, positive: Drawing(seed, size, positive=positive).body(),
    st.integers(0, 1 << 40),
    st.integers(1, 9),
    st.booleans(),
)
"""Graphs in the JSON form."""


def shown(view):
    """Ids of the nodes and edges of a view, zoom nodes included, and how often each edge is there."""
    graph = view.graph
    nodes = {*graph.ids_of(np.flatnonzero(~view.hidden)), *(node.id for node in view.zoom_nodes)}
    assert view.node_count == len(nodes)
    edge = view.shown_edges
    ends = [graph.ids_of(np.asarray(each)[edge].astype(np.int64)) for each in (graph.edges.source, graph.edges.target)]
    edges = list(zip(*ends, strict=True))
    inputs, first, outputs, second = view.zoom_edges
    edges += [(graph.id_of(int(n)), view.zoom_nodes[z].id) for n, z in zip(inputs, first, strict=True)]
    edges += [(view.zoom_nodes[z].id, graph.id_of(int(n))) for n, z in zip(outputs, second, strict=True)]
    assert view.edge_count == len(edges)
    return nodes, Counter(edges)
