"""Aggregates that DuckDB computes in several parts, so that they are Spark's to the last digit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from govtool.records.plan import types as t
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.duckdb_decimals import unit

MOST_DIGITS = 28
"""Of the decimals of an average: the sum of 10 billion of them fits into DuckDB's whole numbers of 128 bits."""


class Windowed(str):
    """An aggregate whose text does not end with the aggregate function itself: over a window, OVER goes into it."""

    write: Callable[[str], str]
    """Its text, given what stands behind each aggregate function in it."""

    @classmethod
    def of(cls, write: Callable[[str], str]) -> Self:
        """The aggregate over a group."""
        made = cls(write(""))
        made.write = write
        return made


def decimal_average(distinct: str, argument: str, kind: t.Decimal, condition: str, own: str) -> Windowed:
    """The average of decimals, rounded half up to four more digits, as Spark has it: over whole numbers, exactly.

    Raises:
        NotExact: Their sums may have more digits than DuckDB computes with.
    """
    digits, scale = kind.precision, kind.scale
    if digits > MOST_DIGITS or digits + scale + 8 > 38:
        raise NotExact("the average of decimals of many digits")
    there = f" FILTER (WHERE {condition})" if condition else ""
    whole = f"CAST(CAST({argument} AS DECIMAL(38, {scale})) * {10**scale} AS HUGEINT)"

    def write(over: str) -> str:
        total = f"sum({distinct}{whole}){there}{over}"
        number = f"count({distinct}{argument}){there}{over}"
        rounded = f"sign({total}) * ((abs({total}) * 20000 + {number}) // (2 * {number}))"
        value = f"CAST(CAST({rounded} AS DECIMAL({digits + 4}, 0)) * {unit(scale + 4)} AS {own})"
        return f"CASE WHEN {number} > 0 THEN {value} END"

    return Windowed.of(write)
