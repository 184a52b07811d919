"""Adjacency, reachability, subgraphs and ranks on random graphs, against networkx."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from array_samples import Sample, graphs
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.arrays.csr import Csr, spread
from govtool.arrays.graph import ArrayGraph, graph_of
from govtool.arrays.ranks import ranks
from govtool.arrays.walks import reach
from govtool.arrays.walks_large import induced, marked
from govtool.errors import IntegrityError


def oracle(sample: Sample) -> nx.MultiDiGraph:
    other = nx.MultiDiGraph(sample.pairs)
    other.add_nodes_from(range(sample.count))
    return other


@given(graphs())
def test_a_graph_has_the_edges_that_it_was_made_of(sample):
    graph, other = sample.graph, oracle(sample)
    assert (graph.nodes, graph.edges) == (other.number_of_nodes(), other.number_of_edges())
    assert list(zip(graph.source, graph.target, strict=True)) == sorted(sample.pairs)
    for node in range(graph.nodes):
        assert {int(graph.source[edge]) for edge in graph.out_edges(node)} <= {node}
        assert sorted(int(graph.target[edge]) for edge in graph.out_edges(node)) == sorted(
            target for _, target in other.out_edges(node)
        )
        assert [int(edge) for edge in graph.in_edges(node)] == sorted(map(int, graph.in_edges(node)))
        assert sorted(int(graph.source[edge]) for edge in graph.in_edges(node)) == sorted(
            source for source, _ in other.in_edges(node)
        )
    graph.check()
    ArrayGraph.of_arrays(graph.arrays("g."), "g.").check()


@given(graphs(), st.sampled_from([-1, 10**6]))
def test_the_order_of_edges_brings_their_other_arrays_along(sample, small):
    weights = [f"{s}>{t}#{i}" for i, (s, t) in enumerate(sample.pairs)]
    graph, order = graph_of([s for s, _ in sample.pairs], [t for _, t in sample.pairs], sample.count, small)
    moved = [weights[i] for i in order]
    ends = zip(graph.source, graph.target, strict=True)
    assert [w.split("#")[0] for w in moved] == [f"{s}>{t}" for s, t in ends]


@settings(max_examples=examples(300))
@given(graphs(), st.data())
def test_reach_is_what_networkx_finds(sample, data):
    nodes = list(range(sample.count))
    seeds = data.draw(st.sets(st.sampled_from(nodes), max_size=3)) if nodes else set()
    shut = data.draw(st.sets(st.sampled_from(nodes), max_size=3)) if nodes else set()
    backward = data.draw(st.booleans())
    depth = data.draw(st.none() | st.integers(0, 4))
    other = oracle(sample)
    other = other.reverse() if backward else other
    other.remove_edges_from(
        [(s, t) for s, t in set(other.edges()) if t in shut for _ in range(other.number_of_edges(s, t))]
    )
    expected: dict[int, int] = {}
    for seed in seeds:
        for node, hops in nx.single_source_shortest_path_length(other, seed, depth).items():
            expected[node] = min(hops, expected.get(node, hops))
    found = {}
    for small in (-1, 0, 3, 10**6):
        one = reach(sample.graph, seeds, backward=backward, depth=depth, closed=[v in shut for v in nodes], small=small)
        assert dict(zip(one.nodes, one.hops, strict=True)) == expected
        assert list(one.nodes) == sorted(one.nodes, key=lambda v: (expected[v], v))
        assert len(one) == len(expected)
        for node, edge in zip(one.nodes, one.edges, strict=True):
            ends = (sample.graph.source, sample.graph.target)
            start, end = ends[::-1] if backward else ends
            assert (edge == -1) == (node in seeds)
            assert edge == -1 or (end[edge] == node and expected[int(start[edge])] == expected[node] - 1)
        found[small] = (list(one.nodes), list(one.hops), list(one.edges))
    assert len({repr(answer) for answer in found.values()}) == 1, "both strategies answer alike"


@settings(max_examples=examples(200))
@given(graphs(), st.data())
def test_a_subgraph_has_all_edges_between_its_nodes(sample, data):
    nodes = data.draw(st.sets(st.sampled_from(range(sample.count)))) if sample.count else set()
    part = induced(sample.graph, nodes)
    kept = part.nodes.tolist()
    assert kept == sorted(nodes)
    named = [(kept[s], kept[t]) for s, t in zip(part.graph.source, part.graph.target, strict=True)]
    assert named == sorted((s, t) for s, t in oracle(sample).subgraph(nodes).edges())
    whole = list(zip(sample.graph.source, sample.graph.target, strict=True))
    assert named == [whole[edge] for edge in part.edges.tolist()]


@settings(max_examples=examples(200))
@given(graphs())
def test_ranks_are_the_longest_ways_and_none_behind_circles(sample):
    other = oracle(sample)
    circles = {v for part in nx.strongly_connected_components(other) for v in part if len(part) > 1}
    circles |= {v for v, _ in nx.selfloop_edges(other)}
    behind = circles | {w for v in circles for w in nx.descendants(other, v)}
    rest = other.subgraph(set(other) - behind)
    expected = dict.fromkeys(behind, -1)
    for level, generation in enumerate(nx.topological_generations(rest)):
        expected |= dict.fromkeys(generation, level)
    source = np.array([s for s, _ in sample.pairs], np.int64)
    target = np.array([t for _, t in sample.pairs], np.int64)
    assert dict(enumerate(ranks(source, target, sample.count).tolist())) == expected


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5))))
def test_spread_is_the_ranges_one_after_the_other(ranges):
    start = np.array([low for low, _ in ranges], np.int64)
    items, owner = spread(start, start + np.array([size for _, size in ranges], np.int64))
    assert items.tolist() == [i for low, size in ranges for i in range(low, low + size)]
    assert owner.tolist() == [at for at, (_, size) in enumerate(ranges) for _ in range(size)]


@given(graphs())
def test_pairs_by_their_first_keep_their_order(sample):
    first = np.array([s for s, _ in sample.pairs], np.int64)
    second = np.array([t for _, t in sample.pairs], np.int64)
    csr = Csr.of_pairs(first, second, sample.count)
    assert csr.nodes == sample.count
    for node in range(sample.count):
        assert csr.after(np.array([node])).tolist() == [t for s, t in sample.pairs if s == node]


@pytest.mark.parametrize("damage", ["missing", "short", "target", "offsets", "none"])
def test_arrays_that_do_not_fit_together_are_refused(damage):
    graph, _ = graph_of([0, 1, 1], [1, 2, 0], 3)
    arrays = graph.arrays()
    arrays |= {
        "missing": {},
        "short": {"backward": arrays["backward"][:-1]},
        "target": {"target": arrays["target"][:-1]},
        "offsets": {"forward": [0, 1, 3, 4]},
        "none": {"forward": [], "backward": []},
    }[damage]
    if damage == "missing":
        del arrays["source"]
    with pytest.raises(IntegrityError):
        ArrayGraph.of_arrays(arrays)


def test_a_question_about_a_small_graph_imports_no_numpy():
    code = """
