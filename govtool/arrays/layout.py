"""A flat file of named little-endian arrays with checksums, to be mapped into memory.

    8 bytes   magic
    8 bytes   length of the header, little-endian
    8 bytes   CRC-32 of the header, little-endian
    header    JSON: {"format", "size", "meta", "arrays": {name: [typecode, offset, items, [CRC-32 of each block]]}}
    arrays    each at a multiple of 64 bytes from the start of the data

A reader maps the buffer and casts slices of it; nothing is parsed but the header, whose checksum is always compared.
Comparing those of the arrays reads the whole buffer (a quarter of a second a gigabyte): ``verify`` does it, for those
who do not know where the buffer has been. Type codes are those of ``struct`` (``B H I Q``), the narrowest that holds an
array's values. A user of the layout numbers the meaning of its arrays (``version``): a file of another is refused.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from govtool.errors import FormatError, IntegrityError

_MAGIC = b"govtool\x02"
_HEAD = 24
_ALIGN = 64
_BLOCK = 1 << 20
"""Bytes that one checksum is of."""
_WIDTH = {"B": 1, "H": 2, "I": 4, "Q": 8}


def pack(arrays: Mapping[str, tuple[str, Any]], meta: Mapping[str, Any], version: int) -> Iterator[Any]:
    """Yield the buffer piece by piece.

    Args:
        arrays: Name to type code and a contiguous buffer of little-endian items.
        meta: JSON values to keep in the header.
        version: The number of the arrays' meaning, compared by readers.
    """
    places: dict[str, tuple[str, int, int, list[int]]] = {}
    offset = 0
    for name, (code, data) in arrays.items():
        size = memoryview(data).nbytes
        places[name] = (code, offset, size // _WIDTH[code], _checksums(memoryview(data)))
        offset += -(-size // _ALIGN) * _ALIGN
    header = json.dumps(
        {"format": version, "size": offset, "meta": meta, "arrays": places}, separators=(",", ":")
    ).encode()
    header += b" " * (-(_HEAD + len(header)) % _ALIGN)
    yield _MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little") + header
    for _, data in arrays.values():
        size = memoryview(data).nbytes
        if size:
            yield data
        yield bytes(-size % _ALIGN)


def narrowed(arrays: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Numpy arrays of numbers of at least 0 as ``pack`` takes them: by name, in the narrowest type that holds them."""
    found: dict[str, tuple[str, Any]] = {}
    for name in sorted(arrays):
        values = narrow(arrays[name])
        found[name] = next(code for code, width in _WIDTH.items() if width == values.itemsize), values
    return found


def narrow(values: Any) -> Any:
    """A numpy array of numbers of at least 0 in the narrowest type that holds them."""
    import numpy as np

    top = int(values.max()) if len(values) else 0
    width = next(width for width in _WIDTH.values() if top < 1 << 8 * width)
    return np.ascontiguousarray(values, np.dtype(f"<u{width}"))


def view(buffer: Any, version: int) -> tuple[dict[str, memoryview], dict[str, Any]]:
    """Return the arrays and the meta of a packed buffer; the arrays are views, nothing is copied.

    Raises:
        IntegrityError: The buffer is not an index, or cut short, or its header is damaged.
        FormatError: An index of another format; it can be built again.
    """
    if sys.byteorder != "little":
        raise FormatError("The index is little-endian and this machine is not", code="store.format-index")
    whole = memoryview(buffer)
    header, start = _header(whole, version)
    try:
        arrays = {
            name: whole[start + offset : start + offset + items * _WIDTH[code]].cast(code)
            for name, (code, offset, items, _) in header["arrays"].items()
        }
        meta: dict[str, Any] = header["meta"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(str(error)) from error
    return arrays, meta


def verify(buffer: Any, version: int) -> None:
    """Compare all of a packed buffer with its checksums.

    Raises:
        IntegrityError: They differ.
        FormatError: An index of another format.
    """
    whole = memoryview(buffer)
    header, start = _header(whole, version)
    for name, (code, offset, items, sums) in header["arrays"].items():
        if _checksums(whole[start + offset : start + offset + items * _WIDTH[code]]) != sums:
            raise _damaged(f"the checksum of {name} differs")


def header(buffer: Any) -> bytes:
    """The bytes of a packed buffer's header; it holds the checksums of everything else."""
    whole = memoryview(buffer)
    return bytes(whole[: _HEAD + int.from_bytes(whole[8:16], "little")])


def _header(whole: memoryview, version: int) -> tuple[dict[str, Any], int]:
    """The header, and where the data begins."""
    magic = bytes(whole[:8])
    if magic[:7] == _MAGIC[:7] and magic != _MAGIC:
        raise FormatError(f"The index has another format; this version reads {version}", code="store.format-index")
    start = _HEAD + int.from_bytes(whole[8:16], "little")
    text = bytes(whole[_HEAD:start])
    if magic != _MAGIC or start > len(whole) or zlib.crc32(text) != int.from_bytes(whole[16:_HEAD], "little"):
        raise IntegrityError("The index file is not an index, or its header is damaged", code="store.corrupt-index")
    header: dict[str, Any] = json.loads(text)
    if header.get("format") != version:
        raise FormatError(
            f"The index has format {header.get('format')}; this version reads {version}", code="store.format-index"
        )
    if len(whole) < start + header["size"]:
        raise IntegrityError("The index file is cut short", code="store.corrupt-index")
    return header, start


def _checksums(data: memoryview) -> list[int]:
    if not data.nbytes:
        return []
    plain = data.cast("B")
    return [zlib.crc32(plain[at : at + _BLOCK]) for at in range(0, len(plain), _BLOCK)]


def _damaged(why: str) -> IntegrityError:
    return IntegrityError(f"The index file is damaged: {why}", code="store.corrupt-index")
