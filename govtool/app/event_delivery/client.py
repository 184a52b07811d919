"""One endpoint that takes OpenLineage events over HTTP, and a connection to it that is kept.

Marquez, DataHub, OpenMetadata and Google's lineage API take one event a request. Redirections are not followed: the
bearer token is for the address that the user named, and for no other.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

from govtool.errors import UsageError
from govtool.redaction import SECRET, clean_message
from govtool.release import __version__
from govtool.wording import printable

PATH = "/api/v1/lineage"
"""Where Marquez and the OpenLineage clients have the endpoint, below the address of the service."""
TOKEN_VARIABLE = "OPENLINEAGE_API_KEY"
"""The environment variable with the token, as for the OpenLineage clients."""
_MOST_OF_ANSWER = 65_536
"""Bytes of an answer that are read; more closes the connection."""
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class EventEndpoint:
    """The address of an endpoint, checked.

    Attributes:
        url: The whole address, for messages: it holds no user and no password.
        token: The bearer token; empty: none.
    """

    url: str
    token: str = field(default="", repr=False)

    @property
    def parts(self) -> SplitResult:
        """The address in parts."""
        return urlsplit(self.url)

    @property
    def is_unencrypted(self) -> bool:
        """True if others on the network can read what is sent."""
        return self.parts.scheme == "http" and self.parts.hostname not in ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
    """What an endpoint answered.

    Attributes:
        status: The status of HTTP.
        text: The beginning of its body, safe to print.
        retry_after: Seconds that it requests to wait; None: it does not say.
    """

    status: int
    text: str = ""
    retry_after: float | None = None


class NoAnswerError(Exception):
    """The endpoint did not answer in time, or the connection was lost; the message says which."""


def event_endpoint(url: str, token: str = "") -> EventEndpoint:
    """Check an address and a token; ``PATH`` is added to an address of a service.

    Raises:
        UsageError: It is no address of HTTP, holds a password or a query, or the token cannot be sent.
    """
    parts = _split(url)
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise UsageError("the token has blanks or other characters that a header cannot hold", code="usage.token")
    path = parts.path.rstrip("/")
    if not path.endswith("/lineage") and ":" not in path:  # Google's methods have a colon
        path += PATH
    return EventEndpoint(f"{parts.scheme}://{parts.netloc}{path}", token)


def _split(url: str) -> SplitResult:
    def wrong(reason: str) -> UsageError:
        return UsageError(reason, code="usage.address", hint="--to http://localhost:5000")

    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise wrong("the address of the endpoint is not a valid URL") from error
    if parts.scheme not in ("http", "https") or not host:
        raise wrong("the address of the endpoint must begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise wrong("the address of the endpoint must not contain a user, password or query: use --token-file")
    if not (url.isascii() and url.isprintable() and " " not in url):
        raise wrong("the address of the endpoint has characters that a URL cannot hold")
    return parts


class EventClient:
    """A connection to an endpoint, opened when it is needed and kept between events.

    Args:
        endpoint: The address and the token.
    """

    def __init__(self, endpoint: EventEndpoint) -> None:
        """Remember the endpoint; nothing is connected."""
        self.endpoint = endpoint
        self._connection: http.client.HTTPConnection | None = None

    def post(self, body: bytes, seconds: float) -> EndpointAnswer:
        """Send one event.

        Args:
            body: The event as JSON.
            seconds: The time for all of it: to connect, to send, and to read the answer however slowly it comes.

        Raises:
            NoAnswerError: There is no answer within that time.
        """
        was_kept = self._connection is not None
        try:
            return self._exchange(body, seconds)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            if was_kept and isinstance(error, http.client.RemoteDisconnected):
                return self.post(body, seconds)  # it was closed while it lay idle; the new one is tried once
            raise NoAnswerError(_reason(error)) from error

    def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _exchange(self, body: bytes, seconds: float) -> EndpointAnswer:
        connection = self._connection = self._connection or self._new_connection()
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        with _watched(connection, seconds) as watch:
            connection.request("POST", self.endpoint.parts.path, body, self._headers())
            watch.sock = connection.sock  # which forgets it where the answer is the last one of the connection
            response = connection.getresponse()
            text = response.read(_MOST_OF_ANSWER)
            is_whole = not response.read(1)
        if response.will_close or not is_whole:
            self.close()
        return EndpointAnswer(response.status, self._shown(text), _seconds(response.headers.get("Retry-After")))

    def _new_connection(self) -> http.client.HTTPConnection:
        parts = self.endpoint.parts
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.hostname or "", parts.port, context=ssl.create_default_context())
        return http.client.HTTPConnection(parts.hostname or "", parts.port)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": f"govtool/{__version__}"}
        if self.endpoint.token:
            headers["Authorization"] = f"Bearer {self.endpoint.token}"
        return headers

    def _shown(self, body: bytes) -> str:
        """The beginning of a body in one line; an endpoint that repeats the token does not get it printed."""
        text = body.decode("utf-8", "replace")
        if self.endpoint.token:
            text = text.replace(self.endpoint.token, SECRET)
        line = " ".join(printable(clean_message(text)).split())
        return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…"


@dataclass(slots=True)
class _Watch:
    """A connection whose time is limited."""

    connection: http.client.HTTPConnection
    sock: socket.socket | None = None
    expired: bool = False

    def expire(self) -> None:
        """Wake whoever reads: the plain socket is shut down, also below TLS."""
        self.expired = True
        watched = self.sock or self.connection.sock
        if watched is not None:
            with suppress(OSError):
                socket.socket.shutdown(watched, socket.SHUT_RDWR)


@contextmanager
def _watched(connection: http.client.HTTPConnection, seconds: float) -> Iterator[_Watch]:
    """End a connection after some seconds: the timeout of a socket begins again with each byte that comes.

    Raises:
        TimeoutError: The time was over before the block ended.
    """
    watch = _Watch(connection)
    watchdog = threading.Timer(seconds, watch.expire)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield watch
    except (OSError, http.client.HTTPException, ValueError):
        if not watch.expired:
            raise
    finally:
        watchdog.cancel()
    if watch.expired:  # a body without a length ends wherever the connection does
        raise TimeoutError


def _reason(error: Exception) -> str:
    """A few words for a request that failed; never the text of the error where that may hold a header."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or 'failed'}"
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return "the answer is not HTTP"


def _seconds(header: str | None) -> float | None:
    """The value of ``Retry-After``, a number of seconds or a date (RFC 9110, 10.2.3); None if it is neither."""
    if header is None:
        return None
    if header.strip().isascii() and header.strip().isdigit():
        return float(header.strip()[:9])
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())
