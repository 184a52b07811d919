"""Functions on days and times in DuckDB's SQL, by name, where they give what Spark gives.

A timestamp is DuckDB's TIMESTAMP in UTC. What depends on the zone of a session is written for sessions in UTC alone.
"""

from __future__ import annotations

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call
from govtool.records.sql.dialect import Dialect, NotExact
from govtool.records.sql.duckdb_calls import WriteFunction, text_of, typed
from govtool.records.sql.duckdb_casts import GUARD, cast_template

_DAY, _TIME = (t.DATE,), (t.TIMESTAMP,)

_UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month", "mm": "month",
    "week": "week",
}  # fmt: skip
_SMALL_UNITS = {"day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second"}
_FORMATS = {
    "yyyy-MM-dd": "%Y-%m-%d", "yyyy-MM": "%Y-%m", "yyyyMMdd": "%Y%m%d", "yyyyMM": "%Y%m", "yyyy": "%Y", "MM": "%m",
    "dd": "%d", "HH": "%H", "HH:mm": "%H:%M", "HH:mm:ss": "%H:%M:%S", "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S",
    "yyyy-MM-dd HH:mm": "%Y-%m-%d %H:%M", "yyyy/MM/dd": "%Y/%m/%d", "dd/MM/yyyy": "%d/%m/%Y", "dd.MM.yyyy": "%d.%m.%Y",
    "MM/dd/yyyy": "%m/%d/%Y",
}  # fmt: skip
"""Formats of ``date_format`` that are read, each with DuckDB's."""


def _require_utc(dialect: Dialect, call: Call) -> None:
    if not dialect.utc:
        raise NotExact(f"{call.name} in the zone of the session")


def _of_time(template: str) -> WriteFunction:
    """A template for a time in the zone of the session."""
    plain = typed(template, _TIME)

    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        _require_utc(dialect, call)
        return plain(dialect, call, parts, kinds)

    return write


def _trunc(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    unit = _UNITS.get((text_of(call.arguments[1]) or "").lower())
    if kinds[0] != t.DATE or unit is None:
        raise NotExact("trunc to this unit")
    return f"CAST(date_trunc('{unit}', {parts[0]}) AS DATE)"


def _date_trunc(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    _require_utc(dialect, call)
    unit = (_UNITS | _SMALL_UNITS).get((text_of(call.arguments[0]) or "").lower())
    if kinds[1] != t.TIMESTAMP or unit is None:
        raise NotExact("date_trunc to this unit")
    return f"date_trunc('{unit}', {parts[1]})"


def _date_format(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    _require_utc(dialect, call)
    form = _FORMATS.get(text_of(call.arguments[1]) or "")
    if kinds[0] != t.TIMESTAMP or form is None:
        raise NotExact("date_format in this format")
    far = f"year({parts[0]}) NOT BETWEEN 1 AND 9999"
    return f"(CASE WHEN {far} THEN error('{GUARD}: date_format') ELSE strftime({parts[0]}, '{form}') END)"


def _parsed(target: t.Type, form: str) -> WriteFunction:
    """A cast, or the reading of texts in the format that the cast reads."""

    def write(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
        if call.arguments[1:] and (text_of(call.arguments[1]) != form or kinds[0] != t.STRING):
            raise NotExact(f"{call.name} in this format")
        if t.same(kinds[0], target):
            return parts[0]
        template = cast_template(kinds[0], target, "ansi", dialect.utc)
        if template is None:
            raise NotExact(f"{call.name} of {t.as_text(kinds[0])}")
        return template.format(part=parts[0], kind=dialect.type(target), guard=GUARD)

    return write


_TOWARDS_ZERO = typed("(epoch_us({0}) // 1000000)", _TIME, (t.TIMESTAMP, t.STRING))
"""Unix seconds; a format beside a time is not read."""


TIME_CALLS: dict[str, WriteFunction] = {
    "dayofweek": typed("CAST(dayofweek({0}) + 1 AS INTEGER)", _DAY),
    "weekday": typed("CAST(isodow({0}) - 1 AS INTEGER)", _DAY),
    "weekofyear": typed("CAST(weekofyear({0}) AS INTEGER)", _DAY),
    "dayofyear": typed("CAST(dayofyear({0}) AS INTEGER)", _DAY),
    "trunc": _trunc, "date_trunc": _date_trunc, "date_format": _date_format,
    "hour": _of_time("CAST(hour({0}) AS INTEGER)"), "minute": _of_time("CAST(minute({0}) AS INTEGER)"),
    "second": _of_time("CAST(second({0}) AS INTEGER)"), "to_date": _parsed(t.DATE, "yyyy-MM-dd"),
    "to_timestamp": _parsed(t.TIMESTAMP, ""),
    "unix_seconds": typed("CAST(epoch(date_trunc('second', {0})) AS BIGINT)", _TIME), "unix_timestamp": _TOWARDS_ZERO,
    "to_unix_timestamp": _TOWARDS_ZERO,
}  # fmt: skip
"""Writers of a call, given its arguments as text and their types; they raise ``NotExact``."""
