"""What is cut out of one Parquet file: of which columns the rows alone, and of which the pages that hold them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.records.parquet import footer as f
from govtool.records.parquet.footer import ColumnPages, NoPageIndexError, PagedFile
from govtool.records.parquet.hybrid import WholePageError
from govtool.records.parquet.marks import MARK
from govtool.records.parquet.page_rows import MadePage, RowPages
from govtool.records.parquet.plain import PlainValues
from govtool.records.parquet.row_ranges import Ranges, by_group, page_ranges, rows_of

if TYPE_CHECKING:
    import numpy as np

MAX_PIECES = 8
"""Columns whose pages end at more different rows than this are not cut."""
_WORTH = 0.8
"""Rows in more than this part of the pages are not worth it: an engine reads the file."""
_WORTH_COPIED = 0.5
"""The same of pages that are copied as they are."""
MISTAKEN = (NoPageIndexError, KeyError, IndexError, ValueError, TypeError, OverflowError)
"""Metadata, or pages, of another form than the specification's."""
Numbered = Mapping[tuple[int, int], MadePage]
"""The page that was made of a leaf in a row group."""


@dataclass(frozen=True, slots=True)
class CutSource:
    """Rows that are cut out of a file.

    Attributes:
        path: The file.
        columns: Names of top-level columns, at least one.
        rows: ``[n] int64``, rows of the file, ascending, each once.
        first: The mark of the file's first row, not negative; that of each other row is one more.
        apart: Files for which this differs are in different pieces.
    """

    path: Path
    columns: Collection[str]
    rows: np.ndarray[Any, Any]
    first: int
    apart: Hashable = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Columns of a file that are cut alike.

    Attributes:
        ranges: The ranges of rows that are cut out.
        columns: Names of top-level columns.
        made: Their pages, where rows alone are cut.
    """

    ranges: Ranges
    columns: list[str]
    made: Numbered


@dataclass(frozen=True, slots=True)
class FileCut:
    """What is cut out of a file.

    Attributes:
        opened: The file; whoever has this closes it.
        layouts: The columns.
        pages: The pages of the columns, by row group and leaf.
        local: By row group, the wanted rows, counted from its first.
        starts: By row group, the mark of its first row.
    """

    opened: PagedFile
    layouts: tuple[Layout, ...]
    pages: Mapping[tuple[int, int], ColumnPages]
    local: dict[int, np.ndarray[Any, Any]]
    starts: Mapping[int, int]


@dataclass(slots=True)
class Dictionaries:
    """The dictionaries of column chunks, up to a bound: the next rows of a file are often coded by the same."""

    most: int = 1 << 26
    _known: dict[Hashable, PlainValues] = field(default_factory=dict)

    def find(self, key: Hashable) -> PlainValues | None:
        """A dictionary that was read before."""
        return self._known.get(key)

    def keep(self, key: Hashable, values: PlainValues) -> None:
        """Remember a dictionary; all are forgotten when they are too large together."""
        if sum(len(each.data) for each in list(self._known.values())) + len(values.data) > self.most:
            self._known.clear()
        self._known[key] = values


def file_cut(source: CutSource, known: Dictionaries | None = None) -> FileCut | None:
    """Read what is cut out of a file; None where this is not possible, or not worth it.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        opened = PagedFile(source.path)
    except NoPageIndexError:
        return None
    found = None
    try:
        found = _file_cut(opened, source, known or Dictionaries())
    except MISTAKEN:
        return None
    finally:
        if found is None:
            opened.close()
    return found


def _file_cut(opened: PagedFile, source: CutSource, known: Dictionaries) -> FileCut | None:
    names = list(dict.fromkeys(leaf.top for leaf in opened.leaves))
    is_named = MARK not in map(str.lower, source.columns)
    is_unique = len({leaf.elements for leaf in opened.leaves}) == len(names) and is_named
    sizes = [group[f.GROUP_ROWS][1] for group in opened.groups]
    local = by_group(source.rows, sizes)
    if not is_unique or not set(source.columns) <= set(names) or not local:
        return None
    pages: dict[tuple[int, int], ColumnPages] = {}
    sets: dict[Ranges, list[str]] = {}
    wanted = [name for name in names if name in source.columns]
    for name in wanted:
        sets.setdefault(_ranges_of(opened, name, local, pages), []).append(name)
    if _share(opened, sets) > _WORTH:
        return None
    by_rows = _by_rows(opened, wanted, local, pages, known)
    copied = {ranges: left for ranges, own in sets.items() if (left := [name for name in own if name not in by_rows])}
    if copied and _share(opened, copied) > _WORTH_COPIED:
        return None
    layouts = _layouts(copied, by_rows, local)
    starts = dict(enumerate(itertools.accumulate(sizes, initial=source.first)))
    return FileCut(opened, layouts, pages, local, starts) if len(layouts) <= MAX_PIECES else None


