"""Operators, values and functions of SQL as typed expressions, by the class that sqlglot gives them."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from govtool.records.plan.expressions import (
    Call,
    Case,
    Cast,
    Exists,
    Expression,
    InSubquery,
    Literal,
    ScalarSubquery,
)
from govtool.records.plan.nodes import Project, outputs
from govtool.records.plan.sql_typed import TypedTerms, words
from govtool.records.plan.sql_types import FUNCTIONS, NAMED, arithmetic, is_numeric
from govtool.records.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRAL,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    Array,
    Decimal,
    Map,
    Type,
    as_text,
)

_EPOCH = datetime.date(1970, 1, 1)
COMPARED = {"EQ": "=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<=", "NullSafeEQ": "<=>"}
ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "div", "Mod": "%"}
_TRUNCATED = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})
_INTERVALS = {"DAY": ("date_add", 1), "MONTH": ("add_months", 1), "YEAR": ("add_months", 12)}
"""Units of intervals that are added to dates: the function and how many of its units one is."""


def comparison(terms: TypedTerms, at: exp.Expr, name: str) -> Expression:
    """A comparison of two operands of one type."""
    left, right = terms.comparable(at, terms.bound(at.this), terms.bound(at.expression))
    if name == "NEQ":
        return Call("not", (Call("=", (left, right), BOOLEAN),), BOOLEAN)
    return Call(COMPARED[name], (left, right), BOOLEAN)


def _date_added(terms: TypedTerms, at: exp.TsOrDsAdd) -> Expression:
    """``date_add`` and ``date_sub``, which sqlglot writes as ``date_add(d, n * -1)``."""
    if at.text("unit").upper() != "DAY":
        raise terms.context.refused("date_add of anything but days", at=at)
    days, name = at.expression, "date_add"
    if isinstance(days, exp.Mul) and days.expression.sql() == "-1":
        days, name = days.this, "date_sub"
    return Call(name, (terms.cast(terms.bound(at.this), DATE, at), terms.cast(terms.bound(days), INTEGER, at)), DATE)


def _shifted(terms: TypedTerms, at: exp.Expr, interval: exp.Interval) -> Expression:
    """A date plus or minus an interval of days, months or years."""
    value, unit = terms.bound(at.this), interval.text("unit").upper().rstrip("S")
    count = interval.this
    if value.type != DATE or unit not in _INTERVALS or not isinstance(count, exp.Literal):
        raise terms.context.refused("an interval but days, months and years added to a date", at=at)
    try:
        number = int(count.name) * (-1 if isinstance(at, exp.Sub) else 1)
    except ValueError:
        raise terms.context.refused("an interval of no whole number", at=at) from None
    name, times = _INTERVALS[unit]
    return Call(name, (value, Literal(number * times, INTEGER)), DATE)


def _sorted_array(terms: TypedTerms, at: exp.ArraySort) -> Expression:
    value, ascending = terms.bound(at.this), at.args.get("asc")
    nulls = at.args.get("nulls_first")
    is_other = nulls is None or (ascending is None and not nulls.this)  # array_sort puts NULL last
    if is_other or at.expression is not None or not isinstance(value.type, Array):
        raise terms.context.refused("array_sort", at=at)
    if ascending is not None and not isinstance(ascending, exp.Boolean):
        raise terms.context.refused("sort_array in an order that is no constant", at=at)
    return Call("sort_array", (value, Literal(ascending is None or bool(ascending.this), BOOLEAN)), value.type)


def _rounded(terms: TypedTerms, at: exp.Round) -> Expression:
    """``round(x)`` and ``round(x, n)``, half up; a decimal keeps so many places and gets a digit more before them."""
    value, places = terms.bound(at.this), at.args.get("decimals")
    if places is not None and not (isinstance(places, exp.Literal) and places.is_int):
        raise terms.context.refused("round to a number of places that is no constant, or negative", at=at)
    count = 0 if places is None else int(places.name)
    kind = value.type
    if isinstance(kind, Decimal):
        scale = min(kind.scale, count)
        kind = Decimal(min(kind.precision - kind.scale + 1 + scale, 38), scale)
    elif not is_numeric(kind):
        raise terms.context.refused(f"round of {as_text(kind)}", at=at)
    return Call("round", (value, Literal(count, INTEGER)), kind)


def arithmetic_call(terms: TypedTerms, at: exp.Expr, name: str) -> Expression:
    """An operator on numbers, or a date plus or minus an interval."""
    if isinstance(at.expression, exp.Interval) and name in ("+", "-"):
        return _shifted(terms, at, at.expression)
    left, right = terms.bound(at.this), terms.bound(at.expression)
    kinds = arithmetic(name, _beside(left, right), _beside(right, left))
    if kinds is None:
        raise terms.context.refused(f"'{name}' on operands that are no numbers", at=at)
    is_mixed = FLOAT in (left.type, right.type) and (left.type in INTEGRAL or right.type in INTEGRAL)
    if terms.context.mode != "ansi" and is_mixed and name != "/":
        raise terms.context.refused("operands of different types in a session without ANSI mode", at=at)
    return Call(name, (terms.cast(left, kinds[0], at), terms.cast(right, kinds[1], at)), kinds[2], terms.context.mode)


def _beside(value: Expression, other: Expression) -> Type:
    """The type of an operand; a whole number that is written beside a decimal has only the digits that it needs."""
    if isinstance(value, Literal) and value.type in (INTEGER, LONG) and isinstance(other.type, Decimal):
        return Decimal(len(str(value.value).lstrip("-")), 0)
    return value.type


def _logical(terms: TypedTerms, at: exp.Expr) -> Expression:
    """AND or OR; a chain of one of them, which programs write by the thousand, takes no depth."""
    kind = type(at)
    operands: list[exp.Expr] = []
    while type(at) is kind:
        terms.require_known(at, kind.__name__)
        operands.append(at.expression)
        at = at.this
    found = terms.condition(at)
    for operand in reversed(operands):
        found = Call(kind.__name__.lower(), (found, terms.condition(operand)), BOOLEAN)
    return found


def _not(terms: TypedTerms, at: exp.Expr) -> Expression:
    return Call("not", (terms.condition(at.this),), BOOLEAN)


def _is(terms: TypedTerms, at: exp.Expr) -> Expression:
    value = terms.bound(at.this)
    if isinstance(at.expression, exp.Null):
        return Call("is null", (value,), BOOLEAN)
    if isinstance(at.expression, exp.Boolean):
        return Call("<=>", (terms.cast(value, BOOLEAN, at), terms.bound(at.expression)), BOOLEAN)
    raise terms.context.refused(words(at), at=at)


def _between(terms: TypedTerms, at: exp.Expr) -> Expression:
    value = terms.bound(at.this)
    low, high = terms.bound(at.args["low"]), terms.bound(at.args["high"])
    above, least = terms.comparable(at, value, low)
    below, most = terms.comparable(at, value, high)
    return Call("and", (Call(">=", (above, least), BOOLEAN), Call("<=", (below, most), BOOLEAN)), BOOLEAN)


def _in(terms: TypedTerms, at: exp.In) -> Expression:
    query = at.args.get("query")
    if query is None:
        if not at.expressions:
            raise terms.context.refused("IN over anything but a list or a subquery", at=at)
        items = [terms.bound(at.this), *map(terms.bound, at.expressions)]
        return Call("in", terms.comparable(at, *items), BOOLEAN)
    values = at.this.expressions if isinstance(at.this, exp.Tuple) else [at.this]
    plan, outer = terms.subquery(query)
    columns = outputs(plan)
    if len(columns) != len(values):
        raise terms.context.wrong(f"IN compares {len(values)} values with {len(columns)} columns", at)
    pairs = [terms.same_type(at, terms.bound(each), column) for each, column in zip(values, columns, strict=True)]
    if any(pair[1] is not column for pair, column in zip(pairs, columns, strict=True)):
        plan = Project(
            plan, tuple(terms.context.named(pair[1], c.name) for pair, c in zip(pairs, columns, strict=True))
        )
    return InSubquery(tuple(pair[0] for pair in pairs), plan, outer)


def _like(terms: TypedTerms, at: exp.Expr) -> Expression:
    like = Call("like", (terms.cast(terms.bound(at.this), STRING, at), terms.bound(at.expression)), BOOLEAN)
    return Call("not", (like,), BOOLEAN) if at.args.get("negate") else like


def _extract(terms: TypedTerms, at: exp.Expr) -> Expression:
    name = at.name.title()
    if name not in ("Year", "Month", "Day"):
        raise terms.context.refused(f"EXTRACT of {at.name.upper()}", at=at)
    return Call(FUNCTIONS[name].name, (terms.cast(terms.bound(at.expression), DATE, at),), INTEGER)


def _truncated(terms: TypedTerms, at: exp.TimestampTrunc) -> Expression:
    """``date_trunc``; Spark gives NULL for a unit that it does not know."""
    unit = at.text("unit").upper()
    if unit not in _TRUNCATED:
        raise terms.context.refused(f"date_trunc to {unit or 'a unit that is no constant'}", at=at)
    return Call("date_trunc", (Literal(unit, STRING), terms.cast(terms.bound(at.this), TIMESTAMP, at)), TIMESTAMP)


def _md5(terms: TypedTerms, at: exp.MD5) -> Expression:
    value = terms.bound(at.this)
    if value.type not in (STRING, BINARY, VOID):
        raise terms.context.refused(f"md5 of {as_text(value.type)}", at=at)
    return Call("md5", (terms.cast(value, BINARY, at),), STRING)


def _negative(terms: TypedTerms, at: exp.Expr) -> Expression:
    value = terms.bound(at.this)
    if isinstance(value, Literal) and isinstance(value.value, (int, float, decimal.Decimal)):
        return Literal(-value.value, value.type)
    if not is_numeric(value.type):
        raise terms.context.refused("'-' on an operand that is no number", at=at)
    return Call("negative", (value,), value.type, terms.context.mode)


def _literal(terms: TypedTerms, at: exp.Literal) -> Expression:
    if at.is_string:
        return Literal(at.this, STRING)
    text = at.this.lower()
    if "e" in text:
        double = float(text)
        if math.isinf(double):
            raise terms.context.wrong("a number out of the range of double", at)
        return Literal(double, DOUBLE)
    if "." in text:
        number = decimal.Decimal(text)
        _, digits, exponent = number.as_tuple()
        scale = -int(exponent)
        return Literal(number, Decimal(max(len(digits), scale), scale))
    value = int(text)
    if value >= 1 << 63:
        return Literal(decimal.Decimal(value), Decimal(len(text), 0))
    return Literal(value, INTEGER if value < 1 << 31 else LONG)


def _bytes(terms: TypedTerms, at: exp.Expr) -> Expression:
    """``X'00FF'``; of an odd number of digits the first one is 0, as in Spark."""
    digits = at.name if len(at.name) % 2 == 0 else f"0{at.name}"
    return Literal(bytes.fromhex(digits), BINARY)  # others do not parse


def _null(terms: TypedTerms, at: exp.Expr) -> Expression:
    return Literal(None, VOID)


def _dot(terms: TypedTerms, at: exp.Expr) -> Expression:
    if not isinstance(at.expression, exp.Identifier):
        raise terms.context.refused("this after a dot", at=at)
    return terms.field(terms.bound(at.this), at.expression.name, at)


def _element(terms: TypedTerms, at: exp.Expr) -> Expression:
    """``list[0]`` and ``map['key']``: NULL where there is no such element, whatever the session's mode."""
    value, (position,) = terms.bound(at.this), at.expressions
    if isinstance(value.type, Map):
        key = terms.cast(terms.bound(position), value.type.key, at)
        return Call("get value", (value, key), value.type.value)
    if not isinstance(value.type, Array):
        raise terms.context.refused("an element of this", at=at)
    place = terms.cast(terms.bound(position), INTEGER, at)
    return Call("get item", (value, place), value.type.element, "legacy")


