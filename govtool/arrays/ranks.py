"""Topological ranks by arrays (Kahn, "Topological sorting of large networks", 1962)."""

from __future__ import annotations

from govtool.arrays.csr import Csr
from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import Array, distinct


def ranks(source: Array, target: Array, count: int) -> Array:
    """Per number below ``count`` how many pairs lie below it at most; -1 on or behind a circle.

    Args:
        source: What the pairs begin with.
        target: What they end with.
        count: How many numbers there are.
    """
    ways = Csr.of_pairs(source, target, count)
    waiting = np.bincount(target, minlength=count)
    rank = np.full(count, -1, np.int32)
    ready, number = np.flatnonzero(waiting == 0), 0
    while len(ready):
        rank[ready] = number
        into = ways.after(ready)
        np.subtract.at(waiting, into, 1)
        ready = distinct(into[waiting[into] == 0])
        number += 1
    return rank
