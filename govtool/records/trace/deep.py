"""Plans of many boundaries: where to cut them, so that not each boundary evaluates all those below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from govtool.records.plan.nodes import Aggregate, Deduplicate, Distinct, Relation, SetOperation, Window, outputs
from govtool.records.plan.tree import Node, fold_nodes, walk_nodes
from govtool.records.trace.segment import free_columns, unique

DEEP = 12
"""Boundaries within each other from which on a plan is cut; fewer are cheaper to evaluate again than rows to keep."""
Evaluated = Mapping[int, Relation]
"""Parts of a plan, by ``id``, that were evaluated already, with what came out."""
_BOUNDARIES = (Aggregate, Deduplicate, Distinct, SetOperation, Window)


def path_to_middle(root: Node, evaluated: Container[int]) -> tuple[Node, ...]:
    """The operators from the root of a deep plan down to one with half of the boundaries below it.

    Args:
        root: The plan.
        evaluated: The ``id`` of parts that were evaluated already.

    Returns:
        The path; empty where the plan is not deep, or the operator is in several places or reads a query around it.
    """
    depths: dict[int, int] = {}

    def measured(node: Node, below: tuple[int, ...]) -> int:
        is_boundary = isinstance(node, _BOUNDARIES) and id(node) not in evaluated
        depths[id(node)] = is_boundary + max(below, default=0)
        return depths[id(node)]

    def inputs(node: Node) -> tuple[Node, ...]:
        return () if id(node) in evaluated else node.nodes()

    deepest = fold_nodes(root, measured, inputs)
    if deepest < DEEP:
        return ()
    path = [root]
    while depths[id(path[-1])] > deepest // 2:
        path.append(max(inputs(path[-1]), key=lambda each: depths[id(each)]))
    part = path[-1]
    is_once = Counter(map(id, walk_nodes(root)))[id(part)] == 1
    own = outputs(part)
    return tuple(path) if is_once and len(unique(own)) == len(own) and not free_columns(part) else ()


def with_evaluated(root: Node, evaluated: Evaluated) -> Node:
    """A plan that reads the parts that were evaluated already."""
    if not evaluated:
        return root

    def inputs(node: Node) -> tuple[Node, ...]:
        return () if id(node) in evaluated else node.nodes()

    return fold_nodes(root, lambda node, parts: evaluated.get(id(node)) or node.replaced(nodes=parts), inputs)
