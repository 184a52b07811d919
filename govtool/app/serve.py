"""Receives OpenLineage events over HTTP and commits them in batches: what ``OPENLINEAGE_URL`` may point at.

An event is answered once it is in the spool, a file beside nothing of the user's, synced to disk; a committer turns the
spool into commits every few seconds. Killed at any moment, the next start commits what the spool still holds, and
events that were committed already change nothing.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool import __version__
from govtool.app.openlineage import commit_events, read_events
from govtool.errors import GovtoolError, StoreError
from govtool.store import Store
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.app.ingest import IngestResult

PATH = "/api/v1/lineage"
"""Where events are sent, as the OpenLineage clients know it."""
MAX_BODY = 16 << 20
"""Bytes of one request, compressed or not."""
MAX_EVENTS = 1000
"""Events of one request."""
MAX_CONNECTIONS = 128
"""Requests that are worked on at a time; more wait in the socket's queue."""
IDLE = 30.0
"""Seconds that a connection may say nothing."""
WAIT = 5.0
"""Seconds after which what was received is committed."""
BATCH = 5000
"""Events that are committed without waiting for more."""

Report = Callable[["IngestResult | GovtoolError"], None]


class RefusedError(Exception):
    """A request that is not accepted, and the status that says so."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Spool:
    """Accepted events on disk, a line each, until they are committed.

    Args:
        folder: Its place; made if need be, readable by its owner only.

    Raises:
        StoreError: the folder cannot be written, or another server uses it (``store.spool``).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._guard = (folder / "lock").open("a")
            try:
                _lock_file(self._guard.fileno())
            except OSError:
                self._guard.close()
                raise
        except OSError as error:
            problem = "is used by another server" if isinstance(error, BlockingIOError) else "cannot be written"
            raise StoreError(
                f"the spool {problem}", code="store.spool", location=str(folder), hint="--spool FOLDER"
            ) from error
        left = sorted(folder.glob("*.jsonl"))
        for file in left:
            _cut(file)
        self._number = int(left[-1].stem) if left else 0
        self._file: Any = None
        self.waiting = 0
        """Events since the last ``take``."""
        self.left = bool(left)
        """Whether an earlier server left events behind."""

    def put(self, lines: list[bytes]) -> None:
        """Keep events; when this returns they are on disk.

        Raises:
            OSError: they could not be written; nothing of them is kept.
        """
        with self._lock:
            if self._file is None:
                self._number += 1
                name = self.folder / f"{self._number:012d}.jsonl"
                self._file = os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", 0)
            start = self._file.seek(0, os.SEEK_END)
            try:
                data = memoryview(b"".join(line + b"\n" for line in lines))
                while data:
                    data = data[self._file.write(data) :]
                os.fsync(self._file.fileno())
            except OSError:
                with suppress(OSError):
                    self._file.truncate(start)
                raise
            self.waiting += len(lines)

    def take(self) -> list[Path]:
        """All files that are complete by now, oldest first; later events go to a new one."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
            self.waiting = 0
            return sorted(self.folder.glob("*.jsonl"))

    def close(self) -> None:
        """Let another server use the folder."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._guard.close()


def _cut(file: Path) -> None:
    """Take away the end of a line that was being written when its server was killed: it was never acknowledged."""
    with file.open("rb+") as handle:
        data = handle.read()
        if not data.endswith(b"\n"):
            handle.truncate(data.rfind(b"\n") + 1)


def _lock_file(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: no two servers should share a spool there
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def spool_folder(store: Store, source: str) -> Path:
    """The default place of a store's spool: ``$XDG_STATE_HOME/govtool/spool`` (``~/.local/state``)."""
    import hashlib

    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    name = hashlib.sha256(f"{store.store_id} {source}".encode()).hexdigest()[:16]
    return Path(state) / "govtool" / "spool" / name


@dataclass(slots=True)
class Target:
    """Where a server's events go."""

    store: Store
    source: str
    dialect: str = ""
    branch: str = DEFAULT_BRANCH
    author: str | None = None


class Committer(threading.Thread):
    """Commits what the spool holds, every ``wait`` seconds or when it holds many events; and at the end, all."""

    def __init__(self, spool: Spool, target: Target, report: Report, wait: float = WAIT) -> None:
        super().__init__(name="committer", daemon=True)
        self.spool = spool
        self.target = target
        self.report = report
        self.wait = wait
        self.failed: Exception | None = None
        """Why the last batch could not be committed; it stays in the spool."""
        self._wake = threading.Event()
        self._stopping = threading.Event()

    def run(self) -> None:
        """Commit until ``stop``."""
        pending = self.spool.left
        while not self._stopping.is_set():
            self._wake.wait(self.wait)
            self._wake.clear()
            if pending or self.spool.waiting:
                pending = not self.commit()
        self.commit()

    def notice(self) -> None:
        """Say that events have arrived."""
        if self.spool.waiting >= BATCH:
            self._wake.set()

    def stop(self) -> None:
        """Commit what is left, and end."""
        self._stopping.set()
        self._wake.set()
        self.join()

    def commit(self) -> bool:
        """Commit all files of the spool; whether that went well."""
        files = self.spool.take()
        return not files or self._commit(files)

    def _commit(self, files: list[Path]) -> bool:
        target = self.target
        try:
            read = read_events([str(file) for file in files], target.dialect)
            # Opened anew: a store that was moved away meanwhile must not be begun again in its old place.
            result = commit_events(
                Store.open(target.store.uri),
                read,
                target.source,
                append=True,
                author=target.author,
                branch=target.branch,
            )
        except GovtoolError as error:
            self.failed = error
            self.report(error)
            return False
        except Exception as error:
            if len(files) > 1:
                done = [self._commit([file]) for file in files]
                return all(done)
            # One event that we fail over must not keep all others from the store. It stays on disk, set aside.
            aside = files[0].with_suffix(".failed")
            files[0].replace(aside)
            said = f"events could not be read: {type(error).__name__}: {error}"
            self.report(StoreError(said, code="store.events", location=str(aside)))
            return True
        self.failed = None
        for file in files:
            with suppress(OSError):
                file.unlink()
        self.report(result)
        return True


class LineageServer(ThreadingHTTPServer):
    """The endpoint. ``shutdown`` lets requests that have begun come to their end."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], spool: Spool, notice: Callable[[], None]) -> None:
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
            said = f"cannot keep the event: {error.strerror or error}"
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": said})
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
        said = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise RefusedError(HTTPStatus.BAD_REQUEST, said) from None
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
            said = str(error) if isinstance(error, InvalidEventError) else "not JSON"
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"{where}{said}") from None
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
