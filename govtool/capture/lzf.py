"""Chunks of LZF as ``com.ning.compress.lzf`` writes them, Spark's codec ``lzf``.

Source: https://github.com/ning/compress/wiki/LZFFormat; the compression is that of LibLZF.
"""

from __future__ import annotations

MAGIC = b"ZV"
STORED, COMPRESSED = 0, 1
"""The types of chunks: as they are, with their length; compressed, with the lengths of both."""


def decompress(data: bytes, size: int) -> bytes:
    """The bytes of one compressed chunk.

    Args:
        data: The chunk without its header.
        size: How many bytes it holds.

    Raises:
        ValueError: It is damaged.
    """
    out = bytearray()
    at, end = 0, len(data)
    while at < end and len(out) <= size:
        control = data[at]
        at += 1
        if control < 32:  # so many bytes as they are, and one more
            out += data[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if at + 1 + (length == 7) > end:
            raise ValueError("a damaged lzf chunk")
        if length == 7:
            length += data[at]
            at += 1
        start = len(out) - ((control & 31) << 8) - data[at] - 1
        at += 1
        if start < 0:
            raise ValueError("a damaged lzf chunk")
        length += 2
        known = bytes(out[start : start + length])  # what is copied may overlap with what it makes
        out += (known * (length // len(known) + 1))[:length]
    if at != end or len(out) != size:
        raise ValueError("a damaged lzf chunk")
    return bytes(out)
