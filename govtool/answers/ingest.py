"""The outcome of an ingest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from govtool.answers.answer import require_coverage
from govtool.config_sources import KINDS
from govtool.errors import EvidenceError

if TYPE_CHECKING:
    from govtool.answers.coverage import Coverage, Reason
    from govtool.answers.ingest_plan import IngestPlan
    from govtool.capture.sql.extract import Shortfall
    from govtool.model import Diagnostic
    from govtool.store import Commit


_NO_TEXT = frozenset({"unreadable", "not-sql", "not-json", "stale"})
"""Codes of what was not read as SQL at all, and of what is kept for it: no dialect would help."""


def reading_hint(kind: str, diagnostics: Sequence[Diagnostic] = ()) -> str:
    """The hint where too little was understood of a source of this kind."""
    read = not diagnostics or any(one.code not in _NO_TEXT for one in diagnostics)
    may_be_dialect = read and "dialect" in KINDS.get(kind, ())
    dialect = "; is the dialect right (--dialect, or dialect in govtool.toml)?" if may_be_dialect else ""
    return f"see the diagnostics above{dialect}"


EMPTY = "there is nothing in what was read"


class SourceLines(Protocol):
    """Finds the source line that a diagnostic points to."""

    def line(self, diagnostic: Diagnostic) -> str | None:
        """Return the line, or None if it cannot be had."""


@dataclass(frozen=True, slots=True)
class CoverageDemand:
    """Minimum coverage for a commit. Nothing understood at all does not suffice."""

    strict: bool = False
    """Everything has to be."""
    min_coverage: float | None = None
    """This share of the statements and of their runs has to be, in percent."""
    errors: bool = True
    """Diagnostics of severity ``error`` count as a lack of evidence."""
    shortfalls: bool = False
    """The statements that were not understood are wanted, too, where nothing is new: all is read again."""

    nothing: bool = False
    """Nothing understood at all suffices: what cannot be read is to be dropped."""

    def problem(self, coverage: Coverage, diagnostics: Sequence[Diagnostic], *, empty: bool = False) -> str | None:
        """Return what is missing to meet the demand, or None if it is met; ``empty``: the input has nothing in it."""
        from govtool.answers.coverage import shortfall

        errors = sum(d.severity == "error" for d in diagnostics) if self.errors else 0
        lacking = shortfall(
            coverage, strict=self.strict, min_coverage=self.min_coverage, errors=errors, nothing=self.nothing
        )
        return lacking or (EMPTY if empty and not self.nothing else None)


class RefusedIngestError(EvidenceError):
    """Too little was understood of what was to be ingested; nothing was committed.

    Attributes:
        diagnostics: Where something was not understood.
        text: Finds the source line of a diagnostic.
        shortfalls: Statements that were not fully understood.
        reasons: What cost most of the coverage, costliest first.
        coverage: Counts of statements.
    """

    default_code = "evidence.coverage"

    def __init__(
        self,
        message: str,
        diagnostics: tuple[Diagnostic, ...],
        text: SourceLines,
        shortfalls: tuple[Shortfall, ...],
        reasons: tuple[Reason, ...],
        coverage: Coverage,
        hint: str,
    ) -> None:
        """Keep what an outcome would show."""
        super().__init__(message, hint=hint)
        self.diagnostics, self.text, self.shortfalls = diagnostics, text, shortfalls
        self.reasons, self.coverage = reasons, coverage


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The outcome of an ingest: its commit, how much was understood, and what was not."""

    commit: Commit
    created: bool
    """False: the store already held exactly this."""
    source: str
    files: int
    coverage: Coverage
    """Counts of statements; ``coverage.share()`` is the share that was understood."""
    diagnostics: tuple[Diagnostic, ...]
    """Diagnostics: statements not understood, or understood with doubt."""
    text: SourceLines = field(repr=False, compare=False)
    """Finds the source line of a diagnostic."""
    shortfalls: tuple[Shortfall, ...] = field(default=(), repr=False)
    """Statements that were not fully understood; empty if nothing was read, as all was known."""
    counts: Mapping[str, Any] = field(default_factory=dict)
    """Further counts: records of a log, executions of Spark; empty if nothing was read."""
    reasons: tuple[Reason, ...] = ()
    """Top reasons for incomplete coverage, costliest first; empty if nothing was read."""
    plan: IngestPlan | None = None
    """Of a dry run: what would change. Then ``commit`` is the one that would have been made, and is in no store."""

    drops_unreadable: bool = False
    """What cannot be read was to be dropped: nothing understood at all is no error."""
    address: str = ""
    """Of the store, where it is remote."""

    @property
    def place(self) -> str:
        """The source, its commit, and the store where that is remote: ``sql:etl: commit 3 (ab12cd3) in s3://b/x``."""
        where = f" in {self.address}" if self.address else ""
        state = "commit" if self.created else "nothing new, still at commit"
        return f"{self.source}: {state} {self.commit.seq} ({self.commit.short}){where}"

    def check_coverage(self, *, strict: bool = False, min_coverage: float | None = None, errors: bool = True) -> None:
        """Raise an error where too little was understood; a commit that was made stays.

        Args:
            strict: Demand that everything was understood.
            min_coverage: Demand this share of the statements and of their runs, in percent.
            errors: Count diagnostics of severity ``error`` as a lack of evidence.

        Raises:
            EvidenceError: one of these demands is not met, or nothing at all was understood (``evidence.coverage``).
        """
        diagnostics = self.diagnostics if errors else ()
        require_coverage(
            self.coverage,
            strict=strict,
            min_coverage=min_coverage,
            hint=reading_hint(self._kind(), self.diagnostics),
            diagnostics=diagnostics,
            nothing=self.drops_unreadable,
        )

    def _kind(self) -> str:
        """The kind of the ingest: that in the source's name or, where the user named it, that of its commit."""
        kind, colon, _ = self.source.partition(":")
        summary = self.commit.summary
        if (colon and kind in KINDS) or summary.get("source") != self.source:
            return kind
        return str(summary.get("command", "")).removeprefix("ingest ")
