"""The bid phase of the paper's Example 2.1 with the tables of section 2.3, and what Examples 4.1 to 4.5 say of it.

Cars C1 (Accord), C2 and C3 (Civic); the request of P1 for a Civic; nothing was sold. ``FOREACH`` draws a ``+`` for each
distinct result, as the paper's figures do. The graph is written by hand: fixtures/graphs/dealership.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from govtool.api.workflow_graph import WorkflowGraph, provenance_graph
from govtool.errors import UnknownNameError, UsageError
from govtool.workflow.formats.read_json import read_json
from govtool.workflow.zoom import GraphView

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def graph():
    return provenance_graph(ROOT / "fixtures" / "graphs" / "dealership.json")


def ids(nodes):
    return {node.id for node in nodes}


def test_zooming_out_leaves_inputs_outputs_and_a_node_an_invocation(graph):
    view = graph.zoom_out("M_dealer1")
    answer = view.difference(graph)
    assert set(answer.added_nodes) == {"zoom:M_dealer1#1"}
    assert set(answer.added_edges) == {
        ("i", "zoom:M_dealer1#1"),
        ("zoom:M_dealer1#1", "Bid"),
        ("zoom:M_dealer1#1", "Amount"),
    }
    left = {node for node, _ in view.to_networkx().nodes(data=True)}
    assert left == {"I1", "m", "i", "Bid", "Amount", "zoom:M_dealer1#1"}
    assert view.zoom_in("M_dealer1").to_networkx().edges == graph.to_networkx().edges


def test_deleting_a_car_counts_again_and_leaves_the_bid_to_a_new_run(graph):
    answer = graph.delete("Cars:C2")
    assert ids(answer.removed) == {"C2", "s2", "Inventory2", "t2"}
    assert [(node.id, before, after) for node, before, after in answer.recomputed] == [("NumAvail", 2, 1)]
    assert ids(answer.unknown) == {"CalcBid", "Amount"}  # the graph still shows 20000, a run would give 20200


def test_deleting_the_request_takes_the_bid_and_leaves_the_state(graph):
    removed = ids(graph.delete("Requests:B1").removed)
    assert {"Bid", "InventoryBids", "NumAvail", "CalcBid", "Amount"} <= removed
    assert not removed & {"C1", "C2", "C3", "s1", "s2", "s3", "m"}


def test_the_bid_depends_on_the_request_and_its_amount_on_both_cars_together(graph):
    assert graph.depends("Bid", "Requests:B1").depends is True
    assert graph.depends("Bid", "Cars:C2").depends is False
    # COGROUP: the request alone makes the group. Its amount hangs on both cars together, and on neither alone.
    assert graph.depends("Bid", ["Cars:C2", "Cars:C3"]).depends is False
    assert graph.depends("Amount", ["Cars:C2", "Cars:C3"]).depends is True
    assert graph.depends("Amount", "Cars:C2").depends == "unknown"
    answer = graph.depends("Bid", "Cars:C2")
    assert ids(answer.necessary) == {"I1"}
    assert ids(answer.lineage) == {"I1", "C2", "C3"}


def test_a_car_of_another_model_reaches_nothing(graph):
    assert ids(graph.delete("Cars:C1").removed) == {"C1", "s1"}
    assert ids(graph.subgraph("Cars:C1").descendants) == {"s1"}


@pytest.mark.parametrize(
    ("ask", "code", "near"),
    [
        (lambda graph: graph.delete("Cars:C22"), "usage.unknown-token", "Cars:C2"),
        (lambda graph: graph.depends("Bid", "Car:C2"), "usage.unknown-token", "Cars:C2"),
        (lambda graph: graph.subgraph("Bidd"), "usage.unknown-node", "Bid"),
        (lambda graph: graph.subgraph(1), "usage.unknown-node", ""),
        (lambda graph: graph.depends(1, "Cars:C2"), "usage.unknown-node", ""),
        (lambda graph: graph.depends("Bid", [1]), "usage.unknown-token", ""),
        (lambda graph: graph.delete(1), "usage.unknown-token", ""),
        (lambda graph: graph.subgraph("Cars:C22"), "usage.unknown-node", "Cars:C2"),
        (lambda graph: graph.subgraph("M_daeler1#1"), "usage.unknown-node", "M_dealer1#1"),
        (lambda graph: graph.zoom_out("M_dealer"), "usage.unknown-module", "M_dealer1"),
    ],
)
def test_unknown_names_have_near_ones(graph, ask, code, near):
    with pytest.raises(UnknownNameError) as refused:
        ask(graph)
    assert refused.value.code == code
    assert not near or near in refused.value.nearest


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (
            lambda graph: graph.delete("zzz"),
            "records are, for example, Requests:B1, Cars:C1, Cars:C2; list them: govtool",
        ),
        (lambda graph: graph.subgraph("zzz"), "list them: govtool graph export"),
        (lambda graph: graph.zoom_out("zzz"), "its modules are M_dealer1"),
        (lambda graph: graph.zoom_in("M_dealer1"), "--zoomed M_dealer1"),
    ],
)
def test_names_that_are_like_none_have_a_hint_and_no_proposals(graph, ask, hint):
    with pytest.raises(UsageError) as refused:
        ask(graph)
    assert hint in refused.value.hint
    assert refused.value.nearest == ()


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda graph: graph.zoom_out("M_dealer1#1"), "usage.module-invocation"),
        (lambda graph: graph.zoom_in("M_dealer1"), "usage.not-zoomed"),
        (lambda graph: graph.delete(), "usage.arguments"),
        (lambda graph: graph.delete("Cars:C2", "Cars:C2"), "usage.token-gone"),
        (lambda graph: graph.delete("Cars:C2", "C2"), "usage.token-gone"),
        (lambda graph: graph.depends("Bid", []), "usage.arguments"),
    ],
)
def test_questions_that_make_no_sense_are_refused(graph, ask, code):
    with pytest.raises(UsageError) as refused:
        ask(graph)
    assert refused.value.code == code


def test_a_zoomed_file_is_not_asked_about_deletions(graph):
    lines = "\n".join(graph.zoom_out("M_dealer1").export("json"))
    zoomed = WorkflowGraph(GraphView(read_json(lines.encode(), "zoomed.json")), "zoomed.json")
    for ask in (
        lambda: zoomed.delete("Requests:B1"),
        lambda: zoomed.depends("Bid", "Requests:B1"),
        lambda: zoomed.delete("Cars:C2"),  # a record that the view hides
        lambda: zoomed.depends("NumAvail", "Cars:C2"),
    ):
        with pytest.raises(UsageError) as refused:
            ask()
        assert refused.value.code == "usage.zoomed-graph"
    with pytest.raises(UsageError, match="zoomed out in this graph already"):
        zoomed.zoom_out("M_dealer1")
    assert json.loads(lines)["nodes"]


def test_an_invocation_has_an_address(graph):
    descendants = ids(graph.subgraph("M_dealer1#1").descendants)
    assert {"i", "Bid"} <= descendants
    assert graph.subgraph("M_dealer1#1").node == "m"
    assert graph.depends("Bid", "M_dealer1#1").depends is True
    with pytest.raises(UnknownNameError) as caught:
        graph.subgraph("M_dealer1#2")
    assert caught.value.code == "usage.unknown-invocation"
    assert caught.value.nearest == ("M_dealer1#1",)
    for wrong in ("M_dealer9#1", "M_dealer1#", "M_dealer1#x"):
        with pytest.raises(UnknownNameError, match="no node of the graph"):
            graph.subgraph(wrong)
