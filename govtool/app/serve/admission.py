"""Admission of requests: who may send events.

A browser sends what a page of a stranger wants to any address that the user's machine reaches: it must not get in. Such
a request has an ``Origin``, or a ``Host`` that the page's owner chose (DNS rebinding), and without asking the server
first it cannot say ``Content-Type: application/json``.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from pathlib import Path

from govtool.errors import UsageError
from govtool.given_files import read_given_text

TOKEN_VARIABLE = "GOVTOOL_SERVE_TOKEN"
"""The environment variable with the token."""


_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[^:\[\]@/]+))(?::[0-9]*)?")


class RefusedError(Exception):
    """A request that is not accepted, and the status that says so."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Admission:
    """The conditions that a request must meet.

    Attributes:
        hosts: Names by which clients may call this server, beside ``localhost`` and addresses. What a token protects
            needs none.
        token: The bearer token that clients must send; empty: none.
    """

    hosts: frozenset[str] = frozenset()
    token: str = ""

    def check_host(self, headers: Message) -> None:
        """Check who is called.

        Raises:
            RefusedError: 421, the request is for somebody else; 400, it does not say for whom it is, or says it twice,
                or a line of its head is none, after which others may have been overlooked.
        """
        if headers.defects:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "a line of the head is not a header")
        hosts = headers.get_all("Host") or []
        if len(hosts) > 1:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "more than one Host")
        if self.token:
            return
        name = host_name(hosts[0]) if hosts else ""
        if not name:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "no Host")
        if name != "localhost" and name not in self.hosts and not _is_address(name):
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST, f"this server is not called {name[:80]}: --allow-host {name[:80]}"
            )

    def check_event(self, headers: Message) -> None:
        """Check a request that brings events.

        Raises:
            RefusedError: 403, it comes from a web page; 401, the token is missing or another one; 415, it is not JSON.
        """
        if headers.get("Origin") is not None:
            raise RefusedError(HTTPStatus.FORBIDDEN, "requests of web pages are not accepted")
        if self.token and not self._has_token(headers.get("Authorization") or ""):
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "the bearer token is missing, or it is another one")
        kind = (headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise RefusedError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type is {kind[:80] or 'missing'}, not application/json"
            )

    def _has_token(self, authorization: str) -> bool:
        scheme, _, stated = authorization.partition(" ")
        same = hmac.compare_digest(stated.strip().encode("utf-8", "replace"), self.token.encode())
        return scheme.lower() == "bearer" and same


def host_name(host: str) -> str:
    """The name in a ``Host`` header, without its port and brackets, in lower case; empty if it is not valid.

    >>> host_name("[::1]:80"), host_name("LocalHost."), host_name("[::1].example.org"), host_name("localhost:x")
    ('::1', 'localhost', '', '')
    """
    found = _HOST.fullmatch(host.strip().lower())
    return (found["v6"] or found["name"].rstrip(".")) if found else ""


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address to listen on."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def bearer_token(file: str | None, variable: str = TOKEN_VARIABLE) -> str:
    """The token in a file, or in a variable of the environment; empty if there is none.

    Raises:
        UsageError: The file cannot be read, or holds no token (``usage.token``).
    """
    if file is None:
        return os.environ.get(variable, "").strip()
    try:
        token = read_given_text(Path(file)).strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the token: {error}", code="usage.token", location=file) from error
    if not token:
        raise UsageError("the file holds no token", code="usage.token", location=file)
    return token


def _is_address(name: str) -> bool:
    """Return whether a name is an address, which no owner of a page's name can point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
