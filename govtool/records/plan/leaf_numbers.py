"""The numbers of a plan's leaves: a trace names a leaf by its number, so two plans that become one need others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from govtool.records.plan.nodes import LocalRows, Range, Relation
from govtool.records.plan.subqueries import everywhere
from govtool.records.plan.tree import Node, walk_nodes

_NUMBERED = (Relation, LocalRows, Range)


def last_leaf(root: Node) -> int:
    """Return the largest number of a leaf; 0 if there are none."""
    return max((node.leaf for node in walk_nodes(root) if isinstance(node, _NUMBERED)), default=0)


def renumbered(root: Node, leaves: Iterator[int]) -> Node:
    """A plan whose leaves have the next numbers of an iterator; leaves of one number stay leaves of one."""
    made: dict[int, int] = {}

    def change(node: Node) -> Node:
        if not isinstance(node, _NUMBERED):
            return node
        if node.leaf not in made:
            made[node.leaf] = next(leaves)
        return replace(node, leaf=made[node.leaf])

    return everywhere(root, change)
