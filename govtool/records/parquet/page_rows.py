"""Some rows of a data page as a page of their own: levels and values of the others are left out, none is decoded.

Engines read every cell of a nested column up to the wanted one. Here levels are counted, and values are copied by
their places, so that the engine reads the wanted cells alone.

Source: Apache Parquet, "Nested Encoding" and "Encodings" (Encodings.md): RLE/bit-packing hybrid, dictionary, plain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from govtool.records.parquet import footer as f
from govtool.records.parquet.thrift import I32, STRUCT, Struct, varint, written

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

_CODECS = {0: "", 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
"""CompressionCodec, by the names that pyarrow knows; Hadoop's frames of LZ4 are left out."""
_SIZES = {1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
"""Bytes of a value by Type: INT32, INT64, INT96, FLOAT, DOUBLE."""
_FIXED = 7
_PLAIN, _RLE = 0, 3
_DATA_PAGE = 0
_MAX_BITS, _BYTE = 32, 8
_MAX_VALUES, _MAX_BYTES = 1 << 24, 1 << 28
"""Of a page; larger ones are copied as they are."""


class WholePageError(Exception):
    """Rows cannot be taken out of a page: it is copied as a whole."""


@dataclass(frozen=True, slots=True)
class _Body:
    """A page's content, not compressed.

    Attributes:
        values: The number of values, nulls included.
        encoding: Of the values.
        repetition: Repetition levels, without their length.
        definition: Definition levels, without their length.
        data: The values that are no nulls.
    """

    values: int
    encoding: int
    repetition: bytes
    definition: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class _Run:
    """A part of a hybrid: where its bytes begin and end, how many of its numbers are left out, and how many count."""

    begin: int
    end: int
    skipped: int
    count: int
    is_packed: bool


class RowPages:
    """Takes rows out of the pages of a column chunk.

    Args:
        leaf: The column.
        codec: Parquet's number of the compression.
        known: Numbers of rows' first values by repetition levels; leaves of one column often share these.

    Raises:
        WholePageError: The compression is not known here.
    """

    def __init__(self, leaf: f.Leaf, codec: int, known: dict[bytes, Numbers]) -> None:
        import pyarrow as pa

        if codec not in _CODECS or (_CODECS[codec] and not pa.Codec.is_available(_CODECS[codec])):
            raise WholePageError("a compression that is not known here")
        self._leaf = leaf
        self._codec = pa.Codec(_CODECS[codec]) if _CODECS[codec] else None
        self._known = known

    def cut(self, page: bytes, rows: Numbers, count: int) -> bytes:
        """A page with some rows.

        Args:
            page: The page, with its header.
            rows: ``[n] int64``, rows of the page, ascending.
            count: How many rows the page has.

        Raises:
            WholePageError: The encoding of the page is another than those that are known here.
            NoPageIndexError: The page has other rows than its index says.
        """
        import numpy as np

        body = self._body(page)
        starts = self._starts(body, count)
        spans = list(zip(starts[rows].tolist(), starts[rows + 1].tolist(), strict=True))
        width = self._leaf.max_definition.bit_length()
        levels = _hybrid(body.definition, width, 0, spans[-1][1])
        is_there = levels == self._leaf.max_definition
        before = np.concatenate(([0], np.cumsum(is_there))) if not is_there.all() else np.arange(len(levels) + 1)
        values = [(int(before[start]), int(before[end])) for start, end in spans]
        parts = []
        if self._leaf.max_repetition:
            reps = [_hybrid(body.repetition, self._leaf.max_repetition.bit_length(), *span) for span in spans]
            parts.append(_with_length(_packed(np.concatenate(reps), self._leaf.max_repetition.bit_length())))
        if width:
            parts.append(_with_length(_packed(np.concatenate([levels[start:end] for start, end in spans]), width)))
        parts.append(self._values(body, values))
        kept = sum(end - start for start, end in spans)
        return self._page(b"".join(parts), kept, body.encoding)

    def _starts(self, body: _Body, count: int) -> Numbers:
        """The number of the first value of each row, and that of all values."""
        import numpy as np

        if not self._leaf.max_repetition:
            if body.values != count:
                raise f.NoPageIndexError("a page that does not have the rows of its index")
            return np.arange(count + 1)
        found = self._known.get(body.repetition)
        if found is None or found[-1] != body.values:
            levels = _hybrid(body.repetition, self._leaf.max_repetition.bit_length(), 0, body.values)
            found = np.append(np.flatnonzero(levels == 0), body.values)
            self._known[body.repetition] = found
        if len(found) != count + 1 or found[0]:
            raise f.NoPageIndexError("a page that does not have the rows of its index")
        return found

    def _body(self, page: bytes) -> _Body:
        header, length = f.page_header(page)
        size, rest = header[f.PAGE_SIZE][1], memoryview(page)[length:]
        values = (header.get(f.PAGE_V1) or header.get(f.PAGE_V2) or (0, {1: (0, 0)}))[1][1][1]
        if size > _MAX_BYTES or values > _MAX_VALUES:
            raise WholePageError("a page that is too large")
        if f.PAGE_V1 in header:
            own = header[f.PAGE_V1][1]
            data = self._plain(rest, size)
            has = (self._leaf.max_repetition > 0, self._leaf.max_definition > 0)
            repetition, data = _leveled(data, own[4][1]) if has[0] else (b"", data)
            definition, data = _leveled(data, own[3][1]) if has[1] else (b"", data)
            return _Body(own[1][1], own[2][1], repetition, definition, data)
        if f.PAGE_V2 not in header:
            raise f.NoPageIndexError("a page that is no data page")
        own = header[f.PAGE_V2][1]
        first, second = own[6][1], own[5][1]
        is_compressed = own.get(7, (0, True))[1]
        end = first + second
        data = self._plain(rest[end:], size - end) if is_compressed else bytes(rest[end:])
        return _Body(own[1][1], own[4][1], bytes(rest[:first]), bytes(rest[first:end]), data)

    def _plain(self, data: memoryview, size: int) -> bytes:
        import pyarrow as pa

        if self._codec is None:
            return bytes(data)
        if not size:
            return b""
        try:
            return bytes(self._codec.decompress(data, size, asbytes=True))
        except (pa.ArrowException, OSError) as error:
            raise f.NoPageIndexError("a page that cannot be read") from error

    def _values(self, body: _Body, spans: list[tuple[int, int]]) -> bytes:
        """The values at some places, in the page's encoding."""
        import numpy as np

        if body.encoding in f.DICTIONARY_ENCODINGS:
            width = body.data[0] if body.data else 0
            found = [_hybrid(body.data[1:], width, *span) for span in spans if span[0] < span[1]]
            return bytes([width]) + (_packed(np.concatenate(found), width) if found else b"")
        size = self._leaf.size if self._leaf.type == _FIXED else _SIZES.get(self._leaf.type, 0)
        if body.encoding != _PLAIN or not size:
            raise WholePageError("values in another encoding, or of different lengths")
        if spans[-1][1] * size > len(body.data):
            raise f.NoPageIndexError("a page that ends early")
        return b"".join(body.data[start * size : end * size] for start, end in spans)

    def _page(self, body: bytes, values: int, encoding: int) -> bytes:
        packed = bytes(self._codec.compress(body, asbytes=True)) if self._codec is not None else body
        own: Struct = {1: (I32, values), 2: (I32, encoding), 3: (I32, _RLE), 4: (I32, _RLE)}
        return written(f.page_struct(_DATA_PAGE, len(body), {f.PAGE_V1: (STRUCT, own)}, len(packed))) + packed


def _leveled(data: bytes, encoding: int) -> tuple[bytes, bytes]:
    """Levels, and what follows them."""
    if encoding != _RLE:
        raise WholePageError("levels in an encoding of old")
    end = 4 + int.from_bytes(data[:4], "little")
    if end > len(data):
        raise f.NoPageIndexError("a page that ends early")
    return data[4:end], data[end:]


def _with_length(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


def _hybrid(data: bytes, width: int, start: int, end: int) -> Numbers:
    """Numbers of a hybrid of runs and bit-packed groups, from one place to another; only these are decoded.

    Raises:
        NoPageIndexError: There are fewer.
    """
    import numpy as np

    if not width or start >= end:
        return np.zeros(max(0, end - start), np.int64)
    if width > _MAX_BITS:
        raise WholePageError("numbers of more bits than there are")
    parts: list[Numbers] = []
    groups: list[bytes] = []
    for run in _runs(data, width, start, end):
        if run.is_packed and not run.skipped and not run.count % 8:
            groups.append(data[run.begin : run.end])  # with those that follow, at once
            continue
        if groups:
            parts.append(_unpacked(b"".join(groups), width))
            groups = []
        if run.is_packed:
            parts.append(_unpacked(data[run.begin : run.end], width)[run.skipped : run.skipped + run.count])
        else:
            parts.append(np.full(run.count, int.from_bytes(data[run.begin : run.end], "little"), np.int64))
    if groups:
        parts.append(_unpacked(b"".join(groups), width))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _unpacked(data: bytes, width: int) -> Numbers:
    """The numbers of bit-packed groups, the last of which may be cut short."""
    import numpy as np

    kind: Any = np.uint8 if width <= _BYTE else np.int64
    whole = data.ljust(-(-len(data) // width) * width, b"\0")
    bits = np.unpackbits(np.frombuffer(whole, np.uint8), bitorder="little")
    found: Numbers = bits[::width].astype(kind)
    for place in range(1, width):
        found |= bits[place::width].astype(kind) << place
    return found


def _runs(data: bytes, width: int, start: int, end: int) -> Iterator[_Run]:
    """The runs that hold numbers between two places, cut to these.

    Raises:
        NoPageIndexError: There are fewer.
    """
    position = place = 0
    wide = (width + 7) // 8
    while place < end:  # most pages have hundreds of runs before the wanted ones
        head = data[position]
        position += 1
        if head > 127:
            head, position = _head(data, position - 1)
        is_packed, count, size = head & 1, head >> 1, wide
        if is_packed:
            count, size = count * 8, count * width
        if place + count > start:
            first, last = max(start - place, 0), min(end - place, count)
            group = first // 8 if is_packed else 0
            begin, used = position + group * width, -(-last * width // 8) if is_packed else size
            if last <= first or position + used > len(data):
                raise f.NoPageIndexError("a page that ends early")
            yield _Run(
                begin,
                min(position + size, begin + -(-last // 8) * width) if is_packed else begin + size,
                first - group * 8,
                last - first,
                bool(is_packed),
            )
        position += size
        place += count


def _head(data: bytes, position: int) -> tuple[int, int]:
    """The head of a run, and where what follows it begins."""
    head = data[position]
    if head < 128:
        return head, position + 1
    found = shift = 0
    while True:
        byte = data[position]
        position += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, position
        shift += 7


def _packed(numbers: Numbers, width: int) -> bytes:
    """Numbers as one run of bit-packed groups."""
    import numpy as np

    groups = -(-len(numbers) // 8)
    if not width:
        return varint(len(numbers) << 1)
    padded = np.zeros(groups * 8, np.int64)
    padded[: len(numbers)] = numbers
    bits = (padded[:, None] >> np.arange(width)) & 1
    return varint(groups << 1 | 1) + np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()
