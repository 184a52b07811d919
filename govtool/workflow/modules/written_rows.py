"""Rows of a plan, found again among the rows that it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what makes them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.workflow.modules.run_tuples import RelationRows


def python_rows(columns: Sequence[Any], chosen: Array) -> list[tuple[Any, ...]]:
    """Some rows of a table as Python values; a row may be there several times."""
    lists = [column.to_pylist() for column in columns]
    return [tuple(column[row] for column in lists) for row in chosen.tolist()]


def matched(found: list[tuple[Any, ...]], names: list[str], written: RelationRows) -> Array:
    """For each written row the place of an equal one.

    Raises:
        UsageError: The rows are not the same: the plan does not give again what was written.
    """
    at = [names.index(name) for name in written.columns]
    own = [tuple(_canonical(row[place]) for place in at) for row in found]
    there = [tuple(map(_canonical, row)) for row in written.values]
    left, right = sorted(range(len(own)), key=own.__getitem__), sorted(range(len(there)), key=there.__getitem__)
    if [own[place] for place in left] != [there[place] for place in right]:
        raise UsageError("evaluated again, it gives other rows than were written")
    order = np.empty(len(there), np.int64)
    order[right] = left
    return order


def _canonical(value: Any) -> str:
    """A value as text: floats by nine digits, the order of a bag does not count."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, (list, tuple)):
        return f"[{sorted(map(_canonical, value))}]"
    if isinstance(value, dict):
        return f"{{{[(key, _canonical(each)) for key, each in value.items()]}}}"
    return value.isoformat() if isinstance(value, datetime) else repr(value)  # also of pandas, from INT96
