"""Streams, whose executions no listener hears of: what a query reads and writes, and how far it came."""

from __future__ import annotations


def patch(folder: str) -> None:
    """Nothing yet."""