def _boolean(terms: TypedTerms, at: exp.Expr) -> Expression:
    return Literal(bool(at.this), BOOLEAN)


def _paren(terms: TypedTerms, at: exp.Expr) -> Expression:
    return terms.bound(at.this)


def _array(terms: TypedTerms, at: exp.Expr) -> Expression:
    if not at.expressions:
        return Call("array", (), Array(VOID))
    items = terms.same_type(at, *map(terms.bound, at.expressions))
    return Call("array", items, Array(items[0].type))


def _case(terms: TypedTerms, at: exp.Case) -> Expression:
    conditions = []
    for branch in at.args["ifs"]:
        test = branch.this if at.this is None else exp.EQ(this=at.this.copy(), expression=branch.this)
        conditions.append(terms.condition(test))
    other = at.args.get("default")
    texts = [branch.args["true"] for branch in at.args["ifs"]] + ([other] if other else [])
    return _branches(terms, at, conditions, texts)


def _if(terms: TypedTerms, at: exp.If) -> Expression:
    other = at.args.get("false")
    return _branches(terms, at, [terms.condition(at.this)], [at.args["true"], *([other] if other else [])])


def _branches(terms: TypedTerms, at: exp.Expr, conditions: list[Expression], texts: list[exp.Expr]) -> Expression:
    results = terms.same_type(at, *map(terms.bound, texts))
    other = results[len(conditions)] if len(results) > len(conditions) else None
    return Case(tuple(zip(conditions, results, strict=False)), other, results[0].type)


