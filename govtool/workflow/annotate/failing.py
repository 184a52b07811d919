"""Expressions that may fail on a value, as ``1 / x`` in ANSI mode, and rows for which they are not evaluated.

A query fails only on rows that reach the expression. Candidates, which a condition keeps out, do not: an annotator that
is careful evaluates such an expression only for rows that are there. For the others it is evaluated after a deletion
that may let them in.
"""

from __future__ import annotations

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.records.plan.expressions import Attribute, Call, Case, Cast, Expression, Literal, Named, Outer
from govtool.records.plan.tree import walk
from govtool.records.plan.types import BOOLEAN, FLOATS, INTEGRAL, STRING, Decimal, Type
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.circuit import FailingRows
from govtool.workflow.annotate.rows import LONG_ONE, LONG_ZERO, Rows, chosen, there
from govtool.workflow.annotate.tables import KeptTable

_SURE = frozenset(
    {
        "=", "<=>", "<", "<=", ">", ">=", "and", "or", "not", "is null", "is not null", "coalesce", "in", "isnan",
        "greatest", "least", "nvl", "nvl2", "nullif", "if", "like", "startswith", "endswith", "contains", "upper",
        "lower", "length", "concat", "trim", "ltrim", "rtrim", "get field", "array", "named_struct", "year", "month",
        "dayofmonth", "quarter", "size",
    }
)  # fmt: skip
"""Functions that give a result for all values of their types."""


def can_fail(value: Expression) -> bool:
    """Return whether an expression may be an error for some values; so it may where that is not known."""
    return any(_fails(term) for term in walk(value) if not isinstance(term, (Attribute, Outer, Literal, Case, Named)))


def _fails(term: object) -> bool:
    if isinstance(term, Call):
        return term.mode != "try" and term.name not in _SURE
    return not isinstance(term, Cast) or not (term.mode == "try" or _is_sure_cast(term.value.type, term.type))


def _is_sure_cast(before: Type, after: Type) -> bool:
    """Return whether a cast has a result for every value: one to text, to a wider number, or to the same type."""
    if before == after or after == STRING:
        return True
    if before in INTEGRAL:
        place = INTEGRAL.index(before)
        digits = (3, 5, 10, 19)[place]
        fits = isinstance(after, Decimal) and after.precision - after.scale >= digits
        return fits or after in FLOATS or after in INTEGRAL[place:]
    if isinstance(before, Decimal):
        room = isinstance(after, Decimal) and after.precision - after.scale >= before.precision - before.scale
        return room or after in FLOATS
    return before in FLOATS and after in FLOATS


def is_late(a: Annotator, rows: Rows, value: Expression) -> bool:
    """Return whether an expression is not evaluated for those of the rows that are not there."""
    return a.is_careful and rows.candidates and can_fail(value)


def value_if_there(rows: Rows, value: Expression) -> Expression:
    """A value for the rows that are there, NULL for candidates."""
    return chosen(there(rows.times), value)


def condition_if_there(rows: Rows, condition: Expression) -> Expression:
    """A condition for the rows that are there, false for candidates."""
    return chosen(there(rows.times), condition, Literal(False, BOOLEAN))


def is_absent(rows: Rows) -> Expression:
    """The condition that a row is a candidate."""
    return Call("not", (there(rows.times),), BOOLEAN)


def failing_rows(a: Annotator, rows: Rows, table: KeptTable, value: Expression) -> FailingRows | None:
    """The rows of a kept table over which an expression may fail; None where that does not matter."""
    if not (a.is_careful and can_fail(value)):
        return None
    late = chosen(is_absent(rows), LONG_ONE, LONG_ZERO) if rows.candidates else LONG_ZERO
    nodes, absent = table.ids(rows.annotation, late)
    return FailingRows(nodes, np.asarray(absent).astype(bool))
