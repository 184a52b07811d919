"""Expressions in Spark's SQL, in a session with the recorded ANSI mode and time zone."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable

from govtool.records.plan import functions
from govtool.records.plan import types as t
from govtool.records.plan.expressions import AggregateCall, Call, Cast, Lambda, Literal, Udf, Value, WindowCall
from govtool.records.plan.nodes import Generate, Session
from govtool.records.sql.dialect import Dialect, NotExact

_NAMES = {
    "byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT", "timestamp": "TIMESTAMP_LTZ",
}  # fmt: skip
_BINARY = frozenset({"=", "<=>", "<", "<=", ">", ">=", "and", "or", "+", "-", "*", "/", "div", "%", "&", "|", "^"})
_TRY = {
    "+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod",
    "element_at": "try_element_at", "to_timestamp": "try_to_timestamp", "to_date": "try_to_date",
    "url_decode": "try_url_decode", "to_binary": "try_to_binary", "parse_url": "try_parse_url",
    "to_timestamp_ntz": "try_to_timestamp_ntz", "to_timestamp_ltz": "try_to_timestamp",
    "make_interval": "try_make_interval",
    "make_timestamp_ltz": "try_make_timestamp_ltz", "make_timestamp_ntz": "try_make_timestamp_ntz",
    "parse_json": "try_parse_json", "sum": "try_sum", "avg": "try_avg",
}  # fmt: skip
"""Functions that give NULL instead of an error, by the name of those that do not."""
_DAY = 86_400_000_000
_ALWAYS_NULL = frozenset({"unhex", "negative", "unbase64"})
"""Functions that ordinary SQL calls with a lax mode, whatever the session's."""
_SYMBOLS = {"<<": "shiftleft", ">>": "shiftright", ">>>": "shiftrightunsigned"}


