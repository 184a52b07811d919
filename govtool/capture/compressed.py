"""Compressed logs as plain bytes: recognised by content, bounded, and read up to the point where a file breaks off.

Plain gzip, zstd and lz4, and what Spark writes: its ``lz4`` is lz4-java's ``LZ4BlockOutputStream``, its ``snappy``
snappy-java's ``SnappyOutputStream``, its ``lzf`` chunks as ``govtool.capture.lzf`` has them, its ``zstd`` plain zstd
whose last frame may never have been closed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any

from govtool.capture import lzf

CHUNK = 1 << 20
MAX_BLOCK = 64 << 20
"""Bytes of one block; Spark writes 32 KiB, and lz4-java at most 32 MiB."""
EXPANSION_FREE = 256 << 20
"""Bytes that a compressed file may expand to whatever its size."""
EXPANSION = 1000
"""Beyond that, how often its own size. Logs compress 10 to 100 times; gzip can reach 1,032, zstd far more."""

_SMALL = 1 << 12
_LZ4_MAGIC = b"LZ4Block"
_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_LZ4_RAW, _LZ4_COMPRESSED = 0x10, 0x20


class UnreadableStreamError(Exception):
    """The rest of a stream cannot be read; the message says why."""


def is_compressed(head: bytes) -> bool:
    """Return whether a stream that begins like this is compressed in a way that is read.

    Raises:
        UnreadableStreamError: It is compressed in another way.
    """
    return _reader(head) is not None


def content(raw: IO[bytes], *, free: int = EXPANSION_FREE, expansion: int = EXPANSION) -> Iterator[bytes]:
    """The content of a log, decompressed, about ``CHUNK`` bytes at a time.

    Args:
        raw: A binary stream.
        free: Bytes that it may expand to whatever its size.
        expansion: Beyond that, how often its own size.

    Raises:
        UnreadableStreamError: It breaks off, is damaged, uses a codec that is not read, or expands beyond all measure.
    """
    counted = _Counted(raw)
    try:
        head = counted.peek(8)
        reader = _reader(head)
        if reader is None:
            while data := counted.read(CHUNK):
                yield data
            return
        size = 0
        for data in reader(counted):
            size += len(data)
            if size > free and size > expansion * counted.count:
                raise UnreadableStreamError(f"expands to more than {expansion} times its size: not read further")
            yield data
    except (OSError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or ["damaged"])[0]
        raise UnreadableStreamError(f"cannot be read: {reason}") from error


def _reader(head: bytes) -> Any:
    if head.startswith(b"\x1f\x8b"):
        return _gzip
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd
    if head.startswith(_LZ4_MAGIC):
        return _lz4_blocks
    if head.startswith(b"\x04\x22\x4d\x18"):
        return _lz4_frames
    if head.startswith(_SNAPPY_MAGIC):
        return _snappy
    if head.startswith(lzf.MAGIC):
        return _lzf
    return None


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
            if 0 <= size < len(data):
                data, self._pushed = data[:size], data[size:]
        else:
            data = self.raw.read(size)
        self.count += len(data)
        return data

    def exactly(self, size: int) -> bytes:
        """``size`` bytes, fewer only at the end."""
        parts: list[bytes] = []
        while size > 0:
            data = self.read(size)
            if not data:
                break
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def can_rewind(self) -> bool:
        try:
            return bool(self.raw.seekable())
        except (AttributeError, ValueError):
            return False

    def rewind(self) -> None:
        self.raw.seek(0)
        self.count, self._pushed = 0, b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def _gzip(counted: _Counted) -> Iterator[bytes]:
    """Members one after the other."""
    member = zlib.decompressobj(wbits=31)
    pending = b""
    while True:
        if not pending:
            pending = counted.read(1 << 18)
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
        raise UnreadableStreamError("the compressed file breaks off")


def _zstd(counted: _Counted) -> Iterator[bytes]:
    """Of a frame that is cut off, the read that meets the end is lost whole: the end is read again, in small pieces.

    What cannot be read again is read in small pieces from the start.
    """
    if not counted.can_rewind():
        yield from _inflated(counted, "zstd", _SMALL)
        return
    done = 0
    try:
        for data in _inflated(counted, "zstd", CHUNK):
            done += len(data)
            yield data
    except (OSError, ValueError):
        counted.rewind()
        position = 0
        for data in _inflated(counted, "zstd", _SMALL):
            position += len(data)
            if position > done:
                yield data[max(0, len(data) - (position - done)) :]
        raise UnreadableStreamError("the compressed file breaks off") from None


def _lz4_frames(counted: _Counted) -> Iterator[bytes]:
    yield from _inflated(counted, "lz4", CHUNK)


def _inflated(counted: _Counted, codec: str, size: int) -> Iterator[bytes]:
    import pyarrow as pa

    source = pa.CompressedInputStream(pa.PythonFile(counted, mode="r"), codec)
    while data := source.read(size):
        yield data


def _lz4_blocks(counted: _Counted) -> Iterator[bytes]:
    import pyarrow as pa

    codec = pa.Codec("lz4_raw")
    batch: list[bytes] = []
    held = 0
    while head := counted.exactly(21):
        if len(head) < 21:
            yield b"".join(batch)
            raise UnreadableStreamError("the compressed file breaks off")
        if not head.startswith(_LZ4_MAGIC):
            yield b"".join(batch)
            raise UnreadableStreamError("cannot be read: no lz4 block where one should begin")
        method = head[8] & 0xF0
        packed, size = struct.unpack_from("<ii", head, 9)
        if not 0 <= packed <= MAX_BLOCK or not 0 <= size <= MAX_BLOCK:
            yield b"".join(batch)
            raise UnreadableStreamError("cannot be read: an lz4 block of impossible size")
        data = counted.exactly(packed)
        if len(data) < packed:
            yield b"".join(batch)
            raise UnreadableStreamError("the compressed file breaks off")
        if not size:
            continue  # the end mark; another stream may follow
        try:
            plain = data if method == _LZ4_RAW else codec.decompress(data, decompressed_size=size, asbytes=True)
        except (OSError, ValueError):
            yield b"".join(batch)
            raise
        batch.append(plain)
        held += size
        if held >= CHUNK:
            yield b"".join(batch)
            batch, held = [], 0
    yield b"".join(batch)


def _snappy(counted: _Counted) -> Iterator[bytes]:
    import pyarrow as pa

    codec = pa.Codec("snappy")
    batch: list[bytes] = []
    held = 0
    while head := counted.exactly(4):
        if head == _SNAPPY_MAGIC[:4]:
            counted.exactly(
                12
            )  # the rest of the header: magic, version, compatible version; streams may follow each other
            continue
        size = int.from_bytes(head, "big")
        data = counted.exactly(size) if len(head) == 4 and size <= MAX_BLOCK else b""
        if len(head) < 4 or size > MAX_BLOCK or len(data) < size:
            yield b"".join(batch)
            broken = (
                "the compressed file breaks off" if size <= MAX_BLOCK else "cannot be read: a snappy block too large"
            )
            raise UnreadableStreamError(broken)
        plain_size = _varint(data)
        if plain_size > MAX_BLOCK:
            yield b"".join(batch)
            raise UnreadableStreamError("cannot be read: a snappy block too large")
        try:
            batch.append(codec.decompress(data, decompressed_size=plain_size, asbytes=True))
        except (OSError, ValueError):
            yield b"".join(batch)
            raise
        held += plain_size
        if held >= CHUNK:
            yield b"".join(batch)
            batch, held = [], 0
    yield b"".join(batch)


def _lzf(counted: _Counted) -> Iterator[bytes]:
    batch: list[bytes] = []
    held = 0
    while head := counted.exactly(5):
        sizes = head[3:5] + (counted.exactly(2) if head[2:3] == bytes([lzf.COMPRESSED]) else b"")
        stored, plain = int.from_bytes(sizes[:2], "big"), int.from_bytes(sizes[-2:], "big")
        data = counted.exactly(stored)
        problem = ""
        if len(head) < 5 or len(data) < stored or len(sizes) not in (2, 4):
            problem = "the compressed file breaks off"
        elif head[:2] != lzf.MAGIC or head[2] not in (lzf.STORED, lzf.COMPRESSED):
            problem = "cannot be read: not a chunk of lzf"
        if problem:
            yield b"".join(batch)
            raise UnreadableStreamError(problem)
        try:
            batch.append(lzf.decompress(data, plain) if head[2] == lzf.COMPRESSED else data)
        except ValueError:
            yield b"".join(batch)
            raise
        held += plain
        if held >= CHUNK:
            yield b"".join(batch)
            batch, held = [], 0
    yield b"".join(batch)


def _varint(data: bytes) -> int:
    value = 0
    for position, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << (7 * position)
        if not byte & 0x80:
            break
    return value
