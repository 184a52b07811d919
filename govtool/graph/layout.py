"""The binary layout of an index: named little-endian arrays in one buffer.

    8 bytes   magic
    8 bytes   length of the header, little-endian
    header    JSON: {"format", "size", "meta", "arrays": {name: [typecode, offset, items]}}
    arrays    each at a multiple of 64 bytes from the start of the data

A reader maps the buffer and casts slices of it; nothing is parsed but the header. Type codes are those of ``struct``
(``B H I Q``), the narrowest that holds an array's values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from govtool.errors import FormatError, IntegrityError

FORMAT = 1
"""Version of the layout and of the arrays' meaning."""

FILE = "graph.index"
"""The file's name in a cache directory."""

_MAGIC = b"govtool\x01"
_ALIGN = 64
_WIDTH = {"B": 1, "H": 2, "I": 4, "Q": 8}


def pack(arrays: Mapping[str, tuple[str, Any]], meta: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the buffer of an index piece by piece.

    Args:
        arrays: Name to type code and a contiguous buffer of little-endian items.
        meta: JSON values to keep in the header.
    """
    places: dict[str, tuple[str, int, int]] = {}
    offset = 0
    for name, (code, data) in arrays.items():
        size = memoryview(data).nbytes
        places[name] = (code, offset, size // _WIDTH[code])
        offset += -(-size // _ALIGN) * _ALIGN
    header = json.dumps(
        {"format": FORMAT, "size": offset, "meta": meta, "arrays": places}, separators=(",", ":")
    ).encode()
    header += b" " * (-(16 + len(header)) % _ALIGN)
    yield _MAGIC + len(header).to_bytes(8, "little") + header
    for _, data in arrays.values():
        size = memoryview(data).nbytes
        if size:
            yield data
        yield bytes(-size % _ALIGN)


def view(buffer: Any) -> tuple[dict[str, memoryview], dict[str, Any]]:
    """Return the arrays and the meta of a packed index; the arrays are views, nothing is copied.

    Raises:
        IntegrityError: The buffer is not an index, or cut short.
        FormatError: An index of another format; it can be built again.
    """
    if sys.byteorder != "little":
        raise FormatError("The index is little-endian and this machine is not", code="store.format-index")
    whole = memoryview(buffer)
    if len(whole) < 16 or bytes(whole[:8]) != _MAGIC:
        raise IntegrityError("The index file is not an index", code="store.corrupt-index")
    start = 16 + int.from_bytes(whole[8:16], "little")
    try:
        header = json.loads(bytes(whole[16:start]))
        if header["format"] != FORMAT:
            raise FormatError(
                f"The index has format {header['format']}; this version reads {FORMAT}", code="store.format-index"
            )
        if len(whole) < start + header["size"]:
            raise IntegrityError("The index file is cut short", code="store.corrupt-index")
        arrays = {
            name: whole[start + offset : start + offset + items * _WIDTH[code]].cast(code)
            for name, (code, offset, items) in header["arrays"].items()
        }
        meta: dict[str, Any] = header["meta"]
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"The index file is damaged: {error}", code="store.corrupt-index") from error
    return arrays, meta
