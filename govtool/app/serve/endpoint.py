"""The HTTP endpoint: requests are read within bounds, and answered when their events are in the spool."""

from __future__ import annotations

import io
import json
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from govtool.app.serve.admission import Admission, RefusedError
from govtool.app.serve.bounds import DEADLINE, MAX_BODY, BodySize, DeadlineReader, HeldBytes, check_values, inflated
from govtool.app.serve.event_spool import EventSpool
from govtool.release import __version__

PATH = "/api/v1/lineage"
"""The path to which the OpenLineage clients send events."""
MAX_EVENTS = 1000
"""Events of one request."""
MAX_CONNECTIONS = 128
"""Requests that are worked on at a time; then the one that has been sent the longest makes room for a new one."""
_MAX_LINE = 1000
"""Bytes of a line between chunks."""
_HEX = re.compile(rb"[0-9A-Fa-f]{1,16}")
_ROOM = 1.0
"""Seconds to wait for a connection that was closed to end."""


class LineageServer(ThreadingHTTPServer):
    """The endpoint. ``stop`` lets requests that have arrived come to their end.

    Args:
        address: Where to listen: a host and a port.
        spool: Where events are kept.
        notice: Called after each request that brought events.
        admission: Who may send.
        deadline: Seconds until a request must have arrived.
    """

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(
        self,
        address: tuple[str, int],
        spool: EventSpool,
        notice: Callable[[], None],
        admission: Admission | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, Handler)
        self.spool = spool
        self.notice = notice
        self.admission = admission or Admission()
        self.deadline = deadline
        self.held = HeldBytes()
        self.stopping = False
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._reading: dict[Any, float] = {}
        """Connections of which a request is awaited or being read, with the moment since when."""

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection its thread; where there are too many, that which was slowest so far is closed.

        This never waits long, so that ``shutdown`` comes through.
        """
        if not self._free.acquire(blocking=False):
            self._close_slowest()
            if not self._free.acquire(timeout=_ROOM):
                super().shutdown_request(request)
                return
        self.begin_reading(request)
        super().process_request(request, client_address)

    def begin_reading(self, request: Any) -> None:
        """Note that a connection's next request is awaited."""
        with self._lock:
            self._reading[request] = time.monotonic()
            ending = self.stopping
        if ending:  # `stop` may have looked before: this connection awaits nothing any more
            with suppress(OSError):
                request.shutdown(socket.SHUT_RD)

    def end_reading(self, request: Any) -> None:
        """Note that a request has arrived: it is never closed from here."""
        with self._lock:
            self._reading.pop(request, None)

    def _close_slowest(self) -> None:
        with self._lock:
            slowest = min(self._reading, key=self._reading.__getitem__, default=None)
            if slowest is not None:
                del self._reading[slowest]
        if slowest is not None:
            with suppress(OSError):
                slowest.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self.end_reading(request)
        with suppress(ValueError):
            self._free.release()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a connection that broke off."""

    def stop(self) -> None:
        """Take no more requests, and wait for those that have arrived."""
        self.stopping = True
        self.shutdown()
        with self._lock:
            waiting = list(self._reading)
        for request in waiting:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RD)
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: LineageServer
    protocol_version = "HTTP/1.1"
    server_version = f"govtool/{__version__}"
    sys_version = ""

    def setup(self) -> None:
        """Read through a `DeadlineReader`."""
        super().setup()
        self.rfile.close()
        self._reader = DeadlineReader(self.connection)
        self.rfile = io.BufferedReader(self._reader)

    def handle_one_request(self) -> None:
        """Read and answer a request; its time begins now."""
        self.server.begin_reading(self.request)
        self._reader.begin(self.server.deadline)
        super().handle_one_request()

    def do_POST(self) -> None:
        """Accept an event, or a list of events."""
        try:
            if self.path.partition("?")[0].rstrip("/") not in (PATH, f"{PATH}/batch"):
                raise RefusedError(HTTPStatus.NOT_FOUND, f"events go to {PATH}")
            self.server.admission.check_host(self.headers)
            self.server.admission.check_event(self.headers)
            with self.server.held.holding() as size:
                body = self._body(size)
                self.server.end_reading(self.request)
                lines = accepted(body)
        except RefusedError as error:
            self.close_connection = True  # what is left of the body was not read
            self._answer(error.status, {"error": str(error)})
            return
        try:
            self.server.spool.put(lines)
        except OSError as error:
            message = f"cannot keep the event: {error.strerror or error}"
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": message})
            return
        self.server.notice()
        self._answer(HTTPStatus.CREATED, {"accepted": len(lines)})

    def do_GET(self) -> None:
        """Answer that the server is there."""
        self.server.end_reading(self.request)
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # a body is not read, and must not be taken for the next request
        try:
            self.server.admission.check_host(self.headers)
        except RefusedError as error:
            self._answer(error.status, {"error": str(error)})
            return
        if self.path.partition("?")[0] in ("/", "/health", PATH):
            self._answer(HTTPStatus.OK, {"govtool": __version__, "waiting": self.server.spool.waiting})
        else:
            self._answer(HTTPStatus.NOT_FOUND, {"error": f"events go to {PATH}, by POST"})

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: stderr is for commits."""

    def _body(self, size: BodySize) -> bytes:
        encoding = ", ".join(self.headers.get_all("Content-Encoding") or ["identity"]).strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip", "deflate"):
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Encoding {encoding[:40]} is not read")
        lengths = self.headers.get_all("Content-Length") or []
        coding = ", ".join(self.headers.get_all("Transfer-Encoding") or []).strip().lower()
        if len(lengths) > 1 or (lengths and coding):  # a proxy may have taken the other one
            raise RefusedError(HTTPStatus.BAD_REQUEST, "more than one length of the body")
        if coding not in ("", "chunked"):
            raise RefusedError(HTTPStatus.NOT_IMPLEMENTED, "Transfer-Encoding is not read but for chunked")
        data = self._chunked(size) if coding else self._exactly(self._length(), size)
        if encoding == "identity":
            return data
        return inflated(data, size)

    def _length(self) -> int:
        length = self.headers.get("Content-Length")
        if length is None:
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "no Content-Length")
        if not (length.isascii() and length.isdigit() and len(length) < 19):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        if int(length) > MAX_BODY:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY >> 20} MiB")
        return int(length)

    def _exactly(self, length: int, size: BodySize) -> bytes:
        size.grow(length)
        data = self.rfile.read(length)
        if len(data) < length:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the body breaks off")
        return data

    def _chunked(self, size: BodySize) -> bytes:
        whole = bytearray()
        while True:
            length = self._line().partition(b";")[0].strip()
            if not _HEX.fullmatch(length):
                raise RefusedError(HTTPStatus.BAD_REQUEST, "a chunk without a length")
            if not int(length, 16):
                break
            whole += self._exactly(int(length, 16), size)
            if self._line():
                raise RefusedError(HTTPStatus.BAD_REQUEST, "a chunk is longer than its length")
        while self._line():  # trailers
            pass
        return bytes(whole)

    def _line(self) -> bytes:
        line = self.rfile.readline(_MAX_LINE)
        if not line.endswith(b"\n"):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the body breaks off, or a line between its chunks is too long")
        return line.rstrip(b"\r\n")

    def _answer(self, status: HTTPStatus, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        if self.server.stopping:
            self.close_connection = True
        with suppress(OSError):
            self.connection.settimeout(self.server.deadline)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("X-Content-Type-Options", "nosniff")
            if status == HTTPStatus.UNAUTHORIZED:
                self.send_header("WWW-Authenticate", "Bearer")
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)


