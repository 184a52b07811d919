"""Casts in DuckDB's SQL that give what Spark gives, or an error."""

from __future__ import annotations

from govtool.records.plan import types as t

GUARD = "govtool: not exact in DuckDB"
"""The prefix of the message of an error that a guard raised."""


def cast_template(source: t.Type, target: t.Type, mode: str, utc: bool) -> str | None:
    """A template of a cast, or None where Spark's result is another."""
    plain = "CAST({part} AS {kind})"
    if source == t.BOOLEAN and target in (t.INTEGER, t.LONG):
        return plain
    if source in t.INTEGRAL:
        return _from_integer(source, target)
    if isinstance(source, t.Decimal):
        return _from_decimal(source, target)
    if source in t.FLOATS:
        if target in t.FLOATS:
            return plain
        return "CAST(trunc({part}) AS {kind})" if target in (t.INTEGER, t.LONG) and mode == "ansi" else None
    if source == t.STRING:
        return _from_text(target, utc)
    return _from_time(source, target, utc)


def _from_integer(source: t.Type, target: t.Type) -> str | None:
    """Numbers that do not fit are an error of the guard: DuckDB turns ``CAST(n AS INTEGER) = 5`` into ``n = 5``."""
    plain = "CAST({part} AS {kind})"
    if isinstance(target, t.Decimal):
        most = 10 ** (target.precision - target.scale) - 1
        bounds = (-most, most)
    elif target in t.INTEGRAL:
        bounds = _bounds(target)
    else:
        return plain if target in (*t.FLOATS, t.STRING) else None
    low, high = _bounds(source)
    if bounds[0] <= low and high <= bounds[1]:
        return plain
    low, high = max(low, bounds[0]), min(high, bounds[1])
    return _guarded(f"{{part}} BETWEEN {low} AND {high}", plain, "a number that does not fit")


def _bounds(kind: t.Type) -> tuple[int, int]:
    bits = 8 << t.INTEGRAL.index(kind)
    return -(1 << bits - 1), (1 << bits - 1) - 1


def _from_time(source: t.Type, target: t.Type, utc: bool) -> str | None:
    plain = "CAST({part} AS {kind})"
    if source == t.DATE and target == t.STRING:
        return _guarded(_NEAR, "strftime({part}, '%Y-%m-%d')", "a far day")
    if source == t.TIMESTAMP and target == t.LONG:
        return "CAST(epoch(date_trunc('second', {part})) AS BIGINT)"
    if source == t.TIMESTAMP and target == t.STRING and utc:
        return _guarded(_NEAR, plain, "a far time")
    if {source, target} == {t.DATE, t.TIMESTAMP} and utc:
        return plain
    return None


_NEAR = "year({part}) BETWEEN 1 AND 9999"
_DAY = "[1-9][0-9]{{3}}-[0-9]{{2}}-[0-9]{{2}}"
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,6}})?"


def _from_text(target: t.Type, utc: bool) -> str | None:
    """Only texts of a few digits are surely read alike; of any other, DuckDB may make what Spark does not."""
    if target in (t.INTEGER, t.LONG):
        form = "[+-]?[0-9]{{1," + ("9" if target == t.INTEGER else "18") + "}}"
    elif target == t.DOUBLE or isinstance(target, t.Decimal):
        form = "[+-]?[0-9]{{1,18}}([.][0-9]{{1,18}})?"
    elif target == t.DATE:
        form = _DAY
    elif target == t.TIMESTAMP and utc:
        form = f"{_DAY}( {_TIME})?"
    elif target == t.BINARY:
        return "encode({part})"
    else:
        return None
    return _guarded(f"regexp_full_match({{part}}, '{form}')", "CAST({part} AS {kind})")


def _guarded(test: str, template: str, source: str = "text") -> str:
    """A template where a test holds; an error of the guard where it does not."""
    return f"(CASE WHEN NOT {test} THEN error('{{guard}}: a cast of {source}') ELSE {template} END)"


_DIGITS = 15
"""Digits of a decimal that a double surely holds: their quotient is the nearest double."""


def _from_decimal(source: t.Decimal, target: t.Type) -> str | None:
    if isinstance(target, t.Decimal):
        return "CAST({part} AS {kind})"
    if target == t.DOUBLE and source.precision <= _DIGITS:
        return "CAST({part} AS {kind})"
    if target == t.DOUBLE and source.scale <= _DIGITS:
        return _guarded(f"abs({{part}}) < {10 ** (_DIGITS - source.scale)}", "CAST({part} AS {kind})", "many digits")
    if target in (t.INTEGER, t.LONG):
        return "CAST(trunc({part}) AS {kind})"
    return None
