"""Columns of a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.app.ingest.logs.request import Status

_LEAST = 50
"""The share of the work, as a fraction's denominator, from which on the time that is left is shown."""

_COUNTED = 1000
"""Parts of which so many are all count nothing: shares."""


def log_label(status: Status) -> str:
    """``reading 10,512/s, 4,300 distinct, 12 failed``: statements a second, and what came of them until now."""
    rate = f" {status.rate:,.0f}/s" if status.rate >= 1 else ""
    failed = f", {status.failed:,} failed" if status.failed else ""
    return f"{status.stage}{rate}, {status.distinct:,} distinct{failed}"


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
    """``~0:01:20 left``."""
    left = round(seconds)
    return f"~{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
