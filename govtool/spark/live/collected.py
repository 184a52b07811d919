"""Rows that the driver collected: a DataFrame that is made of them again comes from their query.

Only the very object that an action returned is known to be its rows. Once a process has collected any, other data of
the driver may hold some of them, changed or not: where it came from is then stated as unknown.
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

_ACTIONS = ("collect", "toPandas", "toArrow", "take", "head", "first", "tail", "toLocalIterator")
MAX_KNOWN = 100
"""Results that are known by their query; of more, the oldest are forgotten."""


class CollectedRows:
    """What the actions of a process gave to its driver."""

    def __init__(self) -> None:
        self.any = False
        """Whether rows were collected."""
        self._known: dict[int, tuple[tuple[Any, ...], Any]] = {}
        self._here = threading.local()

    def patch(self, frame_class: Any) -> None:
        """Hear of what the methods of DataFrames return."""
        for name in _ACTIONS:
            original = getattr(frame_class, name, None)
            if original is not None:
                setattr(frame_class, name, self._noted(original))

    def _noted(self, original: Any) -> Any:
        @wraps(original)
        def action(own: Any, *args: Any, **named: Any) -> Any:
            if getattr(self._here, "busy", False):  # toPandas calls collect
                return original(own, *args, **named)
            self._here.busy = True
            try:
                result = original(own, *args, **named)
            finally:
                self._here.busy = False
            try:
                self._note(result, own)
            except Exception:
                self.any = True
            return result

        return action

    def _note(self, result: Any, frame: Any) -> None:
        self.any = True
        self._known[id(result)] = (_marks(result), frame._jdf.queryExecution().analyzed())
        while len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def plan_of(self, data: Any) -> Any:
        """The analyzed plan whose rows some data are; None: it is not known to be any."""
        marks, plan = self._known.get(id(data), ((), None))
        return plan if plan is not None and marks == _marks(data) else None


def _marks(data: Any) -> tuple[Any, ...]:
    """The kind of an object, its shape and its first row: a later object in its place has others."""
    if isinstance(data, list):
        return ("list", len(data), id(data[0]) if data else 0)
    return (type(data).__name__, getattr(data, "shape", None) or getattr(data, "num_rows", None))
