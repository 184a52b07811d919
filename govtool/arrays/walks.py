"""Reachability over plain arrays: what lies before or behind some nodes, in how many hops, and by which edges.

There are two strategies with the same answers: plain Python, which starts at once, and numpy, which takes over when a
walk grows large. A walk over the column graph knows states besides (``govtool.graph.walks.walk``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from govtool.arrays.graph import SMALL, ArrayGraph
from govtool.arrays.results import ReachedNodes


def reach(
    graph: ArrayGraph,
    seeds: Iterable[int],
    *,
    backward: bool = False,
    depth: int | None = None,
    closed: Sequence[int] | None = None,
    small: int = SMALL,
) -> ReachedNodes:
    """Walk from seeds.

    Args:
        graph: The graph.
        seeds: Nodes.
        backward: Against the edges.
        depth: Hops to take at most.
        closed: Per node, whether it may not be entered; seeds are entered all the same.
        small: Edges to look at before numpy takes over.
    """
    start = sorted(set(seeds))
    found = _reach_small(graph.in_python(), start, backward, depth, closed, small)
    if found is not None:
        return found
    from govtool.arrays.walks_large import reach_large

    return reach_large(graph.in_numpy(), start, backward=backward, depth=depth, closed=closed)


def _reach_small(
    graph: ArrayGraph, seeds: list[int], backward: bool, depth: int | None, closed: Sequence[int] | None, budget: int
) -> ReachedNodes | None:
    """The walk in plain Python; ``None`` when more than ``budget`` edges were looked at."""
    seen = dict.fromkeys(seeds, (0, -1))
    frontier, level = seeds, 0
    left = budget - len(seeds)
    while frontier and left >= 0 and (depth is None or level < depth):
        level += 1
        found: dict[int, int] = {}
        for node, edge in _steps(graph, frontier, backward):
            left -= 1
            if left < 0:
                return None
            if node not in seen and not (closed is not None and closed[node]):
                found[node] = min(edge, found.get(node, edge))
        frontier = sorted(found)
        seen.update((node, (level, found[node])) for node in frontier)
    if left < 0:
        return None
    return ReachedNodes(list(seen), [hops for hops, _ in seen.values()], [edge for _, edge in seen.values()])


def _steps(graph: ArrayGraph, nodes: list[int], backward: bool) -> Iterator[tuple[int, int]]:
    """The neighbours of nodes, each with the edge to it."""
    for node in nodes:
        if backward:
            yield from ((graph.source[edge], edge) for edge in graph.in_edges(node))
        else:
            yield from ((graph.target[edge], edge) for edge in graph.out_edges(node))
