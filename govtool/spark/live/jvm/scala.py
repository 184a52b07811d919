"""Scala behind py4j."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any


def sequence(value: Any) -> list[Any]:
    """The elements of a Scala Seq."""
    return [value.apply(i) for i in range(value.size())]


def strings(value: Any) -> list[str]:
    """The elements of a Scala Seq of strings, in one call."""
    if value.isEmpty():
        return []
    text: str = value.mkString("\x01")
    return text.split("\x01")


def called(value: Any, name: str) -> Any:
    """Return the result of a method without arguments."""
    return getattr(value, name)()


def safely(read: Callable[[], Any]) -> Any:
    """The result of a call, or None: a Spark version may lack a method, and the rest is still worth having."""
    try:
        return read()
    except Exception:
        return None


def table_parts(identifier: Any) -> list[str]:
    """Catalog, database and table of a ``TableIdentifier``, as many as it has."""
    parts = []
    for name in ("catalog", "database"):
        part = safely(partial(called, identifier, name))
        if part is not None and part.isDefined():
            parts.append(part.get())
    return [*parts, identifier.table()]


def let_go(found: Any) -> None:
    """Have the JVM forget an object once the last reference to it is gone.

    py4j keeps the methods that were called in the object, and the object in each of them: such a circle waits for
    Python's collector, which knows nothing of the megabytes that a query's joins hold in the JVM.
    """
    methods = getattr(found, "__dict__", {}).get("_methods")
    if isinstance(methods, dict):
        methods.clear()
