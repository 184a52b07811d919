"""Errors and diagnostics as blocks of lines: code, message, place with a caret, nearest names, what to do next.

error[usage.unknown-column] no column crm.user.email
  did you mean  crm.users.email
  hint          govtool lineage --help

warning[parse-error] expected a closing parenthesis
  --> etl/audience.sql:9:17
   |
 9 | SELECT a, (b FROM t
   |                 ^
"""

from __future__ import annotations

from collections.abc import Iterator

from govtool.errors import AmbiguousNameError, GovtoolError
from govtool.model import Diagnostic
from govtool.redaction import clean_prose, clean_text, failure_of, masked_line
from govtool.render.layout.table import Span
from govtool.render.layout.text import printable, width

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
SOURCE_WIDTH = 100
"""Cells of a source line that are shown where the terminal does not say; a longer line is cut around the caret, and an
ellipsis marks where."""


def error_lines(error: GovtoolError) -> Iterator[list[Span]]:
    """One error as lines for stderr."""
    yield [Span(f"error[{error.code}]", "bold red"), Span(" " + printable(clean_prose(error.message)))]
    yield from ([Span(f"  {printable(clean_prose(item))}")] for item in error.items)
    label = "candidates" if isinstance(error, AmbiguousNameError) else "did you mean"
    details = [("in", clean_prose(error.location))] if error.location else []
    details += [(label if i == 0 else "", near) for i, near in enumerate(error.nearest)]
    details += [("hint", error.hint)] if error.hint else []
    for name, text in details:
        yield [Span(f"  {name:<12}  ", "dim"), Span(printable(text or ""))]


def unexpected_lines(error: BaseException) -> Iterator[list[Span]]:
    """An error that nobody foresaw: its class and text, and how to see more."""
    yield [Span("error[internal]", "bold red"), Span(f" {printable(failure_of(error))[:2000]}")]
    yield [
        Span("  hint          ", "dim"),
        Span("this is a bug in govtool; run again with --debug and report the traceback"),
    ]


def diagnostic_lines(
    diagnostic: Diagnostic, source_line: str | None = None, limit: int | None = None
) -> Iterator[list[Span]]:
    """One diagnostic; with the text of its line, the line is shown with a caret below it, in ``limit`` cells."""
    style = _STYLES.get(diagnostic.severity, "")
    yield [
        Span(f"{diagnostic.severity}[{diagnostic.code}]", style),
        Span(" " + printable(clean_text(diagnostic.message))),
    ]
    place = place_of(diagnostic)
    if place:
        yield [Span("  --> ", "dim"), Span(place)]
    if source_line is not None and diagnostic.line:
        number = str(diagnostic.line)
        margin = " " * len(number)
        room = max(20, (limit or SOURCE_WIDTH) - len(number) - 6)
        text, caret = _window(masked_line(source_line), diagnostic.column, room)
        yield [Span(f" {margin} |", "dim")]
        yield [Span(f" {number} | ", "dim"), Span(text)]
        if caret is not None:
            yield [Span(f" {margin} | ", "dim"), Span(" " * caret + "^", style)]
    for candidate in diagnostic.candidates:
        yield [Span("  candidate     ", "dim"), Span(printable(candidate))]


def place_of(diagnostic: Diagnostic) -> str:
    """``file:line:column`` with as many parts as are known."""
    parts = [printable(diagnostic.file)] if diagnostic.file else []
    if diagnostic.line and (parts or diagnostic.line):
        parts.append(str(diagnostic.line))
        if diagnostic.column:
            parts.append(str(diagnostic.column))
    return ":".join(parts)


def _window(line: str, column: int | None, room: int) -> tuple[str, int | None]:
    """The visible part of a source line and the cell of its caret."""
    line = line.rstrip("\r\n").replace("\t", " ")
    at = None if column is None else min(max(column - 1, 0), len(line))
    start = 0 if at is None or len(line) <= room else max(0, min(at - room // 2, len(line) - room))
    shown = line[start : start + room]
    head = "…" if start else ""
    tail = "…" if start + room < len(line) else ""
    caret = None if at is None else width(head + printable(line[start:at]))
    return head + printable(shown) + tail, caret
