"""Deletion vectors of Delta and Iceberg: the rows of a file that are deleted.

After the Delta protocol, "Deletion Vector Format", and the specification of Roaring bitmaps (github.com/RoaringBitmap/
RoaringFormatSpec). Iceberg's vectors hold the same bytes. Input may be hostile: lengths are checked.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_MAGIC = 1681511377
_RUNS, _NO_RUNS = 12347, 12346
_OFFSETS_FROM = 4
_ARRAY = 4096
_MOST = 50_000_000
"""Rows of a vector that are read at most."""
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID = 20
"""Characters of a UUID in Z85."""


class VectorError(ValueError):
    """The bytes are not a deletion vector that can be read."""


def decoded(text: str) -> bytes:
    """The bytes of a text in Z85."""
    if len(text) % 5 or any(each not in _Z85 for each in text):
        raise VectorError("no Z85")
    found = bytearray()
    for at in range(0, len(text), 5):
        number = 0
        for each in text[at : at + 5]:
            number = number * 85 + _Z85.index(each)
        if number >> 32:
            raise VectorError("no Z85")
        found += number.to_bytes(4, "big")
    return bytes(found)


def vector_file(text: str) -> str:
    """The path, below its table, of the file that a Delta descriptor of the form ``u`` names."""
    number = decoded(text[-_UUID:]).hex()
    if len(number) != 32:
        raise VectorError("no UUID")
    parts = (number[:8], number[8:12], number[12:16], number[16:20], number[20:])
    name = f"deletion_vector_{'-'.join(parts)}.bin"
    return f"{text[:-_UUID]}/{name}" if text[:-_UUID] else name


def framed(data: bytes, offset: int, size: int) -> bytes:
    """A vector within a file: its length stands before it, its checksum behind.

    Args:
        data: The file.
        offset: Where the length stands.
        size: The vector's size.
    """
    body = data[offset + 4 : offset + 4 + size]
    if offset < 0 or size < 0 or len(body) != size or len(data) < offset + size + 8:
        raise VectorError("the file ends early")
    (length,) = struct.unpack_from(">I", data, offset)
    (checksum,) = struct.unpack_from(">I", data, offset + 4 + size)
    if length != size or zlib.crc32(body) != checksum:
        raise VectorError("the vector is damaged")
    return body


def vector_rows(data: bytes) -> np.ndarray[Any, Any]:
    """The rows of a vector, ascending, as ``int64``.

    Raises:
        VectorError: It is damaged.
    """
    import numpy as np

    found: list[np.ndarray[Any, Any]] = []
    try:
        magic, count = struct.unpack_from("<IQ", data, 0)
        if magic != _MAGIC or count > len(data):
            raise VectorError("no deletion vector")
        at = 12
        for _ in range(count):
            (high,) = struct.unpack_from("<I", data, at)
            rows, at = _bitmap(data, at + 4)
            found += [(np.int64(high) << 32) + each for each in rows]
            if high >> 31 or sum(map(len, found)) > _MOST:
                raise VectorError("too many rows")
    except (struct.error, ValueError) as error:
        raise VectorError(str(error)) from error
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _bitmap(data: bytes, at: int) -> tuple[list[np.ndarray[Any, Any]], int]:
    """The containers of a bitmap of 32 bits, each as its rows; and where it ends."""
    import numpy as np

    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    runs = b""
    if cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        runs = data[at : at + (count + 7) // 8]
        at += len(runs)
    elif cookie == _NO_RUNS:
        (count,) = struct.unpack_from("<I", data, at)
        at += 4
    else:
        raise VectorError("no bitmap")
    if count > 1 << 16:
        raise VectorError("too many containers")
    head = np.frombuffer(data, "<u2", 2 * count, at).astype(np.int64)
    at += 4 * count
    if not runs or count >= _OFFSETS_FROM:
        at += 4 * count
    found = []
    for i in range(count):
        size = int(head[2 * i + 1]) + 1
        if runs and runs[i // 8] >> (i % 8) & 1:
            (number,) = struct.unpack_from("<H", data, at)
            pairs = np.frombuffer(data, "<u2", 2 * number, at + 2).astype(np.int64)
            at += 2 + 4 * number
            spans = [np.arange(first, first + more + 1) for first, more in pairs.reshape(-1, 2)]
            low = np.concatenate(spans) if spans else np.zeros(0, np.int64)
        elif size <= _ARRAY:
            low = np.frombuffer(data, "<u2", size, at).astype(np.int64)
            at += 2 * size
        else:
            bits = np.frombuffer(data, np.uint8, 8192, at)
            low = np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)
            at += 8192
        found.append((head[2 * i] << 16) + low)
    return found, at
