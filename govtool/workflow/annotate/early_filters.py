"""Filters before projections, as Spark evaluates them: what a filter leaves out is not computed.

Only conditions that cannot fail are moved, so no row meets an expression that it would not have met before. The rows
are the same, and so are their annotations: a filter on plain columns changes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from govtool.records.plan.expressions import Attribute, Expression, Named
from govtool.records.plan.nodes import Aggregate, Distinct, Filter, Join, Project, Sort, Union, outputs
from govtool.records.plan.subqueries import with_subqueries
from govtool.records.plan.tree import Node, Term
from govtool.records.trace.segment import both, conjuncts, reads
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
        return _below_columns(node, node.keys, parts)
    if isinstance(node, Union):
        return _below_union(node, parts)
    if isinstance(node, Join):
        return _below_join(node, parts)
    if isinstance(node, (Sort, Distinct)):
        return node.replaced(nodes=(_placed(_opened(node.child), parts),))
    return _filtered(node.replaced(nodes=tuple(_placed(_opened(each), ()) for each in node.nodes())), parts)


def _opened(node: Node) -> Node:
    return with_subqueries(node, filters_first)


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
