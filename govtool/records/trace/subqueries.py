"""Links to the rows of subqueries and of semijoins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from govtool.records.plan.expressions import Call, Exists, Expression, InSubquery, ScalarSubquery
from govtool.records.plan.nodes import Join, LocalRows, Range, Relation, Repartition, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN
from govtool.records.trace.carrier import TRUE, Carrier, Linked
from govtool.records.trace.computed import computed, has_candidates, is_plain
from govtool.records.trace.segment import (
    EXACT,
    Grade,
    Link,
    both,
    conjuncts,
    free_columns,
    reads,
    subqueries,
    unique,
)

GUARDED = Grade("superset", "computed values steer which rows of a subquery or of a join count")


def condition_links(carrier: Carrier, condition: Expression) -> list[Linked]:
    """The subqueries of a conjunct: EXISTS and IN stand for a row, NOT EXISTS and NOT IN against it."""
    if isinstance(condition, Exists):
        return [_exists(carrier, condition)]
    if isinstance(condition, InSubquery):
        return [_member(carrier, condition, may=False)]
    inner = negated(condition)
    if isinstance(inner, Exists):
        return against(carrier, inner.plan, lambda other: _exists(other, inner))
    if inner is not None:
        always = bool(computed(inner.plan))
        return against(carrier, inner.plan, lambda other: _member(other, inner, may=True), always)
    return [cell_link(carrier, each) for each in subqueries([condition])]


def negated(condition: Expression) -> Exists | InSubquery | None:
    """The subquery of NOT EXISTS or NOT IN."""
    inner = condition.arguments[0] if isinstance(condition, Call) and condition.name == "not" else None
    return inner if isinstance(inner, (Exists, InSubquery)) else None


def against(carrier: Carrier, node: Node, link: Callable[[Carrier], Linked], always: bool = False) -> list[Linked]:
    """A link to what stands against a row.

    There is none where every row below is there for good: one that matched would have taken the row off.
    """
    if not (always or carrier.candidates or has_candidates(node)):
        return []
    return [replace(link(carrier.whole()), against=True)]


def cell_link(carrier: Carrier, term: ScalarSubquery | Exists | InSubquery) -> Linked:
    """The rows of a subquery whose value is a cell, or part of a larger condition."""
    if isinstance(term, Exists):
        return _exists(carrier, term)
    if isinstance(term, InSubquery):
        return _member(carrier, term, may=True)
    column = outputs(term.plan)[0]
    make = carrier.below(term.plan, frozenset({column.id}))
    condition = Call("is not null", (column,), BOOLEAN)
    plan = term.plan
    link = Link("scalar subquery", make, condition, carrier.grade_of(plan), free_columns(plan), plan)
    return Linked(link, tuple((each, each) for each in term.outer))


def _exists(carrier: Carrier, term: Exists) -> Linked:
    plan = term.plan
    whole = isinstance(plan, Repartition) and isinstance(plan.child, (Relation, LocalRows, Range))
    grade = Grade("coarse", carrier.why) if whole else carrier.grade_of(plan)
    link = Link("EXISTS", carrier.below(plan), None, grade, free_columns(plan), plan)
    return Linked(link, tuple((each, each) for each in term.outer))


def _member(carrier: Carrier, term: InSubquery, may: bool) -> Linked:
    """The rows of an IN subquery that match; with ``may`` also those that a NULL leaves open."""
    columns = outputs(term.plan)
    parameters = [carrier.ids.attribute("value", value.type) for value in term.values]
    equal = both(Call("=", pair, BOOLEAN) for pair in zip(columns, parameters, strict=True))
    if may and equal is not None:
        equal = Call("coalesce", (equal, TRUE), BOOLEAN)
    make = carrier.below(term.plan, frozenset(column.id for column in columns))
    guarded = carrier.candidates and bool(computed(term.plan))
    condition, grade = (None, GUARDED) if guarded else (equal, EXACT)
    link = Link("IN", make, condition, grade, free_columns(term.plan), term.plan)
    return Linked(link, (*zip(parameters, term.values, strict=True), *((each, each) for each in term.outer)))


def partners(carrier: Carrier, operator: str, node: Node, other: Node, condition: Expression | None) -> Linked:
    """The rows of ``other`` that match a row of ``node`` under a join's condition."""
    used = reads([] if condition is None else [condition])
    pairs = tuple((column, column) for column in unique(outputs(node)) if column.id in used)
    grade = carrier.grade_of(other)
    if carrier.candidates:
        plain = [part for part in conjuncts(condition) if is_plain(part, computed(node) | computed(other))]
        grade = grade if len(plain) == len(list(conjuncts(condition))) else GUARDED
        condition = both(plain)
    return Linked(Link(operator, carrier.below(other, used), condition, grade, free_columns(other), other), pairs)


def semijoin_links(carrier: Carrier, node: Join, counts: bool) -> list[Linked]:
    """The matching rows of a semijoin's or an antijoin's right side; of an ``existence`` join if its column counts."""

    def link(other: Carrier) -> Linked:
        return partners(other, node.kind.replace("_", " "), node.left, node.right, node.condition)

    if node.kind == "left_anti":
        return against(carrier, node.right, link, always=guards_pairs(node))
    return [link(carrier)] if counts else []


def guards_pairs(node: Join) -> bool:
    """Return True if a join's condition reads computed values, so that pairs that fail it are candidates."""
    return not all(is_plain(part, computed(node.left) | computed(node.right)) for part in conjuncts(node.condition))
