"""Joins: ``a·b`` for pairs, ``a·(1 ⊖ Σ b)`` for rows that stay alone."""

from __future__ import annotations

from dataclasses import replace

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Expression, Named, Outer, passed
from govtool.records.plan.nodes import Join, LateralJoin, Project
from govtool.records.plan.tree import walk
from govtool.records.trace.segment import alike, both, conjuncts, subqueries
from govtool.workflow.annotate.annotator import Annotator, Context, refused, same_context
from govtool.workflow.annotate.circuit import Product
from govtool.workflow.annotate.conditions import Matches, existence, kept_by, restricted
from govtool.workflow.annotate.failing import is_late
from govtool.workflow.annotate.origins import equated
from govtool.workflow.annotate.rows import LONG_ONE, Rows, joined, reads_cells, times_of
from govtool.workflow.annotate.unions import padded, united
from govtool.workflow.annotate.values import counted


class JoinSide:
    """One input of a join, numbered."""

    __slots__ = ("number", "rows", "table")

    def __init__(self, a: Annotator, rows: Rows) -> None:
        self.rows, self.table = a.keep(rows)
        self.number: Attribute = self.table.number


def join(a: Annotator, node: Join, context: Context | None) -> Rows:
    """Pairs, and what an outer, semi or antijoin makes of rows without a partner."""
    left, right = a.rows(node.left, context), a.rows(node.right, context)
    if node.kind not in ("inner", "cross"):
        left, right = a.in_context(left, right, context), a.in_context(right, left, context)
    if node.kind in ("inner", "cross"):
        return _inner(a, left, right, node.condition, context)
    if node.kind in ("left_semi", "left_anti", "existence"):
        return _half(a, node, left, right, context)
    if node.kind not in ("left", "right", "full", "left_single"):
        raise refused(f"a join of kind {node.kind}")
    return _outer(a, node, JoinSide(a, left), JoinSide(a, right), context)


def _inner(a: Annotator, left: Rows, right: Rows, condition: Expression | None, context: Context | None) -> Rows:
    """``a·b``."""
    pairs = _paired(a, left, right, condition, context)
    factor = a.ids.named("factor", right.annotation)
    wider = Project(pairs.node, (*map(passed, pairs.everything), passed(right.annotation), factor))
    pairs, table = a.keep(replace(pairs, node=wider, columns=(*pairs.columns, factor.attribute)))
    first = product_of(a, *table.ids(pairs.annotation, factor.attribute))
    if a.origins is not None and a.origins.by_equality:
        pairs = equated(a.origins, a.tables, pairs, table, list(conjuncts(condition)))
    made = a.annotated(pairs, table, first)
    return replace(made, columns=left.columns + right.columns)


def product_of(a: Annotator, left: Array, right: Array) -> int:
    """The first node of the products of two lists of nodes."""
    return a.add(Product(left, right))


def _paired(a: Annotator, left: Rows, right: Rows, condition: Expression | None, context: Context | None) -> Rows:
    """Pairs that meet a condition, annotated with the left row and the guards of the condition."""
    plain: list[Expression] = []
    rest: list[Expression] = []
    for part in conjuncts(condition):
        late = is_late(a, left, part) or is_late(a, right, part)
        (rest if late or _is_guarded(part, left, right) else plain).append(part)
    node = joined(left.node, right.node, both([same_context(left, right), *plain]))
    pairs = replace(
        left,
        node=node,
        columns=left.columns + right.columns,
        cells={**left.cells, **right.cells},
        origins={**left.origins, **right.origins},
        outer={**right.outer, **left.outer},
        context=left.context or right.context,
        times=times_of(left.times, right.times),
        candidates=left.candidates or right.candidates,
        bag=left.bag or right.bag,
        gate=a.either(left.gate, right.gate),
    )
    pairs = replace(pairs, columns=(*pairs.columns, right.annotation))
    pairs = counted(a, pairs, pairs.times)
    for part in rest:
        pairs = restricted(a, pairs, part, context)
    return pairs


def _is_guarded(part: Expression, left: Rows, right: Rows) -> bool:
    outer = any(isinstance(term, Outer) for term in walk(part))
    return bool(outer or subqueries([part]) or reads_cells(part, left) or reads_cells(part, right))


