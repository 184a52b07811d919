"""An order of rows of any values, so that answers read the same from run to run: engines give rows in any order."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from typing import Any

_NUMBER, _NAN, _TEXT, _TIME, _OTHER = range(1, 6)


def row_key(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key of a row's cells: NULL first, numbers by size, NaN behind them."""
    return tuple(map(_key, values))


def _key(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, (bool, int, float, decimal.Decimal)):
        return (_NAN,) if value != value else (_NUMBER, value)
    if isinstance(value, str):
        return (_TEXT, value)
    if isinstance(value, (datetime.date, datetime.time)):
        return (_TIME, value.isoformat())
    if isinstance(value, Mapping):
        return (_OTHER, *(_key(item) for item in value.values()))
    return (_OTHER, *map(_key, value)) if isinstance(value, (list, tuple)) else (_OTHER, (_TEXT, str(value)))
