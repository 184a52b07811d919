"""Rows of two runs that differ in floats only, by no more than a tolerance: sums of floats depend on their order."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence
from typing import Any

from govtool.errors import UsageError
from govtool.records.execute.compare import comparable

Row = tuple[Any, ...]
Floats = tuple[float, ...]


def checked_tolerance(tolerance: float | None, rows: bool) -> float | None:
    """Return the tolerance.

    Raises:
        UsageError: It is no share of a value, or no rows are compared.
    """
    if tolerance is None:
        return None
    if not rows:
        hint = "govtool diff JOB~1 JOB --rows --tolerance 1e-6"
        raise UsageError("--tolerance compares rows", code="usage.arguments", location="tolerance", hint=hint)
    if not 0 <= tolerance < 1:
        message = f"a tolerance is a share of a value, 0 or more and below 1, not {tolerance}"
        raise UsageError(message, code="usage.tolerance", location="tolerance", hint="--tolerance 1e-6")
    return tolerance


def beyond(gone: Sequence[Row], new: Sequence[Row], tolerance: float) -> tuple[list[Row], list[Row]]:
    """Return the rows that have no partner on the other side within the tolerance; each is partner of one row.

    Args:
        gone: Rows of the first run only.
        new: Rows of the second run only.
        tolerance: How far two floats may be apart, as a share of the larger one.
    """
    partners: dict[Hashable, list[tuple[Floats, Row]]] = {}
    for row in new:
        bare, floats = _apart(row)
        partners.setdefault(bare, []).append((floats, row))
    for rows in partners.values():
        rows.sort(key=lambda each: each[0])
    left = [row for row in gone if not _taken(partners, row, tolerance)]
    return left, [row for rows in partners.values() for _, row in rows]


def _taken(partners: dict[Hashable, list[tuple[Floats, Row]]], row: Row, tolerance: float) -> bool:
    """Take the partner of a row that is closest to it, if any is close enough."""
    bare, floats = _apart(row)
    rows = partners.get(bare, [])
    close = [at for at in _candidates(rows, floats, tolerance) if _close(floats, rows[at][0], tolerance)]
    if not close:
        return False
    rows.pop(min(close, key=lambda at: sum(abs(a - b) for a, b in zip(floats, rows[at][0], strict=True))))
    return True


def _candidates(rows: list[tuple[Floats, Row]], floats: Floats, tolerance: float) -> range:
    """The places of rows whose first float is close enough; rows are in the order of their floats."""
    if not floats:
        return range(len(rows))
    reach = abs(floats[0]) * tolerance / (1 - tolerance)
    low, high = (math.nextafter(floats[0] + sign * reach, sign * math.inf) for sign in (-1, 1))
    return range(
        bisect_left(rows, low, key=lambda each: each[0][0] if each[0] else low),
        bisect_right(rows, high, key=lambda each: each[0][0] if each[0] else high),
    )


def _close(one: Floats, other: Floats, tolerance: float) -> bool:
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=tolerance) for a, b in zip(one, other, strict=True)
    )


def _apart(row: Row) -> tuple[Hashable, Floats]:
    """A row without its finite floats, and these."""
    floats: list[float] = []
    bare = tuple(_without_floats(value, floats) for value in row)
    return bare, tuple(floats)


def _without_floats(value: Any, floats: list[float]) -> Hashable:
    if isinstance(value, float) and math.isfinite(value):
        floats.append(value)
        return float
    if isinstance(value, dict):
        return ("dict", *((key, _without_floats(each, floats)) for key, each in value.items()))
    if isinstance(value, (list, tuple)):
        return ("list", *(_without_floats(each, floats) for each in value))
    return comparable(value)
