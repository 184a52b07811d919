"""PostgreSQL's csvlog and jsonlog (its documentation, section 19.8, "Error Reporting and Logging").

With ``log_statement`` a statement is logged before it runs, and its error, if it has one, on a later line of the same
session, behind warnings, waits for locks and the like: each statement is held back until the session's next one. With
``log_min_duration_statement`` it is logged when it is done, its parse and bind steps on lines of their own. Of an
EXECUTE, what was prepared is in the detail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from govtool.capture.logs.query_record import FAILED, Entry, QueryRecord, Reject
from govtool.capture.logs.rows import Line, csv_records, json_rows
from govtool.capture.logs.times import parse_time

DIALECT = "postgres"
CSV_FIELDS = frozenset({23, 24, 25, 26})
"""Columns of a csvlog of PostgreSQL 9.0 to 12, of 13, and of 14 onwards (25: as some services write it)."""

MAX_SESSIONS = 100_000
"""Sessions whose last statement is held back at a time."""

_MESSAGE = re.compile(
    r"(?:duration: [\d.]+ ms  )?(?:(statement)|execute (?!fetch from )(?:.*?)): (.*)\Z", re.DOTALL | re.ASCII
)
_EXECUTE = re.compile(r"\s*execute\b", re.IGNORECASE)
_PREPARED = re.compile(r"prepare: (\s*prepare\b.*)\Z", re.IGNORECASE | re.DOTALL)
_FAILURES = frozenset({"ERROR", "FATAL", "PANIC"})
_SEVERITIES = _FAILURES | {"LOG", "WARNING", "NOTICE", "INFO", "STATEMENT", "DETAIL"}


@dataclass(frozen=True, slots=True)
class _Event:
    """One line, in either format."""

    line: int
    time: str
    user: str | None
    database: str | None
    session: str
    severity: str
    message: str
    detail: str
    statement: str
    """The statement that an error is about."""
    query_id: str | None


def csvlog(lines: Iterator[Line | Reject], file: str) -> Iterator[Entry]:
    """Records of a csvlog."""
    return _records(_csv_events(lines, file), file, spans=True)


def jsonlog(lines: Iterator[Line | Reject], file: str) -> Iterator[Entry]:
    """Records of a jsonlog."""
    return _records(_json_events(lines, file), file, spans=False)


def looks_like_csvlog(fields: list[str]) -> bool:
    """Return whether the fields of a first line are those of a csvlog."""
    return len(fields) in CSV_FIELDS and fields[11] in _SEVERITIES | {f"DEBUG{n}" for n in range(1, 6)}


def _csv_events(lines: Iterator[Line | Reject], file: str) -> Iterator[_Event | Reject]:
    for record in csv_records(lines, file, CSV_FIELDS.__contains__):
        if isinstance(record, Reject):
            yield record
            continue
        line, f = record
        yield _Event(line, f[0], f[1], f[2], f[5], f[11], f[13], f[14], f[19], f[25] if len(f) > 25 else None)


def _json_events(lines: Iterator[Line | Reject], file: str) -> Iterator[_Event | Reject]:
    for row in json_rows(lines, file):
        if isinstance(row, Reject):
            yield row
            continue
        line, value = row
        session = value.get("session_id") or value.get("pid")
        texts = [value.get(k, "") for k in ("timestamp", "error_severity", "message", "detail", "statement")]
        names = [value.get(k) for k in ("user", "dbname")]
        if session is None and "message" not in value:
            yield Reject(file, line, "no line of a PostgreSQL log")
        elif not all(isinstance(t, str) for t in texts) or not all(n is None or isinstance(n, str) for n in names):
            yield Reject(file, line, "a value that is not a string where PostgreSQL writes one")
        else:
            query_id = value.get("query_id")
            yield _Event(
                line,
                texts[0],
                names[0],
                names[1],
                str(session),
                texts[1],
                texts[2],
                texts[3],
                texts[4],
                str(query_id) if query_id is not None else None,
            )


def _records(events: Iterator[_Event | Reject], file: str, *, spans: bool) -> Iterator[Entry]:
    held: dict[str, tuple[str, QueryRecord]] = {}  # by session: the text as it was sent, and the record
    for event in events:
        if isinstance(event, Reject):
            yield event
            continue
        if event.severity in _FAILURES and event.statement:
            sent, before = held.pop(event.session, ("", None))
            if before is not None and sent.strip() == event.statement.strip():
                yield before._replace(status=FAILED, error=event.message)
                continue
            if before is not None:
                yield before
            made = _record(event, event.statement, file)
            yield made if isinstance(made, Reject) else made._replace(status=FAILED, error=event.message)
            continue
        found = _MESSAGE.match(event.message) if event.severity == "LOG" else None
        if found is None:
            continue
        if event.session in held:
            yield held.pop(event.session)[1]
        prepared = _PREPARED.match(event.detail) if _EXECUTE.match(found[2]) else None
        made = _record(event, found[2] if prepared is None else prepared[1], file)
        if isinstance(made, Reject):
            yield made
            continue
        made = made._replace(spans=spans and prepared is None)
        if event.message.startswith("duration: "):
            yield made  # it is done: an error that comes is another's, even if that has the same text
            continue
        held[event.session] = found[2], made
        if len(held) > MAX_SESSIONS:
            yield held.pop(next(iter(held)))[1]
    for _, record in held.values():
        yield record


def _record(event: _Event, text: str, file: str) -> QueryRecord | Reject:
    try:
        time: Any = parse_time(event.time)
    except ValueError as error:
        return Reject(file, event.line, f"log_time: {error}")
    detail = event.detail
    return QueryRecord(
        text if text.isascii() else text.encode("utf-8", "replace").decode(),
        file,
        event.line,
        DIALECT,
        started_at=time,
        user=event.user or None,
        database=event.database or None,
        session_id=event.session or None,
        query_id=event.query_id or None,
        parameters=detail if detail[:10].lower() == "parameters" else None,
    )
