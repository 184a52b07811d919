"""Coverage: the sentence at the end of a table, and the answer of ``govtool coverage``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol

from govtool.app.diagnostics import diagnostic_object
from govtool.render.envelope import compact, envelope, json_lines
from govtool.render.errors import place_of
from govtool.render.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.text import count, percent

if TYPE_CHECKING:
    from govtool.app.coverage import CoverageReport, Reason

COSTLIEST = 10
"""Reasons that are shown."""

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")


class StatementCounts(Protocol):
    """Counts of statements, such as ``govtool.app.coverage.Coverage``."""

    @property
    def understood(self) -> int:
        """Statements of which everything was understood."""

    @property
    def partial(self) -> int:
        """Statements with an opaque or ambiguous part."""

    @property
    def opaque(self) -> int:
        """Statements of which nothing was understood."""

    @property
    def relevant(self) -> int:
        """The sum of the three."""

    @property
    def runs_understood(self) -> int:
        """Runs of statements of which everything was understood."""

    @property
    def runs_partial(self) -> int:
        """Runs of statements with an opaque or ambiguous part."""

    @property
    def runs_opaque(self) -> int:
        """Runs of statements of which nothing was understood."""

    @property
    def runs(self) -> int:
        """Runs of all relevant statements."""

    @property
    def unread(self) -> int:
        """Files that could not be read at all."""


def sentence(coverage: StatementCounts) -> str:
    """``coverage 96.4% (412/427 statements)``; of a log also by how often they were run.

    A file that could not be read counts as one statement that was not understood, as there is at least one in it:
    ``coverage 50.0% (1/1 statement, 1 file not read)``.
    """
    share = percent(coverage.understood, coverage.relevant + coverage.unread)
    parts = f"{coverage.understood:,}/{count(coverage.relevant, 'statement')}"
    if coverage.unread:
        parts += f", {count(coverage.unread, 'file')} not read"
    text = f"coverage {share} ({parts})"
    if coverage.runs > coverage.relevant:
        share = percent(coverage.runs_understood, coverage.runs + coverage.unread)
        text += f", {share} of {count(coverage.runs, 'run')}"
    return text


def shortfall(coverage: StatementCounts, *, strict: bool, min_coverage: float | None, errors: int = 0) -> str | None:
    """Why the evidence does not suffice, or None if it does; ``errors`` counts what could not be read or parsed."""
    if errors and not coverage.relevant:
        return "nothing could be read"
    if errors and strict and coverage.understood == coverage.relevant:
        return f"{count(errors, 'error')}, and --strict asks for none"
    if coverage.relevant and coverage.opaque == coverage.relevant:
        return f"nothing was understood of {count(coverage.relevant, 'statement')}"
    relevant, runs = coverage.relevant + coverage.unread, coverage.runs + coverage.unread
    if strict and coverage.understood < relevant:
        return f"{sentence(coverage)}, and --strict asks for all"
    if min_coverage is not None and coverage.understood * 100 < min_coverage * relevant:
        return f"{sentence(coverage)} is below the {min_coverage:g}% of --min-coverage"
    if min_coverage is not None and coverage.runs_understood * 100 < min_coverage * runs:
        return f"{sentence(coverage)}: by runs, that is below the {min_coverage:g}% of --min-coverage"
    return None


def render(form: str, report: CoverageReport, header: dict[str, object]) -> Table | Iterable[str]:
    """One of ``FORMATS``; ``header`` are the keys that say which store and commit this is."""
    if form in ("table", "plain", "markdown"):
        made = table(report)
        return made if form == "table" else (plain if form == "plain" else markdown)(made)
    if form == "csv":
        return to_csv(
            ("source", "dialect", "files", *report.total.counts()),
            [(s.source, s.dialect, s.files, *s.coverage.counts().values()) for s in report.sources],
        )
    sources: list[dict[str, object]] = [
        {"source": s.source, "dialect": s.dialect, "files": s.files, **s.coverage.counts()} for s in report.sources
    ]
    if form == "jsonl":
        return (compact(source) for source in sources)
    return json_lines(
        envelope(
            "coverage/1",
            {
                **header,
                "sources": sources,
                "coverage": report.total.counts(),
                "reasons": [asdict(reason) for reason in report.reasons],
                "diagnostics": [{"source": source, **diagnostic_object(d)} for source, d in report.diagnostics],
            },
        )
    )


def table(report: CoverageReport) -> Table:
    """A row a source."""
    numbers = ("files", "understood", "partial", "opaque", "ignored")
    return Table(
        columns=(
            TableColumn("source", style="bold"),
            TableColumn("dialect"),
            *(TableColumn(name, justify="right") for name in numbers),
            TableColumn("coverage", justify="right"),
        ),
        rows=[
            (
                s.source,
                s.dialect or "generic",
                f"{s.files:,}",
                f"{s.coverage.understood:,}",
                f"{s.coverage.partial:,}",
                f"{s.coverage.opaque:,}",
                f"{s.coverage.ignored:,}",
                percent(s.coverage.understood, s.coverage.relevant + s.coverage.unread),
            )
            for s in report.sources
        ],
        summary=sentence(report.total),
    )


def breakdown(coverage: StatementCounts) -> Table:
    """What was understood fully, partly and not at all: by statements, and by how often they were run."""
    rows = [
        ("fully", coverage.understood, coverage.runs_understood),
        ("partly", coverage.partial, coverage.runs_partial),
        ("not at all", coverage.opaque, coverage.runs_opaque),
    ]
    return Table(
        columns=(
            TableColumn("understood"),
            TableColumn("statements", justify="right"),
            TableColumn("share", justify="right"),
            TableColumn("runs", justify="right"),
            TableColumn("share", justify="right"),
        ),
        rows=[
            (name, f"{some:,}", percent(some, coverage.relevant), f"{runs:,}", percent(runs, coverage.runs))
            for name, some, runs in rows
        ],
    )


def costs(reasons: Sequence[Reason]) -> Table:
    """The ten reasons that cost most, a row each."""
    shown = reasons[:COSTLIEST]
    left = len(reasons) - len(shown)
    tail = f" · {left:,} more reasons" if left else ""
    return Table(
        columns=(
            TableColumn("runs", justify="right"),
            TableColumn("statements", justify="right"),
            TableColumn("code"),
            TableColumn("reason"),
            TableColumn("such as", style="dim"),
        ),
        rows=[
            (f"{r.runs:,}", f"{r.statements:,}", r.code, r.message, f"{r.file or r.source}:{r.line or 1}")
            for r in shown
        ],
        summary=f"what cost most of the coverage{tail}",
    )


def reasons(report: CoverageReport, limit: int | None) -> Table:
    """A row a diagnostic, and how often each code occurs."""
    codes = Counter(d.code for _, d in report.diagnostics)
    shown = report.diagnostics if limit is None else report.diagnostics[:limit]
    left = len(report.diagnostics) - len(shown)
    tail = f" · {left:,} more (--all)" if left else ""
    return Table(
        columns=(
            TableColumn("severity"),
            TableColumn("code"),
            TableColumn("place", style="dim"),
            TableColumn("message"),
        ),
        rows=[(d.severity, d.code, f"{source}: {place_of(d)}", d.message) for source, d in shown],
        summary=", ".join(f"{number:,} {code}" for code, number in codes.most_common()) + tail,
    )
