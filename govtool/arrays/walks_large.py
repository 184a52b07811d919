"""Reachability in numpy, a whole frontier at a time, and subgraphs. See ``govtool.arrays.walks``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from govtool.arrays.graph import ArrayGraph, graph_of
from govtool.arrays.neighbours import entering, leaving
from govtool.arrays.numpy_threads import np
from govtool.arrays.results import ReachedNodes
from govtool.arrays.sets import Array, distinct


def reach_large(
    graph: ArrayGraph, seeds: Sequence[int], *, backward: bool, depth: int | None, closed: Sequence[int] | None
) -> ReachedNodes:
    """Walk from distinct seeds in order; see ``govtool.arrays.walks.reach``. The graph has numpy arrays."""
    frontier = np.asarray(seeds, np.int64)
    shut = np.zeros(graph.nodes, bool) if closed is None else np.array(closed, bool)
    shut[frontier] = True  # what was reached is not entered again
    nodes, edges, hops = [frontier], [np.full(len(frontier), -1, np.int64)], [np.zeros(len(frontier), np.int64)]
    follow, ends = (entering, graph.source) if backward else (leaving, graph.target)
    level = 0
    while len(frontier) and (depth is None or level < depth):
        level += 1
        edge = follow(graph, frontier)[0]
        found = ends[edge].astype(np.int64)
        fresh = ~shut[found]
        frontier, edge = _lowest(found[fresh], edge[fresh])
        shut[frontier] = True
        nodes.append(frontier)
        edges.append(edge)
        hops.append(np.full(len(frontier), level, np.int64))
    joined = [np.concatenate(parts) for parts in (nodes, hops, edges)]
    return ReachedNodes(*(values.data for values in joined))


def _lowest(nodes: Array, edges: Array) -> tuple[Array, Array]:
    """The distinct nodes in order, and of the edges to each the lowest."""
    order = np.lexsort((edges, nodes))
    nodes, edges = nodes[order], edges[order]
    first = np.ones(len(nodes), bool)
    np.not_equal(nodes[1:], nodes[:-1], out=first[1:])
    return nodes[first], edges[first]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Some nodes of a graph with all edges between them.

    Attributes:
        graph: The part, its nodes and edges numbered anew in their order.
        nodes: int64[nodes of the part]: what each was in the graph, ascending.
        edges: int64[edges of the part]: likewise.
    """

    graph: ArrayGraph
    nodes: Array
    edges: Array


def induced(graph: ArrayGraph, nodes: Iterable[int]) -> Subgraph:
    """Return the subgraph of some nodes; its cost is that of their edges, not of the graph."""
    graph = graph.in_numpy()
    kept = np.unique(np.fromiter(nodes, np.int64))
    edge = leaving(graph, kept)[0]
    target = graph.target[edge].astype(np.int64)
    at = np.searchsorted(kept, target)
    inside = np.flatnonzero(kept[np.minimum(at, len(kept) - 1)] == target) if len(kept) else np.empty(0, np.int64)
    edge = edge[inside]
    source = np.searchsorted(kept, graph.source[edge].astype(np.int64))
    # Edges stay in order: they are by source and target already, and numbering nodes anew keeps the nodes in order.
    part, _ = graph_of(source, at[inside], len(kept))
    return Subgraph(part, kept, edge)


def marked(graph: ArrayGraph, seeds: Array, *, closed: Array | None = None, backward: bool = False) -> Array:
    """Return per node whether a walk from seeds reaches it: bool[n], seeds included.

    It keeps neither hops nor edges, so that walks over most of a graph cost a third of ``reach_large``.

    Args:
        graph: The graph.
        seeds: Nodes; they are entered even if they are closed.
        closed: bool[n]: nodes that may not be entered.
        backward: Against the edges.
    """
    graph = graph.in_numpy()
    follow, ends = (entering, graph.source) if backward else (leaving, graph.target)
    reached = np.zeros(graph.nodes, bool)
    reached[seeds] = True
    shut = reached.copy() if closed is None else reached | closed
    frontier = np.flatnonzero(reached)
    while len(frontier):
        found = ends[follow(graph, frontier)[0]]
        frontier = distinct(found[~shut[found]]).astype(np.int64)
        shut[frontier] = True
        reached[frontier] = True
    return reached
