"""Graphs as plain arrays: what deletion, reachability and building cost, networkx beside them.

A third of the nodes of a generated and/or graph are base records; of the others some need both of their two inputs, the
others one of them. An input is a base record or a node somewhat below. With circles, every hundredth node also has an
input from somewhat above, so that nodes hold one another up in large components.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

from bench.page import table
from govtool.arrays.graph import ArrayGraph, graph_of
from govtool.arrays.needs import ALTERNATIVE, BASE, JOINT, needs_of
from govtool.arrays.support_large import Support
from govtool.arrays.walks import reach

SHAPES = (("half joint", False, 0.5), ("9 of 10 joint", False, 0.9), ("half joint, circles", True, 0.5))
"""Name, whether there are circles, share of the nodes that need both inputs: the more, the further a loss spreads."""
ROUNDS = 7
NETWORKX_NODES = 1_000_000
"""Nodes up to which networkx is given the same graph; 10M take it more memory than most machines have."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An and/or graph."""

    graph: ArrayGraph
    rules: Any
    bases: int
    has_circles: bool
    built: float
    """Seconds of CPU from edges to the arrays both ways."""


def generate(nodes: int, *, circles: bool, joint: float, seed: int = 7) -> Sample:
    """Make an and/or graph of about four thirds as many edges as nodes."""
    rng = np.random.default_rng(seed)
    bases = nodes // 3
    derived = np.arange(bases, nodes)
    near = np.maximum(0, derived - rng.integers(1, max(2, nodes // 8), len(derived)))
    second = np.where(rng.random(len(derived)) < 0.5, rng.integers(0, bases, len(derived)), near)
    source = [rng.integers(0, bases, len(derived)), second]
    target = [derived, derived]
    if circles:
        some = derived[rng.random(len(derived)) < 0.01]
        source.append(np.minimum(nodes - 1, some + rng.integers(1, max(2, nodes // 8), len(some))))
        target.append(some)
    began = time.process_time()
    graph, _ = graph_of(np.concatenate(source), np.concatenate(target), nodes, 0)  # type: ignore[arg-type]
    built = time.process_time() - began
    rules = np.where(np.arange(nodes) < bases, BASE, np.where(rng.random(nodes) < joint, JOINT, ALTERNATIVE))
    return Sample(graph, rules.astype(np.uint8), bases, circles, built)


def section(sizes: Iterable[int]) -> str:
    """Measure, and write the section of docs/benchmarks.md."""
    deletions, walks, builds = [], [], []
    for nodes in sizes:
        for kind, circles, joint in SHAPES:
            sample = generate(nodes, circles=circles, joint=joint)
            whole, took = _cpu(partial(_support, sample))
            builds.append([f"{nodes:,}", kind, f"{sample.graph.edges:,}", f"{sample.built:.2f} s", f"{took:.2f} s"])
            other = _networkx(sample) if nodes <= NETWORKX_NODES else None
            deletions += _deletions(sample, whole, other, kind)
            if kind == SHAPES[0][0]:
                walks += _walks(sample, other)
    return _TEXT.format(
        deletions=table(["nodes", "graph", "deleted", "lost", "CPU", "plain Python", "ratio"], deletions),
        walks=table(["nodes", "walk", "reached", "CPU", "networkx", "ratio"], walks),
        builds=table(["nodes", "graph", "edges", "both ways", "support"], builds),
    )


_TEXT = """## Graphs as arrays

Generated and/or graphs (`bench/arrays.py`), CPU time, medians. Deletion takes away random base records and all that
has no derivation without them; ranks and slack are worked out before, once a graph, as a file has them. Beside it a
plain Python propagation by counting over the adjacency of networkx, which is only right without circles and starts
from counters that are ready, too. Goal: 1% of the base records of 10M nodes in 50 ms.

{deletions}

What a deletion costs grows with what is lost; only the fresh memory for its marks grows with the graph. Reachability
from one node and from 100, `networkx.descendants` beside it:

{walks}

Once a graph:

{builds}
"""


def _deletions(sample: Sample, whole: Support, other: nx.DiGraph[int] | None, kind: str) -> list[list[object]]:
    rng = np.random.default_rng(3)
    rows: list[list[object]] = []
    for share in (0.0001, 0.001, 0.01):
        deleted = rng.choice(sample.bases, max(1, round(sample.bases * share)), replace=False)
        cost, found = _median(partial(whole.delete, deleted))
        row: list[object] = [f"{sample.graph.nodes:,}", kind, f"{len(deleted):,}", f"{len(found):,}", _ms(cost)]
        if other is None or sample.has_circles:
            rows.append([*row, "", ""])
            continue
        waiting = dict(enumerate(np.where(sample.rules == JOINT, 1, 2).tolist()))
        slow, plain = _median(partial(_count, other, waiting, deleted.tolist()), 3)
        if plain != set(found.nodes):
            raise AssertionError("the propagation by counting answers otherwise")
        rows.append([*row, _ms(slow), f"**{slow / cost:.1f}**"])
    return rows


def _count(graph: nx.DiGraph[int], left: dict[int, int], deleted: list[int]) -> set[int]:
    """The textbook propagation: a node is lost when it has lost as many inputs as its rule allows."""
    lost, hits, queue = set(deleted), dict[int, int](), deque(deleted)
    while queue:
        for target, data in graph.adj[queue.popleft()].items():
            hits[target] = hits.get(target, 0) + data.get("n", 1)
            if target not in lost and hits[target] >= left[target]:
                lost.add(target)
                queue.append(target)
    return lost


def _walks(sample: Sample, other: nx.DiGraph[int] | None) -> list[list[object]]:
    rng = np.random.default_rng(5)
    rows: list[list[object]] = []
    for count in (1, 100):
        seeds = rng.choice(sample.bases, count, replace=False).tolist()
        cost, found = _median(partial(reach, sample.graph, seeds))
        row: list[object] = [f"{sample.graph.nodes:,}", f"from {count}", f"{len(found):,}", _ms(cost)]
        if other is None:
            rows.append([*row, "", ""])
            continue
        slow, plain = _median(partial(_descendants, other, seeds), 3)
        if plain != set(found.nodes):
            raise AssertionError("networkx reaches others")
        rows.append([*row, _ms(slow), f"**{slow / cost:.1f}**"])
    return rows


def _descendants(graph: nx.DiGraph[int], seeds: list[int]) -> set[int]:
    return set(seeds).union(*(nx.descendants(graph, seed) for seed in seeds))


def _support(sample: Sample) -> Support:
    return Support.of(sample.graph, needs_of(sample.graph, sample.rules))


def _networkx(sample: Sample) -> nx.DiGraph[int]:
    """The same graph; of parallel edges how many there are."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(sample.graph.nodes))
    pairs = np.stack([sample.graph.source, sample.graph.target]).astype(np.int64)
    ends, times = np.unique(pairs, axis=1, return_counts=True)
    graph.add_edges_from((int(s), int(t)) for s, t in ends.T)
    for s, t in ends.T[times > 1].tolist():
        graph.edges[s, t]["n"] = 2
    return graph


def _cpu(run: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    found = run()
    return found, time.process_time() - began


def _median(run: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, Any]:
    """The median CPU time, and the outcome; a first run warms up."""
    found = run()
    return statistics.median(_cpu(run)[1] for _ in range(rounds)), found


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
