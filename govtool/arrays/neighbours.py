"""Edges around many nodes at once, in numpy."""

from __future__ import annotations

from govtool.arrays.csr import spread
from govtool.arrays.graph import ArrayGraph
from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import Array


def leaving(graph: ArrayGraph, nodes: Array) -> tuple[Array, Array]:
    """Return the edges that leave some nodes, and for each the place of its node among them."""
    return spread(graph.forward[nodes].astype(np.int64), graph.forward[nodes + 1].astype(np.int64))


def entering(graph: ArrayGraph, nodes: Array) -> tuple[Array, Array]:
    """Return the edges that enter some nodes, and for each the place of its node among them."""
    place, owner = spread(graph.backward[nodes].astype(np.int64), graph.backward[nodes + 1].astype(np.int64))
    return graph.backward_edge[place].astype(np.int64), owner


def in_degree(graph: ArrayGraph, idle: Array | None = None) -> Array:
    """Return how many edges enter each node, those marked ``idle`` not counted: int64[n]."""
    if idle is None:
        return np.diff(np.asarray(graph.backward).astype(np.int64))
    return np.bincount(graph.target[~idle], minlength=graph.nodes)
