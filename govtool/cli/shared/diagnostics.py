"""Diagnostics, mistakes in an expression, and the outcome of an ingest on the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from govtool.answers.diagnostics import distinct
from govtool.cli.shared.ui import Ui
from govtool.errors import EXIT_USAGE, UsageError
from govtool.model import Diagnostic
from govtool.render.errors import diagnostic_lines
from govtool.render.layout.table import Table
from govtool.render.layout.text import count

if TYPE_CHECKING:
    from govtool.answers.ingest import IngestResult, SourceLines

_SHOWN = 10
_PLACE = re.compile(r"([0-9]+):([0-9]+)")
_RANK = {"error": 0, "warning": 1, "info": 2}


def show_ingest(
    ui: Ui,
    result: IngestResult,
    *,
    explain_failures: bool = False,
    keep_literals: bool = True,
    summary: Callable[[IngestResult], str] | None = None,
) -> None:
    """The outcome of an ingest: failures (``explain_failures``), reasons for incomplete coverage, and a summary.

    With ``--quiet`` only the failures are shown, where they are wanted: a scheduled ingest that went well is silent.
    """
    from govtool.render.commits import ingest_summary

    if explain_failures:
        show_failures(ui, result, keep_literals=keep_literals)
    if ui.quiet:
        return
    show_reasons(ui, result)
    ui.table(Table(columns=(), rows=(), summary=(summary or ingest_summary)(result)))


def show_failures(ui: Ui, result: IngestResult, *, keep_literals: bool = True) -> None:
    """Each distinct statement that was not understood, with its place."""
    from govtool.app.coverage.failures import failures
    from govtool.render.failures import explained

    ui.write(explained(failures(result.shortfalls, keep_literals=keep_literals)))


def show_reasons(ui: Ui, result: IngestResult) -> None:
    """How much was understood fully, partly and not at all, and the reasons that cost most, where there are any."""
    from govtool.render.coverage import breakdown, costs

    if result.reasons:
        ui.table(breakdown(result.coverage))
        ui.write([""])
        ui.table(costs(result.reasons))
        ui.write([""])


_HINTS = {
    "not-sql": "a file that is no SQL: leave it out, or convert it to UTF-8",
    "unreadable": "check the file and its permissions",
    "parse-error": "is the dialect right (--dialect, or dialect in govtool.toml)?",
}
"""Remedies by code of a diagnostic; the first that applies is shown."""
_NOT_UNDERSTOOD = "not understood"
"""A statement that does not parse, where the code (``opaque``) is also that of what no parser could know."""
_BROKEN = "is the statement complete, and the dialect right (--dialect)?"


@contextmanager
def refusal_shown(ui: Ui, *, explain_failures: bool = False) -> Iterator[None]:
    """Show the diagnostics of an ingest that is refused, before its error.

    Raises:
        RefusedIngestError: the same.
    """
    from govtool.answers.ingest import RefusedIngestError

    try:
        yield
    except RefusedIngestError as refused:
        show_diagnostics(ui, refused.diagnostics, refused.text, remedy=False)
        if explain_failures:
            from govtool.app.coverage.failures import failures
            from govtool.render.failures import explained

            ui.write(explained(failures(refused.shortfalls)))
        raise


def show_diagnostics(
    ui: Ui, diagnostics: Sequence[Diagnostic], text: SourceLines | None, *, remedy: bool = True
) -> None:
    """Write the worst diagnostics to stderr, each with its source line if there is a ``text``; count the rest.

    With ``remedy`` a hint follows where one is known. ``-v`` shows all of them, remarks included; ``--quiet`` only
    errors.
    """
    wanted = distinct(d for d in diagnostics if ui.verbose or d.severity != "info")
    if ui.quiet:
        wanted = [d for d in wanted if d.severity == "error"]
    # What concerns the whole source comes before what concerns one of its files.
    wanted.sort(key=lambda d: (bool(d.file), _RANK.get(d.severity, 9)))
    shown = wanted if ui.verbose else wanted[:_SHOWN]
    for diagnostic in shown:
        for line in diagnostic_lines(
            diagnostic, text.line(diagnostic) if text is not None else None, ui.remark_width()
        ):
            ui.remark(line)
    if len(wanted) > len(shown):
        rest = Counter(d.code for d in wanted[len(shown) :])
        kinds = ", ".join(f"{number} {code}" for code, number in rest.most_common())
        ui.note(f"… and {count(len(wanted) - len(shown), 'more diagnostic')}: {kinds} (all of them: -v)")
    if remedy:
        show_remedy(ui, shown)


def show_remedy(ui: Ui, shown: Sequence[Diagnostic]) -> None:
    """Write the hint for diagnostics, where one is known."""
    hint = next((hint for code, hint in _HINTS.items() if any(d.code == code for d in shown)), None)
    if hint is None and any(d.code == "opaque" and _NOT_UNDERSTOOD in d.message for d in shown):
        hint = _BROKEN
    if hint is not None:
        ui.hint(hint)


def show_mistake(ui: Ui, error: UsageError, text: str, name: str) -> int:
    """Write a mistake in an expression or a query below its line, and return the exit code.

    Args:
        ui: The terminal.
        error: The mistake, with ``LINE:COLUMN`` as its location.
        text: The expression.
        name: Where it stands: a file, or an option.

    Raises:
        UsageError: It is about something else, or ``--debug`` asks for the traceback.
    """
    place = _PLACE.fullmatch(error.location or "")
    lines = text.splitlines() or [""]
    if place is None or not 1 <= int(place[1]) <= len(lines) or ui.debug:
        raise error
    line, column = int(place[1]), int(place[2])
    found = Diagnostic(error.code, "error", error.message, name, line, column, candidates=error.nearest)
    for spans in diagnostic_lines(found, lines[line - 1], ui.remark_width()):
        ui.remark(spans)
    if error.hint:
        ui.hint(error.hint)
    return EXIT_USAGE
