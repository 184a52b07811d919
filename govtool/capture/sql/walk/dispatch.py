"""Dispatch by the class of a node: a table has a function for a class and for what derives from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def by_class(table: Mapping[type, T], cls: type) -> T | None:
    """Return what a table has for a class, or for the nearest class that it derives from; None without any."""
    for base in cls.__mro__:
        found = table.get(base)
        if found is not None:
            return found
    return None
