"""Parts of Parquet files as files of their own: some rows, or the pages that hold them.

Of a column whose encoding is known here, the rows alone are cut, as an engine reads every page and dictionary as a
whole. Of others the pages are copied as they are. Pages of different columns need not end at the same rows: columns
whose pages do are cut together; each set of columns that differs makes a piece of its own. One more column of a piece
marks the wanted rows among the others of its pages.
What is cut alike out of several files lies in one, as an engine opens a file in the time that it reads many pages.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from govtool.records.parquet import footer as f
from govtool.records.parquet.file_cut import MISTAKEN, CutSource, Dictionaries, FileCut, Numbered, file_cut
from govtool.records.parquet.footer import ColumnPages, NoPageIndexError, PagedFile, page_values
from govtool.records.parquet.marks import mark_chunk, mark_element
from govtool.records.parquet.page_rows import MadePage
from govtool.records.parquet.row_ranges import MarkedGroup, marked_groups
from govtool.records.parquet.thrift import BINARY, I64, LIST, STRUCT, Struct, written

_PLAIN = frozenset({f.TYPE, f.ENCODINGS, f.PATH, f.CODEC})
"""Fields of ColumnMetaData that hold for a part of a chunk as well: no statistics, no indexes, no Bloom filter."""
_THREADS = 4
"""The most files that are cut at once."""


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
            if key in self.made:
                parts, changes = _made_chunk(self.made[key], target.tell())
            else:
                data = _copied(self.opened, self.pages[key], marked.ranges)
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

    def add(self, source: CutSource, known: Dictionaries | None = None) -> bool:
        """Cut rows out of a file; False where this is not possible, or not worth it.

        Args:
            source: The file, and what is cut out of it.
            known: The dictionaries of files that were cut before.

        Raises:
            OSError: A file cannot be read or written.
        """
        (found,) = self.add_all([source], known)
        return found

    def add_all(self, sources: Sequence[CutSource], known: Dictionaries | None = None) -> list[bool]:
        """The same of several files: some are read at once, as most of that is left to libraries."""
        threads = min(len(sources), os.cpu_count() or 1, _THREADS)
        if threads < 2:
            return [self._append(source, file_cut(source, known)) for source in sources]
        with ThreadPoolExecutor(threads) as pool:
            waiting = [pool.submit(file_cut, source, known) for source in sources]
            try:
                return [self._append(source, cut.result()) for source, cut in zip(sources, waiting, strict=True)]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                for cut in waiting:
                    if not cut.cancelled() and cut.exception() is None:
                        _close(cut.result())
                raise

    def _append(self, source: CutSource, cut: FileCut | None) -> bool:
        """Write what is cut out of a file into the pieces; False where there is nothing."""
        if cut is None:
            return False
        files = self._files(cut.opened, [each.columns for each in cut.layouts], source.apart)
        before = [(each.size, len(each.groups)) for each in files]
        try:
            for file, layout in zip(files, cut.layouts, strict=True):
                writer = _PieceWriter(cut.opened, layout.columns, cut.pages, layout.made)
                file.append(writer, marked_groups(layout.ranges, cut.local, cut.starts))
        except BaseException as error:  # no piece has a part of a file
            for file, (size, count) in zip(files, before, strict=True):
                file.size = size
                del file.groups[count:]
            if not isinstance(error, MISTAKEN):
                raise
            return False
        finally:
            cut.opened.close()
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


def _close(cut: FileCut | None) -> None:
    """Close the file of a cut that is not used; once more does nothing."""
    if cut is not None:
        cut.opened.close()


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


def _made_chunk(page: MadePage, position: int) -> tuple[list[bytes], dict[int, int]]:
    """The bytes of a page that was made, and the fields that describe it."""
    sizes = {f.VALUES: page.values, f.UNCOMPRESSED: page.size, f.COMPRESSED: len(page.data)}
    return [page.data], sizes | {f.DATA_PAGE: position}


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
