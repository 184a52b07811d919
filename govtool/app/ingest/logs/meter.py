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

_TELLING = 1 / 50
"""The share of a stage from which on its speed says how long the rest takes."""

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
        self._definitions = self._queries = 0
        self._resolved = self._seen = 0
        self._base = (0, 0)
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
        self._definitions, self._queries = definitions, queries
        self._failed = 0  # from here on those that are not understood
        self._notify("resolving", _READING, 0)

    def stage(self) -> None:
        """A stage of the resolving begins, of which ``within`` counts."""
        self._base = (self._resolved, self._failed)

    def within(self, done: int, failed: int) -> None:
        """So many are resolved since the stage began, and so many not understood; reported every other second."""
        if self._clock() - self._notified < _SELDOM:
            return
        self._seen = max(self._seen, self._base[0] + done)
        self._failed = max(self._failed, self._base[1] + failed)
        self._resolving()

    def resolved(self, scripts: int, findings: Findings) -> None:
        """So many scripts more are resolved."""
        self._resolved += scripts
        self._seen = max(self._seen, self._resolved)
        self._failed = findings.coverage.opaque
        self._resolving()

    def wrote(self, done: int, total: int) -> None:
        """So much of the writing is done."""
        self._notify("writing", 1000 - _WRITING + _WRITING * done // total, 0)

    def _resolving(self) -> None:
        definitions = min(self._seen, self._definitions)
        work = max(1.0, self._definitions * _DEFINITION + self._queries)
        share = min(1.0, (definitions * _DEFINITION + self._seen - definitions) / work)
        whole = 1000 - _READING - _WRITING
        left = None
        if share >= _TELLING:
            # The time of reading says nothing of this stage: what is left is as slow as the stage was until now.
            left = (self._clock() - self._began) / share * (1 - share + _WRITING / whole)
        self._notify("resolving", _READING + int(whole * share), self._seen, left)

    def _notify(self, stage: str, done: int, counted: int, left: float | None = None) -> None:
        if self._report is None:
            return
        self._notified = self._clock()
        passed = self._notified - self._began
        rate = counted / passed if passed > 0 else 0.0
        self._report(Status(stage, done, 1000, self._records, rate, self._distinct, self._failed, left))
