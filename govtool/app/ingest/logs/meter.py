"""Progress of an ingest, and its rate, for a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from govtool.app.ingest.logs.request import Report, Status

if TYPE_CHECKING:
    from govtool.app.ingest.logs.parts import Findings
    from govtool.capture.logs.collected_bytes import Collected

_WHOLE, _WRITING = 1000, 50
"""The parts of the work, and those of them that are writing."""
_STATEMENT = 8.0
"""To resolve a distinct query takes as long as to read so many records."""
_DEFINITION = 1.5
"""A definition takes so many times what a query takes."""

_TELLING = 1 / 50
"""The share of a stage from which on its speed says how long the rest takes."""

_SELDOM = 0.5
"""Seconds between reports from within a step."""


class Meter:
    """Counts what is done, and reports it.

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
        self._reached = self._resolving_from = 0
        self._stage = ""

    def read(self, weight: int, whole: Collected) -> None:
        """A piece of so much was read; ``whole`` is all that was, until now."""
        self._read += weight
        self._records = whole.log.counts.records
        self._distinct = len(whole.log.statements)
        self._failed = whole.log.counts.failed + whole.rejected
        share = min(1.0, self._read / self._weight)
        part = self._reading_part(self._distinct) * share
        left = None
        if share >= _TELLING and self._records:
            left = (self._clock() - self._began) * (1 - part) / part
        self._notify("reading", int(_WHOLE * part), self._records, left)

    def at(self, weight: int) -> None:
        """So much more was read by this process."""
        self._read += weight

    def resolving(self, definitions: int, queries: int) -> None:
        """Reading is done; so much is to be resolved."""
        self._began = self._clock()
        self._definitions, self._queries = definitions, queries
        self._failed = 0  # from here on those that are not understood
        start = int(_WHOLE * self._reading_part(definitions * _DEFINITION + queries))
        self._resolving_from = min(max(self._reached, start), _WHOLE - _WRITING)
        self._notify("resolving", self._resolving_from, 0)

    def stage(self) -> None:
        """A stage of the resolving begins, of which ``within`` counts."""
        self._base = (self._resolved, self._failed)

    def within(self, done: int, failed: int, _distinct: int = 0) -> None:
        """So many are resolved since the stage began, and so many not understood; reported twice a second."""
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
        if self._stage != "writing":
            self._began = self._notified  # the last statement was resolved
        passed = self._clock() - self._began
        left = passed * (total - done) / done if done else None
        self._notify("writing", _WHOLE - _WRITING + _WRITING * done // total, self._distinct * done // total, left)

    def _reading_part(self, statements: float) -> float:
        """The share of reading in all the work, where so many statements are to be resolved."""
        return (1 - _WRITING / _WHOLE) * self._records / max(1.0, self._records + _STATEMENT * statements)

    def _resolving(self) -> None:
        definitions = min(self._seen, self._definitions)
        work = max(1.0, self._definitions * _DEFINITION + self._queries)
        share = min(1.0, (definitions * _DEFINITION + self._seen - definitions) / work)
        whole = _WHOLE - self._resolving_from - _WRITING
        left = None
        if share >= _TELLING and whole > 0:
            # The time of reading says nothing of this stage: what is left is as slow as the stage was until now.
            left = (self._clock() - self._began) / share * (1 - share + _WRITING / whole)
        self._notify("resolving", self._resolving_from + int(whole * share), self._seen, left)

    def _notify(self, stage: str, done: int, counted: int, left: float | None = None) -> None:
        if self._report is None:
            return
        self._stage = stage
        self._reached = max(self._reached, done)
        self._notified = self._clock()
        passed = self._notified - self._began
        rate = counted / passed if passed > 0 else 0.0
        self._report(Status(stage, self._reached, _WHOLE, self._records, rate, self._distinct, self._failed, left))
