"""Bounds of requests: time, bytes and values, for one request and for all together."""

from __future__ import annotations

import io
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from govtool.app.serve.admission import RefusedError

MAX_BODY = 16 << 20
"""Bytes of one request, compressed or not."""
MAX_VALUES = 400_000
"""Objects and lists of one request: each takes a hundred bytes of memory, however short it is."""
MAX_ITEMS = 2_000_000
"""Values of one request, by its commas."""
MAX_HELD = 256 << 20
"""Bytes of bodies that are held at a time, of all requests."""
DEADLINE = 30.0
"""Seconds from the moment that a connection may send a request until all of it has arrived."""


class DeadlineReader(io.RawIOBase):
    """Reads a socket until a moment that is set for each request, however slowly its bytes come."""

    def __init__(self, plug: socket.socket) -> None:
        super().__init__()
        self._plug = plug
        self._until = time.monotonic() + DEADLINE

    def begin(self, seconds: float) -> None:
        """Let the time of the next request begin."""
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        """See ``io.RawIOBase``."""
        return True

    def readinto(self, buffer: object) -> int:
        """See ``io.RawIOBase``.

        Raises:
            TimeoutError: The time is over.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request takes too long")
        self._plug.settimeout(left)
        return self._plug.recv_into(buffer)  # type: ignore[arg-type]


class HeldBytes:
    """A count of the bytes that all requests hold together."""

    def __init__(self, most: int = MAX_HELD) -> None:
        self._most = most
        self._held = 0
        self._lock = threading.Lock()

    @contextmanager
    def holding(self) -> Iterator[BodySize]:
        """Count a request's bytes, for as long as it is worked on."""
        size = BodySize(self)
        try:
            yield size
        finally:
            self.take(-size.size)

    def take(self, size: int) -> None:
        """Add to the count.

        Raises:
            RefusedError: 503, too much is held.
        """
        with self._lock:
            if size > 0 and self._held + size > self._most:
                raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at a time")
            self._held += size


_PIECE = 1 << 18
"""Bytes that are expanded at once."""


class BodySize:
    """The bytes that one request holds."""

    def __init__(self, held: HeldBytes) -> None:
        self._held = held
        self.size = 0

    def grow(self, size: int) -> None:
        """Count more bytes.

        Raises:
            RefusedError: 413, the request is too large; 503, all requests are.
        """
        if self.size + size > MAX_BODY:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY >> 20} MiB")
        self._held.take(size)
        self.size += size


def check_values(body: bytes) -> None:
    """Refuse a body of too many values, before they become objects. Text with many commas counts, too.

    Raises:
        RefusedError: 413.
    """
    if body.count(b"{") + body.count(b"[") > MAX_VALUES or body.count(b",") > MAX_ITEMS:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_VALUES:,} values")


def inflated(data: bytes, size: BodySize) -> bytes:
    """Expand a compressed body piece by piece, and count its size before it is held.

    Args:
        data: The body as it came, which has been counted.
        size: Counts what it expands to beyond that.

    Raises:
        RefusedError: 400, it is damaged, breaks off, or is more than one; 413, it expands to too much; as
            `BodySize.grow`.
    """
    inflater = zlib.decompressobj(wbits=47)
    whole, rest = bytearray(), data
    while not inflater.eof:
        size.grow(min(max(0, len(whole) + _PIECE - size.size), MAX_BODY - size.size))
        try:
            piece = inflater.decompress(rest, _PIECE)
        except zlib.error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the compressed body is damaged") from None
        whole += piece
        rest = inflater.unconsumed_tail
        if len(whole) > MAX_BODY:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expands to more than {MAX_BODY >> 20} MiB")
        if not piece and not rest:
            break
    if not inflater.eof:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the compressed body breaks off")
    if inflater.unused_data:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "something follows the compressed body")
    return bytes(whole)
