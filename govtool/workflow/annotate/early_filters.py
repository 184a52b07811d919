"""Filters before projections, as Spark evaluates them: what a filter leaves out is not computed.

Only conditions that cannot fail are moved, so no row meets an expression that it would not have met before. The rows
are the same, and so are their annotations: a condition on computed values is a factor of them, and stays above groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from govtool.records.plan.expressions import Attribute, Expression, Named
from govtool.records.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    SetOperation,
    Sort,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.subqueries import with_subqueries
from govtool.records.plan.tree import Node, Term
from govtool.records.trace.segment import both, conjuncts, reads, subqueries
from govtool.workflow.annotate.comma_joins import moves
from govtool.workflow.annotate.failing import can_fail
from govtool.workflow.annotate.rows import rewritten

_LEFT = frozenset({"inner", "cross", "left", "left_semi", "left_anti"})
_RIGHT = frozenset({"inner", "cross", "right"})


def filters_first(node: Node) -> Node:
    """A plan whose filters stand as low as they can."""
    return _placed(with_subqueries(node, filters_first), ())


def _placed(node: Node, parts: Sequence[Expression]) -> Node:
    """A plan under conditions, each as low as it can be."""
    if isinstance(node, Filter):
        own = list(conjuncts(node.condition))
        low = [part for part in own if _is_movable(part)]
        rest = [part for part in own if not _is_movable(part)]
        return _filtered(_placed(_opened(node.child), [*low, *parts]), rest)
    if isinstance(node, Project):
        return _below_columns(node, node.columns, parts)
    if isinstance(node, Aggregate) and node.keys:
        low, rest = _divided(node, parts)
        return _filtered(_below_columns(node, node.keys, low), rest)
    if isinstance(node, Union):
        return _below_union(node, parts)
    if isinstance(node, Join):
        return _below_join(node, parts)
    if isinstance(node, (Sort, Distinct)):
        low, rest = _divided(node, parts)
        return _filtered(node.replaced(nodes=(_placed(_opened(node.child), low),)), rest)
    return _filtered(node.replaced(nodes=tuple(_placed(_opened(each), ()) for each in node.nodes())), parts)


def _opened(node: Node) -> Node:
    return with_subqueries(node, filters_first)


def _divided(node: Node, parts: Sequence[Expression]) -> tuple[list[Expression], list[Expression]]:
    """Conditions on plain columns of an operator, and those on computed ones."""
    computed = _computed(node)
    low = [part for part in parts if computed.isdisjoint(reads([part]))]
    return low, [part for part in parts if part not in low]


def _computed(node: Node) -> frozenset[int]:
    """The columns of a plan that aggregates, windows and subqueries make, and what is computed from them."""
    below = [_computed(child) for child in node.nodes()]
    found = frozenset().union(*below)
    if isinstance(node, (Union, SetOperation)):
        places = [
            {at for at, column in enumerate(outputs(child)) if column.id in ids}
            for child, ids in zip(node.nodes(), below, strict=True)
        ]
        return frozenset(node.columns[at].id for at in set().union(*places))
    named = node.columns if isinstance(node, Project) else node.keys if isinstance(node, Aggregate) else ()
    own = {each.id for each in named if subqueries([each.value]) or not found.isdisjoint(reads([each.value]))}
    made = node.measures if isinstance(node, Aggregate) else node.columns if isinstance(node, Window) else ()
    exists = {node.exists.id} if isinstance(node, Join) and node.exists is not None else set()
    return found | own | exists | {each.id for each in made}


def _is_movable(part: Expression) -> bool:
    return moves(part) and not can_fail(part)


def _below_columns(node: Project | Aggregate, columns: Iterable[Named], parts: Sequence[Expression]) -> Node:
    """Conditions over an operator's columns as conditions over what these are computed from."""
    values = {each.id: each.value for each in columns}
    low, rest = [], []
    for part in parts:
        inner = _written_out(part, values) if reads([part]) <= set(values) else None
        if inner is not None and _is_movable(inner):
            low.append(inner)
        else:
            rest.append(part)
    return _filtered(node.replaced(nodes=(_placed(_opened(node.child), low),)), rest)


def _written_out(part: Expression, values: Mapping[int, Expression]) -> Expression:
    def swap(term: Term) -> Term:
        return values.get(term.id, term) if isinstance(term, Attribute) else term

    return rewritten(part, swap)


def _below_union(node: Union, parts: Sequence[Expression]) -> Node:
    children = []
    for child in node.children:
        own = dict(zip((column.id for column in node.columns), outputs(child), strict=True))
        children.append(_placed(_opened(child), [_written_out(part, own) for part in parts]))
    return node.replaced(nodes=tuple(children))


def _below_join(node: Join, parts: Sequence[Expression]) -> Node:
    sides: tuple[list[Expression], list[Expression]] = ([], [])
    rest = []
    known = [{column.id for column in outputs(side)} for side in (node.left, node.right)]
    for part in parts:
        read = reads([part])
        if node.kind in _LEFT and read <= known[0]:
            sides[0].append(part)
        elif node.kind in _RIGHT and read <= known[1]:
            sides[1].append(part)
        else:
            rest.append(part)
    left, right = (_placed(_opened(side), own) for side, own in zip((node.left, node.right), sides, strict=True))
    return _filtered(node.replaced(nodes=(left, right)), rest)


def _filtered(node: Node, parts: Sequence[Expression]) -> Node:
    condition = both(parts)
    return node if condition is None else Filter(node, condition)
