"""Some rows of a data page as a page of their own: levels and values of the others are left out, none is decoded.

Engines read every page as a whole, with its dictionary, and of a nested column every cell up to the wanted one. Here
levels are counted, and values are copied by their places, so that the engine reads the wanted cells alone.

Source: Apache Parquet, "Nested Encoding" and "Encodings" (Encodings.md): RLE/bit-packing hybrid, dictionary, plain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from govtool.records.parquet import footer as f
from govtool.records.parquet.hybrid import WholePageError, bits_at, constant, hybrid, packed
from govtool.records.parquet.plain import BOOLEAN, PlainValues, Spans, packed_flags
from govtool.records.parquet.thrift import I32, STRUCT, Struct, varint, written

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

_CODECS = {0: "", 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
"""CompressionCodec, by the names that pyarrow knows; Hadoop's frames of LZ4 are left out."""
_PLAIN, _RLE = 0, 3
_PLAIN_DICTIONARIES = (0, 2)
"""Encodings of dictionaries, which are the same."""
_DATA_PAGE = 0
_MAX_VALUES, _MAX_BYTES = 1 << 24, 1 << 28
"""Of a page; larger ones are copied as they are."""


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
class MadePage:
    """A page that was made.

    Attributes:
        data: Its bytes.
        values: The number of values, nulls included.
        size: Its bytes when it is not compressed.
    """

    data: bytes
    values: int
    size: int


class RowPages:
    """Takes rows out of the pages of a column chunk.

    Args:
        leaf: The column.
        codec: Parquet's number of the compression.
        known: Numbers of rows' first values by repetition levels; leaves of one column often share these.
        dictionary: Finds or reads the dictionary of the chunk.

    Raises:
        WholePageError: The compression is not known here.
    """

    def __init__(
        self, leaf: f.Leaf, codec: int, known: dict[bytes, Numbers], dictionary: Callable[[RowPages], PlainValues]
    ) -> None:
        import pyarrow as pa

        if codec not in _CODECS or (_CODECS[codec] and not pa.Codec.is_available(_CODECS[codec])):
            raise WholePageError("a compression that is not known here")
        self._leaf = leaf
        self._codec = pa.Codec(_CODECS[codec]) if _CODECS[codec] else None
        self._known = known
        self._dictionary = dictionary
        self._repetition: list[Numbers] = []
        self._definition: list[Numbers] = []
        self._values: list[bytes] = []
        self._count = 0

    def take(self, page: bytes, rows: Numbers, count: int) -> None:
        """Take some rows of a page: those of all pages are one page.

        Args:
            page: The page, with its header.
            rows: ``[n] int64``, rows of the page, ascending.
            count: How many rows the page has.

        Raises:
            WholePageError: The encoding of the page is another than those that are known here.
            NoPageIndexError: The page has other rows than its index says.
        """
        body = self._body(page)
        spans = self._spans(body, rows, count)
        if self._leaf.max_repetition:
            width = self._leaf.max_repetition.bit_length()
            self._repetition += [hybrid(body.repetition, width, *span) for span in spans]
        self._values.append(self._plain_values(body, self._defined(body, spans)))
        self._count += sum(end - start for start, end in spans)

    def page(self) -> MadePage:
        """The rows that were taken, as a page of plain values."""
        parts = []
        for levels, most in (
            (self._repetition, self._leaf.max_repetition),
            (self._definition, self._leaf.max_definition),
        ):
            if most:
                parts.append(_with_length(_packed_levels(levels, most)))
        parts += packed_flags(self._values) if self._leaf.type == BOOLEAN else self._values
        body = b"".join(parts)
        data = bytes(self._codec.compress(body, asbytes=True)) if self._codec is not None else body
        own: Struct = {1: (I32, self._count), 2: (I32, _PLAIN), 3: (I32, _RLE), 4: (I32, _RLE)}
        header = written(f.page_struct(_DATA_PAGE, len(body), {f.PAGE_V1: (STRUCT, own)}, len(data)))
        return MadePage(header + data, self._count, len(header) + len(body))

    def _spans(self, body: _Body, rows: Numbers, count: int) -> Spans:
        """The places of the values of some rows, nulls included."""
        if self._leaf.max_repetition:
            starts = self._starts(body, count)
            return list(zip(starts[rows].tolist(), starts[rows + 1].tolist(), strict=True))
        if body.values != count:
            raise f.NoPageIndexError("a page that does not have the rows of its index")
        return [(row, row + 1) for row in rows.tolist()]

    def _defined(self, body: _Body, spans: Spans) -> Spans:
        """Keep the definition levels of some spans of values; return these spans among the values that are no nulls."""
        import numpy as np

        most, last = self._leaf.max_definition, spans[-1][1]
        width = most.bit_length()
        if constant(body.definition, width, last) == most:  # there are no nulls
            self._definition += [np.full(end - start, most, np.int64) for start, end in spans] if most else []
            return spans
        if most == 1 and not self._leaf.max_repetition:
            found = bits_at(body.definition, [start for start, _ in spans])
            self._definition.append(np.array([bit for _, bit in found], np.int64))
            return [(before, before + bit) for before, bit in found]
        every = hybrid(body.definition, width, 0, last)
        before = np.concatenate(([0], np.cumsum(every == most)))
        self._definition += [every[start:end] for start, end in spans]
        return [(int(before[start]), int(before[end])) for start, end in spans]

    def _starts(self, body: _Body, count: int) -> Numbers:
        """The number of the first value of each row, and that of all values."""
        import numpy as np

        found = self._known.get(body.repetition)
        if found is None or found[-1] != body.values:
            levels = hybrid(body.repetition, self._leaf.max_repetition.bit_length(), 0, body.values)
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

    def _plain_values(self, body: _Body, spans: Spans) -> bytes:
        """The values at some places, plain."""
        import numpy as np

        spans = [span for span in spans if span[0] < span[1]]
        if not spans:
            return b""
        if body.encoding in f.DICTIONARY_ENCODINGS:
            width = body.data[0] if body.data else 0
            places = np.concatenate([hybrid(body.data[1:], width, *span) for span in spans])
            return self._dictionary(self).at(places)
        if body.encoding != _PLAIN:
            raise WholePageError("values in another encoding")
        return PlainValues(self._leaf, body.data, body.values).spans(spans)

    def entries(self, page: bytes) -> PlainValues:
        """The entries of a dictionary page, given with its header.

        Raises:
            WholePageError: It has another encoding than those that are known here, or is too large.
            NoPageIndexError: It cannot be read.
        """
        header, length = f.page_header(page)
        size, own = header[f.PAGE_SIZE][1], header[f.DICTIONARY_HEADER][1]
        if size > _MAX_BYTES or own[2][1] not in _PLAIN_DICTIONARIES:
            raise WholePageError("a dictionary in another encoding, or too large")
        return PlainValues(self._leaf, self._plain(memoryview(page)[length:], size), int(own[1][1]))


def _packed_levels(levels: list[Numbers], most: int) -> bytes:
    """Levels as one run: of one number, or of bit-packed groups."""
    import numpy as np

    found = np.concatenate(levels) if levels else np.empty(0, np.int64)
    width = most.bit_length()
    if len(found) and (found == found[0]).all():
        return varint(len(found) << 1) + int(found[0]).to_bytes((width + 7) // 8, "little")
    return packed(found, width)


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
