"""Grounded support and deletion on random and/or graphs with circles, against the definition."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from array_samples import Question, graphs, has_proof, questions
from depth import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from govtool.arrays import layout, support_large
from govtool.arrays.graph import ArrayGraph, graph_of
from govtool.arrays.needs import ALTERNATIVE, BASE, JOINT, needs_of
from govtool.arrays.support import UNSUPPORTED, losses, support
from govtool.arrays.support_large import NEVER, Support
from govtool.errors import IntegrityError

STRATEGIES = {"python": (10**6, 48), "numpy": (-1, 0), "numpy, thin frontiers": (-1, 48)}


@pytest.fixture(params=STRATEGIES)
def small(request, monkeypatch) -> int:
    """Each strategy in turn: edges up to which plain Python is taken."""
    edges, thin = STRATEGIES[request.param]
    monkeypatch.setattr(support_large, "_THIN", thin)
    return edges


def lost(question: Question, small: int):
    return losses(
        question.sample.graph,
        question.needs,
        question.deleted,
        idle=question.idle,
        within=question.within,
        small=small,
    )


def by_definition(question: Question) -> set[int]:
    """Nodes with a proof before and none after; outside of the region what had a proof keeps it."""
    nodes = range(question.sample.count)
    before = {v for v in nodes if has_proof(question, v, frozenset())}
    sure = frozenset(v for v in before if question.within is not None and not question.within[v])
    gone = frozenset(question.deleted) - sure
    return {v for v in before if not has_proof(question, v, gone, sure)}


def small_enough(question: Question) -> bool:
    """Whether trying all proofs ends soon."""
    return sum(len(set(question.inputs(v))) for v in range(question.sample.count)) <= 18


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_deletion_takes_what_has_no_proof_any_longer(strategy):
    edges, thin = STRATEGIES[strategy]

    @settings(deadline=None, max_examples=examples(400))
    @given(questions())
    def holds(question: Question) -> None:
        assume(small_enough(question))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(support_large, "_THIN", thin)
            found = lost(question, edges)
        assert len(found.nodes) == len(set(found.nodes)) == len(found)
        assert set(found.nodes) == by_definition(question)

    holds()


@settings(deadline=None, max_examples=examples(400))
@given(questions(), st.sampled_from([-1, 10**6]), st.sampled_from([0, 48]))
def test_each_lost_node_comes_after_the_reason_for_its_loss(question, small, thin):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support_large, "_THIN", thin)
        found = lost(question, small)
    graph, known = question.sample.graph, set()
    for node, edge in zip(found.nodes, found.edges, strict=True):
        if edge < 0:
            assert node in question.deleted
        else:
            assert graph.target[edge] == node
            assert graph.source[edge] in known
            assert not (question.idle and question.idle[edge])
        known.add(node)


@settings(deadline=None, max_examples=examples(200))
@given(questions())
def test_ranks_are_an_order_of_derivation_and_slack_is_what_can_be_lost(question):
    assume(small_enough(question))
    graph, needs = question.sample.graph, question.needs
    whole = Support.of(graph, needs, question.idle)
    listed = support(graph, needs, (), question.idle)
    for node in range(graph.nodes):
        proved = has_proof(question, node, frozenset())
        assert (listed[node] != UNSUPPORTED) == proved == (whole.rank[node] != NEVER)
        if proved:
            assert sum(0 <= listed[v] < listed[node] for v in question.inputs(node)) >= needs[node]
            lower = sum(whole.rank[v] < whole.rank[node] for v in question.inputs(node))
            assert whole.slack[node] == lower - needs[node] >= 0


@settings(deadline=None, max_examples=examples(200))
@given(questions(), st.data())
def test_deleting_more_takes_more_and_deleting_again_nothing(question, data):
    whole = Support.of(question.sample.graph, question.needs, question.idle)
    more = data.draw(st.sets(st.integers(0, max(0, question.sample.count - 1)))) if question.sample.count else set()
    first = set(whole.delete(question.deleted).nodes)
    assert first <= set(whole.delete([*question.deleted, *more]).nodes)
    assert set(whole.delete(first).nodes) == first


@settings(deadline=None, max_examples=examples(200))
@given(questions())
def test_without_circles_it_is_the_propagation_of_lipstick(question):
    """Def. 4.2: a node with inputs goes if all of them went, or, labelled joint, one; sources go only if deleted."""
    pairs = sorted((s, t) for s, t in question.sample.pairs if s < t)
    graph, _ = graph_of([s for s, _ in pairs], [t for _, t in pairs], question.sample.count)
    rules = [
        BASE if not graph.in_edges(v) else JOINT if question.needs[v] % 2 else ALTERNATIVE for v in range(graph.nodes)
    ]
    gone = set(question.deleted)
    for v in range(graph.nodes):  # in topological order
        inputs = [s for s, t in pairs if t == v]
        if inputs and (any if rules[v] == JOINT else all)(s in gone for s in inputs):
            gone.add(v)
    for small in (-1, 10**6):
        assert set(losses(graph, needs_of(graph, rules), question.deleted, small=small).nodes) == gone


@settings(deadline=None, max_examples=examples(200))
@given(graphs(), st.data())
def test_with_alternatives_only_support_is_reachability(sample, data):
    nodes = list(range(sample.count))
    bases = data.draw(st.sets(st.sampled_from(nodes))) if nodes else set()
    deleted = data.draw(st.sets(st.sampled_from(nodes))) if nodes else set()
    other = nx.MultiDiGraph(sample.pairs)
    other.add_nodes_from(nodes)

    def reached(graph, starts):
        return {v for base in starts for v in (base, *nx.descendants(graph, base))}

    rules = [BASE if v in bases else ALTERNATIVE for v in nodes]
    left = other.subgraph(set(nodes) - deleted)
    expected = reached(other, bases) - reached(left, bases - deleted)
    for small in (-1, 10**6):
        needs = needs_of(sample.graph, rules)
        assert set(losses(sample.graph, needs, deleted, small=small).nodes) == expected


def chain(*names: str) -> tuple[ArrayGraph, dict[str, int]]:
    """A graph of edges ``a b``."""
    pairs = [tuple(name.split()) for name in names]
    number = {v: i for i, v in enumerate(dict.fromkeys(v for pair in pairs for v in pair))}
    return graph_of([number[a] for a, _ in pairs], [number[b] for _, b in pairs], len(number))[0], number


@pytest.mark.parametrize(
    ("edges", "joint", "deleted", "gone"),
    [
        (["s a", "a b", "b a"], "", "s", "s a b"),  # a circle does not hold itself up
        (["s a", "a b", "b a", "t b"], "", "s", "s"),  # fed from elsewhere it lives
        (["s a", "a b", "b a", "t b"], "", "s t", "s t a b"),
        (["s a", "t a"], "a", "s", "s a"),
        (["s a", "t a"], "", "s", "s"),
        (["s a", "a b", "c b", "b c", "t c"], "b", "t", "t c b"),  # c and b are left to wait for one another
        (["s a", "a b", "b c", "c a", "t c", "c d", "u d"], "d", "s", "s"),
        (["s a", "a b", "b c", "c a", "t c", "c d", "u d"], "d", "s t", "s t a b c d"),
    ],
)
def test_examples(edges, joint, deleted, gone, small):
    graph, number = chain(*edges)
    rules = [JOINT if v in joint.split() else ALTERNATIVE if graph.in_edges(i) else BASE for v, i in number.items()]
    found = losses(graph, needs_of(graph, rules), [number[v] for v in deleted.split()], small=small)
    assert set(found.nodes) == {number[v] for v in gone.split()}


def test_a_long_chain_and_a_wide_fan(small):
    steps = [f"n{i} n{i + 1}" for i in range(5000)]
    graph, number = chain("s n0", *steps, *(f"n5000 w{i}" for i in range(3000)), "t w7", "t u")
    rules = [ALTERNATIVE if graph.in_edges(v) else BASE for v in range(graph.nodes)]
    found = losses(graph, needs_of(graph, rules), [number["s"]], small=small)
    assert set(number.values()) - set(found.nodes) == {number["t"], number["u"], number["w7"]}
    assert [int(v) for v in found.nodes[:3]] == [number["s"], number["n0"], number["n1"]]


def test_support_is_kept_in_a_file_beside_its_graph(tmp_path):
    pairs = [*pairwise(range(50)), (7, 3), (60, 20), (61, 9)]
    graph, _ = graph_of(np.array([s for s, _ in pairs]), np.array([t for _, t in pairs]), 62)
    idle = np.zeros(graph.edges, bool)
    idle[-1] = True
    rules = [ALTERNATIVE if graph.in_edges(v) else BASE for v in range(graph.nodes)]
    made = Support.of(graph, needs_of(graph, rules, idle), idle)
    both = graph.arrays() | made.arrays()
    arrays = {name: ("BHIQ"[values.itemsize.bit_length() - 1], values) for name, values in both.items()}
    file = tmp_path / "graph"
    file.write_bytes(b"".join(bytes(memoryview(piece)) for piece in layout.pack(arrays, made.meta(), 9)))
    views, meta = layout.view(np.memmap(file, np.uint8, "r"), 9)
    mapped = Support.of_arrays(ArrayGraph.of_arrays(views), views, meta)
    for deleted in ([0], [0, 60], [5, 61], []):
        first, second = made.delete(deleted), mapped.delete(deleted)
        assert list(first.nodes) == list(second.nodes)
        assert list(first.edges) == list(second.edges)
    assert mapped.has(np.array([0, 60])).all()
    with pytest.raises(IntegrityError):
        Support.of_arrays(ArrayGraph.of_arrays(views), {**views, "support_rank": views["support_rank"][:-1]}, meta)
    with pytest.raises(IntegrityError):
        Support.of_arrays(ArrayGraph.of_arrays(views), {k: v for k, v in views.items() if k != "support_needs"}, meta)


def test_a_deletion_may_be_given_back_through_a_circle():
    """``c`` is derived from ``s`` first; without it there is still the way through the circle's other entry."""
    graph, number = chain("s c", "c d", "d e", "e c", "t e", "e f", "c f")
    rules = [JOINT if v == "f" else ALTERNATIVE if graph.in_edges(i) else BASE for v, i in number.items()]
    made = Support.of(graph, needs_of(graph, rules))
    assert made.has_later
    assert set(made.delete([number["s"]]).nodes) == {number["s"]}
    assert set(made.delete([number["s"], number["t"]]).nodes) == set(number.values())


