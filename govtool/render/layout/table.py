"""One table, laid out for a terminal, a pipe, Markdown or CSV.

Identifiers are folded, never cut; those of a table with ``groups`` stay whole, under the names of their relations. Off
a terminal the width is unlimited.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, NamedTuple

from govtool.render.layout.flowing import breaks_words, flowing
from govtool.render.layout.grouped import fits, grouped_rows, table_prefix, without_prefix
from govtool.render.layout.text import fold, longest_part, markdown_text, printable, width, wrapped

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
    """One style a row for its cell under ``styled``; empty or shorter than the rows: none."""
    styled: int = 0
    """The column that the styles of rows are for."""
    names: int = -1
    """The column of names that are not to be broken; without room, what follows goes below. Negative: none."""
    groups: Sequence[str] = field(default=())
    """The relation of each row's name, for a terminal that is too narrow for whole names."""


def lines(table: Table, limit: int | None = None) -> Iterator[list[Span]]:
    """Lay a table out.

    Args:
        table: What to show.
        limit: The cells that a line may take; None means as many as it needs.
    """
    # Columns of data are titles, too: their names may be anything.
    table = replace(table, columns=tuple(replace(each, title=printable(each.title)) for each in table.columns))
    yield from _heading(table, limit)
    if table.rows and limit is not None and not table.groups:
        table = _without_empty_columns(table)
    if table.rows and limit is not None and not _fits(table, limit):
        prefix = table_prefix(table.rows, table.groups)
        if prefix:
            yield [Span(f" all in {prefix}", "dim")]
        table = _shortened(table, prefix)
    if table.rows and limit is not None and table.groups and not _fits(table, limit):
        yield from _grouped(table, limit)
    elif table.rows:
        yield from _side_by_side(table, limit)
    if table.rows and table.summary:
        yield []
    if table.summary:
        for text in _paragraph(table.summary, limit):
            yield [Span(text)]


def _heading(table: Table, limit: int | None) -> Iterator[list[Span]]:
    """The lines above a table, with an empty one where something follows."""
    if table.heading:
        yield from ([Span(text, "bold")] for text in _paragraph(table.heading, limit))
        if table.rows or table.summary:
            yield []


def _fits(table: Table, limit: int) -> bool:
    return fits([column.title for column in table.columns], table.rows, limit)


def _shortened(table: Table, prefix: str) -> Table:
    """A table without a prefix of names."""
    rows = [[without_prefix(cell, prefix) if prefix else cell for cell in row] for row in table.rows]
    return replace(table, rows=rows, groups=[group.removeprefix(prefix) for group in table.groups])


def _without_empty_columns(table: Table) -> Table:
    """A table without the columns in which nothing stands."""
    needed = {0, table.names, table.styled}
    kept = [i for i in range(len(table.columns)) if i in needed or any(row[i] for row in table.rows)]
    return replace(
        table,
        columns=tuple(table.columns[i] for i in kept),
        rows=[[row[i] for i in kept] for row in table.rows],
        names=kept.index(table.names) if table.names >= 0 else -1,
        styled=kept.index(table.styled),
    )


def _side_by_side(table: Table, limit: int | None) -> Iterator[list[Span]]:
    """The rows in columns; where these would break words, one row after the other."""
    titles = [column.title for column in table.columns]
    rows = [[[printable(cell)] for cell in row] for row in table.rows]
    widths = _widths(table.columns, rows)
    if limit is not None and _total(widths) > limit:
        whole = [[cell[0] for cell in row] for row in rows]
        least = [max([_LEAST, *(longest_part(row[i]) for row in whole)]) for i in range(len(widths))]
        squeezed = _squeeze(widths, limit, least=least if _total(least) <= limit else ())
        if breaks_words(whole, squeezed):
            yield from _with_details_below(table, whole, limit) if table.names >= 0 else _flowing(table, whole, limit)
            return
        rows = [[wrapped(cell, squeezed[i]) for i, cell in enumerate(row)] for row in whole]
        widths = _widths(table.columns, rows)
    yield _line(titles, table.columns, widths, ["dim"] * len(widths))
    for number, cells in enumerate(rows):
        yield from _folded_row(cells, table.columns, widths, _styles(table, number))


