"""What a deletion reports as kept, removed or recomputed is what a new run gives; all else is ``unknown``."""

from __future__ import annotations

import random
from collections import Counter

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


@settings(max_examples=200, deadline=None)
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
