"""A proxy on a real socket between an S3 client and its server: it counts requests and can make them fail.

It speaks HTTP/1.1, keeps connections open on both sides, and passes on what it gets byte for byte, the Host header
included, so that signatures hold. What it does to a request is decided by a function of the request.
"""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    """One request as it came: ``number`` counts from 1 since the last ``reset``; ``path`` is with its query."""

    number: int
    method: str
    path: str
    body: int
    """Bytes of the body."""


class Fault(NamedTuple):
    """What to do to a request.

    ``drop``: close the connection without an answer. ``status``: answer with this status and error code. ``delay``:
    wait so many seconds. ``truncate``: close the connection in the middle of the server's answer. ``strip``: take the
    condition off a request. ``applied`` says whether the server is to get the request: then only its answer is lost.
    """

    kind: str
    applied: bool = False
    status: int = 500
    error: str = "InternalError"
    detail: str = ""
    """More elements of the error document."""
    seconds: float = 0.0


class Exchange(NamedTuple):
    """A request and what came of it; sizes are those of the bodies in bytes, ``wire`` adds both heads."""

    method: str
    path: str
    status: int
    sent: int
    received: int
    wire: int


Plan = Callable[[Request], Fault | None]


def no_faults(request: Request) -> Fault | None:
    """Pass everything on."""
    return None


def at(k: int, fault: Fault) -> Plan:
    """The fault at the k-th request (from 1), and never again."""
    return lambda request: fault if request.number == k else None


@dataclass(slots=True)
class Proxy:
    """A running proxy; a context manager that ends it.

    Args:
        upstream: Host and port of the server.
    """

    upstream: tuple[str, int]
    plan: Plan = no_faults
    exchanges: list[Exchange] = field(default_factory=list)
    hits: int = 0
    """How many requests a fault was done to."""
    _server: Any = None
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Proxy:
        """Start on a free port of loopback."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop taking connections."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where the proxy listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def reset(self, plan: Plan = no_faults) -> None:
        """Count from nought and follow another plan."""
        with self._lock:
            self._number = self.hits = 0
            self.exchanges = []
            self.plan = plan

    def next_fault(self, method: str, path: str, body: int) -> Fault | None:
        """Number a request and ask the plan what to do to it."""
        with self._lock:
            self._number += 1
            plan, request = self.plan, Request(self._number, method, path, body)
        fault = plan(request)  # Without the lock: a plan may make requests of its own.
        with self._lock:
            self.hits += fault is not None and self.plan is plan
        return fault

    def note(self, exchange: Exchange) -> None:
        """Remember what passed."""
        with self._lock:
            self.exchanges.append(exchange)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server
    _upstream: http.client.HTTPConnection | None = None

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def __getattr__(self, name: str) -> Any:
        """Every method is passed on."""
        if name.startswith("do_"):
            return self._pass_on
        raise AttributeError(name)

    def finish(self) -> None:
        """Close both sides."""
        if self._upstream is not None:
            self._upstream.close()
        try:
            super().finish()
        except OSError:
            return

    def _pass_on(self) -> None:
        body = self._body()
        fault = self.server.proxy.next_fault(self.command, self.path, len(body))
        if fault is not None and fault.kind == "delay":
            time.sleep(fault.seconds)
            fault = None
        if fault is not None and fault.kind == "strip":
            del self.headers["If-None-Match"]
            fault = None
        if fault is not None and not fault.applied and fault.kind != "truncate":
            self._fail(fault)
            return
        status, reason, headers, answer = self._fetch(body)
        heads = sum(len(k) + len(v) + 4 for k, v in (*self.headers.items(), *headers)) + len(self.path) + 40
        self.server.proxy.note(
            Exchange(self.command, self.path, status, len(body), len(answer), heads + len(body) + len(answer))
        )
        if fault is not None and fault.kind != "truncate":
            self._fail(fault)
            return
        self._answer(status, reason, headers, answer, cut=fault is not None)

    def _body(self) -> bytes:
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterable[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _fetch(self, body: bytes) -> tuple[int, str, list[tuple[str, str]], bytes]:
        for last in (False, True):
            if self._upstream is None:
                self._upstream = http.client.HTTPConnection(*self.server.proxy.upstream, timeout=60)
            upstream = self._upstream
            try:
                upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in ("transfer-encoding", "content-length", "expect", "connection"):
                        upstream.putheader(name, value)
                upstream.putheader("Content-Length", str(len(body)))
                upstream.endheaders(body)
                response = upstream.getresponse()
                return response.status, response.reason, response.getheaders(), response.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # The server closed an idle connection; it has not seen this request.
                upstream.close()
                self._upstream = None
                if last:
                    raise
        raise AssertionError("not reached")

    def _answer(
        self, status: int, reason: str, headers: list[tuple[str, str]], body: bytes, *, cut: bool = False
    ) -> None:
        self.send_response_only(status, reason)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        if self.command == "HEAD":
            length = next((v for k, v in headers if k.lower() == "content-length"), "0")
        else:
            length = str(len(body))
        if cut and not body:  # nothing in the body to cut: promise some
            length = "10"
        if status != 204:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.wfile.flush()
        if cut:
            self._hang_up()

    def _fail(self, fault: Fault) -> None:
        if fault.kind == "drop":
            self._hang_up()
            return
        body = f"<Error><Code>{fault.error}</Code><Message>made up</Message>{fault.detail}</Error>".encode()
        self._answer(fault.status, "", [("Content-Type", "application/xml")], b"" if self.command == "HEAD" else body)

    def _hang_up(self) -> None:
        """Close with a reset, as a server that dies does."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
