"""Coverage: the sentence at the end of a table, and the answer of ``govtool coverage``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING

from govtool.answers.coverage import over_sources, sentence
from govtool.answers.diagnostics import distinct
from govtool.render.errors import place_of
from govtool.render.formats.envelope import compact, json_lines
from govtool.render.layout.rows import ROW_FORMATS, answer_csv
from govtool.render.layout.table import Table, TableColumn, markdown, plain, to_csv
from govtool.render.layout.text import percent

if TYPE_CHECKING:
    from govtool.answers.coverage import Coverage, CoverageReport, Reason
    from govtool.answers.coverage_report import CoverageAnswer

COSTLIEST = 10
"""Reasons that are shown."""

DIAGNOSTIC_FIELDS = ("source", "severity", "code", "file", "line", "column", "message", "target", "candidates")
"""The columns of a CSV of diagnostics."""

FORMATS = ROW_FORMATS


def render(form: str, answer: CoverageAnswer, *, details: bool = False, limit: int | None = None) -> Iterable[str]:
    """The lines of one of ``FORMATS``; with ``details``, ``csv`` and ``jsonl`` have a row a diagnostic."""
    if form in ("table", "plain", "markdown"):
        write = markdown if form == "markdown" else plain
        return _with_blanks([write(part) for part in tables(answer, details=details, limit=limit)])
    if form == "json":
        return json_lines(answer.to_dict())
    if details:
        found = list(islice(answer.body_diagnostics(), limit))
        return (compact(one) for one in found) if form == "jsonl" else to_csv(DIAGNOSTIC_FIELDS, map(_cells, found))
    return (compact(source) for source in answer.sources()) if form == "jsonl" else answer_csv(answer)


def tables(answer: CoverageAnswer, *, details: bool = False, limit: int | None = None) -> list[Table]:
    """Sources; if something was not understood, how much and the costliest reasons; with ``details`` diagnostics."""
    report = answer.report
    found = [table(report)]
    if report.reasons:
        found += [breakdown(answer.total), costs(report.reasons)]
    return [*found, reasons(report, limit)] if details else found


def _with_blanks(parts: Iterable[Iterable[str]]) -> Iterator[str]:
    for number, part in enumerate(parts):
        if number:
            yield ""
        yield from part


def _cells(diagnostic: Mapping[str, object]) -> list[str]:
    """The values of ``DIAGNOSTIC_FIELDS``; several names are separated by spaces."""
    values = (diagnostic[name] for name in DIAGNOSTIC_FIELDS)
    return ["" if v is None else " ".join(map(str, v)) if isinstance(v, list) else str(v) for v in values]


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
    """Return the statements understood fully, partly and not at all: by number, and by how often they were run.

    A file that was not read counts as one that was not understood, as everywhere (`govtool.answers.coverage.sentence`).
    """
    statements, all_runs = coverage.relevant + coverage.unread, coverage.runs + coverage.unread
    rows = [
        ("fully", coverage.understood, coverage.runs_understood),
        ("partly", coverage.partial, coverage.runs_partial),
        ("not at all", coverage.unclear, coverage.runs_opaque + coverage.unread),
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
            (name, f"{some:,}", percent(some, statements), f"{runs:,}", percent(runs, all_runs))
            for name, some, runs in rows
        ],
    )


def costs(reasons: Sequence[Reason]) -> Table:
    """The ten reasons that cost most, a row each, whatever sources have them."""
    found = over_sources(reasons)
    shown = found[:COSTLIEST]
    left = len(found) - len(shown)
    tail = f" ({len(shown)} of {len(found):,})" if left else ""
    return Table(
        heading=f"Top reasons for incomplete coverage{tail}",
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
        names=2,
    )


def reasons(report: CoverageReport, limit: int | None) -> Table:
    """A row for each thing that was not understood, and how often each code occurs."""
    by_source = groupby(report.diagnostics, itemgetter(0))
    found = [(source, one) for source, pairs in by_source for one in distinct(pair[1] for pair in pairs)]
    codes = Counter(d.code for _, d in found)
    shown = found if limit is None else found[:limit]
    left = len(found) - len(shown)
    tail = f" · {left:,} more (--all)" if left else ""
    return Table(
        columns=(
            TableColumn("severity"),
            TableColumn("code"),
            TableColumn("place", style="dim"),
            TableColumn("message"),
        ),
        rows=[(d.severity, d.code, ": ".join(filter(None, (source, place_of(d)))), d.message) for source, d in shown],
        summary=", ".join(f"{number:,} {code}" for code, number in codes.most_common()) + tail,
    )
