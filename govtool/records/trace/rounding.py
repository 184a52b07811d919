"""Sums of floats: each evaluation adds in another order, so that their last digits differ from one to the next.

Rows of such columns are told by their other columns, and only where these do not tell them apart by floats that are
close. A condition on such a column is evaluated over what the run wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from govtool.records.execute.compare import TOLERANCE
from govtool.records.plan.expressions import AggregateCall, Call, Cast, Expression, Literal
from govtool.records.plan.nodes import (
    Aggregate,
    Break,
    Definition,
    Expand,
    Generate,
    LocalRows,
    Project,
    Range,
    Reference,
    Relation,
    SetOperation,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.tree import Node, Term, fold_nodes, walk, walk_nodes
from govtool.records.plan.types import BOOLEAN, DOUBLE, FLOATS, INTEGRAL, Type
from govtool.records.trace.segment import alike, reads, subqueries

Columns = frozenset[int]
_NONE: Columns = frozenset()
_SUMS = frozenset({"sum", "try_sum", "avg", "try_avg", "mean"})
_MOMENTS = ("stddev", "std", "var", "covar", "corr", "skewness", "kurtosis", "regr_")
"""How functions begin whose terms are floats, whatever they are of."""


def rounded_columns(root: Node) -> Columns:
    """The ids of a plan's columns whose last digits depend on the order of a sum, and of those computed of them."""
    if not any(_is_sum(term) for node in walk_nodes(root) for term in walk(node)):
        return _NONE
    return _Rounded().of(root)


def is_close(column: Expression, other: Expression) -> Expression:
    """A condition: two floats are equal, or differ by no more than the order of a sum explains."""
    left, right = Cast(column, DOUBLE), Cast(other, DOUBLE)
    apart = Call("abs", (Call("-", (left, right), DOUBLE),), DOUBLE)
    largest = Call("greatest", (Call("abs", (left,), DOUBLE), Call("abs", (right,), DOUBLE)), DOUBLE)
    # Less, not at most: what is infinite is close to nothing else.
    near = Call("<", (apart, Call("*", (largest, Literal(TOLERANCE, DOUBLE)), DOUBLE)), BOOLEAN)
    return Call("or", (alike(column, other), near), BOOLEAN)


def _is_sum(term: Term) -> bool:
    if not isinstance(term, AggregateCall):
        return False
    if term.name.startswith(_MOMENTS):
        return True
    return term.name in _SUMS and any(getattr(each, "type", None) in FLOATS for each in term.arguments)


def _shows(kind: Type) -> bool:
    """Return whether a value of a type shows the last digits of a float: a truth or a whole number hardly does."""
    return kind != BOOLEAN and kind not in INTEGRAL


class _Rounded:
    """A pass over a plan."""

    def __init__(self) -> None:
        self._defined: dict[int, tuple[bool, ...]] = {}

    def of(self, root: Node) -> Columns:
        """The columns of a plan."""
        return fold_nodes(root, self._columns)

    def _columns(self, node: Node, inputs: tuple[Columns, ...]) -> Columns:
        below = _NONE.union(*inputs)
        if isinstance(node, Definition):
            self._defined[node.id] = tuple(column.id in below for column in outputs(node.child))
            return below
        if isinstance(node, Reference):
            marks = self._defined.get(node.id, ())
            return frozenset(c.id for c, mark in zip(node.columns, marks, strict=False) if mark)
        rule = _RULES.get(type(node))
        return below if rule is None else rule(self, node, below)

    def shows(self, value: Any, below: Columns) -> bool:
        """Return whether a value depends on the order of a sum, its own or one below."""
        if not _shows(value.type):
            return False
        if reads([value]) & below or any(_is_sum(term) for term in walk(value)):
            return True
        return any(self.of(each.plan) for each in subqueries([value]))

    def _of_project(self, node: Project, below: Columns) -> Columns:
        return frozenset(c.id for c in node.columns if self.shows(c.value, below))

    def _of_aggregate(self, node: Aggregate, below: Columns) -> Columns:
        return frozenset(c.id for c in (*node.keys, *node.measures) if self.shows(c.value, below))

    def _of_window(self, node: Window, below: Columns) -> Columns:
        return below | {c.id for c in node.columns if self.shows(c.value, below)}

    def _of_generate(self, node: Generate, below: Columns) -> Columns:
        read = reads([node.generator]) & below
        return below | {c.id for c in node.columns if _shows(c.type)} if read else below

    def _of_expand(self, node: Expand, below: Columns) -> Columns:
        pairs = [pair for line in node.projections for pair in zip(line, node.columns, strict=True)]
        return frozenset(column.id for value, column in pairs if self.shows(value, below))

    def _of_union(self, node: Union | SetOperation, below: Columns) -> Columns:
        pairs = [pair for child in node.nodes() for pair in zip(outputs(child), node.columns, strict=True)]
        return frozenset(new.id for old, new in pairs if old.id in below)

    def _of_leaf(self, node: Node, below: Columns) -> Columns:
        return _NONE


_RULES: dict[type, Callable[[_Rounded, Any, Columns], Columns]] = {
    Project: _Rounded._of_project,
    Aggregate: _Rounded._of_aggregate,
    Window: _Rounded._of_window,
    Generate: _Rounded._of_generate,
    Expand: _Rounded._of_expand,
    Union: _Rounded._of_union,
    SetOperation: _Rounded._of_union,
    **dict.fromkeys((Relation, LocalRows, Range, Break), _Rounded._of_leaf),
}
"""Operators with columns of their own; those of all others are as below."""
