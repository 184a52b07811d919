"""Bytes to lines: plain or compressed, by content; bounded in memory, in line length and in what may come of little."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import IO

from govtool.capture.compressed import UnreadableStreamError, content, is_compressed
from govtool.capture.logs.query_record import Reject

MAX_RECORD = 16 << 20
"""Bytes of one record; no warehouse logs a longer statement, and no reader holds more."""

EXPANSION_FREE = 64 << 20
"""Bytes that a compressed file may expand to whatever its size."""
EXPANSION = 500
"""Beyond that, how often its own size. Query logs compress 10 to 100 times; gzip can reach 1,032, zstd far more."""

_HEAD = 8192
"""Bytes that show whether a stream is text."""


def chunks(raw: IO[bytes]) -> Iterator[bytes]:
    """The UTF-8 content of a stream, decompressed, at most ``CHUNK`` bytes (or so) at a time.

    Raises:
        UnreadableStreamError: It breaks off, is damaged, or expands beyond all measure.
    """
    data = content(raw, free=EXPANSION_FREE, expansion=EXPANSION)
    first = next(data, b"")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from _from_utf16(first, data)
        return
    yield first.removeprefix(codecs.BOM_UTF8)
    yield from data


class BinaryStreamError(ValueError):
    """A stream is no text, as its first bytes show."""


def text_only(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of JSON as they are.

    Raises:
        BinaryStreamError: The first piece does not begin like JSON, and more than one byte in fifty is a control
            character: an image, an archive, a Parquet file.
    """
    first = next(pieces, b"")
    head = first[:_HEAD]
    if not head.lstrip().startswith((b"{", b"[")):
        control = sum(byte < 32 and byte not in b"\t\n\r\f" for byte in head)
        if control * 50 > len(head):
            raise BinaryStreamError("a binary file")
    yield first
    yield from pieces


def lines(pieces: Iterator[bytes], file: str, first: int = 1) -> Iterator[tuple[int, bytes] | Reject]:
    """Lines without their ends, numbered from ``first``; one that is too long is a reject, and so is the end of a
    broken stream.
    """
    number = first
    tail = b""
    skipping = False
    try:
        for piece in pieces:
            found = piece.split(b"\n")
            if len(found) == 1:
                if skipping:
                    continue
                tail += piece
                if len(tail) > MAX_RECORD:
                    yield Reject(file, number, f"a line of more than {MAX_RECORD >> 20} MiB")
                    tail, skipping = b"", True
                continue
            if skipping:
                skipping = False
            else:
                yield number, tail + found[0]
            number += 1
            for line in found[1:-1]:
                yield number, line
                number += 1
            tail = found[-1]
    except UnreadableStreamError as error:
        if tail and not skipping:
            yield Reject(file, number, "half a line")
        yield Reject(file, number, str(error), fatal=True)
        return
    if tail and not skipping:
        yield number, tail


def is_plain(head: bytes) -> bool:
    """True if a stream that begins like this is neither compressed nor UTF-16: its lines end at newline bytes."""
    return not is_compressed(head) and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def text_of(line: bytes) -> str:
    """A line as text: UTF-8, else Windows-1252, which any bytes are near enough."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", "replace")


def _from_utf16(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    yield decoder.decode(first).encode("utf-8", "replace")
    for data in rest:
        yield decoder.decode(data).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")
