"""Bounds on what a template may do: steps, the same on every machine, and a clock as the last guard.

A step is an item that an operation looks at, or ``CHARACTERS`` characters of text. Values that hold one another are
counted as often as they would be printed: ``{% set x = [x, x] %}`` forty times takes no memory, yet its text has 2^40
parts. Every operation of a template counts its operands before it runs.
"""

from __future__ import annotations

import os
import time
from typing import Any, Final

from jinja2.utils import Namespace

from govtool.capture.sql.templates.unknown import Limit

MAX_STEPS: Final = 5_000_000
"""Of one rendering."""
CHARACTERS: Final = 16
_LOOK: Final = 20_000
"""Steps between looks at the clock."""


def allowed_seconds() -> float:
    """Return how many seconds of CPU the templates of one file may take: ``GOVTOOL_FILE_SECONDS``, else 60."""
    try:
        return max(float(os.environ.get("GOVTOOL_FILE_SECONDS", "60")), 0.001)
    except ValueError:
        return 60.0


class Clock:
    """The CPU time of one file in this thread."""

    def __init__(self) -> None:
        self._seconds = allowed_seconds()
        self._start = time.thread_time()

    def check(self) -> None:
        """Raise ``Limit`` if the file has had its time."""
        if time.thread_time() - self._start > self._seconds:
            raise Limit(f"more than {self._seconds:g} seconds of CPU; GOVTOOL_FILE_SECONDS allows more")


class Budget:
    """The steps of one rendering.

    Args:
        clock: Of the file.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = MAX_STEPS
        self._look = MAX_STEPS - _LOOK

    def spend(self, *values: object) -> None:
        """Count values that an operation looks at, with all that they hold.

        Raises:
            Limit: There were too many.
        """
        left = self._left
        stack: list[Any] = list(values)
        while stack:
            value = stack.pop()
            left -= 1
            if isinstance(value, (str, bytes)):
                left -= len(value) // CHARACTERS
            elif isinstance(value, (list, tuple, set, frozenset)):
                left -= len(value) // CHARACTERS
                if left > 0:
                    stack.extend(value)
            elif isinstance(value, dict):
                stack.extend(value.keys())
                stack.extend(value.values())
            elif isinstance(value, Namespace):
                stack.append(object.__getattribute__(value, "_Namespace__attrs"))
            if left < 0:
                self._left = 0
                raise Limit(f"more than {MAX_STEPS} steps")
        self._left = left
        if left < self._look:
            self._look = left - _LOOK
            self._clock.check()
