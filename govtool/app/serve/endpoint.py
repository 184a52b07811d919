"""The HTTP endpoint: requests are read within bounds, and answered when their events are in the spool."""

from __future__ import annotations

import json
import socket
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from govtool.app.serve.event_spool import EventSpool
from govtool.release import __version__

PATH = "/api/v1/lineage"
"""The path to which the OpenLineage clients send events."""
MAX_BODY = 16 << 20
"""Bytes of one request, compressed or not."""
MAX_EVENTS = 1000
"""Events of one request."""
MAX_CONNECTIONS = 128
"""Requests that are worked on at a time; more wait in the socket's queue."""
IDLE = 30.0
"""Seconds that a connection may say nothing."""


class RefusedError(Exception):
    """A request that is not accepted, and the status that says so."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class LineageServer(ThreadingHTTPServer):
    """The endpoint. ``shutdown`` lets requests that have begun come to their end."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], spool: EventSpool, notice: Callable[[], None]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, Handler)
        self.spool = spool
        self.notice = notice
        self.stopping = False
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a request its thread, when one is free."""
        self._free.acquire()
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self._open.discard(request)
        with suppress(ValueError):
            self._free.release()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke off is no matter of ours."""

    def stop(self) -> None:
        """Take no more requests, and wait for those that are being worked on."""
        self.stopping = True
        self.shutdown()
        for request in list(self._open):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RD)  # what waits for a next request ends; what has one goes on
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: LineageServer
    protocol_version = "HTTP/1.1"
    server_version = f"govtool/{__version__}"
    sys_version = ""
    timeout = IDLE

    def do_POST(self) -> None:
        """Accept an event, or a list of events."""
        try:
            if self.path.partition("?")[0].rstrip("/") not in (PATH, f"{PATH}/batch"):
                raise RefusedError(HTTPStatus.NOT_FOUND, f"events go to {PATH}")
            lines = accepted(self._body())
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
        """Say that the server is there."""
        if self.path.partition("?")[0] in ("/", "/health", PATH):
            self._answer(HTTPStatus.OK, {"govtool": __version__, "waiting": self.server.spool.waiting})
        else:
            self._answer(HTTPStatus.NOT_FOUND, {"error": f"events go to {PATH}, by POST"})

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: stderr is for commits."""

    def _body(self) -> bytes:
        encoding = (self.headers.get("Content-Encoding") or "identity").strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip", "deflate"):
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Encoding {encoding[:40]} is not read")
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            data = self._chunked()
        else:
            length = self.headers.get("Content-Length")
            if length is None:
                raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "no Content-Length")
            if not (length.isascii() and length.isdigit() and len(length) < 19):
                raise RefusedError(HTTPStatus.BAD_REQUEST, "Content-Length is no number")
            if int(length) > MAX_BODY:
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY >> 20} MiB")
            data = self._exactly(int(length))
        return data if encoding == "identity" else _inflated(data)

    def _exactly(self, length: int) -> bytes:
        data = self.rfile.read(length)
        if len(data) < length:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the body breaks off")
        return data

    def _chunked(self) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            head = self.rfile.readline(1000).split(b";")[0].strip()
            try:
                length = int(head, 16)
            except ValueError:
                raise RefusedError(HTTPStatus.BAD_REQUEST, "a chunk without a length") from None
            if length < 0 or size + length > MAX_BODY:
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY >> 20} MiB")
            if not length:
                break
            pieces.append(self._exactly(length))
            size += length
            self.rfile.readline(1000)
        while self.rfile.readline(1000).strip():  # trailers
            pass
        return b"".join(pieces)

    def _answer(self, status: HTTPStatus, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        if self.server.stopping:
            self.close_connection = True
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)


def accepted(body: bytes) -> list[bytes]:
    """The events of a request's body, each as one line of JSON.

    Raises:
        RefusedError: it is not JSON, or something in it is no OpenLineage event.
    """
    from govtool.capture.openlineage.events import EventReader, InvalidEventError

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
            lines.append(json.dumps(event, separators=(",", ":")).encode())
        except (InvalidEventError, ValueError, RecursionError) as error:
            where = f"event {number}: " if isinstance(value, list) else ""
            message = str(error) if isinstance(error, InvalidEventError) else "not JSON"
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"{where}{message}") from None
    return lines


def _inflated(data: bytes) -> bytes:
    """A compressed body, as far as the limit goes."""
    inflater = zlib.decompressobj(wbits=47)
    try:
        whole = inflater.decompress(data, MAX_BODY + 1)
    except zlib.error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the compressed body is damaged") from None
    if len(whole) > MAX_BODY:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expands to more than {MAX_BODY >> 20} MiB")
    if not inflater.eof:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the compressed body breaks off")
    return whole
