"""The one record that every log reader yields, and what it yields where a record cannot be read."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

OK = "ok"
FAILED = "failed"
UNFINISHED = "unfinished"
"""Still running or queued when the log was taken: what it will have done is not known."""


class QueryRecord(NamedTuple):
    """One statement (or script) that a warehouse was asked to run, as its log tells it."""

    text: str
    """As sent; empty where the log withholds it."""
    file: str
    """The log: URI path relative to the ingest root, with forward slashes."""
    line: int
    """1-based line of the log on which the record begins."""
    dialect: str = ""
    started_at: datetime | None = None
    """Aware, or naive and taken as UTC."""
    ended_at: datetime | None = None
    user: str | None = None
    role: str | None = None
    database: str | None = None
    """The catalog of names without one, spelt as the warehouse spells it."""
    schema: str | None = None
    search_path: tuple[str, ...] = ()
    session_id: str | None = None
    query_id: str | None = None
    parent_id: str | None = None
    """The query of which this is a part: a script's text is not used where its parts are in the log."""
    status: str = OK
    """``ok``, ``failed`` or ``unfinished``."""
    error: str | None = None
    rows: int | None = None
    truncated: bool = False
    """The text is cut off: it is never parsed as if it were whole."""
    spans: bool = False
    """True if the lines of the text are lines of the log."""
    parameters: str | None = None
    """As the log has them. They are people's data: used for nothing, stored nowhere."""


class Reject(NamedTuple):
    """A piece of a log that is no record."""

    file: str
    line: int
    message: str
    fatal: bool = False
    """True if nothing behind it could be read."""


Entry = QueryRecord | Reject
