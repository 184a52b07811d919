"""Expressions in DuckDB's SQL, as far as they give what Spark gives.

A function stands here only with the types for which the two agree. Where they agree for most values only (upper of
ASCII text, casts of plain digits), the rest raises an error in the query: then Spark has to answer, and no wrong row
was given. A timestamp is DuckDB's TIMESTAMP in UTC.
"""

from __future__ import annotations

import datetime
import decimal
import math

from govtool.records.plan import functions
from govtool.records.plan import types as t
from govtool.records.plan.expressions import AggregateCall, Call, Cast, Lambda, Literal, Udf, Value, WindowCall
from govtool.records.plan.nodes import Generate, Session
from govtool.records.plan.text_values import text_value
from govtool.records.sql.dialect import Dialect, NotExact, quoted
from govtool.records.sql.duckdb_aggregates import Windowed, decimal_average
from govtool.records.sql.duckdb_casts import GUARD, cast_template
from govtool.records.sql.duckdb_functions import CALLS, quoted_name
from govtool.records.sql.duckdb_lists import is_compared, written_lambda
from govtool.records.sql.duckdb_rounding import decimal_of_double

_TYPES = {
    "boolean": "BOOLEAN", "byte": "TINYINT", "short": "SMALLINT", "integer": "INTEGER", "long": "BIGINT",
    "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "date": "DATE",
    "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP", "void": "INTEGER",
}  # fmt: skip
_COMPARISONS = {"=": "=", "<=>": "IS NOT DISTINCT FROM", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_UTC = frozenset({"UTC", "Etc/UTC", "Z", "+00:00", "GMT"})


class DuckDialect(Dialect):
    """DuckDB's SQL.

    Args:
        session: What the plan ran in.
    """

    name = "duckdb"

    def __init__(self, session: Session) -> None:
        self.session = session
        self.utc = session.zone in _UTC

    # ---- types and values -----------------------------------------------------------------------------------------

    def type(self, kind: t.Type) -> str:
        """A type's name."""
        if isinstance(kind, t.Scalar) and kind.name in _TYPES:
            return _TYPES[kind.name]
        if isinstance(kind, t.Decimal) and 0 <= kind.scale <= kind.precision:
            return f"DECIMAL({kind.precision}, {kind.scale})"
        if isinstance(kind, t.Array):
            return f"{self.type(kind.element)}[]"
        if isinstance(kind, t.Map):
            return f"MAP({self.type(kind.key)}, {self.type(kind.value)})"
        if isinstance(kind, t.Struct):
            names = [each.name.lower() for each in kind.fields]
            if len(set(names)) == len(names) and names:
                return (
                    f"STRUCT({', '.join(f'{quoted_name(each.name)} {self.type(each.type)}' for each in kind.fields)})"
                )
        raise NotExact(f"values of type {t.as_text(kind)}")

    def literal(self, literal: Literal) -> str:
        """A constant of exactly its type."""
        kind = self.type(literal.type)
        return f"CAST({self._value(literal.value, literal.type)} AS {kind})"

    def _value(self, value: Value, kind: t.Type) -> str:
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            if "\x00" in value:
                raise NotExact("a text with the character NUL")
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, bytes):
            return f"from_hex('{value.hex()}')"
        if isinstance(value, decimal.Decimal):
            return f"'{value:f}'"
        if isinstance(value, float):
            return f"'{_float(value)}'"
        if isinstance(value, int):
            return self._integer(value, kind)
        return self._nested(value, kind)

    def _integer(self, value: int, kind: t.Type) -> str:
        if kind == t.DATE:
            return f"'{_date(value)}'"
        if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
            return f"make_timestamp({value})"
        return f"'{value}'"

    def _nested(self, value: tuple[Value, ...], kind: t.Type) -> str:
        if isinstance(kind, t.Array):
            return f"[{', '.join(self._value(item, kind.element) for item in value)}]"
        if isinstance(kind, t.Struct):
            fields = zip(value, kind.fields, strict=True)
            return f"{{{', '.join(f'{quoted(each.name)}: {self._value(item, each.type)}' for item, each in fields)}}}"
        if isinstance(kind, t.Map):
            pairs = [pair for pair in value if isinstance(pair, tuple)]
            keys = ", ".join(self.literal(Literal(key, kind.key)) for key, _ in pairs)
            items = ", ".join(self.literal(Literal(item, kind.value)) for _, item in pairs)
            return f"MAP([{keys}], [{items}])"
        raise NotExact(f"a constant of type {t.as_text(kind)}")

    def local_table(self, rows: list[list[str]], names: list[str]) -> str:
        """VALUES."""
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"(VALUES {values}) AS rows ({', '.join(names)})"

    def keys_comparable(self, kind: t.Type) -> None:
        """Refuse maps."""
        if isinstance(kind, t.Map):
            raise NotExact("maps as keys")
        self.type(kind)

    def membership(self, steers: bool) -> None:
        """Refuse IN (subquery) as a value: there Spark gives FALSE for the NULL of the standard."""
        if not steers:
            raise NotExact("IN (subquery) as a value")

    # ---- functions ------------------------------------------------------------------------------------------------

    def call(self, call: Call, parts: list[str]) -> str:
        """A function or operator."""
        if call.mode == "try" or call.name not in functions.NAMES:
            raise NotExact(f"{call.name} in {call.mode or 'no'} mode")
        kinds = [each.type for each in call.arguments]
        if call.name in _COMPARISONS:
            return self._comparison(call.name, parts, kinds)
        if call.name in ("and", "or"):
            return f"({parts[0]} {call.name.upper()} {parts[1]})"
        write = CALLS.get(call.name)
        if write is None:
            raise NotExact(f"the function {call.name}")
        self.type(call.type)
        return write(self, call, parts, kinds)

    def _comparison(self, name: str, parts: list[str], kinds: list[t.Type]) -> str:
        if not t.same(kinds[0], kinds[1]) and t.VOID not in kinds:
            raise NotExact(f"a comparison of {t.as_text(kinds[0])} with {t.as_text(kinds[1])}")
        if isinstance(kinds[0], (t.Map, t.Array, t.Struct, t.Text)) and not _is_equality(name, kinds):
            raise NotExact("a comparison of nested or collated values")
        self.type(kinds[0])
        return f"({parts[0]} {_COMPARISONS[name]} {parts[1]})"

    def cast(self, cast: Cast, part: str) -> str:
        """A cast whose result is Spark's, or an error."""
        source, target = cast.value.type, cast.type
        if t.same(source, target):
            return part
        kind = self.type(target)
        if source == t.VOID:
            return f"CAST({part} AS {kind})"
        if cast.mode == "try":
            raise NotExact("TRY_CAST")
        if isinstance(cast.value, Literal) and isinstance(cast.value.value, str) and source == t.STRING:
            found = text_value(cast.value.value, target, self.session.zone)
            if found is not None:
                return self.literal(Literal(found, target))
        if isinstance(cast.value, Literal) and isinstance(cast.value.value, decimal.Decimal) and target == t.DOUBLE:
            return self.literal(Literal(float(cast.value.value), target))  # the nearest, as in Java
        if isinstance(cast.value, Literal) and source in t.INTEGRAL and isinstance(target, t.Decimal):
            return f"CAST({part} AS {kind})"  # a constant, which DuckDB evaluates before it reads
        if source == t.DOUBLE and isinstance(target, t.Decimal):
            return decimal_of_double(part, target)
        write = cast_template(source, target, cast.mode, self.utc)
        if write is None:
            raise NotExact(f"a cast of {t.as_text(source)} to {t.as_text(target)}")
        return write.format(part=part, kind=kind, guard=GUARD)

    def parameter(self, term: Lambda, parts: list[str]) -> str:
        """A lambda."""
        return written_lambda(self, term, parts[-1])

    def udf(self, call: Udf, parts: list[str]) -> str:
        """None."""
        raise NotExact(f"the function {call.reference.qualname}")

    # ---- groups, windows, generators ------------------------------------------------------------------------------

    def aggregate(self, call: AggregateCall, arguments: list[str], condition: str, order: list[str]) -> str:
        """An aggregate function."""
        if call.mode == "try" or order or set(dict(call.options)) - {"ignore nulls"}:
            raise NotExact(f"{call.name} with options")
        ignoring = bool(dict(call.options).get("ignore nulls"))
        kinds = [each.type for each in call.arguments]
        own = self.type(call.type)
        distinct = "DISTINCT " if call.distinct else ""
        conditions = [condition] if condition else []
        if call.name == "avg" and isinstance(kinds[0], t.Decimal):
            return decimal_average(distinct, arguments[0], kinds[0], condition, own)
        if call.name == "count":
            text = _count(call, arguments, distinct)
        elif call.name in ("collect_list", "collect_set"):
            conditions.append(f"{arguments[0]} IS NOT NULL")
            distinct = "DISTINCT " if call.name == "collect_set" else distinct
            text = f"list({distinct}{arguments[0]})"
        else:
            text = self._plain_aggregate(call, arguments, kinds, distinct)
            if ignoring:
                conditions.append(f"{arguments[0]} IS NOT NULL")
        filtered = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        if call.name in ("collect_list", "collect_set"):
            return f"coalesce({text}{filtered}, CAST([] AS {own}))"
        if call.name in ("sum", "count_if"):
            return Windowed.of(lambda over: f"CAST({text}{filtered}{over} AS {own})")
        return f"{text}{filtered}"

    def _plain_aggregate(self, call: AggregateCall, arguments: list[str], kinds: list[t.Type], distinct: str) -> str:
        name = _AGGREGATES.get(call.name)
        if name is None or len(arguments) != 1 or isinstance(kinds[0], (t.Map, t.Text)):
            raise NotExact(f"the aggregate {call.name}")
        if call.name in _MOMENTS and kinds[0] != t.DOUBLE:
            raise NotExact(f"{call.name} of values that are no doubles")
        if call.name in ("min", "max") and isinstance(kinds[0], (t.Array, t.Struct)):
            raise NotExact(f"{call.name} of nested values")
        if isinstance(kinds[0], t.Scalar) and kinds[0].name.startswith("interval"):
            raise NotExact(f"{call.name} of intervals")
        return f"{name}({distinct}{arguments[0]})"

    def over(self, call: WindowCall, function: str, partition: list[str], order: list[str], frame: str) -> str:
        """A window function."""
        if function.startswith("coalesce("):
            raise NotExact("lists over a window")
        if isinstance(function, Windowed):
            return function.write(super().over(call, "", partition, order, frame))
        return super().over(call, function, partition, order, frame)

    def rank(self, call: Call, parts: list[str]) -> str:
        """A function over a window that is no aggregate."""
        ignoring = " IGNORE NULLS" if dict(call.options).get("ignore nulls") else ""
        if call.name in ("lag", "lead", "nth_value"):
            return f"{call.name}({', '.join(parts)}{ignoring})"
        if call.name in ("rank", "dense_rank", "percent_rank", "cume_dist", "row_number"):
            parts = []
        function, own = f"{call.name}({', '.join(parts)})", self.type(call.type)
        return Windowed.of(lambda over: f"CAST({function}{over} AS {own})")

    def generate(self, node: Generate, generator: str, source: str, alias: str) -> str:
        """A lateral subquery."""
        call = node.generator
        name = call.name if isinstance(call, Call) else ""
        names = [self.column(each) for each in node.columns]
        kind = call.arguments[0].type if isinstance(call, Call) and call.arguments else t.VOID
        if isinstance(kind, t.Map) and name in ("explode", "posexplode"):
            position = f"generate_subscripts(map_keys({generator}), 1) - 1 AS p, " if name == "posexplode" else ""
            inner = f"SELECT {position}unnest(map_entries({generator})) AS u"
            values = (["CAST(p AS INTEGER)"] if position else []) + ["u.key", "u.value"]
        elif isinstance(kind, t.Array) and name in ("explode", "posexplode"):
            position = f"generate_subscripts({generator}, 1) - 1 AS p, " if name == "posexplode" else ""
            inner = f"SELECT {position}unnest({generator}) AS u"
            values = (["CAST(p AS INTEGER)"] if position else []) + ["u"]
        elif isinstance(kind, t.Array) and isinstance(kind.element, t.Struct) and name == "inline":
            inner = f"SELECT unnest({generator}) AS u"
            values = [f"struct_extract(u, {quoted(each.name)})" for each in kind.element.fields]
        else:
            raise NotExact(f"the generator {name or 'of a function of the user'}")
        columns = ", ".join(f"{value} AS {each}" for value, each in zip(values, names, strict=True))
        join = "LEFT JOIN" if node.outer else "JOIN"
        return f"{source} {join} LATERAL (SELECT {columns} FROM ({inner})) AS {alias} ON TRUE"


