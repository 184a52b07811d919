"""Conditions that name values: rows chosen by equality, as a set of values that a plan can be joined with.

An engine pushes ``user = 'a'`` to the inputs by itself, but evaluates a hundred of them, joined by OR, for every row.
As values they are one semijoin, which goes down to the inputs, and which a key sidecar can answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from govtool.errors import UsageError
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Cast, Expression, Literal, Value
from govtool.records.plan.nodes import Filter, LocalRows, Session, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, Type
from govtool.records.trace.back import Executor
from govtool.records.trace.normal import Ids
from govtool.records.trace.push import semijoined
from govtool.records.trace.segment import both, conjuncts

MAX_VALUES = 100_000
"""The most combinations of values that a condition is turned into."""
_FEW = 4
"""Up to so many combinations the condition itself is kept as well: an engine prunes files by constants."""
_COMPARED = {t.BOOLEAN, t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.STRING, t.DATE}
"""Types whose equality is that of their values."""
_INTEGERS = {t.BYTE: 8, t.SHORT: 16, t.INTEGER: 32, t.LONG: 64}
"""Bits of whole numbers."""


@dataclass(frozen=True, slots=True)
class ChosenValues:
    """What a condition asks of some columns.

    Attributes:
        columns: The columns, by id.
        values: The combinations that meet the condition, one value a column; none is NULL.
        complete: Whether a row with one of them meets the whole condition.
    """

    columns: tuple[Attribute, ...]
    values: frozenset[tuple[Value, ...]]
    complete: bool = True


def chosen_values(condition: Expression) -> ChosenValues | None:
    """The values that a condition chooses rows by; None where it does not name any, or more than ``MAX_VALUES``."""
    parts = [_values(part) for part in conjuncts(condition)]
    found = _all_of([part for part in parts if part is not None])
    return None if found is None else ChosenValues(found.columns, found.values, None not in parts)


def filtered(executor: Executor, ids: Ids, node: Node, condition: Expression) -> Node:
    """The rows of a plan that meet a condition."""
    chosen = chosen_values(condition)
    if chosen is None or not {column.id for column in chosen.columns} <= {column.id for column in outputs(node)}:
        return Filter(node, condition)
    copies = tuple(ids.attribute(column.name, column.type) for column in chosen.columns)
    kept = executor.keep(LocalRows(0, copies, tuple(sorted(chosen.values, key=repr))))
    same = both(Call("=", pair, BOOLEAN) for pair in zip(chosen.columns, copies, strict=True))
    joined = semijoined(node, kept, same)
    return joined if chosen.complete and len(chosen.values) > _FEW else Filter(joined, condition)


def _values(part: Expression) -> ChosenValues | None:
    if not isinstance(part, Call):
        return None
    if part.name == "or":
        return _any_of([_all_values(each) for each in _disjuncts(part)])
    if part.name in ("=", "<=>") and len(part.arguments) == 2:
        one, other = part.arguments
        return _equal(one, [other]) or _equal(other, [one])
    return _equal(part.arguments[0], part.arguments[1:]) if part.name == "in" else None


def _all_values(condition: Expression) -> ChosenValues | None:
    """The values of a conjunction, each part of which has to name some."""
    parts = [_values(part) for part in conjuncts(condition)]
    return None if None in parts else _all_of([part for part in parts if part is not None])


def _disjuncts(condition: Expression) -> Iterator[Expression]:
    waiting = [condition]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call) and each.name == "or":
            waiting.extend(each.arguments)
        else:
            yield each


def _equal(column: Expression, constants: list[Expression] | tuple[Expression, ...]) -> ChosenValues | None:
    if not isinstance(column, Attribute) or column.type not in _COMPARED:
        return None
    values = [constant(each, column.type) for each in constants]
    if any(value is None for value in values):
        return None
    return ChosenValues((column,), frozenset((value,) for value in values))


def constant(term: Expression, kind: Type) -> Value:
    """The value of a constant of a type, casts of whole numbers to wider ones included; None for anything else."""
    source, value = kind, term
    while isinstance(value, Cast) and value.type == source and _widens(value.value.type, source):
        source, value = value.value.type, value.value
    return value.value if isinstance(value, Literal) and value.type == source else None


def _widens(source: Type, target: Type) -> bool:
    return source in _INTEGERS and target in _INTEGERS and _INTEGERS[source] <= _INTEGERS[target]


def _all_of(parts: list[ChosenValues]) -> ChosenValues | None:
    """The product of values of different columns."""
    columns = [column for part in parts for column in part.columns]
    size = 1
    for part in parts:
        size *= max(len(part.values), 1)
    if not parts or size > MAX_VALUES or len({column.id for column in columns}) < len(columns):
        return None
    rows = [tuple(value for group in each for value in group) for each in product(*(part.values for part in parts))]
    return _in_order(columns, rows)


def _any_of(parts: list[ChosenValues | None]) -> ChosenValues | None:
    """The values of alternatives over the same columns."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({part.columns for part in known}) != 1:
        return None
    values = frozenset().union(*(part.values for part in known))
    return ChosenValues(known[0].columns, values) if len(values) <= MAX_VALUES else None


def _in_order(columns: list[Attribute], rows: list[tuple[Value, ...]]) -> ChosenValues:
    order = sorted(range(len(columns)), key=lambda at: columns[at].id)
    values = frozenset(tuple(row[at] for at in order) for row in rows)
    return ChosenValues(tuple(columns[at] for at in order), values)


def bound_condition(condition: str | Expression, columns: Sequence[Attribute], executor: object = None) -> Expression:
    """A condition over columns: as it is, or read from Spark SQL.

    Args:
        condition: The condition.
        columns: The columns that it may name.
        executor: What evaluates it, with the session that the plan ran in. Where it can start Spark, Spark reads what
            is not covered here.

    Raises:
        UsageError: It does not parse, or names what is not there.
    """
    if not isinstance(condition, str):
        return condition
    from govtool.records.plan.from_sql import condition_from_sql  # sqlglot is heavy

    session: Session | None = getattr(executor, "session", None)

    try:
        return condition_from_sql(condition, columns, ansi=session is None or session.ansi)
    except UsageError as error:
        read = getattr(executor, "condition", None)
        if error.code != "usage.sql-unsupported" or read is None:
            raise
        found: Expression | None = read(condition, columns)
        if found is None:
            raise UsageError(
                error.message,
                code=error.code,
                location=error.location,
                hint="pip install 'govtool[spark]': Spark reads it",
            ) from error
        return found
