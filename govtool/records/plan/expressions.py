"""Typed expressions of an exact plan.

Every expression knows its Spark SQL type, so that no executor has to infer one. Names of functions and operators are
Spark SQL's, in lower case: ``upper``, ``date_add``. Operators are named

* ``=``, ``<=>``, ``<``, ``<=``, ``>``, ``>=`` (``<>`` is ``not`` of ``=``), ``and``, ``or``, ``not``, ``is null``,
  ``is not null``, ``in`` (the value, then the list), ``like``, ``ilike`` (option ``escape``), ``rlike``;
* ``+``, ``-``, ``*``, ``/``, ``div``, ``%``, ``negative``, ``&``, ``|``, ``^``, ``~``; operands have one
  type, casts are explicit;
* ``get field`` (options ``field``, ``ordinal``), ``get item`` (array, index from 0), ``get value`` (map, key),
  ``array``, ``named_struct`` (name, value, …), ``map`` (key, value, …), ``coalesce``.

IF is a Case, COUNT(*) is ``count`` of a literal. Comparisons of floats follow Spark: NaN equals NaN and is the largest.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Literal as OneOf

from govtool.records.plan.tree import Node, Term
from govtool.records.plan.types import BOOLEAN, Type

Mode = OneOf["", "ansi", "legacy", "try"]
"""Evaluation on overflow, division by zero, bad casts: raise, wrap or NULL as old Spark did, or NULL."""

Value = None | bool | int | float | str | bytes | decimal.Decimal | tuple["Value", ...]
"""A value in Catalyst's own form, whatever the time zone: a date is days and a timestamp microseconds since 1970 (UTC),
an interval is months or microseconds (``interval``: the tuple of months, days, microseconds), an array or a struct is a
tuple of values, a map a tuple of (key, value) tuples. The type beside it says which."""


@dataclass(frozen=True, slots=True)
class Literal(Term):
    """A constant. It is private data: the codec can write a plan without these."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Attribute(Term):
    """A column of an input, by its id. Two attributes are the same column if and only if their ids are equal."""

    id: int
    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Outer(Term):
    """A column of the query around a correlated subquery. It is a leaf: its attribute is none of the inputs' here."""

    attribute: Attribute

    def parts(self) -> tuple[tuple[Term, ...], tuple[Node, ...]]:
        """Nothing: a walk over an operator's expressions meets only columns of its own inputs."""
        return (), ()

    @property
    def type(self) -> Type:
        """The attribute's type."""
        return self.attribute.type


@dataclass(frozen=True, slots=True)
class Call(Term):
    """A function or operator on the values of one row."""

    name: str
    arguments: tuple[Expression, ...]
    type: Type
    mode: Mode = ""
    """Empty where the function has no modes."""
    options: tuple[tuple[str, Value], ...] = ()
    """Options that are no arguments, sorted by name: ``escape`` of LIKE, ``field`` and ``ordinal`` of ``get field``."""
    deterministic: bool = True
    zone: str = ""
    """The session time zone, where the function depends on it."""


@dataclass(frozen=True, slots=True)
class Cast(Term):
    """``CAST(value AS type)``, or TRY_CAST."""

    value: Expression
    type: Type
    mode: Mode = "ansi"
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Case(Term):
    """``CASE WHEN … THEN … ELSE … END``; IF, and COALESCE-like calls keep their names."""

    branches: tuple[tuple[Expression, Expression], ...]
    """Conditions with results."""
    otherwise: Expression | None
    type: Type


@dataclass(frozen=True, slots=True)
class Variable(Term):
    """A parameter of a lambda, where it is used and where it is declared."""

    id: int
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Lambda(Term):
    """A lambda, as an argument of a higher-order function."""

    parameters: tuple[Variable, ...]
    body: Expression

    @property
    def type(self) -> Type:
        """The body's type."""
        return self.body.type


