"""Graphs built block by block: columns, sides, values, ids."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from govtool.workflow import vocabulary as terms
from govtool.workflow.builder import GraphBuilder
from govtool.workflow.values import ABSENT


def test_blocks_become_columns_and_edges_both_ways():
    builder = GraphBuilder()
    tokens = builder.nodes("wi", pa.array(["C1", "C2", "C3"]), 3)
    calls = builder.nodes("m", "M_dealer1", module="M_dealer1", invocation=1)
    inputs = builder.nodes("i", "·", 3, module="M_dealer1", invocation=1)
    builder.edges(tokens, inputs)
    builder.edges(calls, inputs)
    graph = builder.build()
    assert (graph.node_count, graph.edge_count) == (7, 6)
    assert [graph.label_of(node) for node in range(7)] == ["C1", "C2", "C3", "M_dealer1", "·", "·", "·"]
    assert [graph.module_of(node) for node in (0, 3, 4)] == [None, "M_dealer1", "M_dealer1"]
    assert [graph.edges.source[edge] for edge in graph.edges.in_edges(int(inputs[1]))] == [1, 3]
    assert {token: nodes.tolist() for token, nodes in graph.with_tokens(["C3", "C9"]).items()} == {"C3": [2]}
    assert (graph.kind == terms.P).all()


def test_cells_and_values_are_value_nodes():
    builder = GraphBuilder()
    builder.nodes("i", "value", 2)
    builder.nodes("val", "SUM", values=[Decimal("12.30")])
    builder.nodes("op", "δ")
    assert builder.build().kind.tolist() == [terms.V, terms.V, terms.V, terms.P]


@pytest.mark.parametrize(
    "values",
    [[1, None, "x", 2.5], [True, Decimal("1.10"), 1 << 70, [1, "a"]], [ABSENT, float("inf"), {"a": None}, ""]],
)
def test_values_keep_their_types(values):
    builder = GraphBuilder()
    made = builder.nodes("val", "const", 4, values=values)
    found = builder.build().values.of(made)
    expected = {node: value for node, value in enumerate(values) if value is not ABSENT}
    assert found == expected
    assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]


def test_values_of_arrays_and_of_several_blocks():
    builder = GraphBuilder()
    builder.nodes("val", "const", 2, values=np.array([1.5, 2.5]))
    builder.nodes("op", "+", 3)
    builder.nodes("val", "const", 2, values=pa.array(["a", "b"]))
    builder.nodes("val", "const", 2, values=["c", 7])
    graph = builder.build()
    assert dict(graph.values) == {0: 1.5, 1: 2.5, 5: "a", 6: "b", 7: "c", 8: 7}


@pytest.mark.parametrize(
    ("edges", "sides"),
    [
        ([(0, 0), (1, 0)], {0: terms.LEFT, 1: terms.RIGHT}),
        ([(1, 0), (0, 0)], {1: terms.LEFT, 0: terms.RIGHT}),
        ([(0, 0), (1, terms.LEFT)], {0: terms.RIGHT, 1: terms.LEFT}),
        ([(0, terms.RIGHT), (1, 0)], {0: terms.RIGHT, 1: terms.LEFT}),
        ([(0, terms.RIGHT), (1, terms.RIGHT)], {0: terms.RIGHT, 1: terms.RIGHT}),
    ],
)
def test_first_unmarked_edge_into_a_difference_is_its_left_operand(edges, sides):
    builder = GraphBuilder()
    builder.nodes("wi", ["a", "b"], 2)
    (monus,) = builder.nodes("op", "⊖")
    for source, side in edges:
        builder.edges(source, monus, side)
    graph = builder.build()
    assert dict(zip(graph.edges.source.tolist(), graph.side.tolist(), strict=True)) == sides


def test_ids_are_numbers_texts_or_both():
    builder = GraphBuilder()
    builder.nodes("wi", ["a", "b"], 2, ids=["n1", 7])
    builder.nodes("op", "+")
    graph = builder.build()
    assert graph.ids_of([0, 1, 2]) == ["n1", 7, 2]
    assert (graph.with_id("n1"), graph.with_id("7"), graph.with_id(7), graph.with_id("0")) == (0, 1, 1, None)
    plain = GraphBuilder()
    plain.nodes("wi", ["a", "b"], 2, ids=[0, 1])
    assert plain.build().ids is None


def test_empty_graph():
    graph = GraphBuilder().build()
    assert (graph.node_count, graph.edge_count, dict(graph.values)) == (0, 0, {})


def test_edges_of_missing_nodes_are_refused():
    builder = GraphBuilder()
    builder.nodes("op", "+")
    builder.edges(0, 1)
    with pytest.raises(IndexError, match="there is no node 1"):
        builder.build()
