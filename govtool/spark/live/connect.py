"""Spark Connect."""

from __future__ import annotations

from typing import Any


def patch(module: Any, folder: str) -> None:
    """Nothing yet."""
