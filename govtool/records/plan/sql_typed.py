"""What readers of SQL expressions share: names resolved in a scope, types made equal, casts made explicit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from sqlglot import exp

from govtool.errors import UnknownNameError
from govtool.records.plan.expressions import (
    Attribute,
    Call,
    Cast,
    Expression,
    Literal,
    Outer,
    SortKey,
)
from govtool.records.plan.sql_context import Context
from govtool.records.plan.sql_scope import Scope
from govtool.records.plan.sql_types import common
from govtool.records.plan.text_values import is_no_number, text_value
from govtool.records.plan.tree import Node
from govtool.records.plan.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Array,
    Map,
    Struct,
    Type,
    as_text,
)

_READ = {"this", "expression", "expressions", "safe", "typed", "big_int", "nulls_excluded", "is_string", "coalesce"}
_READ_OF: dict[str, frozenset[str]] = {
    "Column": frozenset({"table", "db", "catalog"}),
    "Case": frozenset({"ifs", "default"}),
    "If": frozenset({"true", "false"}),
    "In": frozenset({"query"}),
    "Between": frozenset({"low", "high"}),
    "Like": frozenset({"negate"}),
    "Cast": frozenset({"to"}),
    "TryCast": frozenset({"to"}),
    "Window": frozenset({"partition_by", "order", "spec", "over", "alias", "first"}),
    "Lag": frozenset({"offset", "default"}),
    "Lead": frozenset({"offset", "default"}),
    "Substring": frozenset({"start", "length"}),
    "TsOrDsAdd": frozenset({"unit"}),
    "TimestampTrunc": frozenset({"unit"}),
    "ArraySort": frozenset({"asc", "nulls_first"}),
    "Round": frozenset({"decimals"}),
}
"""Arguments of sqlglot's classes that are read, beside the usual ones; others are refused."""
_FLOAT_HOLDS = 1 << 24
"""Whole numbers up to here are floats without a loss."""
_SHORT = 10
"""A text with fewer digits is an int, whatever it is compared with."""


