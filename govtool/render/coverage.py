"""Coverage: the sentence at the end of a table, and the answer of ``govtool coverage``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from govtool.answers.coverage import sentence
from govtool.render.envelope import compact, json_lines
from govtool.render.errors import place_of
from govtool.render.rows import answer_csv
from govtool.render.table import Table, TableColumn, markdown, plain
from govtool.render.text import percent

if TYPE_CHECKING:
    from govtool.answers.coverage import Coverage, CoverageReport, Reason
    from govtool.answers.coverage_report import CoverageAnswer

COSTLIEST = 10
"""Reasons that are shown."""

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")


def render(form: str, answer: CoverageAnswer) -> Table | Iterable[str]:
    """One of ``FORMATS``."""
    if form in ("table", "plain", "markdown"):
        made = table(answer.report)
        return made if form == "table" else (plain if form == "plain" else markdown)(made)
    if form == "csv":
        return answer_csv(answer)
    if form == "jsonl":
        return (compact(source) for source in answer.sources())
    return json_lines(answer.to_dict())


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


def breakdown(coverage: Coverage) -> Table:
    """Return the statements understood fully, partly and not at all: by number, and by how often they were run."""
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
