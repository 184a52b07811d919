"""The order of a graph: every node after all that it is made of, as far as there are no circles.

Where nearly all of a graph is reached, going through it once in this order is much faster than following frontiers,
which reach a node once for every length of the ways to it. Datasets are put in order by the ``read`` edges between
their row sets (Kahn, "Topological sorting of large networks", 1962), which are few; the edges that do not keep to that
order are looked for, and their targets are left to the frontiers.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from govtool.graph.arrays import distinct
from govtool.graph.index import Index
from govtool.graph.ranks import ranks
from govtool.graph.walk_large import spread

Array = np.ndarray[Any, np.dtype[Any]]
PART = 1 << 17
"""Edges that are worked on at a time: what they take fits into a processor's cache, and needs no fresh memory."""


class Level(NamedTuple):
    """Some nodes, and the edges that enter them."""

    node: Array
    start: Array
    """Where the edges of each node begin."""
    edge: Array


class Order(NamedTuple):
    """A graph in order; nodes that nothing enters are on no level."""

    levels: list[Level]
    """Of nearly all nodes the sources are on earlier levels. Large levels come in parts."""
    late: Level
    """The nodes with a source that is not: circles, and what no ``read`` edge tells."""


def in_order(index: Index) -> Order:
    """Put the nodes of a graph in order."""
    a = index.arrays
    base, backward = (np.asarray(a[n]).astype(np.int64) for n in ("dataset_base", "backward"))
    back_edge = np.asarray(a["backward_edge"])
    rank = _ranks(index, base)
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.searchsorted(rank[by_rank], np.arange(int(rank.max(initial=0)) + 2))
    levels = []

    def level(nodes: Array, edges: Array) -> Level:
        count = backward[nodes + 1] - backward[nodes]
        some = count > 0
        return Level(nodes[some], np.cumsum(count[some]) - count[some], back_edge[edges])

    for low, high in itertools.pairwise(bounds.tolist()):
        datasets = np.sort(by_rank[low:high])
        first, last = backward[base[datasets]], backward[base[datasets + 1]]
        for start, end in _cuts(np.cumsum(last - first)):
            nodes, _ = spread(base[datasets[start:end]], base[datasets[start:end] + 1])
            edges, _ = spread(first[start:end], last[start:end])
            if len(edges):
                levels.append(level(nodes, edges))
    late = _late(index, np.repeat(rank, base[1:] - base[:-1]))
    return Order(levels, level(late, spread(backward[late], backward[late + 1])[0]))


def _cuts(sums: Array) -> Iterator[tuple[int, int]]:
    """Ranges of things with about ``PART`` edges each, by the running sums of these."""
    low, before = 0, 0
    sums = sums.astype(np.int64)  # else each search would convert all of them
    while low < len(sums):
        high = max(low + 1, int(np.searchsorted(sums, before + PART, side="right")))
        yield low, high
        low, before = high, int(sums[high - 1])


def _ranks(index: Index, base: Array) -> Array:
    """Per dataset how many reads lie below it at most; those on or behind a circle come last."""
    rank = ranks(*_reads(index, base), index.dataset_count)
    rank[rank < 0] = rank.max(initial=-1) + 1
    return rank


def _reads(index: Index, base: Array) -> tuple[Array, Array]:
    """The datasets at both ends of the ``read`` edges between different datasets."""
    a = index.arrays
    forward, opens = np.asarray(a["forward"]), np.asarray(a["dataset_opaque"]).astype(np.int64)
    rows = base[:-1]
    edge, owner = spread(forward[rows].astype(np.int64) + opens, forward[rows + 1].astype(np.int64))
    target = np.asarray(a["node_dataset"])[np.asarray(a["edge_target"])[edge]].astype(np.int64)
    return owner[owner != target], target[owner != target]


def _late(index: Index, rank: Array) -> Array:
    """Nodes with a source that is not of a lower rank.

    They themselves are such a source: a condition on a column makes an influence of its value, a mask another token.
    """
    forward, target = np.asarray(index.forward), np.asarray(index.edge_target)
    found = []
    for low, high in _cuts(forward[1:]):
        first, last = int(forward[low]), int(forward[high])
        counts = (forward[low + 1 : high + 1] - forward[low:high]).astype(np.int64)
        into = target[first:last]
        found.append(into[np.repeat(rank[low:high], counts) >= rank[into]])
    return distinct(np.concatenate(found)).astype(np.int64) if found else np.empty(0, np.int64)