def _is_equality(name: str, kinds: list[t.Type]) -> bool:
    """Return whether nested values are compared for equality: NULLs within them are equal in both engines."""
    return name in ("=", "<=>") and all(
        is_compared(kind.element if isinstance(kind, t.Array) else kind) for kind in kinds
    )


_MOMENTS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")
_AGGREGATES = {
    "sum": "sum", "min": "min", "max": "max", "avg": "avg", "bool_and": "bool_and", "bool_or": "bool_or",
    "any_value": "first", "first": "first", "last": "last", "count_if": "count_if", "bit_and": "bit_and",
    "bit_or": "bit_or", "bit_xor": "bit_xor", **{name: name for name in _MOMENTS},
}  # fmt: skip


def _count(call: AggregateCall, arguments: list[str], distinct: str) -> str:
    if len(arguments) == 1 and isinstance(call.arguments[0], Literal) and call.arguments[0].value is not None:
        if not call.distinct:
            return "count(*)"
    elif len(arguments) > 1:  # a row with a NULL is not counted
        there = " AND ".join(f"{each} IS NOT NULL" for each in arguments)
        return f"count({distinct}CASE WHEN {there} THEN row({', '.join(arguments)}) END)"
    return f"count({distinct}{arguments[0]})"


def _float(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(value)


def _date(days: int) -> str:
    try:
        return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=days))
    except OverflowError as error:
        raise NotExact("a date outside of the years 1 to 9999") from error
