"""Products and quotients of decimals as Spark rounds them: computed over whole numbers of 128 bits."""

from __future__ import annotations

import decimal

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.duckdb_casts import GUARD

_MOST_REPEATED = 20_000
"""The most characters of operands that a text repeats."""


def require_short(parts: list[str]) -> None:
    """Refuse operands that are too long to stand several times in what is made of them.

    Raises:
        NotExact: They are: those of operators within each other would grow without bound.
    """
    if sum(map(len, parts)) > _MOST_REPEATED:
        raise NotExact("numbers of long operands")


def rounded_product(parts: list[str], digits: int, places: int, own: t.Decimal) -> str:
    """A product of decimals with fewer places than it has, rounded half up; the second factor has so many digits."""
    left, right = _whole_digits(parts)
    step = 10**places
    value = f"(({left} * {right} * 2 + {step}) // {2 * step})"
    return (
        f"(CASE WHEN {left} >= {10 ** (37 - digits)} THEN error('{GUARD}: product of decimals') ELSE CAST(CAST("
        f"sign({parts[0]}) * sign({parts[1]}) * {value} AS DECIMAL(38, 0)) * {unit(own.scale)}"
        f" AS DECIMAL({own.precision}, {own.scale})) END)"
    )


def _whole_digits(parts: list[str]) -> list[str]:
    """The digits of decimals as whole numbers; what is made of them repeats the operands.

    Raises:
        NotExact: The operands are too long for it.
    """
    require_short(parts)
    return [f"abs(CAST(replace(CAST({part} AS VARCHAR), '.', '') AS HUGEINT))" for part in parts]


def unit(scale: int) -> str:
    """One in the last place of a decimal: times a whole number, a decimal of these digits."""
    return f"CAST('{decimal.Decimal(1).scaleb(-scale):f}' AS DECIMAL({max(scale, 1)}, {scale}))"


def divided_decimals(call: Call, parts: list[str], kinds: tuple[t.Decimal, t.Decimal], own: t.Decimal) -> str:
    """A quotient of decimals over whole numbers, rounded half up.

    Spark rounds it to 39 digits behind the point first, which makes no difference if the divisor is not too long.
    """
    shift = own.scale + kinds[1].scale - kinds[0].scale
    up, down = max(shift, 0), max(-shift, 0)
    most = (37 - up, min(37, 38 - own.scale) - down)
    if min(most) < 1:
        raise NotExact("the division of decimals of many digits")
    above, below = _whole_digits(parts)
    long = [
        f"{whole} >= {10**limit}"
        for whole, limit, kind in zip((above, below), most, kinds, strict=True)
        if kind.precision > limit
    ]
    guard = f"WHEN {' OR '.join(long)} THEN error('{GUARD}: division of decimals') " if long else ""
    whole = f"({above} * {2 * 10**up} + {below} * {10**down}) // ({below} * {2 * 10**down})"
    value = f"CAST(sign({parts[0]}) * sign({parts[1]}) * ({whole}) AS DECIMAL(38, 0)) * {unit(own.scale)}"
    return (
        f"(CASE WHEN {parts[0]} IS NULL OR {divisor(call, parts)} IS NULL THEN NULL {guard}"
        f"ELSE CAST({value} AS DECIMAL({own.precision}, {own.scale})) END)"
    )


def divisor(call: Call, parts: list[str]) -> str:
    """What is divided by: NULL in place of 0; in ANSI mode 0 is an error, unless NULL is divided."""
    left, right = parts
    if call.mode != "ansi":
        return f"nullif({right}, 0)"
    return f"(CASE WHEN {right} = 0 AND {left} IS NOT NULL THEN error('{GUARD}: division by zero') ELSE {right} END)"