@pytest.mark.parametrize("node", [-1, 3, 10**12])
def test_a_node_that_there_is_not_is_refused_alike(small, node):
    """A negative number would count from the end of a numpy array, and delete another node."""
    graph, _ = graph_of([0, 1], [1, 2], 3, small)
    with pytest.raises(IndexError, match="there is no node"):
        losses(graph, [0, 1, 1], [node], small=small)
    for edge in (([0, node], [1, 1]), ([0, 1], [1, node])):
        with pytest.raises(IndexError, match="there is no node"):
            graph_of(*edge, 3, small)
    empty, _ = graph_of([], [], 0, small)
    assert list(losses(empty, [], [], small=small).nodes) == []


@pytest.mark.parametrize("count", [253, 254, 255, 256, 700])
@pytest.mark.parametrize("thin", [0, 48, 10**6])
def test_nodes_of_many_inputs_fall_with_the_last(count, thin, monkeypatch):
    """Alternatives that go in one round and in two: half of them behind a node of their own."""
    monkeypatch.setattr(support_large, "_THIN", thin)
    roots, late, top = range(count), range(count, count + count // 2), count + count // 2
    links = [(node, top) for node in roots if node >= len(late)]
    links += [(node, count + node) for node in range(len(late))] + [(node, top) for node in late]
    edges, _ = graph_of(*(np.array(ends) for ends in zip(*links, strict=True)), top + 1, 0)
    whole = Support.of(edges, needs_of(edges, [BASE] * count + [ALTERNATIVE] * (top + 1 - count)))
    assert top in whole.delete(list(roots)).nodes
    for spared in (0, count - 1):
        assert top not in whole.delete([node for node in roots if node != spared]).nodes
