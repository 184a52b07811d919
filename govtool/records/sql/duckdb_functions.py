"""Functions and operators in DuckDB's SQL, by name, each with the types for which it gives what Spark gives."""

from __future__ import annotations

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call, Literal
from govtool.records.sql.dialect import Dialect, NotExact, quoted
from govtool.records.sql.duckdb_calls import WriteFunction, number_of, typed
from govtool.records.sql.duckdb_casts import GUARD
from govtool.records.sql.duckdb_decimals import divided_decimals, divisor, require_short, rounded_product
from govtool.records.sql.duckdb_lists import LIST_CALLS, concatenated, with_name
from govtool.records.sql.duckdb_rounding import round_half_up
from govtool.records.sql.duckdb_text import TEXT_CALLS
from govtool.records.sql.duckdb_times import TIME_CALLS

_NAMED = {"+": "add", "-": "subtract", "*": "multiply"}


def _arithmetic(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    text = f"({parts[0]} {call.name} {parts[1]})"
    if call.type in t.INTEGRAL and kinds == [call.type, call.type]:
        # By its name, as DuckDB turns n + 1 < 0 into n < -1: the error of a sum that is too large would be lost.
        return f"CAST({_NAMED[call.name]}({', '.join(parts)}) AS {dialect.type(call.type)})"
    if call.type in t.FLOATS and kinds == [call.type, call.type]:
        return text
    if isinstance(call.type, t.Decimal) and all(isinstance(each, t.Decimal) for each in kinds):
        left, right = (each for each in kinds if isinstance(each, t.Decimal))
        if call.name == "*":
            scale, precision = left.scale + right.scale, left.precision + right.precision
        else:
            scale = max(left.scale, right.scale)
            precision = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
        # A product that does not fit into 38 digits is an error in both, in ANSI mode.
        fits = precision <= 38 or (call.name == "*" and call.mode == "ansi")
        if fits and scale == call.type.scale:
            return f"CAST({text} AS {dialect.type(call.type)})"
        shorter = min(left.precision, right.precision)
        if call.name == "*" and shorter < 37 and 0 < scale - call.type.scale < 37:
            factors = parts if right.precision == shorter else parts[::-1]
            return rounded_product(factors, shorter, scale - call.type.scale, call.type)
    raise NotExact(f"{call.name} of {t.as_text(kinds[0])} and {t.as_text(kinds[-1])}")


def _divide(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    left, right = kinds
    if isinstance(call.type, t.Decimal) and isinstance(left, t.Decimal) and isinstance(right, t.Decimal):
        return divided_decimals(call, parts, (left, right), call.type)
    if call.type != t.DOUBLE or kinds != [t.DOUBLE, t.DOUBLE]:
        raise NotExact("the division of decimals or intervals")
    return f"({parts[0]} / {divisor(call, parts)})"


def _remainder(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if call.type not in t.INTEGRAL or kinds != [call.type, call.type]:
        raise NotExact("the remainder of decimals or floats")
    return f"({parts[0]} % {divisor(call, parts)})"


def _integral_divide(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if any(each not in t.INTEGRAL for each in kinds):
        raise NotExact("div of decimals or intervals")
    return f"CAST(({parts[0]} // {divisor(call, parts)}) AS BIGINT)"


def _like(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    pattern, escape = call.arguments[1], str(dict(call.options).get("escape", "\\"))
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str) or kinds[0] != t.STRING:
        raise NotExact("LIKE with a pattern that is no constant")
    suffix = f" ESCAPE {quoted(escape)}" if escape in pattern.value else ""
    return f"({parts[0]} LIKE {parts[1]}{suffix})"


def _ascii(function: str) -> WriteFunction:
    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        if kinds != [t.STRING]:
            raise NotExact(f"{call.name} of what is no text")
        wide = f"strlen({parts[0]}) <> length({parts[0]})"
        return f"(CASE WHEN {wide} THEN error('{GUARD}: {function}') ELSE {function}({parts[0]}) END)"

    return write


def _concat(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if isinstance(call.type, t.Array):
        return concatenated(dialect, call, parts, kinds)
    if any(each != t.STRING for each in kinds) or not parts:
        raise NotExact("concat of what is no text")
    return f"({' || '.join(parts)})"


def _substring(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    start, size = (number_of(each) for each in (call.arguments[1], call.arguments[-1]))
    if kinds[0] != t.STRING or len(parts) != 3 or start is None or size is None or start < 1 or size < 0:
        raise NotExact("substring at a place that is computed, or from the end")
    return f"substring({parts[0]}, {start}, {size})"


def _of_numbers(template: str) -> WriteFunction:
    """A template for one number, whose type the result has."""
    plain = typed(template, *((kind,) for kind in (*t.INTEGRAL, *t.FLOATS)))

    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        if isinstance(kinds[0], t.Decimal) and call.type == kinds[0]:
            return template.format(*parts)
        return plain(dialect, call, parts, kinds)

    return write


def _same_types(function: str) -> WriteFunction:
    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        if any(not t.same(each, call.type) and each != t.VOID for each in kinds):
            raise NotExact(f"{call.name} of several types")
        if function != "coalesce" and (call.type in t.FLOATS or not isinstance(call.type, (t.Scalar, t.Decimal))):
            raise NotExact(f"{call.name} of floats or nested values")
        return f"{function}({', '.join(parts)})"

    return write


def _in(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if any(not t.same(each, kinds[0]) and each != t.VOID for each in kinds) or not isinstance(
        kinds[0], (t.Scalar, t.Decimal)
    ):
        raise NotExact("IN over several types or nested values")
    return f"({parts[0]} IN ({', '.join(parts[1:])}))"


def _field(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    dialect.type(kinds[0])
    return f"struct_extract({parts[0]}, {quoted(str(dict(call.options)['field']))})"


def _item(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if call.mode == "ansi":
        require_short(parts)
        outside = f"{parts[1]} < 0 OR {parts[1]} >= len({parts[0]})"
        return f"(CASE WHEN {outside} THEN {_failing(dialect, call)} ELSE list_extract({parts[0]}, {parts[1]} + 1) END)"
    return f"(CASE WHEN {parts[1]} >= 0 THEN list_extract({parts[0]}, {parts[1]} + 1) END)"


def _element_at(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if isinstance(kinds[0], t.Map):
        return _map_value(dialect, call, parts, kinds)
    if not number_of(call.arguments[1]):
        raise NotExact("element_at of a computed place")
    if call.mode == "ansi":
        outside = f"len(l) < abs({parts[1]})"
        body = f"CASE WHEN {outside} THEN {_failing(dialect, call)} ELSE list_extract(l, {parts[1]}) END"
        return with_name(parts[0], "l", body)
    return f"list_extract({', '.join(parts)})"


def _failing(dialect: Dialect, call: Call) -> str:
    """An error, as Spark has one in ANSI mode, in the type of a call."""
    return f"CAST(error('{GUARD}: {call.name}') AS {dialect.type(call.type)})"


def _array_contains(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    """NULL where the value is not among those that are known."""
    element = kinds[0].element if isinstance(kinds[0], t.Array) else t.VOID
    if element not in (*t.INTEGRAL, t.STRING, t.DATE, t.BOOLEAN) or kinds[1] != element:
        raise NotExact(f"array_contains of {t.as_text(kinds[0])}")
    require_short(parts)
    found, unknown = f"list_contains({parts[0]}, {parts[1]})", f"list_count({parts[0]}) < len({parts[0]})"
    return (
        f"(CASE WHEN {parts[0]} IS NOT NULL AND {parts[1]} IS NOT NULL AND ({found} OR NOT {unknown}) THEN {found} END)"
    )


def _map_value(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    return f"list_extract(map_extract({parts[0]}, {parts[1]}), 1)"


def _array(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    return f"CAST([{', '.join(parts)}] AS {dialect.type(call.type)})"


def _struct(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if not isinstance(call.type, t.Struct):
        raise NotExact("a struct of an unknown type")
    fields = zip(call.type.fields, parts[1::2], strict=True)
    return f"struct_pack({', '.join(f'{quoted_name(each.name)} := {part}' for each, part in fields)})"


def _size(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    if call.mode == "legacy":
        raise NotExact("size, which is -1 of NULL")
    return f"CAST({'cardinality' if isinstance(kinds[0], t.Map) else 'len'}({parts[0]}) AS INTEGER)"


def _whole(function: str) -> WriteFunction:
    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        if kinds == [t.DOUBLE] and call.type == t.LONG:
            return f"CAST({function}({parts[0]}) AS BIGINT)"
        raise NotExact(f"{function} of {t.as_text(kinds[0])}")

    return write


_INTEGER_PAIRS = tuple((kind, kind) for kind in t.INTEGRAL)


def quoted_name(name: str) -> str:
    """A quoted name."""
    return '"' + name.replace('"', '""') + '"'


CALLS: dict[str, WriteFunction] = {
    "+": _arithmetic, "-": _arithmetic, "*": _arithmetic, "/": _divide, "%": _remainder, "div": _integral_divide,
    "not": lambda dialect, call, parts, kinds: f"(NOT {parts[0]})",
    "is null": lambda dialect, call, parts, kinds: f"({parts[0]} IS NULL)",
    "is not null": lambda dialect, call, parts, kinds: f"({parts[0]} IS NOT NULL)",
    "negative": _of_numbers("(- {0})"), "abs": _of_numbers("abs({0})"),
    "&": typed("({0} & {1})", *_INTEGER_PAIRS), "|": typed("({0} | {1})", *_INTEGER_PAIRS),
    "^": typed("xor({0}, {1})", *_INTEGER_PAIRS),
    ">>": typed("(CASE WHEN {0} < 0 THEN error('" + GUARD + ": >>') ELSE {0} >> {1} END)", (t.LONG, t.INTEGER)),
    "unix_micros": typed("epoch_us({0})", (t.TIMESTAMP,)),
    "timestamp_micros": typed("make_timestamp({0})", (t.LONG,)),
    "isnan": typed("coalesce(isnan({0}), FALSE)", (t.FLOAT,), (t.DOUBLE,)),
    "in": _in, "like": _like, "coalesce": _same_types("coalesce"), "nvl": _same_types("coalesce"),
    "greatest": _same_types("greatest"), "least": _same_types("least"),
    "upper": _ascii("upper"), "lower": _ascii("lower"), "concat": _concat,
    "length": typed("CAST(length({0}) AS INTEGER)", (t.STRING,)), "substring": _substring,
    "trim": typed("trim({0}, ' ')", (t.STRING,)), "ltrim": typed("ltrim({0}, ' ')", (t.STRING,)),
    "rtrim": typed("rtrim({0}, ' ')", (t.STRING,)),
    "startswith": typed("starts_with({0}, {1})", (t.STRING, t.STRING)),
    "endswith": typed("ends_with({0}, {1})", (t.STRING, t.STRING)),
    "contains": typed("contains({0}, {1})", (t.STRING, t.STRING)),
    "year": typed("CAST(year({0}) AS INTEGER)", (t.DATE,)), "month": typed("CAST(month({0}) AS INTEGER)", (t.DATE,)),
    "dayofmonth": typed("CAST(day({0}) AS INTEGER)", (t.DATE,)),
    "quarter": typed("CAST(quarter({0}) AS INTEGER)", (t.DATE,)),
    "date_add": typed("CAST({0} + {1} AS DATE)", (t.DATE, t.INTEGER)),
    "date_sub": typed("CAST({0} - {1} AS DATE)", (t.DATE, t.INTEGER)),
    "datediff": typed("CAST({0} - {1} AS INTEGER)", (t.DATE, t.DATE)),
    "add_months": typed("CAST({0} + to_months({1}) AS DATE)", (t.DATE, t.INTEGER)),
    "last_day": typed("last_day({0})", (t.DATE,)),
    "sqrt": typed("(CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt({0}) END)", (t.DOUBLE,)),
    "round": round_half_up, "floor": _whole("floor"), "ceil": _whole("ceil"),
    "array_contains": _array_contains, "array_size": _size, "element_at": _element_at,
    "get field": _field, "get item": _item, "get value": _map_value, "array": _array, "named_struct": _struct,
    "size": _size,
    "explode": lambda dialect, call, parts, kinds: parts[0], "posexplode": lambda dialect, call, parts, kinds: parts[0],
    "inline": lambda dialect, call, parts, kinds: parts[0],
    **LIST_CALLS,
    **TEXT_CALLS,
    **TIME_CALLS,
}  # fmt: skip
"""Writers of a call, given its arguments as text and their types; they raise ``NotExact``."""
