"""Addresses of databases: which reader they need, and what of them may be shown and kept.

    postgresql://user@host:5432/db          psycopg; PGPASSWORD, ~/.pgpass and services work as with psql
    duckdb:///shop.duckdb  duckdb:////srv/shop.duckdb  shop.duckdb     a file
    sqlite:///shop.db      sqlite:////srv/shop.db      shop.sqlite     a file
    spark:///srv/warehouse                  a Spark session of our own on a warehouse folder
    sc://host:15002                         a running Spark Connect server
    mysql+pymysql://…, snowflake://…        whatever SQLAlchemy knows

A password never leaves this module but to the driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from urllib.parse import parse_qsl, unquote, urlsplit

from govtool.errors import SourceError, UsageError
from govtool.redaction import WORD

_FILES = {".duckdb": "duckdb", ".ddb": "duckdb", ".sqlite": "sqlite", ".sqlite3": "sqlite"}
_SECRET = re.compile(rf"key|{WORD}", re.IGNORECASE)
_PAIR = re.compile(rf"(?i)\b(?=\w*?{WORD})(\w++)\s*+=\s*('[^']*'|[^\s&;]+)")
_SHORTEST = 3
"""Characters from which on a secret can be found in a text without making it unreadable."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address taken apart."""

    kind: str
    """``postgres``, ``duckdb``, ``sqlite``, ``spark``, or ``sqlalchemy``."""
    url: str = field(repr=False)
    """As given, secrets included: for the driver alone."""
    scheme: str
    host: str = ""
    port: int | None = None
    path: str = ""
    """Without the first slash: a database, or a file."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def shown(self) -> str:
        """The address without user, password and options: for messages."""
        if self.kind in ("duckdb", "sqlite"):
            return f"{self.kind} {self.path}"
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{self.host}{port}/{self.path}"

    @property
    def file_name(self) -> str:
        """The last part of the path, without its folders."""
        return PurePath(self.path).name

    def clean(self, text: str) -> str:
        """A driver's message on one line and without secrets."""
        if any(len(secret) < _SHORTEST and secret in text for secret in self.secrets):
            return "the driver's message is not shown, as it may hold the password"
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return " ".join(_PAIR.sub(r"\1=***", text).split())

    def failed(self, error: BaseException, hint: str | None = None) -> SourceError:
        """The error to raise where a driver raised one."""
        reason = self.clean(str(error)) or type(error).__name__
        return SourceError(
            f"{self.shown} cannot be read: {reason}", code="source.connection", location=self.shown, hint=hint
        )


def parse_address(url: str) -> Address:
    """Take an address apart.

    Raises:
        UsageError: It is none (``usage.url``).
    """
    if "://" not in url:
        kind = _FILES.get(PurePath(url).suffix.lower())
        if kind is None:
            raise UsageError(
                "this is not the address of a database",
                code="usage.url",
                hint="postgresql://user@host:5432/db, duckdb:///file, sqlite:///file, spark:///warehouse, sc://host",
            )
        return Address(kind, url, kind, path=url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError("the address of the database is not valid", code="usage.url") from None
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    hidden = [value for key, value in options.items() if _SECRET.search(key)]
    if parts.password:
        hidden += [parts.password, unquote(parts.password)]
    scheme = parts.scheme.lower()
    if parts.netloc and scheme in ("duckdb", "sqlite"):
        file = "FILE" if "@" in parts.netloc else f"{parts.netloc}{parts.path}"  # no password in a message
        raise UsageError(f"{scheme}://{file} lacks a slash", code="usage.url", hint=f"{scheme}:///{file}")
    return Address(
        _kind(scheme),
        url,
        scheme,
        unquote(parts.hostname or ""),
        port,
        unquote(parts.path[1:] if scheme != "spark" else parts.path),
        options,
        tuple(dict.fromkeys(secret for secret in hidden if secret)),
    )


def _kind(scheme: str) -> str:
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return "postgres"
    if scheme in ("duckdb", "sqlite", "spark"):
        return scheme
    return "spark" if scheme == "sc" else "sqlalchemy"


def missing(package: str, extra: str, address: Address, hint: str | None = None) -> SourceError:
    """The error to raise where a driver is not installed."""
    return SourceError(
        f"{address.scheme}:// needs {package}, which is not installed",
        code="source.driver",
        hint=hint or (f"pip install {package}" if not extra else f'pip install "govtool[{extra}]"'),
    )
