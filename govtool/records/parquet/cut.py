"""A part of a Parquet file as a file of its own: the pages that hold some rows, copied as they are.

Pages of different columns need not end at the same rows. Columns whose pages do are cut together; each set of columns
that differs makes a piece of its own. One more column of a piece tells the wanted rows from the others of its pages.
Of nested columns the rows alone are cut, where their encoding is known: engines read all cells of a page there.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from govtool.records.parquet import footer as f
from govtool.records.parquet.footer import ColumnPages, NoPageIndexError, PagedFile, page_values
from govtool.records.parquet.marks import MARK, mark_chunk, mark_element
from govtool.records.parquet.page_rows import RowPages, WholePageError
from govtool.records.parquet.thrift import BINARY, I64, LIST, STRUCT, Struct, written

if TYPE_CHECKING:
    import numpy as np

MAX_PIECES = 8
"""Columns whose pages end at more different rows than this are not cut."""
_WORTH = 0.5
"""Pieces with more than this part of the rows are not worth it."""
_PLAIN = frozenset({f.TYPE, f.ENCODINGS, f.PATH, f.CODEC})
"""Fields of ColumnMetaData that hold for a part of a chunk as well: no statistics, no indexes, no Bloom filter."""
Numbered = Mapping[tuple[int, int], Sequence[bytes]]
"""Pages that were made, by row group and leaf."""
Ranges = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
"""Row groups by number, each with ranges of its rows: first, and the one after the last."""


@dataclass(frozen=True, slots=True)
class CutPiece:
    """Some columns of some rows of a file.

    The column ``MARK`` of the piece has the mark of each wanted row, and a negative number in all other rows.

    Attributes:
        path: The file of the piece.
        columns: Names of top-level columns.
        schema: The elements of the schema of these columns, in Parquet's form: pieces with the same may be read as one.
    """

    path: Path
    columns: tuple[str, ...]
    schema: bytes


@dataclass(frozen=True, slots=True)
class _MarkedGroup:
    """A row group of a piece: what is copied into it, and the wanted rows among that.

    Attributes:
        number: Of the row group in the source.
        ranges: The ranges of its rows.
        rows: How many these are.
        places: ``[n] int64``, the wanted ones, counted within the piece's row group.
        marks: ``[n] int64``, their marks.
    """

    number: int
    ranges: tuple[tuple[int, int], ...]
    rows: int
    places: np.ndarray[Any, Any]
    marks: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class _PieceWriter:
    """Writes the row groups of a piece: pages of the file, or those that were made of its rows."""

    opened: PagedFile
    columns: Collection[str]
    pages: Mapping[tuple[int, int], ColumnPages]
    target: BinaryIO
    made: Numbered

    def group(self, marked: _MarkedGroup) -> Struct:
        """Write a row group; return its description."""
        chunks, total = [], 0
        for leaf, described in enumerate(self.opened.leaves):
            if described.top not in self.columns:
                continue
            meta = self.opened.groups[marked.number][f.COLUMNS][1][1][leaf][f.META][1]
            key = (marked.number, leaf)
            data = self.made[key] if key in self.made else _copied(self.opened, self.pages[key], marked.ranges)
            parts, changes = _chunk(self.opened, self.pages[key], data, self.target.tell())
            if not described.repeated and changes[f.VALUES] != marked.rows:
                raise NoPageIndexError("pages that do not have the rows of their index")
            self.target.writelines(parts)
            total += changes[f.UNCOMPRESSED]
            kept = {field: value for field, value in meta.items() if field in _PLAIN}
            chunks.append(_column_chunk(kept | {field: (I64, value) for field, value in changes.items()}))
        pages, meta = mark_chunk(marked.rows, marked.places, marked.marks, self.target.tell())
        self.target.write(pages)
        return {
            f.COLUMNS: (LIST, (STRUCT, [*chunks, _column_chunk(meta)])),
            f.TOTAL_BYTES: (I64, total + len(pages)),
            f.GROUP_ROWS: (I64, marked.rows),
        }


def cut(
    source: Path, columns: Collection[str], rows: np.ndarray[Any, Any], first: int, folder: Path
) -> list[CutPiece] | None:
    """Cut the pages of rows out of a file; None where this is not possible, or not worth it.

    Args:
        source: The file.
        columns: Names of top-level columns, at least one.
        rows: ``[n] int64``, rows of the file, ascending, each once.
        first: The mark of the file's first row, not negative; that of each other row is one more.
        folder: Where the pieces are written; it is empty.

    Raises:
        OSError: A file cannot be read or written.
    """
    try:
        opened = PagedFile(source)
    except NoPageIndexError:
        return None
    try:
        return _cut(opened, columns, rows, first, folder)
    except (NoPageIndexError, KeyError, IndexError, ValueError, TypeError, OverflowError):
        return None  # metadata of another form than the specification's
    finally:
        opened.close()


def _cut(
    opened: PagedFile, columns: Collection[str], rows: np.ndarray[Any, Any], first: int, folder: Path
) -> list[CutPiece] | None:
    names = list(dict.fromkeys(leaf.top for leaf in opened.leaves))
    is_unique = len({leaf.elements for leaf in opened.leaves}) == len(names) and MARK not in map(str.lower, columns)
    local = _by_group(rows, [group[f.GROUP_ROWS][1] for group in opened.groups])
    if not is_unique or not set(columns) <= set(names) or not local:
        return None
    pages: dict[tuple[int, int], ColumnPages] = {}
    sets: dict[Ranges, list[str]] = {}
    for name in names:
        if name in columns:
            sets.setdefault(_ranges_of(opened, name, local, pages), []).append(name)
    if len(sets) > MAX_PIECES or _share(opened, sets) > _WORTH:
        return None
    layouts = _layouts(sets, _by_rows(opened, [name for name in names if name in columns], local, pages), local)
    starts = dict(enumerate(itertools.accumulate((group[f.GROUP_ROWS][1] for group in opened.groups), initial=first)))
    pieces = []
    for number, (ranges, own, made) in enumerate(layouts):
        path = folder / f"{number}.parquet"
        schema = _schema(opened, own)
        with path.open("wb") as target:
            _write(_PieceWriter(opened, own, pages, target, made), schema, _marked(ranges, local, starts))
        pieces.append(CutPiece(path, tuple(own), written({1: (LIST, (STRUCT, schema))})))
    return pieces


def _layouts(
    sets: Mapping[Ranges, list[str]], by_rows: Mapping[str, Numbered], local: Mapping[int, np.ndarray[Any, Any]]
) -> list[tuple[Ranges, list[str], Numbered]]:
    """The pieces of a file: ranges of rows, the columns that have them, and the pages that are made anew."""
    found: list[tuple[Ranges, list[str], Numbered]] = [
        (ranges, [name for name in own if name not in by_rows], {}) for ranges, own in sets.items()
    ]
    if by_rows:
        single = tuple((group, tuple((row, row + 1) for row in own.tolist())) for group, own in local.items())
        found.append((single, [*by_rows], {key: each for made in by_rows.values() for key, each in made.items()}))
    return [each for each in found if each[1]]


def _by_rows(
    opened: PagedFile,
    columns: Sequence[str],
    local: dict[int, np.ndarray[Any, Any]],
    pages: Mapping[tuple[int, int], ColumnPages],
) -> dict[str, dict[tuple[int, int], list[bytes]]]:
    """By name, nested columns as pages that have the wanted rows alone; others are left out."""
    found: dict[str, dict[tuple[int, int], list[bytes]]] = {}
    known: dict[bytes, np.ndarray[Any, Any]] = {}
    for name in columns:
        leaves = [number for number, leaf in enumerate(opened.leaves) if leaf.top == name]
        if any(opened.leaves[leaf].repeated for leaf in leaves):
            known.clear()
            with contextlib.suppress(WholePageError):
                found[name] = {
                    (group, leaf): _taken(opened, group, leaf, pages[group, leaf], rows, known)
                    for group, rows in local.items()
                    for leaf in leaves
                }
    return found


def _taken(
    opened: PagedFile,
    group: int,
    leaf: int,
    pages: ColumnPages,
    rows: np.ndarray[Any, Any],
    known: dict[bytes, np.ndarray[Any, Any]],
) -> list[bytes]:
    """The pages of a leaf with some rows of its row group alone."""
    import numpy as np

    described = opened.groups[group]
    codec = described[f.COLUMNS][1][1][leaf][f.META][1][f.CODEC][1]
    taker = RowPages(opened.leaves[leaf], codec, known)
    ends = np.append(pages.first_rows[1:], described[f.GROUP_ROWS][1])
    at = np.searchsorted(pages.first_rows, rows, "right") - 1
    found = []
    for number in sorted({*at.tolist()}):
        first = int(pages.first_rows[number])
        page = opened.read(int(pages.offsets[number]), int(pages.sizes[number]))
        found.append(taker.cut(page, rows[at == number] - first, int(ends[number]) - first))
    return found


def _by_group(rows: np.ndarray[Any, Any], sizes: Sequence[int]) -> dict[int, np.ndarray[Any, Any]]:
    """The rows of each row group that has some, counted from its first; nothing if there are not so many rows."""
    import numpy as np

    starts = np.cumsum([0, *sizes])
    if not len(rows) or rows[-1] >= starts[-1]:
        return {}
    groups = np.searchsorted(starts, rows, "right") - 1
    return {group: rows[groups == group] - starts[group] for group in sorted({*groups.tolist()})}


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
        found.append((group, _ranges([each.first_rows for each in own.values()], rows, size)))
    return tuple(found)


def _share(opened: PagedFile, sets: dict[Ranges, list[str]]) -> float:
    """The part of the cells of the row groups that would be copied."""
    copied = sum(len(own) * _rows_of(ranges) for ranges, own in sets.items())
    (groups, *_) = ([group for group, _ in ranges] for ranges in sets)
    cells = sum(map(len, sets.values())) * sum(opened.groups[group][f.GROUP_ROWS][1] for group in groups)
    return float(copied / cells)


def _ranges(
    firsts: Sequence[np.ndarray[Any, Any]], rows: np.ndarray[Any, Any], size: int
) -> tuple[tuple[int, int], ...]:
    """The smallest ranges that hold the rows of a row group and end where pages of all leaves do."""
    import numpy as np

    common = firsts[0]
    for each in firsts[1:]:
        common = np.intersect1d(common, each, assume_unique=True)
    if not len(common) or common[0] != 0 or any((np.diff(each) <= 0).any() for each in firsts):
        raise NoPageIndexError("pages that are not in the order of their rows")
    at = np.array(sorted({*(np.searchsorted(common, rows, "right") - 1).tolist()}))
    ends = np.append(common, size)
    return tuple(zip(common[at].tolist(), ends[at + 1].tolist(), strict=True))


def _rows_of(ranges: Ranges) -> int:
    return sum(end - start for _, own in ranges for start, end in own)


def _marked(
    ranges: Ranges, local: dict[int, np.ndarray[Any, Any]], starts: Mapping[int, int]
) -> Iterator[_MarkedGroup]:
    """The row groups of a piece that has these ranges one after the other."""
    import numpy as np

    for group, own in ranges:
        begins = np.array([start for start, _ in own])
        lengths = np.array([end - start for start, end in own])
        at = np.searchsorted(begins, local[group], "right") - 1
        places = lengths.cumsum()[at] - lengths[at] + local[group] - begins[at]
        yield _MarkedGroup(group, own, int(lengths.sum()), places, starts[group] + local[group])


def _write(writer: _PieceWriter, schema: list[Struct], groups: Iterable[_MarkedGroup]) -> None:
    """Write a piece: pages as they are, marks of rows, and a footer about them."""
    writer.target.write(f.MAGIC)
    described = [writer.group(group) for group in groups]
    footer = written(_footer(writer.opened, schema, described))
    writer.target.write(footer + len(footer).to_bytes(4, "little") + f.MAGIC)


def _chunk(
    opened: PagedFile, pages: ColumnPages, data: Iterable[bytes], position: int
) -> tuple[list[bytes], dict[int, int]]:
    """The bytes of a column's pages, its dictionary first if one of them uses it, and the fields that describe them."""
    parts, values, plain, is_coded = [], 0, 0, False
    for page in data:
        count, encoding, size = page_values(page)
        parts.append(page)
        values, plain = values + count, plain + size
        is_coded = is_coded or encoding in f.DICTIONARY_ENCODINGS
    dictionary, size = opened.dictionary(pages) if is_coded else (b"", 0)
    changes = {f.VALUES: values, f.UNCOMPRESSED: plain + size, f.DATA_PAGE: position + len(dictionary)}
    changes[f.COMPRESSED] = sum(map(len, parts)) + len(dictionary)
    if not dictionary:
        return parts, changes
    return [dictionary, *parts], changes | {f.DICTIONARY_PAGE: position}


