"""Values at some places of a page, as plain values: no other is decoded.

Plain values of one length stand at places that are known. Texts stand one after the other, each after its length: where
they begin is found for all of a page at once, and tested.

Source: Apache Parquet, "Encodings" (Encodings.md): plain, dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from govtool.records.parquet import footer as f
from govtool.records.parquet.hybrid import WholePageError

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

BOOLEAN, _TEXT, _FIXED = 0, 6, 7
_SIZES = {1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
"""Bytes of a value by Type: INT32, INT64, INT96, FLOAT, DOUBLE."""
_LENGTH = 4
"""Bytes before a text, which are its length."""
_SLACK = 1024
Spans = Sequence[tuple[int, int]]
"""Places of values: of the first, and of the one after the last."""


@dataclass(slots=True)
class PlainValues:
    """Values in the plain encoding.

    Attributes:
        leaf: Their column.
        data: They.
        count: How many there are at most.
    """

    leaf: f.Leaf
    data: bytes
    count: int
    _known: Numbers | None = None
    """Where the first texts begin, and the last of them ends, as far as that was found."""

    def spans(self, spans: Spans) -> bytes:
        """The values in some spans, as plain values; booleans as a byte each, for ``packed_flags``.

        Raises:
            WholePageError: Values of this type are not taken apart.
            NoPageIndexError: There are fewer values.
        """
        import numpy as np

        end, size = spans[-1][1], self._size()
        if self.leaf.type == BOOLEAN:
            bits = np.unpackbits(np.frombuffer(self.data, np.uint8), bitorder="little")
            _require(end <= len(bits))
            return np.concatenate([bits[slice(*span)] for span in spans]).tobytes()
        if size:
            _require(end * size <= len(self.data))
            return b"".join(self.data[start * size : stop * size] for start, stop in spans)
        starts = self._starts(end)
        return b"".join(self.data[starts[start] : starts[stop]] for start, stop in spans)

    def at(self, places: Numbers) -> bytes:
        """The values at some places, in their order, as plain values; see ``spans``."""
        import numpy as np

        if not len(places):
            return b""
        end, size = int(places.max()) + 1, self._size()
        _require(end <= self.count and self.leaf.type != BOOLEAN)
        if size:
            _require(end * size <= len(self.data))
            return np.frombuffer(self.data, np.uint8, end * size).reshape(-1, size)[places].tobytes()
        starts = self._starts(end)
        return b"".join(self.data[starts[at] : starts[at + 1]] for at in places.tolist())

    def _size(self) -> int:
        """The bytes of each value; 0 where they differ."""
        size = self.leaf.size if self.leaf.type == _FIXED else _SIZES.get(self.leaf.type, 0)
        if not size and self.leaf.type not in (BOOLEAN, _TEXT):
            raise WholePageError("values of a type that is not known here")
        return size

    def _starts(self, count: int) -> Numbers:
        """Where the first texts begin, and where the last of them ends."""
        if self._known is not None and len(self._known) > count:
            return self._known
        # They begin in about that part of the bytes that they are of all texts.
        part = len(self.data) * count // max(self.count, 1) * 5 // 4 + _SLACK
        found = _short_texts(self.data[:part], count)
        if found is None and part < len(self.data):
            found = _short_texts(self.data, count)
        self._known = _any_texts(self.data, count) if found is None else found
        return self._known


def packed_flags(parts: Sequence[bytes]) -> list[bytes]:
    """Booleans, given as a byte each, as plain values."""
    import numpy as np

    return [np.packbits(np.frombuffer(b"".join(parts), np.uint8), bitorder="little").tobytes()]


def _short_texts(data: bytes, count: int) -> Numbers | None:
    """Where texts begin, each with less than 256 bytes; None where there are others, or these are not certain.

    The length of such a text has three bytes that are 0, and hardly anything else has. That each begins where the one
    before ends is tested, so that what is found is certain.
    """
    import numpy as np

    raw = np.frombuffer(data, np.uint8)
    is_zero = raw == 0
    found = np.flatnonzero(is_zero[1:-2] & is_zero[2:-1] & is_zero[3:])
    starts = found[:count]
    ends = starts + raw[starts] + _LENGTH
    if not _follow(starts, ends, count):  # zeros beside or within texts: only what follows another one is a text
        follows = np.zeros(len(raw) + _LENGTH + 256, np.bool_)
        follows[found + raw[found] + _LENGTH] = True
        follows[0] = True
        starts = found[follows[found]][:count]
        ends = starts + raw[starts] + _LENGTH
        if not _follow(starts, ends, count):
            return None
    if count and ends[-1] > len(data):
        return None
    return np.append(starts, ends[-1:] if count else 0)


def _follow(starts: Numbers, ends: Numbers, count: int) -> bool:
    """Return whether there are so many texts, each of which begins where the one before it ends."""
    if len(starts) < count:
        return False
    return not count or bool(starts[0] == 0 and (starts[1:] == ends[:-1]).all())


def _any_texts(data: bytes, count: int) -> Numbers:
    """Where texts of any length begin, one after the other.

    Raises:
        NoPageIndexError: There are fewer.
    """
    import numpy as np

    found, end = [0], 0
    for _ in range(count):
        end += _LENGTH + int.from_bytes(data[end : end + _LENGTH], "little")
        _require(end <= len(data))
        found.append(end)
    return np.array(found, np.int64)


def _require(holds: bool) -> None:
    if not holds:
        raise f.NoPageIndexError("a page that ends early")
