"""Results compared as multisets of rows, whatever executor gave them."""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

DIGITS = 9
"""Significant digits to which floats have to agree: a sum depends on the order of its rows."""
_EPOCH = datetime.datetime(1970, 1, 1)


def multiset(table: pyarrow.Table) -> Counter[tuple[Hashable, ...]]:
    """The rows of a table, each with how often it is there.

    Timestamps are microseconds in UTC, floats are rounded to ``DIGITS`` digits, maps are sets of pairs; NaN equals NaN.
    """
    columns = [[comparable(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True)) if columns else Counter({(): table.num_rows})


def comparable(value: Any) -> Hashable:
    """A cell in a form that compares as results do: see ``multiset``."""
    if isinstance(value, bool) or value is None:
        return (type(value).__name__, value)
    if isinstance(value, float):
        return ("float", _rounded(value))
    if isinstance(value, datetime.datetime):
        naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
        return ("timestamp", (naive - _EPOCH) // datetime.timedelta(microseconds=1))
    if isinstance(value, decimal.Decimal):
        return ("decimal", value, value.as_tuple().exponent)
    if isinstance(value, dict):
        return ("struct", tuple((name, comparable(item)) for name, item in value.items()))
    if isinstance(value, list):
        return _list(value)
    return (type(value).__name__, value)


def _list(value: list[Any]) -> Hashable:
    items = tuple(comparable(item) for item in value)
    if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):  # the pairs of a map
        return ("map", frozenset((comparable(key), comparable(item)) for key, item in value))
    return ("list", items)


def _rounded(value: float) -> Hashable:
    if math.isnan(value):
        return "nan"
    if math.isinf(value) or value == 0:
        return value + 0.0
    return float(f"{value:.{DIGITS - 1}e}")