class SparkDialect(Dialect):
    """Spark's SQL.

    Args:
        session: What the plan ran in; the statement has to run in the same.
    """

    name = "spark"

    def __init__(self, session: Session) -> None:
        self.session = session
        self.mode = "ansi" if session.ansi else "legacy"

    # ---- types and values -----------------------------------------------------------------------------------------

    def type(self, kind: t.Type) -> str:
        """A type's name in DDL."""
        if isinstance(kind, t.Scalar):
            return _NAMES.get(kind.name, kind.name.upper())
        if isinstance(kind, t.Decimal):
            return f"DECIMAL({kind.precision}, {kind.scale})"
        if isinstance(kind, t.Array):
            return f"ARRAY<{self.type(kind.element)}>"
        if isinstance(kind, t.Map):
            return f"MAP<{self.type(kind.key)}, {self.type(kind.value)}>"
        if isinstance(kind, t.Struct):
            return f"STRUCT<{', '.join(f'{identifier(each.name)}: {self.type(each.type)}' for each in kind.fields)}>"
        if isinstance(kind, t.Text) and kind.kind != "string":
            return f"{kind.kind.upper()}({kind.length})"
        if isinstance(kind, t.Text) and kind.collation.isidentifier():
            return f"STRING COLLATE {kind.collation}"
        raise NotExact(f"a value of type {kind}")

    def literal(self, literal: Literal) -> str:
        """A constant of exactly its type."""
        value, kind = literal.value, literal.type
        if value is None:
            return "NULL" if kind == t.VOID else f"CAST(NULL AS {self.type(kind)})"
        if isinstance(kind, t.Scalar):
            return self._scalar(value, kind)
        if isinstance(kind, t.Decimal) and isinstance(value, decimal.Decimal):
            return f"CAST('{value:f}' AS {self.type(kind)})"
        if isinstance(value, tuple):
            return self._nested(value, kind)
        if isinstance(kind, t.Text) and kind.kind == "string" and isinstance(value, str):
            return f"({string(value)} COLLATE {kind.collation})"
        raise NotExact(f"a constant of type {kind}")

    def _scalar(self, value: Value, kind: t.Scalar) -> str:
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return string(value)
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        if isinstance(value, float):
            return _float(value, self.type(kind))
        if isinstance(value, int):
            return self._integer(value, kind)
        if kind.name == "interval" and isinstance(value, tuple) and len(value) == 3:
            months, days, micros = (int(str(part)) for part in value)
            return f"make_interval(0, {months}, 0, {days}, 0, 0, CAST({_seconds(micros)} AS DECIMAL(18, 6)))"
        raise NotExact(f"a constant of type {kind.name}")

    def _integer(self, value: int, kind: t.Scalar) -> str:
        if kind in t.INTEGRAL:
            suffix = {"byte": "Y", "short": "S", "integer": "", "long": "L"}[kind.name]
            return f"{value}{suffix}" if value >= 0 else f"CAST('{value}' AS {self.type(kind)})"
        if kind == t.DATE:
            return f"date_from_unix_date(CAST('{value}' AS INT))"
        if kind == t.TIMESTAMP:
            return f"timestamp_micros(CAST('{value}' AS BIGINT))"
        if kind == t.TIMESTAMP_NTZ:
            return f"TIMESTAMP_NTZ'{_ntz(value)}'"
        if kind.name in ("interval year to month", "interval year", "interval month"):
            sign, months = ("-" if value < 0 else ""), abs(value)
            whole = f"INTERVAL {sign}'{months // 12}-{months % 12}' YEAR TO MONTH"
            return whole if kind.name.endswith("to month") else f"CAST({whole} AS {kind.name.upper()})"
        if kind.name.startswith("interval "):
            if kind.name == "interval day" and value % _DAY == 0:
                return f"INTERVAL '{value // _DAY}' DAY"
            whole = _day_time(value)
            return whole if kind.name == "interval day to second" else f"CAST({whole} AS {kind.name.upper()})"
        raise NotExact(f"a constant of type {kind.name}")

    def _nested(self, value: tuple[Value, ...], kind: t.Type) -> str:
        if isinstance(kind, t.Scalar):
            return self._scalar(value, kind)
        if isinstance(kind, t.Array):
            items = ", ".join(self.literal(Literal(item, kind.element)) for item in value)
            return f"CAST(array({items}) AS {self.type(kind)})"
        if isinstance(kind, t.Struct):
            fields = zip(value, kind.fields, strict=True)
            items = ", ".join(f"{string(each.name)}, {self.literal(Literal(item, each.type))}" for item, each in fields)
            return f"named_struct({items})"
        if isinstance(kind, t.Map):
            pairs = [pair for pair in value if isinstance(pair, tuple)]
            items = ", ".join(
                f"{self.literal(Literal(key, kind.key))}, {self.literal(Literal(item, kind.value))}"
                for key, item in pairs
            )
            return f"CAST(map({items}) AS {self.type(kind)})"
        raise NotExact(f"a constant of type {kind}")

    def local_table(self, rows: list[list[str]], names: list[str]) -> str:
        """VALUES."""
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"VALUES {values} AS rows ({', '.join(names)})"

    # ---- functions ------------------------------------------------------------------------------------------------

    def _named(self, call: Call | AggregateCall) -> str:
        """The name to call a function by, so that it fails as it did."""
        if call.name not in functions.NAMES:
            raise NotExact(f"the function {call.name}, which the catalogue does not have")
        if call.mode in ("", self.mode) or (call.mode == "legacy" and call.name in _ALWAYS_NULL):
            return call.name
        if call.name in _TRY and call.mode == "try":
            return _TRY[call.name]
        if call.name in _TRY and call.mode == "legacy" and call.name not in ("+", "-", "*", "/", "%", "sum", "avg"):
            return _TRY[call.name]  # these have two modes only: to fail, and to give NULL
        raise NotExact(f"{call.name} in {call.mode} mode in a session of {self.mode} mode")

    def call(self, call: Call, parts: list[str]) -> str:
        """A function or operator."""
        if call.zone and call.zone != self.session.zone:
            raise NotExact(f"{call.name} in the time zone {call.zone}")
        if call.name in ("get item", "get value"):
            return self._element(call, parts)
        name = self._named(call)
        if name in _BINARY and len(parts) == 2:
            return f"({parts[0]} {name.upper()} {parts[1]})"
        options = dict(call.options)
        if name in _FORMS:
            return _FORMS[name](self, call, parts, options)
        if "options" in options:
            raise NotExact(f"{name} with options")
        return f"{_SYMBOLS.get(name, name)}({', '.join(parts)})"

    def _element(self, call: Call, parts: list[str]) -> str:
        if call.name == "get value" or call.mode == self.mode:
            return f"{parts[0]}[{parts[1]}]"
        if call.mode == "legacy":
            return f"get({parts[0]}, {parts[1]})"
        raise NotExact("an element of an array that has to be there, in a session of legacy mode")

    def _get_field(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return self._field_of(call.arguments[0].type, parts[0], options)

    def _get_fields(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        kind = call.arguments[0].type
        return self._field_of(kind.element if isinstance(kind, t.Array) else kind, parts[0], options)

    def _field_of(self, kind: t.Type, part: str, options: dict[str, Value]) -> str:
        name = str(options["field"])
        if isinstance(kind, t.Struct) and sum(each.name.lower() == name.lower() for each in kind.fields) > 1:
            raise NotExact(f"a field of a struct that has {name} twice")
        return f"({part}).{identifier(name)}"

    def _not(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"(NOT {parts[0]})"

    def _is_null(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"({parts[0]} IS NULL)"

    def _is_not_null(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"({parts[0]} IS NOT NULL)"

    def _in(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"({parts[0]} IN ({', '.join(parts[1:])}))"

    def _like(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"({parts[0]} {call.name.upper()} {parts[1]} ESCAPE {string(str(options.get('escape', chr(92))))})"

    def _negative(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"(- {parts[0]})"

    def _positive(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"(+ {parts[0]})"

    def _trim(self, call: Call, parts: list[str], options: dict[str, Value], where: str = "BOTH") -> str:
        return f"TRIM({where} FROM {parts[0]})" if len(parts) == 1 else f"TRIM({where} {parts[1]} FROM {parts[0]})"

    def _ltrim(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return self._trim(call, parts, options, "LEADING")

    def _rtrim(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return self._trim(call, parts, options, "TRAILING")

    def _from_json(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"{call.name}({parts[0]}, {string(self.type(call.type))}{_option_map(options)})"

    def _to_json(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"{call.name}({', '.join(parts)}{_option_map(options)})"

    def _timestampdiff(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        unit = str(options["unit"])
        if not unit.isalpha():
            raise NotExact("a unit that is none")
        return f"{call.name}({unit}, {', '.join(parts)})"

    def _arrays_zip(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"CAST(arrays_zip({', '.join(parts)}) AS {self.type(call.type)})"

    def _date_part(self, call: Call, parts: list[str], options: dict[str, Value]) -> str:
        return f"date_part({', '.join(parts)})"

    def cast(self, cast: Cast, part: str) -> str:
        """CAST, or TRY_CAST."""
        if cast.zone and cast.zone != self.session.zone:
            raise NotExact(f"a cast in the time zone {cast.zone}")
        mode = cast.mode
        if mode == "legacy" and cast.value.type == t.STRING and cast.type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
            mode = "try"  # the two give NULL for the same texts
        if mode not in (self.mode, "try"):
            raise NotExact(f"a cast in {cast.mode} mode in a session of {self.mode} mode")
        return f"{'TRY_CAST' if mode == 'try' else 'CAST'}({part} AS {self.type(cast.type)})"

    def parameter(self, term: Lambda, parts: list[str]) -> str:
        """A lambda."""
        parameters = parts[0] if len(parts) == 2 else f"({', '.join(parts[:-1])})"
        return f"{parameters} -> {parts[-1]}"

    # ---- groups, windows, generators ------------------------------------------------------------------------------

    def aggregate(self, call: AggregateCall, arguments: list[str], condition: str, order: list[str]) -> str:
        """An aggregate function."""
        name, options = self._named(call), dict(call.options)
        distinct = "DISTINCT " if call.distinct else ""
        within = f" WITHIN GROUP (ORDER BY {', '.join(order)})" if order else ""
        ignoring = " IGNORE NULLS" if options.get("ignore nulls") else ""
        filtered = f" FILTER (WHERE {condition})" if condition else ""
        if set(options) - {"ignore nulls"}:
            raise NotExact(f"{name} with options")
        return f"{name}({distinct}{', '.join(arguments)}){within}{filtered}{ignoring}"

    def over(self, call: WindowCall, function: str, partition: list[str], order: list[str], frame: str) -> str:
        """A window function; where Spark insists on an order and there is none, all rows are peers."""
        ranged = call.frame is not None and call.frame.kind == "range"
        if not order and (isinstance(call.function, Call) or (ranged and "CURRENT ROW" in frame.upper())):
            order = ["NULL"]
        return super().over(call, function, partition, order, frame)

    def rank(self, call: Call, parts: list[str]) -> str:
        """A function over a window that is no aggregate."""
        name = self._named(call)
        if name in ("rank", "dense_rank", "percent_rank", "cume_dist", "row_number"):
            parts = []  # their arguments are the window's order
        return f"{name}({', '.join(parts)}){' IGNORE NULLS' if dict(call.options).get('ignore nulls') else ''}"

    def generate(self, node: Generate, generator: str, source: str, alias: str) -> str:
        """LATERAL VIEW."""
        names = ", ".join(self.column(each) for each in node.columns)
        outer = "OUTER " if node.outer else ""
        return f"{source} LATERAL VIEW {outer}{generator} {alias} AS {names}"

    def udf(self, call: Udf, parts: list[str]) -> str:
        """A user's function, which the executor registers under a name of its digest."""
        if not call.reference.digest:
            raise NotExact(f"the function {call.reference.qualname}: {call.reference.reason}")
        if not re.fullmatch(r"[0-9a-f]{64}", call.reference.digest) or not re.fullmatch(
            r"[a-z-]+", call.reference.kind
        ):
            raise NotExact(f"the function {call.reference.qualname}: its identity is none")
        return f"{udf_name(call)}({', '.join(parts)})"


_FORMS: dict[str, Callable[[SparkDialect, Call, list[str], dict[str, Value]], str]] = {
    "get field": SparkDialect._get_field,
    "get fields": SparkDialect._get_fields,
    "not": SparkDialect._not,
    "is null": SparkDialect._is_null,
    "is not null": SparkDialect._is_not_null,
    "in": SparkDialect._in,
    "like": SparkDialect._like,
    "ilike": SparkDialect._like,
    "negative": SparkDialect._negative,
    "positive": SparkDialect._positive,
    "trim": SparkDialect._trim,
    "ltrim": SparkDialect._ltrim,
    "rtrim": SparkDialect._rtrim,
    "from_json": SparkDialect._from_json,
    "from_csv": SparkDialect._from_json,
    "from_xml": SparkDialect._from_json,
    "to_json": SparkDialect._to_json,
    "to_csv": SparkDialect._to_json,
    "to_xml": SparkDialect._to_json,
    "schema_of_json": SparkDialect._to_json,
    "schema_of_csv": SparkDialect._to_json,
    "schema_of_xml": SparkDialect._to_json,
    "timestampdiff": SparkDialect._timestampdiff,
    "timestampadd": SparkDialect._timestampdiff,
    "arrays_zip": SparkDialect._arrays_zip,
    "date_part": SparkDialect._date_part,
}
"""Functions that Spark writes in another form than as a call."""


def udf_name(call: Udf) -> str:
    """The name under which an executor registers a user's function."""
    return f"govtool_{call.reference.kind.replace('-', '_')}_{call.reference.digest[:16]}"


def identifier(name: str) -> str:
    """A quoted name."""
    return "`" + name.replace("`", "``") + "`"


def string(value: str) -> str:
    """A string constant, whatever it holds: no escape, quote or ``${variable}`` of its own is read as one."""
    return "'" + "".join(_ESCAPED.get(char, char) for char in value) + "'"


_ESCAPED = {"\\": "\\\\", "'": "\\'", "$": "\\u0024", "\x00": "\\u0000", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _option_map(options: dict[str, Value]) -> str:
    pairs = options.get("options")
    if not isinstance(pairs, tuple):
        return ""
    items = [string(str(text)) for pair in pairs if isinstance(pair, tuple) for text in pair]
    return f", map({', '.join(items)})"


def _float(value: float, kind: str) -> str:
    if kind == "DOUBLE" and math.isfinite(value) and value > 0:
        return f"{value!r}D"
    text = (
        "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else repr(value)
    )
    return f"CAST('{text}' AS {kind})"


def _seconds(micros: Value) -> str:
    if not isinstance(micros, int):
        raise NotExact("an interval that is none")
    return f"'{decimal.Decimal(micros).scaleb(-6)}'"


def _day_time(micros: int) -> str:
    minutes, rest = divmod(abs(micros), 60_000_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{days} {hours:02d}:{minutes:02d}:{decimal.Decimal(rest).scaleb(-6):09.6f}"
    return f"INTERVAL {'-' if micros < 0 else ''}'{text}' DAY TO SECOND"


def _ntz(micros: int) -> str:
    try:
        return str(datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros))
    except OverflowError as error:
        raise NotExact("a timestamp outside of the years 1 to 9999") from error
