"""Stages of an extraction, as its progress is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from govtool.capture.sql.resolve.states import ScriptState

PARSING: Final = "parsing"
RESOLVING: Final = "resolving"
DESCRIBING: Final = "describing"
"""What is resolved becomes derivations."""
EXTRACTING: Final = "extracting"
"""All of these together, in several processes."""

EVERY: Final = 64
"""Scripts or statements between two reports."""


class StageProgress(NamedTuple):
    """How far a stage is."""

    name: str
    """Perhaps ``EXTRACTING``, then ``PARSING``, ``RESOLVING``, ``DESCRIBING``."""
    done: int
    """Scripts, or of ``RESOLVING`` statements."""
    total: int
    statements: int
    """The statements that the stage has done."""
    distinct: int
    """The distinct texts of the statements that were parsed."""
    failed: int
    """Those of the statements that are not understood at all."""


Report = Callable[[StageProgress], None]


class Stages:
    """Counts what is done, and reports it now and then.

    Args:
        report: Takes a stage; None: nothing is counted.
    """

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self._texts: set[int] = set()
        self._statements = 0
        self._failed = self._opaque = 0

    def parsed(self, done: int, total: int, script: ScriptState | None) -> None:
        """So many scripts are parsed; the last is ``script``, None for what could not be read."""
        if self._report is None:
            return
        for statement in [] if script is None else script.statements:
            self._statements += 1
            if statement.parsed.text:  # of an unchanged script there is none: it is not parsed
                self._texts.add(hash(statement.parsed.text))
            if statement.parsed.status in ("failed", "opaque"):
                self._failed += 1
        if done % EVERY == 0 or done == total:
            self._notify(PARSING, done, total, self._statements)

    def resolved(self, done: int, total: int) -> None:
        """So many statements are walked."""
        if self._report is not None and (done % EVERY == 0 or done == total):
            self._notify(RESOLVING, done, total, done)

    def described(self, done: int, total: int, opaque: int = 0) -> None:
        """The derivations of so many scripts are made; of the last so many statements are not understood at all.

        Some of them were parsed: what is wrong with them was found later.
        """
        self._opaque += opaque
        self._failed = max(self._failed, self._opaque)
        if self._report is not None and (done % EVERY == 0 or done == total):
            self._notify(DESCRIBING, done, total, self._statements * done // max(1, total))

    def _notify(self, name: str, done: int, total: int, statements: int) -> None:
        if self._report is not None:
            self._report(StageProgress(name, done, total, statements, len(self._texts), self._failed))
