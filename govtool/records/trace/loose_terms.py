"""Expressions in place of values that cannot be evaluated again: they read what these read, and have no value.

What a cell or a condition reads stays in the plan, so that its rows are in the trace as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Case,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Outer,
    ScalarSubquery,
)
from govtool.records.plan.tree import Term
from govtool.records.plan.types import BOOLEAN, LONG, Type

_READ = (Attribute, Outer, ScalarSubquery, Exists, InSubquery)


def read_by(terms: Iterable[Term]) -> list[Expression]:
    """The columns and subqueries that expressions read, each once."""
    return list(dict.fromkeys(each for term in terms for each in _read(term)))


def _read(term: Term) -> Iterator[Expression]:
    waiting = [term]
    while waiting:
        each = waiting.pop()
        if isinstance(each, _READ):
            yield each
        if not isinstance(each, (Attribute, Outer)):
            waiting.extend(reversed(each.terms()))


def always(values: Iterable[Expression]) -> Expression:
    """A condition that is true whatever the values are; without values a literal."""
    parts = [_either_way(value) for value in values]
    if not parts:
        return Literal(True, BOOLEAN)
    made = parts[0]
    for part in parts[1:]:
        made = Call("and", (made, part), BOOLEAN)
    return made


def _either_way(value: Expression) -> Expression:
    read = value if isinstance(value, Exists) else Call("is null", (value,), BOOLEAN)
    return Call("or", (read, Literal(True, BOOLEAN)), BOOLEAN)


def unknown(values: Iterable[Expression], kind: Type) -> Expression:
    """NULL of a type, whatever the values are."""
    nothing = Literal(None, kind)
    read = list(values)
    return Case(((always(read), nothing),), nothing, kind) if read else nothing


def counted(values: Iterable[Term]) -> AggregateCall:
    """An aggregate that reads what some expressions read, and that every row is a term of."""
    return AggregateCall("count", (always(read_by(values)),), LONG)