class TypedTerms(ABC):
    """A reader of expressions in one scope.

    Args:
        context: What the whole text shares.
        scope: The names.
    """

    def __init__(self, context: Context, scope: Scope) -> None:
        self.context = context
        self.scope = scope

    @abstractmethod
    def bound(self, at: exp.Expr) -> Expression:
        """Read an expression.

        Raises:
            UsageError: It names what is not there, or is not covered.
        """

    def require_known(self, at: exp.Expr, name: str) -> None:
        """Refuse what a function or an operator has beside the arguments that are read."""
        for key, value in at.args.items():
            if value and key not in _READ and key not in _READ_OF.get(name, ()):
                beside = "" if key in ("unit", "offset") else f" with {key.upper().replace('_', ' ')}"
                raise self.context.refused(f"{words(at)}{beside}", at=at)

    def condition(self, at: exp.Expr) -> Expression:
        """Read a boolean expression."""
        return self.cast(self.bound(at), BOOLEAN, at)

    def whole_condition(self, at: exp.Expr) -> Expression:
        """Read a condition that stands alone: Spark casts operands of AND and OR, but no whole condition.

        Raises:
            UsageError: It is of another type.
        """
        value = self.bound(at)
        if value.type not in (BOOLEAN, VOID):
            raise self.context.wrong(f"a condition is expected, and this is of type {as_text(value.type)}", at)
        return self.cast(value, BOOLEAN, at)

    def column(self, at: exp.Column) -> Expression:
        """Resolve a column: here, or in a query around this one."""
        name, qualifier = at.name.lower(), at.table.lower()
        if isinstance(at.this, exp.Star):
            raise self.context.refused("a star in an expression", at=at)
        scope: Scope | None = self.scope
        passed: list[Scope] = []
        while scope is not None:
            found = scope.found(name, qualifier)
            found = [each for each in found if each.name == at.name] or found  # in a session of case-sensitive names
            if len({each.id for each in found}) > 1:
                raise self.context.wrong(f"column '{at.sql()}' is ambiguous", at)
            if found:
                for inner in passed:
                    inner.outer[found[0].id] = found[0]
                return Outer(found[0]) if passed else found[0]
            passed.append(scope)
            scope = scope.parent
        nested = self._nested(at)
        if nested is not None:
            return nested
        if not qualifier and name in _aliases_beside(at):
            raise self.context.refused(f"the alias {at.name} in the SELECT that defines it", at=at)
        known = [c.name for alias, columns in self.scope.tables if qualifier in ("", alias) for c in columns]
        raise self.context.unknown("column", at.name, known, at)

    def _nested(self, at: exp.Column) -> Expression | None:
        """A field of a column of structs, ``address.city``; None where its first parts name no column."""
        parts = at.parts
        for taken in range(1, min(len(parts), 3)):
            table = parts[0].copy() if taken == 2 else None
            try:
                value = self.column(exp.Column(this=parts[taken - 1].copy(), table=table))
            except UnknownNameError:
                continue
            for part in parts[taken:]:
                value = self.field(value, part.name, at)
            return value
        return None

    def field(self, value: Expression, name: str, at: exp.Expr) -> Expression:
        """A field of a struct.

        Raises:
            UsageError: It has none of that name, or is no struct.
        """
        if not isinstance(value.type, Struct):
            raise self.context.refused(f"the field {name} of {as_text(value.type)}", at=at)
        names = [each.name for each in value.type.fields]
        fits = [n for n, each in enumerate(names) if each == name]
        fits = fits or [n for n, each in enumerate(names) if each.lower() == name.lower()]
        if len(fits) != 1:
            raise self.context.unknown("field", name, names, at)
        options = (("field", names[fits[0]]), ("ordinal", fits[0]))
        return Call("get field", (value,), value.type.fields[fits[0]].type, options=options)

    def sort_key(self, at: exp.Ordered, value: Expression) -> SortKey:
        """The key of an order."""
        return SortKey(value, bool(at.args.get("desc")), bool(at.args.get("nulls_first")))

    def comparable(self, at: exp.Expr, *values: Expression) -> tuple[Expression, ...]:
        """Operands of one type; a word that is compared with numbers fails in Spark, whatever the rows are."""
        same = self._same_type(at, values, _means_the_same if len(values) == 2 else _is_of_kind)
        for value, found in zip(values, same, strict=True):
            if isinstance(value, Literal) and isinstance(value.value, str) and is_no_number(value.value, found.type):
                raise self.context.wrong(f"'{value.value}' is no number, and is compared with one", at)
        return same

    def same_type(self, at: exp.Expr, *values: Expression) -> tuple[Expression, ...]:
        """Cast operands to the narrowest type that all of them have."""
        return self._same_type(at, values, _is_of_kind)

    def _same_type(
        self, at: exp.Expr, values: Sequence[Expression], is_sure: Callable[[Expression, Type], bool]
    ) -> tuple[Expression, ...]:
        """Cast operands to one type; without ANSI mode, only those that are surely cast to this one."""
        wide: Type | None = values[0].type
        for value in values[1:]:
            wide = None if wide is None else common(wide, value.type)
        if wide is None and self.context.mode == "ansi":
            raise self.context.wrong(f"no common type in {at.sql(dialect=self.context.dialect)}", at)
        has_float = any(value.type == FLOAT for value in values)
        if wide is None or (
            self.context.mode != "ansi"
            and not all(is_sure(value, wide) and not (has_float and _is_rounded(value)) for value in values)
        ):
            raise self.context.refused("operands of different types in a session without ANSI mode", at=at)
        return tuple(self.cast(value, wide, at) for value in values)

    def cast(self, value: Expression, kind: Type, at: exp.Expr) -> Expression:
        """Cast a value, where it is not of a type already."""
        if value.type == kind:
            return value
        if kind == BOOLEAN and value.type not in (VOID, STRING):
            raise self.context.wrong(f"a condition is expected: {at.sql(dialect=self.context.dialect)}", at)
        if isinstance(value, Literal) and value.type == STRING and kind != STRING:
            return self._constant(value, kind)
        return Literal(None, kind) if value == Literal(None, VOID) else Cast(value, kind, self.context.mode)

    def _constant(self, text: Literal, kind: Type) -> Expression:
        """The value of a text as another type; its cast, where that is for an engine to decide."""
        found = None if text.value is None else text_value(str(text.value), kind)
        return Cast(text, kind, self.context.mode) if found is None else Literal(found, kind)

    def subquery(self, at: exp.Expr) -> tuple[Node, tuple[Attribute, ...]]:
        """Read a subquery, with the columns of this scope that it reads."""
        query = at.unnest() if isinstance(at, exp.Subquery) else at
        plan, scope = self.context.query(query, self.scope)
        return plan, tuple(scope.outer.values())


def _is_of_kind(value: Expression, kind: Type) -> bool:
    """Return whether a value is cast to a type beside others of it in every session; a text is not."""
    return value.type in (kind, VOID) or not (value.type == STRING or isinstance(kind, (Array, Struct, Map)))


def _is_rounded(value: Expression) -> bool:
    """Return whether a whole number may not be the same as a float, which it is beside one without ANSI mode."""
    is_short = isinstance(value, Literal) and isinstance(value.value, int) and abs(value.value) <= _FLOAT_HOLDS
    return value.type in INTEGRAL and not is_short


def _means_the_same(value: Expression, kind: Type) -> bool:
    """Return whether one of two operands that are compared is the same in every session: also a text that is plain."""
    if isinstance(value, Literal) and value.type == STRING and isinstance(value.value, str):
        if kind in (INTEGER, LONG):
            return len(value.value) < _SHORT and value.value.isdecimal() and value.value.isascii()
        return kind in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return _is_of_kind(value, kind)


def _aliases_beside(at: exp.Expr) -> set[str]:
    """The aliases, in lower case, of the SELECT that an expression is in."""
    select = at.find_ancestor(exp.Select)
    return {each.alias.lower() for each in select.expressions if each.alias} if select is not None else set()


def words(at: exp.Expr) -> str:
    """A construct's name for a message: ``TABLE SAMPLE``; that of a function is Spark's."""
    if isinstance(at, exp.Bracket) and at.args.get("offset"):
        return "ELEMENT_AT"
    if isinstance(at, exp.Func) and not isinstance(at, exp.Case):
        text: str = at.sql(dialect="spark").partition("(")[0]
        if text.replace("_", "").isalnum():
            return text.upper()
    name = type(at).__name__
    return "".join(f" {c}" if c.isupper() and number else c for number, c in enumerate(name)).upper()
