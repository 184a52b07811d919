"""Compressed pages of named number arrays and texts, small enough to be fetched one by one with range reads.

A file of arrays (``govtool.arrays.layout``) is mapped as a whole. Where it lies in an object store and a question needs
a few items of it, its arrays are cut into pages instead: each holds some items of several arrays, as narrow as their
values allow, and is verified by a digest that a table of pages keeps.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from govtool.errors import IntegrityError

PAGE = 40_000
"""Bytes of a page before compression, which makes it 4 to 16 KB."""
DIGEST = 16
"""Bytes of sha256 that a table of pages keeps of each."""
_INFLATED, _RATIO = 64 << 20, 32
CODES = "BHIQ"
"""Type codes of unsigned numbers, the narrowest first."""
WIDTH = {"B": 1, "H": 2, "I": 4, "Q": 8}
"""Bytes of an item by type code."""


def page_digest(data: bytes) -> bytes:
    """The digest of a page's bytes as they are stored."""
    return hashlib.sha256(data).digest()[:DIGEST]


def pack(arrays: Mapping[str, tuple[int, Any]], text: bytes = b"") -> bytes:
    """A page: named arrays of numbers, each less its smallest and as narrow as can be, and bytes.

    Args:
        arrays: Name to (smallest, numpy array of what is over it).
        text: Anything.
    """
    head = []
    body = []
    for name, (low, values) in arrays.items():
        top = int(values.max()) if len(values) else 0
        code = next(code for code in CODES if top < 1 << (8 * WIDTH[code]))
        head.append((name, code, len(values), low))
        body.append(values.astype(f"<u{WIDTH[code]}").tobytes())
    # The widest first, so that each begins where its items may begin.
    order = sorted(range(len(head)), key=lambda i: -WIDTH[head[i][1]])
    header = json.dumps([head[i] for i in order], separators=(",", ":")).encode()
    header += b" " * (-(8 + len(header)) % 8)
    whole = struct.pack("<II", len(header), len(text)) + header + b"".join(body[i] for i in order) + text
    return zlib.compress(whole, 6)


def unpack(data: bytes) -> tuple[dict[str, tuple[int, memoryview]], bytes]:
    """Undo `pack`: name to (smallest, view), and the text.

    Raises:
        IntegrityError: It is no page.
    """
    try:
        whole = memoryview(inflated(data)[0])
        header, size = struct.unpack_from("<II", whole)
        at = 8 + header
        arrays = {}
        for name, code, count, low in json.loads(bytes(whole[8:at])):
            end = at + count * WIDTH[code]
            arrays[name] = (low, whole[at:end].cast(code))
            at = end
        if at + size != len(whole):
            raise ValueError("it has another length")
    except (zlib.error, struct.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise IntegrityError(f"a page of the index is damaged: {error}", code="store.corrupt-index") from error
    return arrays, bytes(whole[at:])


def inflated(data: bytes) -> tuple[bytes, bytes]:
    """What was compressed by zlib, and the bytes behind it.

    Raises:
        zlib.error: It is damaged.
        ValueError: It is cut short, or inflates to more than 64 MiB and 32 times its own size.
    """
    inflate = zlib.decompressobj()
    whole = inflate.decompress(data, _INFLATED + _RATIO * len(data))
    if not inflate.eof:
        raise ValueError("it is cut short, or inflates to too much")
    return whole, inflate.unused_data


def pack_texts(texts: Sequence[str]) -> tuple[list[int], bytes]:
    """Texts as offsets (one more than texts) and bytes."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    offsets = [0]
    for item in encoded:
        offsets.append(offsets[-1] + len(item))
    return offsets, b"".join(encoded)


def in_order(offsets: Sequence[int], text: bytes) -> Iterator[str]:
    """Undo `pack_texts`."""
    for low, high in pairwise(offsets):
        yield text[low:high].decode("utf-8")
