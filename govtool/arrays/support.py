"""Grounded support over an and/or graph, and what a deletion takes from it.

A node says how many of its inputs it needs: all of them (a joint node, ``·``), one (an alternative, ``+``), none (a
base record), or any number between. It has support if it has a derivation: a finite tree over supported inputs that
ends in nodes that need none. Support is the least fixpoint, so nodes that only hold up one another have none. A
deletion takes the nodes deleted and all that had support and have it no longer.

This is Boolean provenance (Green, Karvounarakis, Tannen, "Provenance semirings", PODS 2007) over cyclic derivations
(Ives and others, "ORCHESTRA", 2008), and Def. 4.2 of Amsterdamer and others, "Putting Lipstick on Pig" (PVLDB 5(4),
2012), where the graph has no cycles. Two strategies give the same loss: plain Python on small graphs, and
``govtool.arrays.support_large``, which works out the support of a graph once, keeps it in a file, and then looks only
at what a deletion changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from govtool.arrays.graph import SMALL, ArrayGraph, check_nodes
from govtool.arrays.results import Loss

UNSUPPORTED = -1
"""The rank of a node without support."""


def support(
    graph: ArrayGraph, needs: Sequence[int], deleted: Collection[int] = (), idle: Sequence[int] | None = None
) -> list[int]:
    """Return the rank of every node: its place in an order of derivation, or ``UNSUPPORTED``.

    A supported node has as many supported inputs of lower rank as it needs.

    Args:
        graph: The graph.
        needs: How many supported inputs each node needs; a node with fewer inputs has no support.
        deleted: Nodes without support, whatever they need.
        idle: Per edge, whether it supports nothing.
    """
    graph, gone = graph.in_python(), frozenset(deleted)
    rank = [UNSUPPORTED] * graph.nodes
    missing = list(needs)
    ready = [node for node, need in enumerate(missing) if need <= 0 and node not in gone]
    for place, node in enumerate(ready):  # grows while it is read
        rank[node] = place
        for edge in graph.out_edges(node):
            if idle is None or not idle[edge]:
                target = graph.target[edge]
                missing[target] -= 1
                if missing[target] == 0 and target not in gone:
                    ready.append(target)
    return rank


def losses(
    graph: ArrayGraph,
    needs: Sequence[int],
    deleted: Iterable[int],
    *,
    idle: Sequence[int] | None = None,
    within: Sequence[int] | None = None,
    small: int = SMALL,
) -> Loss:
    """Return what a deletion takes, working out the support of the graph for this one time.

    Args:
        graph: The graph.
        needs: How many supported inputs each node needs.
        deleted: Nodes.
        idle: Per edge, whether it supports nothing.
        within: Per node, whether it can be lost; all others keep their support. Without it, all can.
        small: Edges up to which plain Python does it.

    Raises:
        IndexError: A node is to be deleted that there is not.
    """
    gone = set(deleted)
    check_nodes(gone, graph.nodes)
    if graph.edges <= small:
        return _losses_small(graph.in_python(), needs, gone, idle, within)
    from govtool.arrays.support_large import Support

    return Support.of(graph, needs, idle).delete(gone, within=within)


def _losses_small(
    graph: ArrayGraph, needs: Sequence[int], gone: set[int], idle: Sequence[int] | None, within: Sequence[int] | None
) -> Loss:
    before = support(graph, needs, (), idle)
    kept = [] if within is None else [v for v in range(graph.nodes) if before[v] >= 0 and not within[v]]
    left = list(needs)
    for node in kept:
        left[node] = 0
    gone.difference_update(kept)
    after = support(graph, left, gone, idle)
    lost = [node for node in range(graph.nodes) if before[node] >= 0 > after[node]]
    lost.sort(key=before.__getitem__)
    return Loss(lost, [-1 if node in gone else _reason(graph, node, before, after, idle) for node in lost])


def _reason(graph: ArrayGraph, node: int, before: list[int], after: list[int], idle: Sequence[int] | None) -> int:
    """The first edge into a lost node from a lost input that it was derived from."""
    return next(
        edge
        for edge in graph.in_edges(node)
        if (idle is None or not idle[edge]) and 0 <= before[graph.source[edge]] < before[node]
        if after[graph.source[edge]] < 0
    )
