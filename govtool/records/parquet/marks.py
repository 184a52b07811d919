"""A column that names some rows of a row group: written with few bytes, and read before other columns.

Engines skip the cells of other columns where a comparison with a constant fails in this one. A list of places of rows
does not make them do so: DuckDB only prunes row groups by it.

Source: Apache Parquet, "Encodings" (Encodings.md): dictionary, RLE/bit-packing hybrid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from govtool.records.parquet import footer as f
from govtool.records.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, varint, written

if TYPE_CHECKING:
    import numpy as np

MARK = "govtool_mark"
"""The name of the column."""
_INT64, _REQUIRED = 2, 0
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_NONE = (-1).to_bytes(8, "little", signed=True)


def mark_element() -> Struct:
    """The element of the column in a schema."""
    return f.leaf_element(MARK, _INT64, _REQUIRED)


def mark_chunk(
    rows: int, places: np.ndarray[Any, Any], marks: np.ndarray[Any, Any], position: int
) -> tuple[bytes, Struct]:
    """The pages of the column in a row group, and the fields of its ColumnMetaData.

    Args:
        rows: Of the row group.
        places: ``[n] int64``, the rows that have a mark, ascending; all others have -1.
        marks: ``[n] int64``, their marks.
        position: Where the pages are written.
    """
    values = _NONE + marks.astype("<i8").tobytes()
    head = {1: (I32, len(marks) + 1), 2: (I32, _PLAIN)}
    dictionary = _page(_DICTIONARY_PAGE, {f.DICTIONARY_HEADER: (STRUCT, head)}, values)
    head = {1: (I32, rows), 2: (I32, _RLE_DICTIONARY), 3: (I32, _RLE), 4: (I32, _RLE)}
    data = _page(_DATA_PAGE, {f.PAGE_V1: (STRUCT, head)}, _indexes(rows, places.tolist()))
    size = len(dictionary) + len(data)
    return dictionary + data, {
        f.TYPE: (I32, _INT64),
        f.ENCODINGS: (LIST, (I32, [_PLAIN, _RLE, _RLE_DICTIONARY])),
        f.PATH: (LIST, (BINARY, [MARK.encode()])),
        f.CODEC: (I32, 0),
        f.VALUES: (I64, rows),
        f.UNCOMPRESSED: (I64, size),
        f.COMPRESSED: (I64, size),
        f.DATA_PAGE: (I64, position + len(dictionary)),
        f.DICTIONARY_PAGE: (I64, position),
    }


def _page(kind: int, head: Struct, body: bytes) -> bytes:
    return written(f.page_struct(kind, len(body), head)) + body


def _indexes(rows: int, places: list[int]) -> bytes:
    """Numbers of dictionary entries, as runs: 0, but for the places, which have 1, 2 … in their order."""
    width = len(places).bit_length()
    wide = -(-width // 8)
    found, end = bytearray([width]), 0
    for number, place in enumerate(places, 1):
        if place > end:
            found += varint(place - end << 1) + bytes(wide)
        found += varint(1 << 1) + number.to_bytes(wide, "little")
        end = place + 1
    if end < rows:
        found += varint(rows - end << 1) + bytes(wide)
    return bytes(found)
