"""The order of a graph: every node after all that it is made of, as far as there are no circles.

Where much of a graph is reached, going through it once in this order is much faster than following frontiers, which
reach a node once for every length of the ways to it. Datasets are put in order by the ``read`` edges between their row
sets (Kahn, "Topological sorting of large networks", 1962), which are few. Every edge is compared with that order: the
nodes that one enters which does not keep to it are *late*, and are left to the frontiers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from govtool.arrays.csr import spread
from govtool.arrays.numpy_threads import np
from govtool.arrays.ranks import ranks
from govtool.graph.codes import KIND_MASK
from govtool.graph.index import Index

Array = np.ndarray[Any, np.dtype[Any]]
PART = 1 << 17
"""Edges that are worked on at a time: what they take fits into a processor's cache, and needs no fresh memory."""
FEW = 8
"""Number of edges of a node up to which the edges of all such nodes are joined at a time."""
_NO_KIND = KIND_MASK
"""The tag of an edge that carries nothing."""


class RankPart(NamedTuple):
    """Some datasets of one rank."""

    rank: int
    dataset: Array


class Entering(NamedTuple):
    """Nodes, and the edges that enter them.

    First the edges of the nodes with more than ``FEW``, node by node; then of all others the first edge, then the
    second of those that have one, and so on: nodes with more edges come before those with fewer.
    """

    node: Array
    start: Array
    """The start of the edges of each node with more than ``FEW``."""
    having: list[int]
    """Numbers of the other nodes that have a first edge, a second …"""
    edge: Array
    source: Array
    tag: Array

    def joined(self, carried: Array) -> Array:
        """uint64[nodes]: all bits that any edge of the node carries.

        Args:
            carried: uint64[edges].
        """
        found = np.empty(len(self.node), np.uint64)
        many, low = len(self.start), len(carried) - sum(self.having)
        if many:
            found[:many] = np.bitwise_or.reduceat(carried[:low], self.start)
        for number, count in enumerate(self.having):
            own, more = found[many : many + count], carried[low : low + count]
            if number:
                own |= more
            else:
                own[:] = more
            low += count
        return found

    def of(self, edges: Array) -> Array:
        """The nodes that some edges enter, given by their place."""
        many = len(self.start)
        counts = np.diff(self.start, append=len(self.edge) - sum(self.having))
        places = [np.repeat(np.arange(many), counts), *(np.arange(many, many + count) for count in self.having)]
        return self.node[np.concatenate(places)[edges]]


class Order:
    """A graph in order.

    Args:
        index: The graph.
        keep: Whether the edges of parts will be asked for again and again.
    """

    def __init__(self, index: Index, *, keep: bool) -> None:
        a = index.arrays
        self._base = np.asarray(a["dataset_base"]).astype(np.int64)
        self._backward, self._back_edge = np.asarray(index.backward), np.asarray(index.backward_edge)
        self._source, self._tag = np.asarray(index.edge_source), np.asarray(index.edge_tag)
        rank = _ranks(index, self._base)
        self._rank = np.repeat(rank, self._base[1:] - self._base[:-1])
        self._kept: dict[int, tuple[Entering, Array]] | None = {} if keep else None
        self.levels = list(self._levels(rank))
        """The parts of each rank. Nodes but for late ones have sources in earlier levels only."""

    def _levels(self, rank: Array) -> Iterator[list[RankPart]]:
        by_rank = np.argsort(rank, kind="stable")
        bounds = np.searchsorted(rank[by_rank], np.arange(int(rank.max(initial=0)) + 2))
        for number, (low, high) in enumerate(itertools.pairwise(bounds.tolist())):
            datasets = by_rank[low:high]
            first, last = self._backward[self._base[datasets]], self._backward[self._base[datasets + 1]]
            sums = np.cumsum(last - first, dtype=np.int64)
            yield [RankPart(number, datasets[start:end]) for start, end in _cuts(sums)]

    def entering(self, part: RankPart) -> tuple[Entering, Array]:
        """The edges into the columns and row sets of a part, and those of these that are late.

        Edges that do not keep to the order have a tag that carries nothing.
        """
        key = int(part.dataset[0])
        if self._kept is not None and key in self._kept:
            return self._kept[key]
        nodes, _ = spread(self._base[part.dataset], self._base[part.dataset + 1])
        found = self._into(nodes)
        astray = np.flatnonzero(self._rank.take(found.source) >= part.rank)
        late = found.of(astray) if len(astray) else astray
        found.tag[astray] = _NO_KIND
        if self._kept is not None:
            self._kept[key] = found, late
        return found, late

    def into(self, nodes: Array) -> Iterator[Entering]:
        """All edges into some nodes, about ``PART`` at a time."""
        counts = self._backward[nodes + 1] - self._backward[nodes]
        for low, high in _cuts(np.cumsum(counts, dtype=np.int64)):
            yield self._into(nodes[low:high])

    def _into(self, nodes: Array) -> Entering:
        start = self._backward.take(nodes).astype(np.int64)
        count = self._backward.take(nodes + 1) - start
        few = np.minimum(count, FEW + 1)
        order = np.argsort((FEW + 1 - few).astype(np.uint8), kind="stable")
        above = (len(nodes) - np.cumsum(np.bincount(few, minlength=FEW + 2))).tolist()
        some, many = above[0], above[FEW]
        order = order[:some]
        node, start = nodes[order], start[order]
        stop = start[:many] + count[order[:many]]
        having = [n - many for n in above[:FEW] if n > many]
        places = [spread(start[:many], stop)[0], *(start[many : many + n] + k for k, n in enumerate(having))]
        edge = self._back_edge.take(np.concatenate(places))
        wide = edge.astype(np.int64)
        counts = stop - start[:many]
        return Entering(node, np.cumsum(counts) - counts, having, edge, self._source.take(wide), self._tag.take(wide))


def _cuts(sums: Array) -> Iterator[tuple[int, int]]:
    """Ranges of things with about ``PART`` edges each, by the running sums of these."""
    low, before = 0, 0
    while low < len(sums):
        high = max(low + 1, int(np.searchsorted(sums, before + PART, side="right")))
        yield low, high
        low, before = high, int(sums[high - 1])


def _ranks(index: Index, base: Array) -> Array:
    """Per dataset how many reads lie below it at most; those on or behind a circle come last."""
    rank = ranks(*_reads(index, base), index.dataset_count)
    last = int(rank.max(initial=-1)) + 1
    rank[rank < 0] = last
    return rank.astype(np.min_scalar_type(last))


def _reads(index: Index, base: Array) -> tuple[Array, Array]:
    """The datasets at both ends of the ``read`` edges between different datasets."""
    a = index.arrays
    forward, opens = np.asarray(a["forward"]), np.asarray(a["dataset_opaque"]).astype(np.int64)
    rows = base[:-1]
    edge, owner = spread(forward[rows].astype(np.int64) + opens, forward[rows + 1].astype(np.int64))
    target = np.asarray(a["node_dataset"])[np.asarray(a["edge_target"])[edge]].astype(np.int64)
    return owner[owner != target], target[owner != target]