import sys
from govtool.arrays import layout, paged, pages, suffix
from govtool.arrays.graph import graph_of
from govtool.arrays.needs import ALTERNATIVE, BASE, needs_of
from govtool.arrays.support import losses
from govtool.arrays.walks import reach
import govtool.graph.walks.walk, govtool.query.changes.support, govtool.query.changes.impact
graph, _ = graph_of([0, 1, 2], [1, 2, 1], 3)
assert list(reach(graph, [0]).nodes) == [0, 1, 2]
assert set(losses(graph, needs_of(graph, [BASE, ALTERNATIVE, ALTERNATIVE]), [0]).nodes) == {0, 1, 2}
print("numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@given(graphs(), st.data(), st.booleans())
def test_marks_are_what_a_walk_reaches(sample, data, backward):
    nodes = st.integers(0, max(0, sample.count - 1))
    seeds = data.draw(st.lists(nodes, max_size=3, unique=True)) if sample.count else []
    closed = data.draw(st.lists(st.booleans(), min_size=sample.count, max_size=sample.count))
    found = marked(sample.graph, np.array(seeds, np.int64), closed=np.array(closed, bool), backward=backward)
    expected = reach(sample.graph, seeds, closed=closed, backward=backward)
    assert np.flatnonzero(found).tolist() == sorted(expected.nodes)
