"""The footer of a Parquet file, and the page index of its columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.records.parquet.thrift import BINARY, I32, Struct, ThriftReader, varints

if TYPE_CHECKING:
    import numpy as np

MAGIC = b"PAR1"
_LIST_FIRST = 0x19
"""The head of a struct's first field where that is a list."""
_LOCATION = (0x16, None, 0x15, None, 0x16, None, 0)
"""A PageLocation: the heads of its fields, an I64, an I32 and an I64, each followed by a number, and its end."""
_MAX_FOOTER = 1 << 20
"""Bytes; to read larger ones here takes longer than to read the pages in vain."""
_KEPT_FOOTER = 1 << 16
"""Bytes; footers up to this are kept as they were read, by their bytes."""
_REQUIRED, _REPEATED = 0, 2
_DICTIONARY_PAGE = 2

# Fields of parquet.thrift by name; FileMetaData, SchemaElement, RowGroup, ColumnChunk, ColumnMetaData, PageHeader.
VERSION, SCHEMA, ROWS, ROW_GROUPS, CREATED_BY, ENCRYPTION = 1, 2, 3, 4, 6, 8
_ELEMENT_TYPE, _TYPE_LENGTH, _REPETITION, _NAME, _CHILDREN = 1, 2, 3, 4, 5
COLUMNS, TOTAL_BYTES, GROUP_ROWS = 1, 2, 3
_OTHER_FILE, FILE_OFFSET, META, _OFFSET_INDEX, _INDEX_LENGTH, _CRYPTO, _ENCRYPTED_META = 1, 2, 3, 4, 5, 8, 9
TYPE, ENCODINGS, PATH, CODEC = 1, 2, 3, 4
VALUES, UNCOMPRESSED, COMPRESSED, DATA_PAGE, DICTIONARY_PAGE = 5, 6, 7, 9, 11
_PAGE_TYPE, PAGE_SIZE, _PAGE_COMPRESSED, PAGE_V1, DICTIONARY_HEADER, PAGE_V2 = 1, 2, 3, 5, 7, 8
DICTIONARY_ENCODINGS = (2, 8)


class NoPageIndexError(Exception):
    """A file has no page index that can be used: it is read as a whole."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column chunk's place in the schema.

    Attributes:
        top: The name of the top-level column.
        max_repetition: The highest repetition level.
        max_definition: The highest definition level.
        type: Of its values, by Parquet's number.
        size: Of values of a fixed length, their bytes.
        elements: Of the schema: where the top-level column starts, and where it ends.
    """

    top: str
    max_repetition: int
    max_definition: int
    type: int
    size: int
    elements: tuple[int, int]

    @property
    def repeated(self) -> bool:
        """Whether a row may have several values."""
        return self.max_repetition > 0


@dataclass(frozen=True, slots=True)
class ColumnPages:
    """The data pages of a column chunk.

    Attributes:
        offsets: ``[pages] int64``, in the file, headers included.
        sizes: ``[pages] int64``, bytes, headers included.
        first_rows: ``[pages] int64``, within the row group; the first is 0.
        start: Where the chunk starts; a dictionary lies between it and the first page.
    """

    offsets: np.ndarray[Any, Any]
    sizes: np.ndarray[Any, Any]
    first_rows: np.ndarray[Any, Any]
    start: int