@dataclass(frozen=True, slots=True)
class SortKey(Term):
    """One key of an order."""

    value: Expression
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class AggregateCall(Term):
    """An aggregate function over the rows of a group or of a frame."""

    name: str
    """Spark SQL's, in lower case. ``count`` with a literal argument counts rows."""
    arguments: tuple[Expression, ...]
    type: Type
    distinct: bool = False
    filter: Expression | None = None
    """FILTER (WHERE …)."""
    order: tuple[SortKey, ...] = ()
    """WITHIN GROUP (ORDER BY …)."""
    mode: Mode = ""
    options: tuple[tuple[str, Value], ...] = ()
    """``ignore nulls`` of first and last, and their like; sorted by name."""
    deterministic: bool = True
    """False for first, last, any_value and collect_list: the order of rows decides."""


Bound = OneOf["unbounded preceding", "current row", "unbounded following"]


@dataclass(frozen=True, slots=True)
class Frame(Term):
    """A window frame. A bound that is an expression is an offset: below zero before the row, above zero after it."""

    kind: OneOf["rows", "range"]
    lower: Bound | Expression
    upper: Bound | Expression


@dataclass(frozen=True, slots=True)
class WindowCall(Term):
    """A function over a window: an aggregate, a rank (``row_number`` …), or ``lag``, ``lead``, ``nth_value``."""

    function: AggregateCall | Call | Udf | Opaque
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    frame: Frame | None
    """None where the function allows no other than its own."""
    type: Type


@dataclass(frozen=True, slots=True)
class UdfReference:
    """A function of the user's own, found again by digest, never by code from a store."""

    module: str
    """``__main__`` for a function of the script itself."""
    qualname: str
    digest: str
    """SHA-256 of its normalised source, with those of what it refers to; empty: cannot be found again."""
    kind: str
    """``python``, ``pandas``, ``arrow``, ``pandas-aggregate``, ``map-in-pandas``, ``java`` …"""
    reason: str = ""
    """The reason why there is no digest."""


@dataclass(frozen=True, slots=True)
class Udf(Term):
    """A call of a user-defined function on a row, on a batch of rows, or on a group."""

    reference: UdfReference
    arguments: tuple[Expression, ...]
    type: Type
    aggregate: bool = False
    deterministic: bool = True
    names: tuple[str, ...] = ()
    """Keywords of the last arguments."""


@dataclass(frozen=True, slots=True)
class ScalarSubquery(Term):
    """A scalar subquery: one column, at most one row, NULL if there is none."""

    plan: Node
    type: Type
    outer: tuple[Attribute, ...] = ()
    """Columns of the query around it that it reads."""


@dataclass(frozen=True, slots=True)
class Exists(Term):
    """``EXISTS (subquery)``."""

    plan: Node
    outer: tuple[Attribute, ...] = ()

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class InSubquery(Term):
    """``(values) IN (subquery)``, three-valued."""

    values: tuple[Expression, ...]
    plan: Node
    outer: tuple[Attribute, ...] = ()

    @property
    def type(self) -> Type:
        """BOOLEAN."""
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Opaque(Term):
    """A value that cannot be evaluated again: the break is this cell's alone unless it steers rows."""

    reason: str
    arguments: tuple[Expression, ...]
    type: Type
    aggregate: bool = False


Expression = (
    Literal | Attribute | Outer | Call | Cast | Case | Variable | Lambda | AggregateCall | WindowCall | Udf
    | ScalarSubquery | Exists | InSubquery | Opaque
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Named(Term):
    """An output column: a value under an id and a name. A column that is passed on keeps its id."""

    value: Expression
    id: int
    name: str

    @property
    def type(self) -> Type:
        """The value's type."""
        return self.value.type

    @property
    def attribute(self) -> Attribute:
        """The column as what reads it refers to it."""
        return Attribute(self.id, self.name, self.value.type)

    @property
    def is_passed(self) -> bool:
        """True of a column that is passed on."""
        return isinstance(self.value, Attribute) and self.value.id == self.id


def passed(attribute: Attribute) -> Named:
    """A column that is passed on as it is."""
    return Named(attribute, attribute.id, attribute.name)
