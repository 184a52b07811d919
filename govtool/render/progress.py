"""Columns of a progress bar."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.app.ingest.logs.request import Status

_LEAST = 50
"""The share of the work, as a fraction's denominator, from which on the time that is left is shown."""

_COUNTED = 1000
"""Parts of which so many are all count nothing: shares."""


def log_label(status: Status) -> str:
    """``reading 10,512/s, 4,300 distinct, 12 failed``: statements a second, and what came of them until now."""
    return f"{status.stage} {status.rate:,.0f}/s, {status.distinct:,} distinct, {status.failed:,} failed"


def log_left(status: Status) -> float:
    """Seconds that the rest of an ingest takes; infinite while nobody knows."""
    return inf if status.left is None else status.left


def rated_label(label: str, unit: str, done: int, total: int, passed: float) -> str:
    """``building the index, 52,000 definitions/s``: the average; the label alone where there is no rate.

    Args:
        label: What is done.
        unit: What is counted, in the plural.
        done: So many.
        total: In all; of a thousand or fewer no rate is shown.
        passed: Seconds since the first.
    """
    if total <= _COUNTED or done <= 0 or passed < 1:
        return label
    return f"{label}, {done / passed:,.0f} {unit}/s"


def time_left(done: int, total: int, passed: float) -> str:
    """``~0:01:20 left``: the time that the rest takes if it goes on as fast as all until now; empty where that says
    nothing, as less than a fiftieth is done.

    Args:
        done: Steps.
        total: In all.
        passed: Seconds since the first.
    """
    if total <= 0 or done * _LEAST < total or done > total:
        return ""
    return seconds_left(passed * (total - done) / done)


def seconds_left(seconds: float) -> str:
    """``~0:01:20 left``; empty where nobody knows yet, which is an infinite time."""
    if seconds == inf:
        return ""
    left = round(seconds)
    return f"~{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
