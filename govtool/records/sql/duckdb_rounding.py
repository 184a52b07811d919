"""``round``, and casts of doubles to decimals, as in Spark: half up, by the digits that a float's text shows."""

from __future__ import annotations

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call, Literal
from govtool.records.sql.dialect import Dialect, NotExact
from govtool.records.sql.duckdb_casts import GUARD
from govtool.records.sql.duckdb_decimals import require_short

_PLACES = range(16)
"""How many decimal places are kept: beyond these, a float of the range below has none to lose."""
_PLAIN = "abs({0}) >= 0.001 AND abs({0}) < 1e15"
"""Floats whose text DuckDB and Java write with the same digits, without an exponent."""
_WHOLE_DIGITS = 15
"""Digits before the point of a plain float, at most."""
_DIGITS = 20
"""Digits behind the point that are enough for all of a plain float: it has at most 17, the first of them no 0."""


def round_half_up(dialect: Dialect, call: Call, parts: list[str], kinds: list[t.Type]) -> str:
    """Rounded decimals, floats and whole numbers; a float outside of the plain range is an error of the query.

    Raises:
        NotExact: The places are computed, negative or many, or the type is another.
    """
    places = call.arguments[1].value if len(parts) == 2 and isinstance(call.arguments[1], Literal) else None
    if not isinstance(places, int) or places not in _PLACES:
        raise NotExact("round to a number of places that is computed, negative or large")
    kind = kinds[0]
    if kind in t.INTEGRAL and kind == call.type:
        return parts[0]
    if isinstance(kind, t.Decimal) and isinstance(call.type, t.Decimal):
        return f"CAST(round({parts[0]}, {min(places, kind.scale)}) AS {dialect.type(call.type)})"
    if kind == call.type == t.DOUBLE:
        require_short(parts)
        return _rounded_float(parts[0], places)
    raise NotExact(f"round of {t.as_text(kind)}")


def _rounded_float(part: str, places: int) -> str:
    """Spark rounds the decimal number that Java shows for a float, and takes the float that is next to it."""
    decimal = _shown(part, places)
    again = f"CAST(CAST({decimal} AS VARCHAR) AS DOUBLE)"
    zero = f"{part} = 0"
    return (
        f"(CASE WHEN {_PLAIN.format(part)} THEN {again} WHEN {zero} THEN CAST(0 AS DOUBLE)"
        f" WHEN NOT isfinite({part}) THEN {part} WHEN {part} IS NOT NULL THEN error('{GUARD}: round') END)"
    )


def decimal_of_double(part: str, own: t.Decimal) -> str:
    """A double as a decimal; one outside of the plain range, or too large for the type, is an error of the query."""
    require_short([part])
    rounded = _shown(part, min(own.scale, _DIGITS))
    wanted = f"DECIMAL({own.precision}, {own.scale})"
    whole = own.precision - own.scale
    fits = f" AND abs({rounded}) < {10**whole}" if whole < _WHOLE_DIGITS else ""
    near = f" OR abs({part}) < 0.001" if own.scale < 3 else f" OR {part} = 0"
    return (
        f"(CASE WHEN {_PLAIN.format(part)}{fits} THEN CAST({rounded} AS {wanted})"
        f" WHEN {part} IS NULL{near} THEN CAST({part} * 0 AS {wanted})"
        f" ELSE error('{GUARD}: a cast of double') END)"
    )


def _shown(part: str, places: int) -> str:
    """The decimal number that a plain float is shown as, rounded half up."""
    return f"round(CAST(CAST({part} AS VARCHAR) AS DECIMAL(38, {_DIGITS})), {places})"
