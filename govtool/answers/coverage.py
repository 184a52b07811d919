"""Coverage: how much of the evidence was understood, by source and in sum, and whether it suffices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from govtool.wording import count, percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from govtool.capture.sql.extract import Extraction
    from govtool.model import Diagnostic

_UNREAD = ("unreadable", "not-sql")


def is_unread(diagnostic: Diagnostic) -> bool:
    """Return whether a diagnostic is about a file that was not read."""
    return diagnostic.code in _UNREAD and diagnostic.severity == "error"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of statements. Those that carry no lineage (SET, GRANT …) are ``ignored`` and not part of the rest."""

    statements: int = 0
    understood: int = 0
    partial: int = 0
    opaque: int = 0
    ignored: int = 0
    runs_understood: int = 0
    runs_partial: int = 0
    runs_opaque: int = 0
    """The same by weight: how often a log says that they were run; of files, once a statement."""
    unread: int = 0
    """Files of which nothing is known: gone, binary, unreadable, too large."""

    @classmethod
    def of(cls, extraction: Extraction) -> Coverage:
        """The counts of an extraction."""
        return cls(
            statements=extraction.statements,
            understood=extraction.understood,
            partial=extraction.partial,
            opaque=extraction.opaque,
            ignored=extraction.ignored,
            runs_understood=extraction.runs.get("understood", 0),
            runs_partial=extraction.runs.get("partial", 0),
            runs_opaque=extraction.runs.get("opaque", 0),
            unread=sum(map(is_unread, extraction.diagnostics)),
        )

    @property
    def relevant(self) -> int:
        """Statements that carry lineage, understood or not."""
        return self.understood + self.partial + self.opaque

    @property
    def unclear(self) -> int:
        """Statements and files of which nothing is known: whatever they read or write is in no answer."""
        return self.opaque + self.unread

    @property
    def runs(self) -> int:
        """Runs of the relevant statements."""
        return self.runs_understood + self.runs_partial + self.runs_opaque

    def share(self) -> float:
        """Understood statements among the relevant ones and files not read, 0 to 1; 1 where there are none."""
        return self.understood / (self.relevant + self.unread) if self.relevant + self.unread else 1.0

    def counts(self) -> dict[str, int]:
        """The counts by name, as in JSON answers."""
        return {
            "statements": self.statements,
            "understood": self.understood,
            "partial": self.partial,
            "opaque": self.opaque,
            "ignored": self.ignored,
            "runs_understood": self.runs_understood,
            "runs_partial": self.runs_partial,
            "runs_opaque": self.runs_opaque,
            "unread": self.unread,
        }

    def __add__(self, other: Coverage) -> Coverage:
        """The counts of both."""
        return Coverage(
            self.statements + other.statements,
            self.understood + other.understood,
            self.partial + other.partial,
            self.opaque + other.opaque,
            self.ignored + other.ignored,
            self.runs_understood + other.runs_understood,
            self.runs_partial + other.runs_partial,
            self.runs_opaque + other.runs_opaque,
            self.unread + other.unread,
        )


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for incomplete coverage, and its cost."""

    source: str
    code: str
    message: str
    statements: int
    runs: int
    """Number of executions."""
    file: str | None
    line: int | None
    """Of one of them."""


def over_sources(reasons: Iterable[Reason]) -> list[Reason]:
    """The reasons with those that several sources have as one, costliest first; its place is that of the costliest."""
    found: dict[tuple[str, str], Reason] = {}
    for one in reasons:
        first = found.setdefault((one.code, one.message), one)
        if first is not one:
            summed = replace(first, statements=first.statements + one.statements, runs=first.runs + one.runs)
            found[one.code, one.message] = summed
    return sorted(found.values(), key=lambda one: (-one.runs, -one.statements))


@dataclass(frozen=True, slots=True)
class SourceCoverage:
    """The counts of one source."""

    source: str
    dialect: str
    files: int
    coverage: Coverage
    kind: str = ""
    """``sql``, ``log`` …: the kind of ingest; empty where an older version wrote it."""
    place: str = ""
    """Paths from the project's root, or an address."""


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """The counts of every live source of a commit and, where asked for, what was not understood."""

    sources: tuple[SourceCoverage, ...]
    diagnostics: tuple[tuple[str, Diagnostic], ...] = ()
    """Pairs of source and diagnostic."""
    reasons: tuple[Reason, ...] = ()
    """Costliest first."""

    @property
    def total(self) -> Coverage:
        """The sum over all sources."""
        return sum((entry.coverage for entry in self.sources), Coverage())


def sentence(coverage: Coverage) -> str:
    """``coverage 96.4% (412/427 statements)``; of a log also by how often they were run.

    A file that could not be read counts as one statement that was not understood, as there is at least one in it:
    ``coverage 50.0% (1/2 statements, counting 1 file not read)``.
    """
    relevant, runs = coverage.relevant + coverage.unread, coverage.runs + coverage.unread
    parts = f"{coverage.understood:,}/{count(relevant, 'statement')}"
    if coverage.unread:
        parts += f", counting {count(coverage.unread, 'file')} not read"
    text = f"coverage {percent(coverage.understood, relevant)} ({parts})"
    if coverage.runs > coverage.relevant:
        text += f", {percent(coverage.runs_understood, runs)} of {count(runs, 'run')}"
    return text


def shortfall(
    coverage: Coverage, *, strict: bool, min_coverage: float | None, errors: int = 0, nothing: bool = False
) -> str | None:
    """The reason why the evidence does not suffice, or None.

    Args:
        coverage: How much was understood.
        strict: Everything has to be.
        min_coverage: This share has to be, in percent.
        errors: The number of things that could not be read or parsed.
        nothing: Nothing at all suffices without ``strict`` and ``min_coverage``.
    """
    if errors and not coverage.relevant and not nothing:
        return "nothing could be read"
    if errors and strict and coverage.understood == coverage.relevant:
        return f"{count(errors, 'error')}, and --strict asks for none"
    if coverage.relevant and coverage.opaque == coverage.relevant and not nothing:
        return f"nothing was understood of {count(coverage.relevant, 'statement')}"
    relevant, runs = coverage.relevant + coverage.unread, coverage.runs + coverage.unread
    if strict and coverage.understood < relevant:
        return f"{sentence(coverage)}, and --strict asks for all"
    if min_coverage is not None and coverage.understood * 100 < min_coverage * relevant:
        return f"{sentence(coverage)} is below the {min_coverage:g}% of --min-coverage"
    if min_coverage is not None and coverage.runs_understood * 100 < min_coverage * runs:
        return f"{sentence(coverage)}: by runs, that is below the {min_coverage:g}% of --min-coverage"
    return None
