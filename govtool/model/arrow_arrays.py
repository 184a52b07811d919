"""Python values as Arrow arrays, without ``pyarrow.array``: that imports pandas wherever it is installed, for a quarter
of a second a process.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final

_CODES: Final = {"int64": "q", "int32": "i", "uint8": "B"}


def texts(values: Sequence[str | None]) -> Any:
    """Texts or None as ``string``; a lone surrogate, which UTF-8 has none of, becomes U+FFFD."""
    import pyarrow as pa

    given: Iterable[str] = [v or "" for v in values] if None in values else values  # type: ignore[assignment]
    joined = "".join(given)
    if joined.isascii():
        data = joined.encode("ascii")
        lengths = map(len, given)
    else:
        parts = [_utf8(text) for text in given]
        data = b"".join(parts)
        lengths = map(len, parts)
    if len(data) > _MOST:
        return pa.array([None if v is None else _utf8(v).decode() for v in values], pa.string())
    offsets = array("i", accumulate(lengths, initial=0))
    return pa.Array.from_buffers(pa.string(), len(values), [_valid(values), pa.py_buffer(offsets), pa.py_buffer(data)])


_MOST: Final = (1 << 31) - 1
"""Bytes of the texts of an array."""


def numbers(values: Sequence[int | None], kind: Any) -> Any:
    """Whole numbers or None as an array of a type: ``int64``, ``int32`` or ``uint8``.

    Raises:
        OverflowError: The type has no such number.
    """
    import pyarrow as pa

    whole = array(_CODES[str(kind)], [v or 0 for v in values])
    return pa.Array.from_buffers(kind, len(values), [_valid(values), pa.py_buffer(whole)])


def flags(values: Sequence[bool]) -> Any:
    """Truth values as ``bool``."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def lists(counts: Iterable[int], items: Any, kind: Any) -> Any:
    """An array of lists of a type, from the numbers of items in each and all their items."""
    import pyarrow as pa

    offsets = array("i", accumulate(counts, initial=0))
    places = pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)])
    return pa.ListArray.from_arrays(places, items, type=kind)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= ch <= "\udfff" else ch for ch in text).encode()


def _valid(values: Sequence[object]) -> Any:
    """Which values are there, as bits; None where all are."""
    return _bits([v is not None for v in values]) if None in values else None


def _bits(values: Sequence[bool]) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.py_buffer(np.packbits(np.array(values, np.bool_), bitorder="little"))
