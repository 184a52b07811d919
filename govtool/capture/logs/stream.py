"""Bytes to lines: plain, gzip or zstd by content; bounded in memory, in line length and in what may come of little."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from typing import IO

from govtool.capture.logs.record import Reject

CHUNK = 1 << 20
MAX_RECORD = 16 << 20
"""Bytes of one record; no warehouse logs a longer statement, and no reader holds more."""

EXPANSION_FREE = 64 << 20
"""Bytes that a compressed file may expand to whatever its size."""
EXPANSION = 500
"""Beyond that, how often its own size. Query logs compress 10 to 100 times; gzip can reach 1,032, zstd far more."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class UnreadableError(Exception):
    """The rest of a stream cannot be read; the message says why."""


def chunks(raw: IO[bytes]) -> Iterator[bytes]:
    """The UTF-8 content of a stream, decompressed, at most ``CHUNK`` bytes (or so) at a time.

    Raises:
        UnreadableError: It breaks off, is damaged, or expands beyond all measure.
    """
    counted = _Counted(raw)
    data = _decompressed(counted)
    first = next(data, b"")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from _from_utf16(first, data)
        return
    yield first.removeprefix(codecs.BOM_UTF8)
    yield from data


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
    except UnreadableError as error:
        if tail and not skipping:
            yield Reject(file, number, "half a line")
        yield Reject(file, number, str(error), fatal=True)
        return
    if tail and not skipping:
        yield number, tail


def is_plain(head: bytes) -> bool:
    """Whether a stream that begins like this is neither compressed nor UTF-16: its lines end at newline bytes."""
    return not head.startswith((_GZIP, _ZSTD, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def text_of(line: bytes) -> str:
    """A line as text: UTF-8, else Windows-1252, which any bytes are near enough."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", "replace")


class _Counted:
    """A raw stream that counts what is read of it."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw = raw
        self.count = 0
        self.closed = False
        self._pushed = b""

    def peek(self, size: int) -> bytes:
        self._pushed = self.raw.read(size)
        return self._pushed

    def read(self, size: int = -1) -> bytes:
        if self._pushed:
            data, self._pushed = self._pushed, b""
            if size >= 0:
                data, self._pushed = data[:size], data[size:]
        else:
            data = self.raw.read(size)
        self.count += len(data)
        return data

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def _decompressed(counted: _Counted) -> Iterator[bytes]:
    try:
        head = counted.peek(4)
        if not head.startswith(_GZIP) and head != _ZSTD:
            while data := counted.read(CHUNK):
                yield data
            return
        size = 0
        for data in _gzip(counted) if head.startswith(_GZIP) else _zstd(counted):
            size += len(data)
            if size > EXPANSION_FREE and size > EXPANSION * counted.count:
                raise UnreadableError(f"expands to more than {EXPANSION} times its size: not read further")
            yield data
    except (OSError, zlib.error, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise UnreadableError(f"cannot be read: {said}") from error


def _gzip(counted: _Counted) -> Iterator[bytes]:
    """Members one after the other; of a file that breaks off, all that can be had."""
    member = zlib.decompressobj(wbits=31)
    pending = b""
    while True:
        if not pending:
            pending = counted.read(1 << 16)
            if not pending:
                break
        if member.eof:
            pending = pending.lstrip(b"\0")  # padding
            if not pending:
                continue
            member = zlib.decompressobj(wbits=31)
        data = member.decompress(pending, CHUNK)
        pending = member.unused_data if member.eof else member.unconsumed_tail
        if data:
            yield data
    if not member.eof:
        raise UnreadableError("the compressed file breaks off")


def _zstd(counted: _Counted) -> Iterator[bytes]:
    import pyarrow as pa

    source = pa.CompressedInputStream(pa.PythonFile(counted, mode="r"), "zstd")
    # Small reads: of a file that breaks off, the read that meets the end is lost whole.
    while data := source.read(1 << 12):
        yield data


def _from_utf16(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    yield decoder.decode(first).encode("utf-8", "replace")
    for data in rest:
        yield decoder.decode(data).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")
