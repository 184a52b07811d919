"""Scala behind py4j."""

from __future__ import annotations

from typing import Any


def sequence(value: Any) -> list[Any]:
    """The elements of a Scala Seq."""
    return [value.apply(i) for i in range(value.size())]
