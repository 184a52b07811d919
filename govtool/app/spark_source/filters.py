"""Predicate push-down: Spark's filters as Arrow expressions, and their meaning for single columns.

Only filters whose meaning is the same in both are taken over; the rest is left to Spark. Filters are known by the name
of their class, as Spark 4.0 has none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_COMPARISONS = {
    "EqualTo": "__eq__",
    "GreaterThan": "__gt__",
    "GreaterThanOrEqual": "__ge__",
    "LessThan": "__lt__",
    "LessThanOrEqual": "__le__",
}
_TEXTS = {"StringStartsWith": "starts_with", "StringEndsWith": "ends_with", "StringContains": "match_substring"}
_TYPES = {"string": (str,), "bigint": (int,), "int": (int,), "boolean": (bool,)}
"""Types of columns, as Spark writes them, whose values compare alike here and there, and Python's for their values."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """One filter that a reader applies. Values are as Spark gave them."""

    kind: str
    """The name of Spark's class."""
    column: str
    values: tuple[Any, ...] = ()
    negated: bool = False


def push(filters: Iterable[Any], types: Mapping[str, str]) -> tuple[list[Pushed], list[Any]]:
    """Split filters into those that can be applied while reading, and the others, which Spark must apply.

    Args:
        filters: Of ``pyspark.sql.datasource.Filter``.
        types: Top-level columns and their types, as ``DataType.simpleString`` writes them.
    """
    taken: list[Pushed] = []
    left: list[Any] = []
    for one in filters:
        found = _pushed(one, types)
        if found is None:
            left.append(one)
        else:
            taken.append(found)
    return taken, left


def _pushed(one: Any, types: Mapping[str, str]) -> Pushed | None:
    kind = type(one).__name__
    if kind == "Not":
        inner = _pushed(one.child, types)
        if inner is None or inner.negated:
            return None
        return Pushed(inner.kind, inner.column, inner.values, negated=True)
    path: tuple[str, ...] = getattr(one, "attribute", ())
    if len(path) != 1 or path[0] not in types:
        return None
    column, expected = path[0], _TYPES.get(types[path[0]])
    if kind in ("IsNull", "IsNotNull"):
        return Pushed(kind, column)
    if expected is None:
        return None
    values = tuple(one.value) if kind == "In" else (one.value,)
    known = (kind == "In" and values) or kind in _COMPARISONS or (kind in _TEXTS and expected == (str,))
    # Nulls among the values make SQL's three-valued logic matter: that is left to Spark.
    if not known or any(type(value) not in expected for value in values):
        return None
    return Pushed(kind, column, values)


def expression(pushed: Iterable[Pushed]) -> Any:
    """All filters as one Arrow expression, or ``None`` if there are none. A null is never true, as in SQL."""
    whole: Any = None
    for one in pushed:
        part = _expression(one)
        whole = part if whole is None else whole & part
    return whole


def _expression(one: Pushed) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    field = pc.field(one.column)
    if one.kind in ("IsNull", "IsNotNull"):
        found = field.is_null() if one.kind == "IsNull" else field.is_valid()
    elif one.kind == "In":
        # Arrow's membership of a null is false, not null: say so, for the negation's sake.
        found = pc.if_else(field.is_valid(), field.isin(pa.array(one.values)), pa.scalar(None, pa.bool_()))
    elif one.kind in _TEXTS:
        found = getattr(pc, _TEXTS[one.kind])(field, one.values[0])
    else:
        found = getattr(field, _COMPARISONS[one.kind])(one.values[0])
    return ~found if one.negated else found


def allowed(pushed: Iterable[Pushed], column: str) -> frozenset[Any] | None:
    """The values that a column may have at all, or ``None`` if the filters do not list them."""
    found: frozenset[Any] | None = None
    for one in pushed:
        if one.column == column and not one.negated and one.kind in ("EqualTo", "In"):
            values = frozenset(one.values)
            found = values if found is None else found & values
    return found
