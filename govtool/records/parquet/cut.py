"""Parts of Parquet files as files of their own: the pages that hold some rows, copied as they are.

Pages of different columns need not end at the same rows. Columns whose pages do are cut together; each set of columns
that differs makes a piece of its own. One more column of a piece tells the wanted rows from the others of its pages.
Of nested columns the rows alone are cut, where their encoding is known: engines read all cells of a page there.
What is cut alike out of several files lies in one, as an engine opens a file in the time that it reads many pages.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from govtool.records.parquet import footer as f
from govtool.records.parquet.footer import ColumnPages, NoPageIndexError, PagedFile, page_values
from govtool.records.parquet.marks import MARK, mark_chunk, mark_element
from govtool.records.parquet.page_rows import RowPages, WholePageError
from govtool.records.parquet.row_ranges import MarkedGroup, Ranges, by_group, marked_groups, page_ranges, rows_of
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


@dataclass(frozen=True, slots=True)
class CutPiece:
    """Some columns of some rows of a file, or of several.

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
class _PieceWriter:
    """Writes the row groups of a piece: pages of the file, or those that were made of its rows."""

    opened: PagedFile
    columns: Collection[str]
    pages: Mapping[tuple[int, int], ColumnPages]
    made: Numbered

    def group(self, marked: MarkedGroup, target: BinaryIO) -> Struct:
        """Write a row group; return its description."""
        chunks, total = [], 0
        for leaf, described in enumerate(self.opened.leaves):
            if described.top not in self.columns:
                continue
            meta = self.opened.groups[marked.number][f.COLUMNS][1][1][leaf][f.META][1]
            key = (marked.number, leaf)
            data = self.made[key] if key in self.made else _copied(self.opened, self.pages[key], marked.ranges)
            parts, changes = _chunk(self.opened, self.pages[key], data, target.tell())
            if not described.repeated and changes[f.VALUES] != marked.rows:
                raise NoPageIndexError("pages that do not have the rows of their index")
            target.writelines(parts)
            total += changes[f.UNCOMPRESSED]
            kept = {field: value for field, value in meta.items() if field in _PLAIN}
            chunks.append(_column_chunk(kept | {field: (I64, value) for field, value in changes.items()}))
        pages, meta = mark_chunk(marked.rows, marked.places, marked.marks, target.tell())
        target.write(pages)
        return {
            f.COLUMNS: (LIST, (STRUCT, [*chunks, _column_chunk(meta)])),
            f.TOTAL_BYTES: (I64, total + len(pages)),
            f.GROUP_ROWS: (I64, marked.rows),
        }


@dataclass(slots=True)
class _PieceFile:
    """A piece that grows.

    Attributes:
        path: Its file.
        columns: Names of top-level columns.
        schema: The elements of its schema.
        about: The version and the writer of the files that it is cut out of.
        size: Bytes so far.
        groups: The descriptions of its row groups.
    """

    path: Path
    columns: tuple[str, ...]
    schema: list[Struct]
    about: Struct
    size: int = 0
    groups: list[Struct] = field(default_factory=list)

    def append(self, writer: _PieceWriter, marked: Iterable[MarkedGroup]) -> None:
        """Write row groups; nothing where one of them cannot be."""
        with self.path.open("r+b" if self.size else "wb") as target:
            target.seek(self.size)
            if not self.size:
                target.write(f.MAGIC)
            self.groups += [writer.group(each, target) for each in marked]
            self.size = target.tell()

    def finish(self) -> CutPiece:
        """Write the footer: FileMetaData without key-value metadata."""
        rows = sum(group[f.GROUP_ROWS][1] for group in self.groups)
        described = {
            f.SCHEMA: (LIST, (STRUCT, self.schema)),
            f.ROWS: (I64, rows),
            f.ROW_GROUPS: (LIST, (STRUCT, self.groups)),
        }
        footer = written(self.about | described)
        with self.path.open("r+b") as target:
            target.seek(self.size)
            target.write(footer + len(footer).to_bytes(4, "little") + f.MAGIC)
            target.truncate()
        return CutPiece(self.path, self.columns, written({1: (LIST, (STRUCT, self.schema))}))