def _flowing(table: Table, rows: Sequence[Sequence[str]], limit: int) -> Iterator[list[Span]]:
    """The rows one after the other; see ``govtool.render.layout.flowing``."""
    titles, rows = _titled([column.title for column in table.columns], rows, 1)
    first = min(max(width(row[0]) for row in (titles, *rows)), limit // 3)
    if any(width(row[0]) > first for row in rows):
        first = 0  # names come first: nothing stands below another
    for number, cells in enumerate((titles, *rows), -1):
        styles = ["dim"] * len(titles) if number < 0 else _styles(table, number)
        for pieces in flowing(cells, first, limit):
            yield [Span(text, styles[column] if column >= 0 else "") for column, text in pieces if text]


def _titled(titles: list[str], rows: Sequence[Sequence[str]], start: int) -> tuple[list[str], Sequence[Sequence[str]]]:
    """Titles and rows whose cells from ``start`` on follow each other without columns.

    Where a cell is empty, the order of the others does not tell which columns they are of: each has its title.
    """
    if not any("" in row[start : _filled(row)] for row in rows):
        return titles, rows
    named = [[*row[:start], *map(_named, titles[start:], row[start:])] for row in rows]
    return [*titles[:start], *([""] * (len(titles) - start))], named


def _filled(row: Sequence[str]) -> int:
    """The number of cells up to the last that is not empty."""
    return max((number for number, cell in enumerate(row, 1) if cell), default=0)


def _named(title: str, cell: str) -> str:
    return f"{title}: {cell}" if cell else ""


def _with_details_below(table: Table, rows: Sequence[Sequence[str]], limit: int) -> Iterator[list[Span]]:
    """The cells up to the names in columns; the others follow each other on a line below, where they fit."""
    columns, last = table.columns[: table.names + 1], table.names
    titles, rows = _titled([column.title for column in table.columns], rows, last + 1)
    widths = _widths(columns, [[[cell] for cell in row[: last + 1]] for row in rows])
    indent = _total([*widths[:-1], 0])
    if limit - indent < limit // 3:
        yield from _flowing(table, rows, limit)
        return
    widths[-1] = min(widths[-1], max(_LEAST, limit - indent))
    for number, cells in enumerate((titles, *rows), -1):
        styles = ["dim"] * len(titles) if number < 0 else _styles(table, number)
        names = wrapped(cells[last], widths[-1])
        yield from _folded_row([*([cell] for cell in cells[:last]), names], columns, widths, styles)
        details = [Span(cell, styles[last + 1 + i]) for i, cell in enumerate(cells[last + 1 :]) if cell]
        yield from ([Span(" " * (indent + _GAP)), *line] for line in _packed(details, limit - indent - _GAP))


def _packed(cells: Sequence[Span], room: int) -> list[list[Span]]:
    """Lines of cells, as many in each as fit; one that is longer than a line is broken between words."""
    lines: list[list[Span]] = []
    used = room
    for text, style in cells:
        if used + _GAP + width(text) <= room:
            lines[-1] += [Span(" " * _GAP), Span(text, style)]
            used += _GAP + width(text)
            continue
        parts = wrapped(text, room)
        lines += [[Span(part, style)] for part in parts]
        used = width(parts[-1])
    return lines


def _styles(table: Table, number: int) -> list[str]:
    """The styles of a row's cells."""
    styles = [column.style for column in table.columns]
    if number < len(table.row_styles):
        styles[table.styled] = table.row_styles[number] or styles[table.styled]
    return styles


def _grouped(table: Table, limit: int) -> Iterator[list[Span]]:
    """The rows below the names of their relations; see ``govtool.render.layout.grouped``."""
    groups = list(grouped_rows(table.rows, table.groups, table.names))
    columns = table.columns[:-1]
    cells = [[[cell] for cell in row[:-1]] for _, _, rows in groups for _, row in rows]
    natural = _widths(columns, cells)
    words = [max([0, *(width(word) for row in cells for word in row[i][0].split(" "))]) for i in range(len(columns))]
    narrow = [words[i] if i == table.names else min(_LEAST, wide) for i, wide in enumerate(natural)]
    widths = _squeeze(natural, limit, least=words if _total(words) <= limit else narrow)
    yield _line([column.title for column in columns], columns, widths, ["dim"] * len(widths))
    for heading, shared, rows in groups:
        yield from _group_heading(heading, shared, limit)
        for number, row in rows:
            folded = [
                wrapped(cell, widths[i]) if i == table.names else fold(cell, widths[i])
                for i, cell in enumerate(row[:-1])
            ]
            yield from _folded_row(folded, columns, widths, _styles(table, number)[:-1])
            yield from ([Span(f"   {part}", "dim")] for part in fold(row[-1], limit - 3) if row[-1])


def _group_heading(heading: str, shared: str, limit: int) -> Iterator[list[Span]]:
    """The name of a relation, and what its rows share: beside it, or below it where the line is too short."""
    beside = width(heading) + width(shared) + _GAP < limit
    yield [Span(heading, "bold"), *([Span(f"{'':{_GAP}}{shared}", "dim")] if shared and beside else [])]
    if shared and not beside:
        yield from ([Span(f"   {part}", "dim")] for part in fold(shared, limit - 3))


def _folded_row(
    cells: Sequence[Sequence[str]], columns: tuple[TableColumn, ...], widths: list[int], styles: list[str]
) -> Iterator[list[Span]]:
    """The lines of a row whose cells have several."""
    for level in range(max(map(len, cells))):
        yield _line([cell[level] if level < len(cell) else "" for cell in cells], columns, widths, styles)


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


def _total(widths: Sequence[int]) -> int:
    """The cells of a line with columns of these widths."""
    return sum(widths) + _GAP * (len(widths) - 1) + 1


def _squeeze(natural: list[int], limit: int, least: Sequence[int] = ()) -> list[int]:
    """Take cells from the widest columns until the line fits or all are as narrow as they may be: at ``least`` so wide
    that no name is broken.
    """
    widths = list(natural)
    excess = _total(widths) - limit
    while excess > 0:
        floors = [min(wide, least[i] if least else _LEAST) for i, wide in enumerate(widths)]
        yielding = [i for i, floor in enumerate(floors) if widths[i] > floor]
        if not yielding:
            break
        widest = max(yielding, key=widths.__getitem__)
        second = max((widths[i] for i in yielding if i != widest), default=_LEAST)
        step = min(excess, max(1, widths[widest] - max(second, floors[widest])), widths[widest] - floors[widest])
        widths[widest] -= step
        excess -= step
    return widths


def _paragraph(text: str, limit: int | None) -> list[str]:
    return [line for part in text.split("\n") for line in wrapped(printable(part), limit or max(1, width(part)))]


def plain(table: Table) -> Iterator[str]:
    """The lines without styles and without a width limit."""
    for spans in lines(table):
        yield "".join(span.text for span in spans)


def markdown(table: Table) -> Iterator[str]:
    """A GitHub-flavoured Markdown table."""
    if table.heading:
        yield f"**{markdown_text(table.heading)}**"
        yield ""
    if table.rows:
        yield "| " + " | ".join(markdown_text(column.title) for column in table.columns) + " |"
        yield "|" + "|".join(" ---: " if column.justify == "right" else " --- " for column in table.columns) + "|"
        for row in table.rows:
            yield "| " + " | ".join(markdown_text(cell) for cell in row) + " |"
        yield ""
    if table.summary:
        for part in table.summary.split("\n"):
            yield markdown_text(part)


def to_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """RFC 4180 lines without their line ends, header first.

    Control characters are made visible, and a spreadsheet finds no formula.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain([header], rows):
        writer.writerow([_no_formula(printable(cell)) if isinstance(cell, str) else cell for cell in row])
        yield buffer.getvalue()[:-1]
        buffer.seek(0)
        buffer.truncate()


_FORMULA = re.compile(r"[=@]|[+-](?!(?:[\d.]+(?:e[+-]?\d+)?|inf|infinity|nan)$)(?=.*[a-z])", re.I | re.S)


def _no_formula(text: str) -> str:
    """A text that a spreadsheet shows as it is: with an apostrophe where it would be a formula."""
    return f"'{text}" if _FORMULA.match(text) else text