# ---- rows that stay alone -------------------------------------------------------------------------------------------


def _half(a: Annotator, node: Join, left: Rows, right: Rows, context: Context | None) -> Rows:
    side = JoinSide(a, left)
    pairs = _partners(a, side, right, node.condition, context)
    if node.kind == "existence" and node.exists is not None:
        rows, column = existence(a, side.rows, side.table, pairs)
        exists = Named(column, node.exists.id, node.exists.name)
        made = Project(rows.node, (*map(passed, rows.everything), exists))
        cells = {**rows.cells, exists.id: rows.cells[column.id]}
        return replace(rows, node=made, columns=(*left.columns, exists.attribute), cells=cells)
    return kept_by(a, side.rows, side.table, pairs, node.kind == "left_anti")


def _partners(
    a: Annotator, side: JoinSide, right: Rows, condition: Expression | None, context: Context | None
) -> Matches:
    """The right rows that match each left one, times the guards of the match."""
    number = a.ids.named("left", side.number)
    node = Project(side.rows.node, (*map(passed, side.rows.everything), number))
    left = replace(side.rows, node=node, columns=(*side.rows.columns, number.attribute))
    flipped = _paired(a, right, replace(left, times=LONG_ONE), condition, context)
    return Matches(flipped, number.attribute)


def _outer(a: Annotator, node: Join, left: JoinSide, right: JoinSide, context: Context | None) -> Rows:
    columns = left.rows.columns + right.rows.columns
    parts = [_inner(a, left.rows, right.rows, node.condition, context)]
    if node.kind in ("left", "full", "left_single"):
        alone = _alone(a, left, _partners(a, left, right.rows, node.condition, context))
        parts.append(padded(a, alone, columns))
    if node.kind in ("right", "full"):
        alone = _alone(a, right, _partners(a, right, left.rows, node.condition, context))
        parts.append(padded(a, alone, columns))
    parts = [counted(a, part, part.times) for part in parts]
    return united(a, parts, columns)


def _alone(a: Annotator, side: JoinSide, pairs: Matches) -> Rows:
    return kept_by(a, side.rows, side.table, pairs, True, is_padding=True)


def lateral(a: Annotator, node: LateralJoin, context: Context | None) -> Rows:
    """A join with a subquery that was evaluated for every row of the left side."""
    left = a.rows(node.left, context)
    rows, table, inner = a.subcontext(left, node.right, context)
    right = a.rows(node.right, inner)
    right, _ = a.keep(right)
    same = None if right.context is None else alike(table.number, right.context)
    pairs = _lateral_pairs(a, rows, right, same, node.condition, context)
    if node.kind != "left":
        return pairs
    number = a.ids.named("left", table.number)
    side = replace(rows, node=Project(rows.node, (*map(passed, rows.everything), number)))
    found = joined(right.node, side.node, alike(right.context, number.attribute) if right.context else None)
    cells = {**rows.cells, **right.cells}
    matched = replace(right, node=found, columns=(*right.columns, *rows.columns, number.attribute), cells=cells)
    for part in conjuncts(node.condition):
        matched = restricted(a, matched, part, context)
    alone = kept_by(a, rows, table, Matches(matched, number.attribute), True, is_padding=True)
    columns = left.columns + right.columns
    parts = [counted(a, pairs, pairs.times), padded(a, alone, columns)]
    return united(a, parts, columns)


def _lateral_pairs(
    a: Annotator, left: Rows, right: Rows, same: Expression | None, condition: Expression | None,
    context: Context | None,
) -> Rows:  # fmt: skip
    bare = replace(right, context=None, outer={})
    pairs = _paired(a, left, bare, both([same, condition]), context)
    factor = a.ids.named("factor", right.annotation)
    wider = Project(pairs.node, (*map(passed, pairs.everything), factor))
    pairs, table = a.keep(replace(pairs, node=wider, columns=(*pairs.columns, factor.attribute)))
    made = a.annotated(pairs, table, product_of(a, *table.ids(pairs.annotation, factor.attribute)))
    return replace(made, columns=left.columns + right.columns)
