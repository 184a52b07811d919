"""Progress of reading SQL: the stage, its rate and its counts, and the share of the whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from govtool.app.ingest.logs.request import Report, Status

if TYPE_CHECKING:
    from govtool.capture.sql.stages import StageProgress

_PARTS: Final = 1000
_SPANS: Final = {"parsing": (0, 330), "resolving": (330, 660), "describing": (660, 820), "writing": (820, _PARTS)}
"""By stage the parts of all the work before and after it, as measured on folders of some thousand scripts."""

_LEAST: Final = 50
"""The share of the work, as a fraction's denominator, from which on its speed says what the rest takes."""


class SqlMeter:
    """Reports the stages of an extraction and the writing after it.

    Args:
        report: Takes the status; None: nothing is reported.
        clock: Seconds.
    """

    def __init__(self, report: Report | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._send = report
        self._clock = clock
        self._stage = ""
        self._began = 0.0
        self._first: float | None = None
        self._reached = 0
        self._counts = (0, 0)
        self._statements = 0

    @property
    def report(self) -> Callable[[StageProgress], None] | None:
        """The callback of an extraction; None if nothing is reported."""
        return None if self._send is None else self._extracting

    def wrote(self, done: int, total: int) -> None:
        """So many fragments are written, of so many."""
        if self._send is not None:
            self._notify("writing", done, total, self._statements * done // max(1, total))

    def _extracting(self, stage: StageProgress) -> None:
        self._counts = (stage.distinct, stage.failed)
        self._statements = max(self._statements, stage.statements)
        self._notify(stage.name, stage.done, stage.total, stage.statements)

    def _notify(self, name: str, done: int, total: int, statements: int) -> None:
        now = self._clock()
        if self._first is None:
            self._first = now
        if name != self._stage:
            self._stage, self._began = name, now
        passed = now - self._began
        low, high = _SPANS[name]
        # Memos that do not hold begin the extraction again: the bar waits then, and does not run back.
        self._reached = max(self._reached, low + (high - low) * done // max(1, total))
        rate = statements / passed if passed > 0 else 0.0
        left = None
        if self._reached * _LEAST >= _PARTS:
            left = (now - self._first) * (_PARTS - self._reached) / self._reached
        assert self._send is not None
        self._send(Status(name, self._reached, _PARTS, statements, rate, *self._counts, left))


def counting(progress: Callable[[int, int], None] | None) -> Report | None:
    """A report that hands on the parts that are done and their number."""
    if progress is None:
        return None
    return lambda status: progress(status.done, status.total)
