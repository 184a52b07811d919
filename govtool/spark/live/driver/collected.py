"""Rows that the driver collected: a DataFrame that is made of them again comes from their query.

Only the very object that an action returned, unchanged, is known to be its rows. Once a process has collected any,
other data of the driver may hold some of them, changed or not: where it came from is then stated as unknown.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from govtool.spark.live.jvm.call_sites import standing_for

_ACTIONS = ("collect", "toPandas", "toArrow", "take", "head", "first", "tail", "toLocalIterator")
MAX_KNOWN = 100
"""Results that are known by their query; of more, the oldest are forgotten."""
MAX_ROWS = 1000
"""Rows of a list that is known by its query. The list is kept alive, as it has no weak references."""
MAX_TEXT = 1 << 20
"""Characters of such a list when it is printed."""
MAX_VALUES = 1_000_000
"""Values of a frame of pandas that is known by its query."""


@dataclass(frozen=True)
class _Result:
    """A result of an action.

    Attributes:
        object: Returns the result itself; None once it is gone.
        content: A digest of what it held when the action returned it; empty for results that never change.
        plan: The analyzed plan of its query.
    """

    object: Callable[[], Any]
    content: str
    plan: Any


class CollectedRows:
    """Results that the actions of a process returned to its driver."""

    def __init__(self) -> None:
        self.any = False
        """True once rows were collected."""
        self._known: dict[int, _Result] = {}
        self._here = threading.local()

    def patch(self, frame_class: Any) -> None:
        """Hear of results that the methods of DataFrames return."""
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
            self.any = True
            try:
                self._note(result, own)
            except Exception:
                self._known.pop(id(result), None)
            return result

        return standing_for(original, action)

    def _note(self, result: Any, frame: Any) -> None:
        content = _content(result)
        self._known.pop(id(result), None)
        if content is not None:
            plan = frame._jdf.queryExecution().analyzed()
            self._known[id(result)] = _Result(_reference(result), content, plan)
        while len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def plan_of(self, data: Any) -> Any:
        """The analyzed plan whose rows some data are; None: it is not known to be any."""
        found = self._known.get(id(data))
        if found is None or found.object() is not data:
            return None
        try:
            return found.plan if _content(data) == found.content else None
        except Exception:  # what the driver put into it cannot be digested
            return None


def _reference(result: Any) -> Callable[[], Any]:
    return (lambda: result) if isinstance(result, list) else weakref.ref(result)


def _content(result: Any) -> str | None:
    """A digest of a result: of every row, as lists and frames change in place. None: it is too large, or of no kind
    that can be recognized, as a single row and an iterator are.
    """
    if isinstance(result, list):
        return _rows_content(result)
    if hasattr(result, "to_csv") and hasattr(result, "dtypes"):  # a frame of pandas
        return pandas_content(result)
    return "" if hasattr(result, "to_batches") else None  # a table of Arrow does not change


def _rows_content(rows: list[Any]) -> str | None:
    if len(rows) > MAX_ROWS:
        return None
    digest, size = hashlib.sha256(), 0
    for row in rows:
        text = f"{type(row).__name__} {row!r}\n"
        size += len(text)
        if size > MAX_TEXT:
            return None
        digest.update(text.encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def pandas_content(frame: Any) -> str | None:
    """A digest of a frame of pandas, its columns, types and index included; None if it is too large."""
    if frame.size > MAX_VALUES:
        return None
    header = repr((list(frame.columns), [str(kind) for kind in frame.dtypes], len(frame)))
    digest = hashlib.sha256(header.encode("utf-8", "backslashreplace"))
    digest.update(sys.modules["pandas"].util.hash_pandas_object(frame).to_numpy().tobytes())
    return digest.hexdigest()