class PagedFile:
    """An open Parquet file whose columns have a page index.

    ``identity`` tells it from other files, and from itself when it is written again.

    Args:
        path: The file.

    Raises:
        NoPageIndexError: It has none, is encrypted, or is something else.
        OSError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)
        try:
            facts = os.fstat(self._file)
            self._size = facts.st_size
            self.identity = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
            self.footer = self._footer(self._size)
            self.leaves = _leaves(self.footer[SCHEMA][1][1])
            self.groups: list[Struct] = self.footer[ROW_GROUPS][1][1]
        except (KeyError, IndexError, ValueError, TypeError, RecursionError) as error:
            self.close()
            raise NoPageIndexError("a footer of another form") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, if it is not closed."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def read(self, offset: int, size: int) -> bytes:
        """Read bytes.

        Raises:
            NoPageIndexError: They are not there.
        """
        if not 0 <= offset <= offset + size <= self._size:
            raise NoPageIndexError("bytes that the file does not have")
        return os.pread(self._file, size, offset)

    def pages(self, group: Struct, leaf: int) -> ColumnPages:
        """The data pages of a column chunk.

        Raises:
            NoPageIndexError: They are not known.
        """
        chunk = group[COLUMNS][1][1][leaf]
        if _OFFSET_INDEX not in chunk or _INDEX_LENGTH not in chunk:
            raise NoPageIndexError("a column without a page index")
        if any(field in chunk for field in (_OTHER_FILE, _CRYPTO, _ENCRYPTED_META)):
            raise NoPageIndexError("a column that is encrypted, or in another file")
        located = _locations(self.read(chunk[_OFFSET_INDEX][1], chunk[_INDEX_LENGTH][1]))
        meta = chunk[META][1]
        start = min(field for field in (meta.get(DICTIONARY_PAGE, (0, 0))[1], meta[DATA_PAGE][1]) if field > 0)
        offsets, sizes, first_rows = located.T
        return ColumnPages(offsets, sizes, first_rows, start)

    def dictionary(self, pages: ColumnPages) -> tuple[bytes, int]:
        """The dictionary page of a column chunk, and its size when it is not compressed; nothing where it has none.

        Raises:
            NoPageIndexError: There is something else before the data pages.
        """
        size = int(pages.offsets[0]) - pages.start
        if size == 0:
            return b"", 0
        found = self.read(pages.start, size)
        header, length = page_header(found)
        if header[_PAGE_TYPE][1] != _DICTIONARY_PAGE or length + header[_PAGE_COMPRESSED][1] != size:
            raise NoPageIndexError("there is no dictionary before the pages")
        return found, length + int(header[PAGE_SIZE][1])

    def _footer(self, size: int) -> Struct:
        tail = self.read(size - 8, 8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length > min(_MAX_FOOTER, size - 12):
            raise NoPageIndexError("a footer that is encrypted, too large, or none")
        found = self.read(size - 8 - length, length)
        footer = _known_footer(found) if length <= _KEPT_FOOTER else ThriftReader(found).struct()
        if ENCRYPTION in footer:
            raise NoPageIndexError("an encrypted file")
        return footer


def root_of(element: Struct, children: int) -> Struct:
    """The first element of a schema, with so many top-level columns."""
    return {**element, _CHILDREN: (I32, children)}


def leaf_element(name: str, kind: int, repetition: int) -> Struct:
    """An element of a schema that has values."""
    return {_ELEMENT_TYPE: (I32, kind), _REPETITION: (I32, repetition), _NAME: (BINARY, name.encode())}


def page_struct(kind: int, size: int, head: Struct, stored: int | None = None) -> Struct:
    """The header of a page: its kind, its bytes, the header of the kind, and its bytes when it is compressed."""
    return {_PAGE_TYPE: (I32, kind), PAGE_SIZE: (I32, size), _PAGE_COMPRESSED: (I32, stored or size), **head}


def page_header(data: bytes) -> tuple[Struct, int]:
    """The header that a page starts with, and its length."""
    reader = ThriftReader(data)
    return reader.struct(), reader.position


def page_values(data: bytes) -> tuple[int, int, int]:
    """The number of values in a data page, nulls included, their encoding, and the bytes when it is not compressed.

    Raises:
        NoPageIndexError: It is none.
    """
    header, length = page_header(data)
    first, second = header.get(PAGE_V1), header.get(PAGE_V2)
    counted = first or second
    if counted is None or length + header[_PAGE_COMPRESSED][1] != len(data):
        raise NoPageIndexError("a page that is no data page")
    encoding = counted[1][2 if first else 4][1]
    return int(counted[1][1][1]), int(encoding), length + int(header[PAGE_SIZE][1])


@lru_cache(maxsize=64)
def _known_footer(data: bytes) -> Struct:
    """A footer by its bytes; nobody changes it."""
    return ThriftReader(data).struct()


@lru_cache(maxsize=4096)
def _locations(data: bytes) -> np.ndarray[Any, Any]:
    """The numbers of an OffsetIndex, ``[pages, 3] int64``: offset, size and first row of each page."""
    import numpy as np

    reader = ThriftReader(data, 1)
    _, count = reader.list_head()
    found = varints(data[reader.position :], count * len(_LOCATION)).reshape(count, len(_LOCATION))
    heads = [at for at, head in enumerate(_LOCATION) if head is not None]
    if data[0] != _LIST_FIRST or (found[:, heads] != [_LOCATION[at] for at in heads]).any():
        raise NoPageIndexError("a page index of another form")
    zigzag = np.delete(found, heads, axis=1)
    return zigzag >> 1 ^ -(zigzag & 1)


def _leaves(elements: Sequence[Struct]) -> list[Leaf]:
    """The leaves of a schema, which is a list of elements in depth-first order."""
    found: list[Leaf] = []
    position = 1
    for _ in range(elements[0][_CHILDREN][1]):
        start = position
        top = elements[start][_NAME][1].decode("utf-8")
        below: list[tuple[int, int, int, int]] = []
        position = _walk(elements, position, (0, 0), below)
        found += [Leaf(top, *each, (start, position)) for each in below]
    return found


def _walk(
    elements: Sequence[Struct], position: int, levels: tuple[int, int], leaves: list[tuple[int, int, int, int]]
) -> int:
    """Collect levels, type and size of each leaf below an element; return the position after the element."""
    element = elements[position]
    kind = element.get(_REPETITION, (0, 0))[1]
    repetition, definition = levels[0] + (kind == _REPEATED), levels[1] + (kind != _REQUIRED)
    children = element.get(_CHILDREN, (0, 0))[1]
    position += 1
    if not children:
        size = element.get(_TYPE_LENGTH, (0, 0))[1]
        leaves.append((repetition, definition, element[_ELEMENT_TYPE][1], size))
    for _ in range(children):
        position = _walk(elements, position, (repetition, definition), leaves)
    return position