def _coalesce(terms: TypedTerms, at: exp.Expr) -> Expression:
    items = terms.same_type(at, terms.bound(at.this), *map(terms.bound, at.expressions))
    return Call("coalesce", items, items[0].type)


def _nullif(terms: TypedTerms, at: exp.Expr) -> Expression:
    value = terms.bound(at.this)
    left, right = terms.same_type(at, value, terms.bound(at.expression))
    return Case(((Call("=", (left, right), BOOLEAN), Literal(None, value.type)),), value, value.type)


def _casted(terms: TypedTerms, at: exp.Expr) -> Expression:
    value, kind = terms.bound(at.this), _type_of(terms, at.args["to"])
    if isinstance(value, Literal) and value.type == STRING and kind == DATE:
        return _date(terms, str(value.value), at)
    return value if value.type == kind else Cast(value, kind, terms.context.mode)


def _date(terms: TypedTerms, text: str, at: exp.Expr) -> Expression:
    try:
        return Literal((datetime.date.fromisoformat(text) - _EPOCH).days, DATE)
    except ValueError as error:
        raise terms.context.wrong(f"'{text}' is no date", at) from error


def _type_of(terms: TypedTerms, at: exp.DataType) -> Type:
    """A type that the text names."""
    name = at.this.name
    if name == "DECIMAL":
        digits = [int(each.name) for each in at.expressions] or [10]
        return Decimal(digits[0], digits[1] if len(digits) > 1 else 0)
    if name == "ARRAY" and at.expressions:
        return Array(_type_of(terms, at.expressions[0]))
    if name not in NAMED or at.expressions:
        raise terms.context.refused(f"the type {at.sql(dialect=terms.context.dialect)}", at=at)
    return NAMED[name]


