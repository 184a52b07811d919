"""Adjacency as compressed sparse rows: the neighbours of every node side by side in one array, found by offsets.

A graph of ``n`` nodes and ``m`` edges is ``offsets`` (n + 1 numbers, ascending, from 0 to m) and ``items`` (m numbers):
those of node ``v`` are ``items[offsets[v]:offsets[v + 1]]``. Arrays may be views of a mapped file
(``govtool.arrays.layout``), of any unsigned type. Nothing here copies them.
"""

from __future__ import annotations

from dataclasses import dataclass

from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import Array, stable_order


def spread(start: Array, stop: Array) -> tuple[Array, Array]:
    """All integers of the ranges ``start[i]..stop[i]``, and for each the ``i`` that it is of."""
    counts = stop - start
    total = int(counts.sum())
    owner = np.repeat(np.arange(len(counts)), counts)
    offset = np.repeat(start - (np.cumsum(counts) - counts), counts)
    return np.arange(total) + offset, owner


def offsets_of(numbers: Array, count: int) -> Array:
    """Return where each number below ``count`` begins among the numbers in order: int64[count + 1]."""
    return np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=count))]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Csr:
    """Adjacency one way.

    Attributes:
        offsets: [n + 1].
        items: [m]: neighbours, or numbers of edges.
    """

    offsets: Array
    items: Array

    @classmethod
    def of_pairs(cls, first: Array, second: Array, count: int) -> Csr:
        """Order pairs by their first, which is below ``count``; pairs with one first keep their order."""
        return cls(offsets_of(first, count), second[stable_order(first)])

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.offsets) - 1

    def places(self, nodes: Array) -> tuple[Array, Array]:
        """Return the places in ``items`` of the neighbours of some nodes, and for each the place of its node."""
        start = self.offsets[nodes].astype(np.int64)
        return spread(start, self.offsets[nodes + 1].astype(np.int64))

    def after(self, nodes: Array) -> Array:
        """Return the neighbours of some nodes, as often as there are edges."""
        return self.items[self.places(nodes)[0]]


def order_of(source: Array, target: Array) -> Array:
    """Return the order of edges by source, then target: int64[m]."""
    order = stable_order(target)
    return order[stable_order(source[order])]
