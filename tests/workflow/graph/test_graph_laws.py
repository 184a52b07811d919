"""Deletion, zoom, subgraph and dependency of generated graphs against the reference, and their laws."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
from depth import examples
from drawn_graphs import MODULES, bodies, graph_of, plain, shown
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import graphs as reference

from govtool.workflow import vocabulary as terms
from govtool.workflow.deletion import removed_by
from govtool.workflow.dependency import dependency
from govtool.workflow.subgraph import lineage, subgraph
from govtool.workflow.zoom import GraphView

seeds = st.integers(0, 1 << 30)
few = settings(max_examples=examples(100), deadline=None)


def chosen(body, seed, most=3):
    ids = [node["id"] for node in body["nodes"]]
    return random.Random(seed).sample(ids, min(len(ids), random.Random(seed).randint(1, most)))


@few
@given(bodies, seeds)
def test_deletion_is_the_reference(body, seed):
    graph, deleted = graph_of(body), chosen(body, seed)
    found = removed_by(graph, [graph.with_id(each) for each in deleted])
    assert set(graph.ids_of(found)) == reference.delete(plain(body), deleted)


@few
@given(bodies, st.sets(st.sampled_from(MODULES)))
def test_zoom_out_is_the_reference(body, modules):
    graph = graph_of(body)
    modules &= set(graph.modules)
    expected = reference.zoom_out(plain(body), modules)
    nodes, edges = shown(GraphView(graph).zoom_out(*modules))
    assert nodes == set(expected.nodes)
    assert edges == Counter((s, t) for s, t, _ in expected.edges)


@few
@given(bodies, st.sets(st.sampled_from(MODULES)))
def test_zoom_in_undoes_zoom_out_in_any_order(body, modules):
    graph = graph_of(body)
    modules = sorted(modules & set(graph.modules))
    fine = GraphView(graph)
    there, back = fine, fine.zoom_out(*modules)
    assert shown(back.zoom_in(*modules)) == shown(fine)
    for module in reversed(modules):
        there = there.zoom_out(module)
    assert shown(there) == shown(back)
    for module in modules:
        assert shown(back.zoom_in(module)) == shown(fine.zoom_out(*(set(modules) - {module})))


@few
@given(bodies, st.sets(st.sampled_from(MODULES)))
def test_inside_of_modules_is_what_is_tagged_with_them(body, modules):
    graph = graph_of(body)
    modules &= set(graph.modules)
    hidden = set(graph.ids_of(np.flatnonzero(GraphView(graph, frozenset(modules)).hidden)))
    inner = {n["id"] for n in body["nodes"] if n["type"] in ("op", "val") and n["module"] in modules}
    found = {n for n in hidden if graph.type[graph.with_id(n)] in (terms.OPERATOR, terms.VALUE)}
    assert found >= inner - _handed_out(body)


def _handed_out(body):
    """What is made of no tuple and used: it may be handed out, and then stays."""
    graph = plain(body)
    return {n for n in graph.nodes if reference.is_free(graph, n) and graph.out_of(n)}


def test_conditions_over_nothing_are_within_their_module():
    """As a run has them whose relation is empty: they hang on the invocation, and nothing may use them."""
    inner = {"module": "A", "inv": 1, "kind": "p"}
    gates = [{"id": n, "type": "op", "label": "GATE present", "bb": True, **inner} for n in ("unused", "gate")]
    nodes = [
        {"id": "m", "type": "m", "label": "A", **inner},
        *gates,
        {"id": "guard", "type": "op", "label": "[<=>]", "bb": True, **inner},
        {"id": "t", "type": "wi", "label": "t", "kind": "p"},
        {"id": "i", "type": "i", "label": "·", **inner},
        {"id": "joint", "type": "op", "label": "·", **inner},
        {"id": "total", "type": "val", "label": "COUNT", **inner, "kind": "v", "value": 0},
        {"id": "o", "type": "o", "label": "·", **inner},
        {"id": "v", "type": "o", "label": "value", **inner, "kind": "v"},
    ]
    edges = [("m", "unused"), ("m", "gate"), ("guard", "gate"), ("t", "i"), ("m", "i"), ("i", "joint")]
    edges += [("gate", "joint"), ("joint", "o"), ("m", "o"), ("total", "v")]
    body = {"nodes": nodes, "edges": [list(edge) for edge in edges]}
    view = GraphView(graph_of(body)).zoom_out("A")
    assert shown(view)[0] == {"m", "t", "i", "o", "v", "total", "zoom:A#1"}  # the total is handed out
    assert shown(view.zoom_in("A")) == shown(GraphView(graph_of(body)))


@few
@given(bodies)
def test_all_modules_zoomed_leave_their_borders_only(body):
    graph = graph_of(body)
    view = GraphView(graph, frozenset(graph.modules))
    left = np.flatnonzero(~view.hidden)
    inner = {terms.OPERATOR, terms.VALUE, terms.MODULE_STATE}
    kept = {n for n in left.tolist() if graph.type[n] in inner}
    assert {graph.id_of(n) for n in kept} <= _handed_out(body)


@few
@given(bodies, seeds)
def test_subgraph_is_the_reference_and_keeps_what_deletion_takes(body, seed):
    graph, (node,) = graph_of(body), chosen(body, seed, 1)
    plain_graph = plain(body)
    found = subgraph(graph, graph.with_id(node))
    above, below, siblings = reference.subgraph(plain_graph, node)
    for part, expected in ((found.ancestors, above), (found.descendants, below), (found.siblings, siblings)):
        assert set(graph.ids_of(part)) == expected
    whole = {node, *above, *below, *siblings}
    part = reference.induced(plain_graph, whole)
    assert len(found.edges) == len(part.edges)
    taken = reference.delete(plain_graph, [node]) & below
    marked = _explicit_sides(plain_graph)
    assert reference.delete(reference.induced(marked, whole), [node]) & below == taken


def _explicit_sides(graph):
    """The same graph with a mark on each edge into a difference: the first in a part of a file may be another."""
    seen, edges = set(), []
    for source, target, _side in graph.edges:
        if graph.nodes[target]["label"] == "⊖":
            edges.append((source, target, "right" if target in seen else "left"))
            seen.add(target)
        else:
            edges.append((source, target, None))
    return reference.PlainGraph(graph.nodes, edges)


@few
@given(bodies, seeds)
def test_dependency_is_deletion_and_lineage_is_ancestry(body, seed):
    graph, (node,) = graph_of(body), chosen(body, seed, 1)
    plain_graph = plain(body)
    tokens = [n["id"] for n in body["nodes"] if n["type"] in ("wi", "st")]
    if not tokens:
        return
    on = random.Random(seed).sample(tokens, min(2, len(tokens)))
    found = dependency(graph, graph.with_id(node), [graph.with_id(each) for each in on])
    falls = node in reference.delete(plain_graph, on)
    assert (found.depends is True) == falls
    above = reference.closure(plain_graph, node, backward=True) | {node}
    assert set(graph.ids_of(found.lineage)) == above & set(tokens)
    assert set(graph.ids_of(lineage(graph, graph.with_id(node)))) == above & set(tokens)
    assert set(graph.ids_of(found.necessary)) == {t for t in tokens if node in reference.delete(plain_graph, [t])}
    together = graph.ids_of(found.together)
    if together:
        assert node in reference.delete(plain_graph, together)
        assert not any(
            node in reference.delete(plain_graph, some) for some in combinations(together, len(together) - 1)
        )
