"""Logs in pieces that can be read apart: ranges of bytes of a log whose every line is a record, else whole logs.

A log is *surveyed* first, range by range: a digest of its bytes, and how many lines end in it. The digests tell whether
the log is the same as another time; the counts tell each range the number of its first line.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, cast

from govtool.capture.compressed import CHUNK
from govtool.capture.logs.query_record import Reject
from govtool.capture.logs.read import SAMPLE, LogOptions, Records, line_reader_of, read_log
from govtool.capture.logs.stream import lines

RANGE = 16 << 20
"""Bytes of a range. Digests depend on it: whoever changes it makes every log new."""


class ByteSpan(NamedTuple):
    """A range of bytes of one log."""

    name: str
    """Of the log, relative to the ingest root."""
    path: str
    start: int
    end: int
    """Exclusive."""


class SpanSurvey(NamedTuple):
    """The contents of a span."""

    digest: str
    """sha256, in hex."""
    lines: int
    """Line ends."""


class Piece(NamedTuple):
    """The unit of reading."""

    span: ByteSpan
    line: int
    """The number of the line that the first byte is in; 1-based."""
    whole: bool
    """True if this is a log from its first byte to its last; else the lines that begin in the span."""
    size: int
    """Bytes of the log when it was surveyed: what was added since is left for another time."""


def spans(name: str, path: Path, size: int) -> list[ByteSpan]:
    """The ranges of a log."""
    return [ByteSpan(name, str(path), start, min(start + RANGE, size)) for start in range(0, size, RANGE)]


def survey(span: ByteSpan) -> SpanSurvey:
    """Read a span for its digest and its line ends.

    Raises:
        OSError: The log cannot be read.
    """
    digest = hashlib.sha256()
    found = 0
    with Path(span.path).open("rb") as file:
        file.seek(span.start)
        for data in _limited(file, span.end - span.start):
            digest.update(data)
            found += data.count(b"\n")
    return SpanSurvey(digest.hexdigest(), found)


def pieces(found: Sequence[tuple[ByteSpan, SpanSurvey]], options: LogOptions) -> list[Piece]:
    """The pieces of one log, of whose spans all are given, in order.

    Raises:
        OSError: The log cannot be read.
        UsageError: ``auto`` cannot tell its format.
    """
    if not found:
        return []
    first = found[0][0]
    size = found[-1][0].end
    if len(found) > 1:
        with Path(first.path).open("rb") as file:
            sample = file.read(SAMPLE)
        if line_reader_of(sample, first.name, options) is not None:
            made = []
            line = 1
            for span, about in found:
                made.append(Piece(span, line, False, size))
                line += about.lines
            return made
    return [Piece(first._replace(end=size), 1, True, size)]


def read_piece(piece: Piece, options: LogOptions) -> Records:
    """The records of a piece, in order.

    Raises:
        OSError: The log cannot be read.
        UsageError: ``auto`` cannot tell its format.
    """
    span = piece.span
    with Path(span.path).open("rb") as raw:
        if piece.whole:
            yield from read_log(bounded(raw, piece.size), span.name, options)
            return
        reader = line_reader_of(raw.read(SAMPLE), span.name, options)
        if reader is None:
            yield Reject(span.name, piece.line, "is not what it was a moment ago", fatal=True)
            return
        first, line = (0, 1) if span.start == 0 else _behind_newline(raw, piece)
        end, _ = _behind_newline(raw, Piece(ByteSpan(*span[:2], span.end, span.end), 0, False, piece.size))
        raw.seek(first)
        data = _limited(raw, max(0, end - first))
        if first == 0:
            data = _without_mark(data)
        yield from reader(lines(data, span.name, line), span.name)


def _without_mark(data: Iterator[bytes]) -> Iterator[bytes]:
    yield next(data, b"").removeprefix(b"\xef\xbb\xbf")
    yield from data


def _behind_newline(raw: IO[bytes], piece: Piece) -> tuple[int, int]:
    """Return the position of the first line that begins at or behind a span's start, and its number."""
    at = piece.span.start - 1
    raw.seek(at)
    for data in _limited(raw, piece.size - at):
        found = data.find(b"\n")
        if found >= 0:
            place = at + found
            return place + 1, piece.line + (place >= piece.span.start)
        at += len(data)
    return piece.size, piece.line


def _limited(raw: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0 and (data := raw.read(min(CHUNK, size))):
        size -= len(data)
        yield data


def bounded(raw: IO[bytes], size: int) -> IO[bytes]:
    """The first bytes of a stream that is at its beginning."""
    return cast(IO[bytes], _Bounded(raw, size))


class _Bounded(io.RawIOBase):
    def __init__(self, raw: IO[bytes], size: int) -> None:
        self._raw = raw
        self._size = size
        self._at = 0

    def seekable(self) -> bool:
        return self._raw.seekable()

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = self._raw.seek(max(0, min(start + offset, self._size)))
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = self._size - self._at
        data = self._raw.read(left if size < 0 else min(size, left)) if left else b""
        self._at += len(data)
        return data