def _require_shapes(reader: Any) -> None:
    """Refuse an event of which a part could not be read. Unlike a file, it has a producer who can be told.

    Raises:
        InvalidEventError: There is such a part.
    """
    from govtool.capture.openlineage.events import InvalidEventError

    problem = next((note.message for note in reader.notes if note.severity != "info"), None)
    if problem is not None:
        raise InvalidEventError(problem)


def accepted(body: bytes) -> list[bytes]:
    """The events of a request's body, each as one line of JSON.

    Raises:
        RefusedError: it is not JSON, or something in it is no OpenLineage event.
    """
    from govtool.capture.openlineage.events import EventReader, InvalidEventError

    check_values(body)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        message = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise RefusedError(HTTPStatus.BAD_REQUEST, message) from None
    events = value if isinstance(value, list) else [value]
    if len(events) > MAX_EVENTS:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_EVENTS} events")
    reader = EventReader("<request>")
    lines = []
    for number, event in enumerate(events, 1):
        try:
            if not isinstance(event, dict):
                raise InvalidEventError("not an object")
            reader.event(event)
            _require_shapes(reader)
            lines.append(json.dumps(event, separators=(",", ":")).encode())
        except (InvalidEventError, ValueError, RecursionError) as error:
            where = f"event {number}: " if isinstance(value, list) else ""
            message = str(error) if isinstance(error, InvalidEventError) else "not JSON"
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"{where}{message}") from None
    return lines
