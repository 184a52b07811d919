"""Results of walks and deletions over plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReachedNodes:
    """The nodes that a walk reached, by hops, then by number; seeds included.

    Attributes:
        nodes: Distinct nodes.
        hops: For each the length of the shortest way to it.
        edges: For each the edge by which a shortest way ends, the lowest of several; -1 at a seed.
    """

    nodes: Sequence[int]
    hops: Sequence[int]
    edges: Sequence[int]

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True)
class Loss:
    """The nodes that a deletion takes, each after the node that it is lost through; deleted ones included.

    Attributes:
        nodes: Distinct nodes. Nodes that had no support to begin with are not among them.
        edges: For each the edge from a lost node that gave it support, the reason for its loss; -1 if it was itself
            deleted. Reasons form no circle: following them leads to a deleted node.
    """

    nodes: Sequence[int]
    edges: Sequence[int]

    def __len__(self) -> int:
        return len(self.nodes)
