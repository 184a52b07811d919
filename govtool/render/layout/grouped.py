"""Layout of a table of names for a narrow terminal: relations as headings, their columns below.

No name is broken: a name is copied into the next command. A prefix that all relations share is shown once. The last
column (where it stands in the code) goes beside the heading where it is the same for the whole relation, and else below
its row.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from govtool.render.layout.text import printable, width

_URI = re.compile(r"[a-z][\w+.-]*://[^\s,)]+")
_FILES = ("file:", "s3:", "s3a:", "gs:", "hdfs:", "abfss:", "dbfs:")
"""How addresses of files begin: a dot in one is no separator."""
_SHORTEST_PREFIX = 8
"""Cells from which on a shared prefix is worth a line of its own."""
_RECORD = re.compile(r"[^/]*@[0-9a-f]+:\d.*")
"""What names a record below the folder of its dataset: the dataset, its version, and the row."""


def shared_prefix(names: Sequence[str]) -> str:
    """The beginning that all names share, up to a separator; empty where it is short or there are few names.

    >>> shared_prefix(["postgres://h:5432/db.public.a", "postgres://h:5432/db.public.b"])
    'postgres://h:5432/db.public.'
    >>> shared_prefix(["crm.users", "crm.teams"])
    ''
    >>> shared_prefix(["file:///in/day.csv", "file:///in/day.json"])
    'file:///in/'
    """
    if len(set(names)) < 2:
        return ""
    common = os.path.commonprefix([*names])  # noqa: RUF071 - names, not paths; cut at a separator below
    dot = -1 if common.startswith(_FILES) else common.rfind(".")
    cut = max(dot, common.rfind("/")) + 1
    return common[:cut] if cut >= _SHORTEST_PREFIX else ""


def table_prefix(rows: Sequence[Sequence[str]], groups: Sequence[str]) -> str:
    """The beginning that the relations of a table share; without relations, that of the URIs in it.

    >>> table_prefix([["postgres://h/db.a.x", "postgres://h/db.b.x"]], [])
    'postgres://h/db.'
    >>> table_prefix([["postgres://h1/db.a.x", "postgres://h2/db.b.x"]], [])
    ''
    >>> table_prefix([["file:///in/a.csv", "read of file:///in/a.csv (via b, file:///in/a.csv)"]], [])
    ''
    >>> table_prefix([["file:///in/a.csv@0f:0/1, file:///in/a.csv@0f:0/2"]], [])
    'file:///in/'
    """
    if groups:
        return shared_prefix(groups)
    names = [_RECORD.sub("", name) for row in rows for cell in row for name in _URI.findall(cell)]
    is_folder = len(set(names)) == 1 and names[0].endswith("/")
    prefix = names[0] if is_folder else shared_prefix(names)
    return prefix if prefix.count("/") > 2 else ""  # up to there it is a part of a host


def without_prefix(text: str, prefix: str) -> str:
    """A text in which no name begins with a prefix."""
    return re.sub(rf"(?<![\w./\"]){re.escape(prefix)}", "", text) if prefix in text else text


def grouped_rows(
    cells: Sequence[Sequence[str]], groups: Sequence[str], at: int
) -> Iterator[tuple[str, str, list[tuple[int, list[str]]]]]:
    """The rows of each relation that follow each other.

    Args:
        cells: The rows of a table.
        groups: The relation of each row.
        at: The column of names.

    Yields:
        The heading, the last cell where all rows share it, and the rows by number, their names without the relation and
        without a last cell that the heading has.
    """
    numbered = [(number, [printable(cell) for cell in row]) for number, row in enumerate(cells)]
    for group, found in groupby(numbered, key=lambda each: groups[each[0]]):
        rows = list(found)
        last = {cells[-1] for _, cells in rows}
        shared = next(iter(last)) if len(last) == 1 else ""
        short = []
        for number, cells in rows:
            name = cells[at].removeprefix(printable(group)).removeprefix(".")
            short.append((number, [*cells[:at], name or "(rows)", *cells[at + 1 : -1], "" if shared else cells[-1]]))
        yield printable(group), shared, short


def fits(titles: Sequence[str], rows: Sequence[Sequence[str]], limit: int) -> bool:
    """True if a table needs no more cells than there are."""
    cells = [titles, *([printable(cell) for cell in row] for row in rows)]
    return sum(max(width(row[i]) for row in cells) + 2 for i in range(len(titles))) - 1 <= limit
