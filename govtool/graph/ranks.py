"""What lies how far above what, by arrays (Kahn, "Topological sorting of large networks", 1962)."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: TID253 - imported only where graphs are large, or by what has numpy already

from govtool.graph.arrays import distinct
from govtool.graph.walk_large import spread

Array = np.ndarray[Any, np.dtype[Any]]


class Ways:
    """Pairs of numbers by their first."""

    def __init__(self, first: Array, second: Array, count: int) -> None:
        order = np.argsort(first, kind="stable")
        self._second = second[order]
        self._offsets = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=count))])

    def after(self, numbers: Array) -> Array:
        """The second of all pairs that begin with these, as often as there are."""
        return self._second[spread(self._offsets[numbers], self._offsets[numbers + 1])[0]]


def ranks(source: Array, target: Array, count: int) -> Array:
    """Per number below ``count`` how many pairs lie below it at most; -1 on or behind a circle.

    Args:
        source: What the pairs begin with.
        target: What they end with.
        count: How many numbers there are.
    """
    ways = Ways(source, target, count)
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
