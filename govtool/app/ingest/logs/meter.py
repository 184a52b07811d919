"""Progress of an ingest, and its rate, for a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from govtool.app.ingest.logs.request import Report, Status

if TYPE_CHECKING:
    from govtool.app.ingest.logs.parts import Findings
    from govtool.capture.logs.log_form import Collected

_READING, _WRITING = 400, 50
"""Of a thousand: the share of the work that reading and writing are; the rest is resolving."""
_DEFINITION = 1.5
"""A definition takes so many times what a query takes."""

_SELDOM = 2.0
"""Seconds between reports from within a step."""


class Meter:
    """Counts what is done and tells it.

    Args:
        report: Is called now and then.
        weight: How much there is to read, in bytes.
        clock: Seconds.
    """

    def __init__(self, report: Report | None, weight: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._weight = max(1, weight)
        self._clock = clock
        self._began = clock()
        self._read = self._records = self._distinct = self._failed = 0
        self._work = 1.0
        self._done = 0.0
        self._statements = 0
        self._definitions = 0
        self._notified = self._began

    def read(self, weight: int, whole: Collected) -> None:
        """A piece of so much was read; ``whole`` is all that was, until now."""
        self._read += weight
        self._records = whole.log.counts.records
        self._distinct = len(whole.log.statements)
        self._failed = whole.log.counts.failed + whole.rejected
        self._notify("reading", min(_READING, _READING * self._read // self._weight), self._records)

    def at(self, weight: int) -> None:
        """So much more was read by this process."""
        self._read += weight

    def resolving(self, definitions: int, queries: int) -> None:
        """Reading is done; so much is to be resolved."""
        self._began = self._clock()
        self._definitions = definitions
        self._work = max(1.0, definitions * _DEFINITION + queries)
        self._notify("resolving", _READING, 0)

    def within(self, done: int, total: int) -> None:
        """So much is done of the definitions, which are resolved as one; reported every other second."""
        if self._clock() - self._notified < _SELDOM:
            return
        part = self._definitions * done / max(1, total)
        share = min(1.0, part * _DEFINITION / self._work)
        self._notify("resolving", _READING + int((1000 - _READING - _WRITING) * share), int(part))

    def resolved(self, scripts: int, findings: Findings) -> None:
        """So many scripts more are resolved."""
        self._done += scripts * _DEFINITION if self._statements < self._definitions else scripts
        self._statements += scripts
        self._failed = findings.coverage.opaque
        share = min(1.0, self._done / self._work)
        self._notify("resolving", _READING + int((1000 - _READING - _WRITING) * share), self._statements)

    def wrote(self, done: int, total: int) -> None:
        """So much of the writing is done."""
        self._notify("writing", 1000 - _WRITING + _WRITING * done // total, 0)

    def _notify(self, stage: str, done: int, counted: int) -> None:
        if self._report is None:
            return
        self._notified = self._clock()
        passed = self._notified - self._began
        rate = counted / passed if passed > 0 else 0.0
        self._report(Status(stage, done, 1000, self._records, rate, self._distinct, self._failed))