def _copied(opened: PagedFile, pages: ColumnPages, ranges: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """The pages of a column in some ranges of rows, as they are."""
    for number in _numbers(pages, ranges):
        yield opened.read(int(pages.offsets[number]), int(pages.sizes[number]))


def _numbers(pages: ColumnPages, ranges: Sequence[tuple[int, int]]) -> Iterator[int]:
    """The numbers of the pages in some ranges of rows."""
    import numpy as np

    for start, end in ranges:
        first, last = np.searchsorted(pages.first_rows, (start, end))
        yield from range(int(first), int(last))


def _column_chunk(meta: Struct) -> Struct:
    return {f.FILE_OFFSET: (I64, 0), f.META: (STRUCT, meta)}


def _schema(opened: PagedFile, columns: list[str]) -> list[Struct]:
    """The elements of a piece's schema: those of its columns, and the mark's."""
    elements = opened.footer[f.SCHEMA][1][1]
    spans = dict.fromkeys(leaf.elements for leaf in opened.leaves if leaf.top in columns)
    own = [each for start, end in spans for each in elements[start:end]]
    return [f.root_of(elements[0], len(spans) + 1), *own, mark_element()]


def _footer(opened: PagedFile, schema: list[Struct], groups: list[Struct]) -> Struct:
    """FileMetaData of a piece, without key-value metadata."""
    return {
        f.VERSION: opened.footer[f.VERSION],
        f.SCHEMA: (LIST, (STRUCT, schema)),
        f.ROWS: (I64, sum(group[f.GROUP_ROWS][1] for group in groups)),
        f.ROW_GROUPS: (LIST, (STRUCT, groups)),
        f.CREATED_BY: opened.footer.get(f.CREATED_BY, (BINARY, b"")),
    }
