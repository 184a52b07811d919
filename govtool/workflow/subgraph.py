"""The subgraph of a node: all that it comes from, all that comes of it, and what else that needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.neighbours import entering
from govtool.arrays.sets import Array, distinct
from govtool.arrays.walks import reach
from govtool.arrays.walks_large import induced
from govtool.workflow.graph import ProvenanceGraph


@dataclass(frozen=True, slots=True)
class NodeSubgraph:
    """The part of a graph around a node. All lists are ascending and do not overlap.

    Attributes:
        node: The node.
        ancestors: What it comes from.
        descendants: What comes of it.
        siblings: Further inputs of its descendants: without them a deletion could not be judged.
        edges: The edges between all of these.
    """

    node: int
    ancestors: Array
    descendants: Array
    siblings: Array
    edges: Array

    @property
    def nodes(self) -> Array:
        """All of its nodes: int64, ascending."""
        return np.sort(np.concatenate([[self.node], self.ancestors, self.descendants, self.siblings])).astype(np.int64)


def subgraph(graph: ProvenanceGraph, node: int, cells: Sequence[int] = ()) -> NodeSubgraph:
    """Return the subgraph of a node; its cost is that of its edges, not of the graph.

    Args:
        graph: The graph.
        node: The node.
        cells: Of a tuple, the nodes of its computed values: the tuple comes from them, too.
    """
    ancestors = _reached(graph, [node, *cells], backward=True)
    ancestors = ancestors[ancestors != node]
    descendants = np.setdiff1d(_reached(graph, [node, *cells], backward=False), [node, *ancestors])
    edge, _ = entering(graph.edges.in_numpy(), descendants)
    inputs = distinct(graph.edges.target[:0].astype(np.int64) if not len(edge) else _sources(graph, edge))
    known = np.sort(np.concatenate([[node], ancestors, descendants])).astype(np.int64)
    siblings = inputs[~_are_in(inputs, known)]
    part = induced(graph.edges, np.concatenate([known, siblings]).tolist())
    return NodeSubgraph(node, ancestors, descendants, siblings, part.edges)


def lineage(graph: ProvenanceGraph, node: int) -> Array:
    """Return the source records that a node comes from, itself included: int64, ascending."""
    found = _reached(graph, [node], backward=True)
    return found[graph.type[found] <= 1]


def _reached(graph: ProvenanceGraph, nodes: Sequence[int], *, backward: bool) -> Array:
    return np.sort(np.asarray(reach(graph.edges, nodes, backward=backward).nodes, np.int64))


def _sources(graph: ProvenanceGraph, edge: Array) -> Array:
    found: Array = graph.edges.source[edge].astype(np.int64)
    return found


def _are_in(values: Array, ordered: Array) -> Array:
    """Return whether values are among others in order."""
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    found: Array = ordered[at] == values
    return found
