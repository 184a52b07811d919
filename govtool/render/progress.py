"""Columns of a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.app.logs.request import Status


def log_label(status: Status) -> str:
    """``reading 10,512/s, 4,300 distinct, 12 failed``: statements a second, and what came of them until now."""
    rate = f" {status.rate:,.0f}/s" if status.rate >= 1 else ""
    failed = f", {status.failed:,} failed" if status.failed else ""
    return f"{status.stage}{rate}, {status.distinct:,} distinct{failed}"
