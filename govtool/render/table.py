"""One table, laid out for a terminal, a pipe, Markdown or CSV.

Identifiers are folded, never cut. Off a terminal the width is unlimited.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, NamedTuple

from govtool.render.text import fold, printable, width

_GAP = 2
_LEAST = 10
"""No column is squeezed below this many cells."""


class Span(NamedTuple):
    """A piece of a line and its style, a ``rich`` style name or empty."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column's title and how it is set."""

    title: str
    justify: Literal["left", "right"] = "left"
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under titles, between a heading line and a closing sentence."""

    columns: tuple[TableColumn, ...]
    rows: Sequence[Sequence[str]]
    heading: str = ""
    summary: str = ""
    row_styles: Sequence[str] = field(default=())
    """One style a row for its first cell; empty or shorter than the rows: none."""


def lines(table: Table, limit: int | None = None) -> Iterator[list[Span]]:
    """Lay a table out.

    Args:
        table: What to show.
        limit: The cells that a line may take; None means as many as it needs.
    """
    if table.heading:
        for text in _paragraph(table.heading, limit):
            yield [Span(text, "bold")]
        yield []
    if table.rows:
        rows = [[[printable(cell)] for cell in row] for row in table.rows]
        widths = _widths(table.columns, rows)
        if limit is not None:
            squeezed = _squeeze(widths, limit)
            rows = [[fold(cell[0], squeezed[i]) for i, cell in enumerate(row)] for row in rows]
            widths = _widths(table.columns, rows)
        yield _line([column.title for column in table.columns], table.columns, widths, ["dim"] * len(widths))
        for number, cells in enumerate(rows):
            first = table.row_styles[number] if number < len(table.row_styles) else ""
            styles = [first or table.columns[0].style, *(column.style for column in table.columns[1:])]
            for level in range(max(map(len, cells))):
                yield _line([cell[level] if level < len(cell) else "" for cell in cells], table.columns, widths, styles)
        if table.summary:
            yield []
    if table.summary:
        for text in _paragraph(table.summary, limit):
            yield [Span(text)]


def _widths(columns: tuple[TableColumn, ...], rows: list[list[list[str]]]) -> list[int]:
    return [
        max(width(column.title), *(width(line) for row in rows for line in row[i])) for i, column in enumerate(columns)
    ]


def _line(texts: list[str], columns: tuple[TableColumn, ...], widths: list[int], styles: list[str]) -> list[Span]:
    spans = [Span(" ")]
    last = max((i for i, text in enumerate(texts) if text), default=-1)
    for i, text in enumerate(texts[: last + 1]):
        padding = " " * (widths[i] - width(text))
        if columns[i].justify == "right":
            spans += [Span(padding), Span(text, styles[i])]
        else:
            spans += [Span(text, styles[i]), Span("" if i == last else padding)]
        if i != last:
            spans.append(Span(" " * _GAP))
    return [span for span in spans if span.text]


def _squeeze(natural: list[int], limit: int) -> list[int]:
    """Take cells from the widest columns until the line fits or all are as narrow as they may be."""
    widths = list(natural)
    excess = sum(widths) + _GAP * (len(widths) - 1) + 1 - limit
    while excess > 0:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= _LEAST:
            break
        second = max((w for i, w in enumerate(widths) if i != widest), default=_LEAST)
        step = min(excess, max(1, widths[widest] - max(second, _LEAST)))
        widths[widest] -= step
        excess -= step
    return widths


def _paragraph(text: str, limit: int | None) -> list[str]:
    return [line for part in text.split("\n") for line in fold(printable(part), limit or max(1, width(part)))]


def plain(table: Table) -> Iterator[str]:
    """The lines without styles and without a width limit."""
    for spans in lines(table):
        yield "".join(span.text for span in spans)


def markdown(table: Table) -> Iterator[str]:
    """A GitHub-flavoured Markdown table."""
    if table.heading:
        yield f"**{_markdown_cell(table.heading)}**"
        yield ""
    if table.rows:
        yield "| " + " | ".join(_markdown_cell(column.title) for column in table.columns) + " |"
        yield "|" + "|".join(" ---: " if column.justify == "right" else " --- " for column in table.columns) + "|"
        for row in table.rows:
            yield "| " + " | ".join(_markdown_cell(cell) for cell in row) + " |"
        yield ""
    if table.summary:
        for part in table.summary.split("\n"):
            yield _markdown_cell(part)


def _markdown_cell(text: str) -> str:
    escaped = printable(text)
    for ch in "\\`*[]<>|":
        escaped = escaped.replace(ch, "\\" + ch)
    return escaped


def to_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """RFC 4180 lines without their line ends, header first; control characters are made visible."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain([header], rows):
        writer.writerow([printable(cell) if isinstance(cell, str) else cell for cell in row])
        yield buffer.getvalue()[:-1]
        buffer.seek(0)
        buffer.truncate()