def _layouts(
    copied: Mapping[Ranges, list[str]], by_rows: Mapping[str, Numbered], local: Mapping[int, np.ndarray[Any, Any]]
) -> tuple[Layout, ...]:
    """The pieces of a file: ranges of rows, the columns that have them, and the pages that are made anew."""
    found = [Layout(ranges, own, {}) for ranges, own in copied.items()]
    if by_rows:
        single = tuple((group, tuple((row, row + 1) for row in own.tolist())) for group, own in local.items())
        made = {key: each for own in by_rows.values() for key, each in own.items()}
        found.append(Layout(single, [*by_rows], made))
    return tuple(found)


def _by_rows(
    opened: PagedFile,
    columns: Sequence[str],
    local: dict[int, np.ndarray[Any, Any]],
    pages: Mapping[tuple[int, int], ColumnPages],
    dictionaries: Dictionaries,
) -> dict[str, dict[tuple[int, int], MadePage]]:
    """By name, columns as a page a row group that has the wanted rows alone; others are left out."""
    found: dict[str, dict[tuple[int, int], MadePage]] = {}
    known: dict[bytes, np.ndarray[Any, Any]] = {}
    for name in columns:
        leaves = [number for number, leaf in enumerate(opened.leaves) if leaf.top == name]
        known.clear()
        with contextlib.suppress(WholePageError):
            found[name] = {
                (group, leaf): _taken(_Chunk(opened, group, leaf, pages[group, leaf], dictionaries), rows, known)
                for group, rows in local.items()
                for leaf in leaves
            }
    return found


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A leaf in a row group, with its pages."""

    opened: PagedFile
    group: int
    leaf: int
    pages: ColumnPages
    dictionaries: Dictionaries

    def taker(self, known: dict[bytes, np.ndarray[Any, Any]]) -> RowPages:
        """What takes rows out of the pages."""
        described = self.opened.groups[self.group][f.COLUMNS][1][1][self.leaf][f.META][1]
        return RowPages(self.opened.leaves[self.leaf], described[f.CODEC][1], known, self._dictionary)

    def _dictionary(self, taker: RowPages) -> PlainValues:
        key = (self.opened.identity, self.group, self.leaf)
        found = self.dictionaries.find(key)
        if found is None:
            found = taker.entries(self.opened.dictionary(self.pages)[0])
            self.dictionaries.keep(key, found)
        return found


def _taken(chunk: _Chunk, rows: np.ndarray[Any, Any], known: dict[bytes, np.ndarray[Any, Any]]) -> MadePage:
    """A page with some rows of a leaf in its row group alone."""
    import numpy as np

    pages, taker = chunk.pages, chunk.taker(known)
    ends = np.append(pages.first_rows[1:], chunk.opened.groups[chunk.group][f.GROUP_ROWS][1])
    at = np.searchsorted(pages.first_rows, rows, "right") - 1
    for number in sorted({*at.tolist()}):
        first = int(pages.first_rows[number])
        page = chunk.opened.read(int(pages.offsets[number]), int(pages.sizes[number]))
        taker.take(page, rows[at == number] - first, int(ends[number]) - first)
    return taker.page()


def _ranges_of(
    opened: PagedFile, name: str, local: dict[int, np.ndarray[Any, Any]], pages: dict[tuple[int, int], ColumnPages]
) -> Ranges:
    """The ranges of rows that are read of a column; its pages are added to what is known of pages."""
    leaves = [number for number, leaf in enumerate(opened.leaves) if leaf.top == name]
    found = []
    for group, rows in local.items():
        own = {(group, leaf): opened.pages(opened.groups[group], leaf) for leaf in leaves}
        pages |= own
        size = opened.groups[group][f.GROUP_ROWS][1]
        found.append((group, page_ranges([each.first_rows for each in own.values()], rows, size)))
    return tuple(found)


def _share(opened: PagedFile, sets: dict[Ranges, list[str]]) -> float:
    """The part of the cells of the row groups that would be copied."""
    copied = sum(len(own) * rows_of(ranges) for ranges, own in sets.items())
    (groups, *_) = ([group for group, _ in ranges] for ranges in sets)
    cells = sum(map(len, sets.values())) * sum(opened.groups[group][f.GROUP_ROWS][1] for group in groups)
    return float(copied / cells)