class PieceFiles:
    """Pieces that are cut out of files, one file after the other.

    Args:
        folder: Where the pieces are written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self._sets: dict[tuple[Hashable, ...], list[_PieceFile]] = {}

    def add(
        self, source: Path, columns: Collection[str], rows: np.ndarray[Any, Any], first: int, apart: Hashable = None
    ) -> bool:
        """Cut the pages of rows out of a file; False where this is not possible, or not worth it.

        Args:
            source: The file.
            columns: Names of top-level columns, at least one.
            rows: ``[n] int64``, rows of the file, ascending, each once.
            first: The mark of the file's first row, not negative; that of each other row is one more.
            apart: Files for which this differs are in different pieces.

        Raises:
            OSError: A file cannot be read or written.
        """
        try:
            opened = PagedFile(source)
        except NoPageIndexError:
            return False
        try:
            return self._add(opened, columns, rows, first, apart)
        except (NoPageIndexError, KeyError, IndexError, ValueError, TypeError, OverflowError):
            return False  # metadata of another form than the specification's
        finally:
            opened.close()

    def _add(
        self, opened: PagedFile, columns: Collection[str], rows: np.ndarray[Any, Any], first: int, apart: Hashable
    ) -> bool:
        names = list(dict.fromkeys(leaf.top for leaf in opened.leaves))
        is_unique = len({leaf.elements for leaf in opened.leaves}) == len(names) and MARK not in map(str.lower, columns)
        sizes = [group[f.GROUP_ROWS][1] for group in opened.groups]
        local = by_group(rows, sizes)
        if not is_unique or not set(columns) <= set(names) or not local:
            return False
        pages: dict[tuple[int, int], ColumnPages] = {}
        sets: dict[Ranges, list[str]] = {}
        for name in names:
            if name in columns:
                sets.setdefault(_ranges_of(opened, name, local, pages), []).append(name)
        if len(sets) > MAX_PIECES or _share(opened, sets) > _WORTH:
            return False
        layouts = _layouts(sets, _by_rows(opened, [name for name in names if name in columns], local, pages), local)
        starts = dict(enumerate(itertools.accumulate(sizes, initial=first)))
        files = self._files(opened, [own for _, own, _ in layouts], apart)
        before = [(each.size, len(each.groups)) for each in files]
        try:
            for file, (ranges, own, made) in zip(files, layouts, strict=True):
                file.append(_PieceWriter(opened, own, pages, made), marked_groups(ranges, local, starts))
        except BaseException:  # no piece has a part of a file
            for file, (size, count) in zip(files, before, strict=True):
                file.size = size
                del file.groups[count:]
            raise
        return True

    def _files(self, opened: PagedFile, sets: Sequence[Sequence[str]], apart: Hashable) -> list[_PieceFile]:
        """The pieces of all files that are cut in the same way."""
        about = {
            f.VERSION: opened.footer[f.VERSION],
            f.CREATED_BY: opened.footer.get(f.CREATED_BY, (BINARY, b"")),
        }
        schemas = [_schema(opened, own) for own in sets]
        key = (apart, written(about), *(written({1: (LIST, (STRUCT, each))}) for each in schemas))
        if key not in self._sets:
            self._sets[key] = [
                _PieceFile(self._folder / f"{next(self._numbers)}.parquet", tuple(own), schema, about)
                for own, schema in zip(sets, schemas, strict=True)
            ]
        return self._sets[key]

    def finish(self) -> list[tuple[Any, list[CutPiece]]]:
        """The pieces of the files, with what keeps them apart: of each some sets, whose columns belong together."""
        return [
            (apart, [each.finish() for each in files]) for (apart, *_), files in self._sets.items() if files[0].groups
        ]


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


def _schema(opened: PagedFile, columns: Sequence[str]) -> list[Struct]:
    """The elements of a piece's schema: those of its columns, and the mark's."""
    elements = opened.footer[f.SCHEMA][1][1]
    spans = dict.fromkeys(leaf.elements for leaf in opened.leaves if leaf.top in columns)
    own = [each for start, end in spans for each in elements[start:end]]
    return [f.root_of(elements[0], len(spans) + 1), *own, mark_element()]