def function_call(terms: TypedTerms, at: exp.Expr, name: str) -> Expression:
    """A function that Spark has under a name, with its arguments cast."""
    known = FUNCTIONS[name]
    listed = [value if isinstance(value, list) else [value] for value in at.args.values()]
    texts = [part for parts in listed for part in parts if isinstance(part, exp.Expr)]
    if not known.least <= len(texts) <= known.most:
        raise terms.context.refused(f"{known.name} with {len(texts)} arguments", at=at)
    if known.name == "size" and terms.context.mode != "ansi":
        raise terms.context.refused("size in a session without ANSI mode", at=at)
    if name == "TsOrDsToDate":
        return terms.cast(terms.bound(texts[0]), DATE, at)
    arguments = []
    for number, text in enumerate(texts):
        value, wanted = terms.bound(text), known.parameters[min(number, len(known.parameters) - 1)]
        arguments.append(value if wanted is None else terms.cast(value, wanted, at))
    return Call(known.name, tuple(arguments), known.result([value.type for value in arguments]))


def _scalar(terms: TypedTerms, at: exp.Expr) -> Expression:
    plan, outer = terms.subquery(at)
    columns = outputs(plan)
    if len(columns) != 1:
        raise terms.context.wrong(f"a scalar subquery with {len(columns)} columns", at)
    return ScalarSubquery(plan, columns[0].type, outer)


def _exists(terms: TypedTerms, at: exp.Expr) -> Expression:
    if not isinstance(at.this, exp.Query):
        raise terms.context.refused("the function EXISTS", at=at)
    return Exists(*terms.subquery(at.this))


READERS: dict[type, Callable[[TypedTerms, Any], Expression]] = {
    exp.Column: TypedTerms.column,
    exp.And: _logical,
    exp.Or: _logical,
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Extract: _extract,
    exp.Neg: _negative,
    exp.Literal: _literal,
    exp.HexString: _bytes,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Bracket: _element,
    exp.Dot: _dot,
    exp.Paren: _paren,
    exp.Array: _array,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Cast: _casted,
    exp.TryCast: _casted,
    exp.Subquery: _scalar,
    exp.Select: _scalar,
    exp.Exists: _exists,
    exp.TsOrDsAdd: _date_added,
    exp.ArraySort: _sorted_array,
    exp.Round: _rounded,
    exp.TimestampTrunc: _truncated,
    exp.MD5: _md5,
}
