"""Rows that flow over lines, for a terminal where columns side by side would break names.

The first cell keeps its column; the others follow each other as words do, and only blanks are broken at.
"""

from __future__ import annotations

from collections.abc import Sequence

from govtool.render.layout.text import fold, width

_GAP = 2

Piece = tuple[int, str]
"""The number of a column, -1 of blanks, and its text."""


def breaks_words(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> bool:
    """True if a word of some cell is wider than its column."""
    return any(width(word) > widths[i] for row in rows for i, cell in enumerate(row) for word in cell.split(" "))


def flowing(cells: Sequence[str], first: int, limit: int) -> list[list[Piece]]:
    """One row on as many lines as it needs.

    Args:
        cells: The cells.
        first: The cells of a terminal that the first column takes.
        limit: Those of a line.
    """
    indent = 1 + first + _GAP
    own_column = 0 < first >= width(cells[0])
    lines: list[list[Piece]] = [[(-1, " ")]]
    if own_column:
        lines[0] += [(0, cells[0]), (-1, " " * (first - width(cells[0])))]
    used = 1 + first if own_column else 1
    for number, cell in enumerate(cells):
        if number == 0 and own_column:
            continue
        gap = _GAP if number else 0
        for word in cell.split(" ") if cell else ():
            if used + gap + width(word) > limit and used > indent:
                lines.append([(-1, " " * (indent + _GAP))])
                used, gap = indent + _GAP, 0
            for part in fold(
                word, max(1, limit - max(used + gap, indent + _GAP))
            ):  # longer than a line: where it may be broken
                if gap < 0:
                    lines.append([(-1, " " * (indent + _GAP))])
                    used, gap = indent + _GAP, 0
                lines[-1] += [(-1, " " * gap), (number, part)]
                used, gap = used + gap + width(part), -1
            gap = 1
    return lines
