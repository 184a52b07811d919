"""What a deletion reports as kept, removed or recomputed is what a new run gives; all else is ``unknown``."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pytest
from depth import examples
from drawn_graphs import Drawing, bodies, graph_of, plain
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import graphs as reference

from govtool.workflow.deletion import delete


def with_recorded_values(body):
    """The graph with the values that a run gives, as a recorder leaves them."""
    _, values = reference.evaluate(plain(body))
    for node in body["nodes"]:
        if node["kind"] == "v" and node["label"] not in ("⊗", "value"):
            node["value"] = values[node["id"]]
    return body


def below_empty_aggregates(graph, removed):
    """Nodes below aggregates that lost all terms: Def. 4.2 removes them, and a run may have a row with 0 or NULL."""
    empty = {node for node in removed if graph.nodes[node]["label"] in ("COUNT", "SUM", "MIN")}
    return set().union(*(reference.closure(graph, node, backward=False) for node in empty))


def outcome(body, deleted):
    """Counts of what was reported, after comparing it with a new run."""
    graph, plain_graph = graph_of(body), plain(body)
    found = delete(graph, [graph.with_id(each) for each in deleted])
    removed, unknown = set(graph.ids_of(found.removed)), set(graph.ids_of(found.unknown))
    recomputed = {graph.id_of(node): value for node, value in found.recomputed.items()}
    times, values = reference.evaluate(plain_graph)
    times_then, values_then = reference.evaluate(plain_graph, frozenset(deleted))
    counts: Counter[str] = Counter()
    over_nothing = below_empty_aggregates(plain_graph, removed - set(deleted))
    for node, body_ in plain_graph.nodes.items():
        if node in unknown:
            assert node not in removed
            counts["unknown"] += 1
        elif body_["kind"] == "p":
            if times[node]:
                fits = bool(times_then[node]) == (node not in removed) or (node in removed and node in over_nothing)
                assert fits, f"{node} {body_['label']}"
            elif node not in removed and times_then[node]:
                assert found.gains_possible
            counts["removed" if node in removed else "kept"] += 1
        elif node not in removed and body_["label"] != "⊗":
            assert recomputed.get(node, values[node]) == values_then[node], f"{node} {body_['label']}"
            assert (node in recomputed) == (values[node] != values_then[node])
            counts["recomputed" if node in recomputed else "kept"] += 1
    assert found.left_nodes == len(plain_graph.nodes) - len(removed)
    assert found.left_edges == sum(s not in removed and t not in removed for s, t, _ in plain_graph.edges)
    return counts


@settings(max_examples=examples(200), deadline=None)
@given(bodies, st.integers(0, 1 << 30))
def test_nothing_that_is_reported_is_contradicted_by_a_new_run(body, seed):
    body = with_recorded_values(body)
    tokens = [node["id"] for node in body["nodes"] if node["type"] in ("wi", "st")]
    if tokens:
        pick = random.Random(seed)
        outcome(body, pick.sample(tokens, min(len(tokens), pick.randint(1, 3))))


def test_nulls_where_nothing_is_known_change_nothing():
    body = with_recorded_values(Drawing(7, 9).body())
    tokens = [node["id"] for node in body["nodes"] if node["type"] in ("wi", "st")]
    bare = {**body, "nodes": [{"value": None, "bb": None, "module": None, "inv": None, **n} for n in body["nodes"]]}
    for node in bare["nodes"]:
        if node["label"] in ("SUM", "COUNT", "MIN"):
            node["value"] = None
    assert all(outcome(bare, [token]) == outcome(body, [token]) for token in tokens)


def test_certain_answers_are_the_rule():
    counts: Counter[str] = Counter()
    for seed in range(60):
        body = with_recorded_values(Drawing(seed, 9).body())
        token = next(node["id"] for node in body["nodes"] if node["type"] in ("wi", "st"))
        counts += outcome(body, [token])
    assert counts["removed"] > 100
    assert counts["recomputed"] > 5
    assert counts["unknown"] < sum(counts.values()) / 10


def aggregate(label, values, value):
    """A graph of one aggregate over decimals, each of a record of its own."""
    nodes = [{"id": "s", "kind": "v", "type": "val", "label": label, "value": value, "value_type": "decimal"}]
    edges = []
    for number, each in enumerate(values):
        nodes += [
            {"id": f"r{number}", "kind": "p", "type": "st", "label": f"A:{number}"},
            {"id": f"c{number}", "kind": "v", "type": "val", "label": "const", "value": each, "value_type": "decimal"},
            {"id": f"t{number}", "kind": "v", "type": "val", "label": "⊗"},
        ]
        edges += [[f"r{number}", f"t{number}"], [f"c{number}", f"t{number}"], [f"t{number}", "s"]]
    return graph_of({"nodes": nodes, "edges": edges})


@pytest.mark.parametrize(
    ("label", "values", "value", "expected"),
    [
        ("MAX", ("1e999999999", "1", "2"), "1e999999999", {}),
        ("MAX", ("1", "2", "1e999999999"), "1e999999999", {"s": Decimal(2)}),
        ("MIN", ("1e-999999999", "1", "2"), "1e-999999999", {}),
        ("SUM", ("1e30", "0.01", "2"), f"1{'0' * 29}2.01", {"s": Decimal(f"1{'0' * 30}.01")}),
        ("SUM", ("1e999999999", "1", "2"), "1e999999999", None),
        ("MAX", ("sNaN", "1", "2"), "2", None),
    ],
)
def test_decimals_of_any_exponent_are_compared_and_added_exactly_or_not_at_all(label, values, value, expected):
    graph = aggregate(label, values, value)
    found = delete(graph, [graph.with_id("r2")])
    if expected is None:
        assert graph.ids_of(found.unknown) == ["s"]
    else:
        assert {graph.id_of(node): value for node, value in found.recomputed.items()} == expected
        assert not found.unknown


@pytest.mark.parametrize("value", ["NaN", "sNaN", "1e999999999"])
def test_a_comparison_with_a_changed_value_and_any_decimal_is_unknown(value):
    body = {
        "nodes": [
            {"id": "r0", "kind": "p", "type": "st", "label": "A:0"},
            {"id": "r1", "kind": "p", "type": "st", "label": "A:1"},
            {"id": "c", "kind": "v", "type": "val", "label": "const", "value": value, "value_type": "decimal"},
            {"id": "t0", "kind": "v", "type": "val", "label": "⊗"},
            {"id": "t1", "kind": "v", "type": "val", "label": "⊗"},
            {"id": "k", "kind": "v", "type": "val", "label": "const", "value": 1},
            {"id": "s", "kind": "v", "type": "val", "label": "SUM", "value": 2},
            {"id": "g", "kind": "p", "type": "op", "label": "[<]"},
        ],
        "edges": [
            *(["r0", "t0"], ["k", "t0"], ["r1", "t1"], ["k", "t1"], ["t0", "s"], ["t1", "s"]),
            *(["s", "g", "left"], ["c", "g", "right"]),
        ],
    }
    graph = graph_of(body)
    found = delete(graph, [graph.with_id("r1")])
    assert {graph.id_of(node): each for node, each in found.recomputed.items()} == {"s": 1}
    assert graph.ids_of(found.unknown) == ["g"]
