"""Filters over joins without conditions: ``FROM a, b WHERE a.k = b.k`` is annotated as the join that it is.

A filter over a product keeps the pairs of the join, with their annotations (Green, Karvounarakis and Tannen, 2007,
Definition 3.2); the product itself may have as many rows as no memory holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from govtool.records.plan.expressions import Call, Expression, Opaque, Outer, Udf
from govtool.records.plan.nodes import Filter, Join, outputs
from govtool.records.plan.tree import Node, walk
from govtool.records.trace.segment import both, conjuncts, reads, subqueries


def pushed(join: Join, parts: Sequence[Expression]) -> tuple[Node, list[Expression]]:
    """Conditions of a filter over a join, put where the columns that they read come together.

    Returns:
        The join, whose columns may be in another order, and the conditions that stay above it.
    """
    moved = [part for part in parts if moves(part)]
    if not moved or not _is_inner(join):
        return join, list(parts)
    node = _placed(join, moved)
    if _has_product(node):
        node = _in_order(*_flat(node))
    return node, [part for part in parts if part not in moved]


def moves(part: Expression) -> bool:
    """Return whether a condition reads columns, and is the same wherever it is evaluated."""
    fixed = not any(
        isinstance(term, (Outer, Opaque, Udf)) or (isinstance(term, Call) and not term.deterministic)
        for term in walk(part)
    )
    return fixed and not subqueries([part]) and bool(reads([part]))


def _is_inner(node: Node) -> TypeGuard[Join]:
    return isinstance(node, Join) and node.kind in ("inner", "cross")


def _placed(node: Node, parts: Sequence[Expression]) -> Node:
    """A plan with each condition at the lowest inner join, or above the plan below one, that has its columns."""
    if not _is_inner(node):
        return _filtered(node, parts)
    left, right = _ids(node.left), _ids(node.right)
    to_left = [part for part in parts if reads([part]) <= left]
    to_right = [part for part in parts if reads([part]) <= right]
    here = [part for part in parts if part not in to_left and part not in to_right]
    return _joined(_placed(node.left, to_left), _placed(node.right, to_right), [*conjuncts(node.condition), *here])


def _has_product(node: Node) -> bool:
    """Return whether some inner join of a tree of them has no condition."""
    if not _is_inner(node):
        return False
    return node.condition is None or _has_product(node.left) or _has_product(node.right)


def _flat(node: Node) -> tuple[list[Node], list[Expression]]:
    """The plans that a tree of inner joins joins, in order, and all its conditions."""
    if not _is_inner(node) or not all(map(moves, conjuncts(node.condition))):
        return [node], []
    left, right = _flat(node.left), _flat(node.right)
    return left[0] + right[0], [*left[1], *right[1], *conjuncts(node.condition)]


def _in_order(plans: list[Node], parts: list[Expression]) -> Node:
    """Joins in an order in which each has a condition, as far as there is one."""
    made, *rest = plans
    while rest:
        known = _ids(made)
        connected = (each for each in rest if any(_connects(part, known, _ids(each)) for part in parts))
        chosen = next(connected, rest[0])
        rest = [each for each in rest if each is not chosen]
        both_sides = known | _ids(chosen)
        here = [part for part in parts if reads([part]) <= both_sides]
        parts = [part for part in parts if part not in here]
        made = _joined(made, chosen, here)
    return made


def _connects(part: Expression, left: frozenset[int], right: frozenset[int]) -> bool:
    read = reads([part])
    return read <= left | right and not read.isdisjoint(left) and not read.isdisjoint(right)


def _joined(left: Node, right: Node, conditions: Iterable[Expression]) -> Join:
    condition = both(conditions)
    return Join(left, right, "cross" if condition is None else "inner", condition)


def _filtered(node: Node, parts: Sequence[Expression]) -> Node:
    condition = both(parts)
    if condition is None:
        return node
    if isinstance(node, Filter):
        return replace(node, condition=both([node.condition, condition]) or condition)
    return Filter(node, condition)


def _ids(node: Node) -> frozenset[int]:
    return frozenset(column.id for column in outputs(node))
