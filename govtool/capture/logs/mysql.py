"""MySQL's and MariaDB's general query log, written to a file (MySQL Reference Manual, "The General Query Log").

Each line says a thread, a command and its argument; lines that say none go on with the argument. ``Connect`` and
``Init DB`` say the database of a thread. The log is written before a statement runs: whether it failed is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from govtool.capture.logs.query_record import Entry, QueryRecord, Reject
from govtool.capture.logs.rows import Line
from govtool.capture.logs.stream import MAX_RECORD, text_of
from govtool.capture.logs.times import parse_time

DIALECT = "mysql"

_COMMANDS = (
    "Connect|Init DB|Query|Execute|Prepare|Quit|Field List|Statistics|Close stmt|Reset stmt|Long Data|Fetch|Change user"
    "|Refresh|Shutdown|Processlist|Process Info|Kill|Debug|Ping|Set option|Daemon|Sleep|Binlog Dump(?: GTID)?"
    "|Table Dump|Connect Out|Register Slave|Register Replica|Time|Delayed insert|Create DB|Drop DB|Error"
)
_EVENT = re.compile(
    r"(?:(\d{4}-\d\d-\d\dT\S+|\d{6} [ \d]\d:\d\d:\d\d)\t|\t\t)[ \t]*(\d+) "
    rf"({_COMMANDS})(?:[ \t]+(.*)|)\Z",
    re.DOTALL,
)
_TIMED = re.compile(r"(?:\d{4}-\d\d-\d\dT\S+|\d{6} [ \d]\d:\d\d:\d\d)\t *\d+ [A-Z]")
_HEADER = re.compile(r"\S(?>.*?, Version: ).* started with:\Z|(?:Tcp|TCP) [Pp]ort: \d+|Time +Id +Command +Argument")
_OLD_TIME = re.compile(r"(\d\d)(\d\d)(\d\d) +(\d+):(\d\d):(\d\d)\Z")
_CONNECT = re.compile(r"(\S+?)@(\S*) (?:as .*? )?on(?: +(?!using )(\S+))?(?: +using \S+)?\Z")
_LONGEST_LOGIN = 4_000
_USE = re.compile(r"use\s+(?:`([^`]+)`|([\w$]+))\s*+;?\s*+\Z", re.IGNORECASE)


@dataclass(slots=True)
class _Thread:
    user: str | None = None
    database: str | None = None


@dataclass(slots=True)
class _Server:
    """The state of a log since the server was started."""

    starts: int = 0
    time: datetime | None = None
    threads: dict[str, _Thread] = field(default_factory=dict)


def looks_like_general_log(text: str) -> bool:
    """Return whether a log begins like one of MySQL."""
    lines = [line for line in text.splitlines()[:20] if line.strip()]
    return bool(lines) and (
        any(line.startswith("Time ") and _HEADER.match(line) for line in lines) or bool(_TIMED.match(lines[0]))
    )


def general_log(lines: Iterator[Line | Reject], file: str) -> Iterator[Entry]:
    """Records of a general query log."""
    server = _Server()
    event: tuple[int, list[str], re.Match[str]] | None = None
    size = 0
    for line in lines:
        if isinstance(line, Reject):
            yield line
            continue
        number, data = line
        text = text_of(data).removesuffix("\r")
        found = _EVENT.match(text)
        header = found is None and _HEADER.match(text)
        if found is None and not header:
            if event is None:
                if text.strip():
                    yield Reject(file, number, "no line of a MySQL general log")
            elif size < MAX_RECORD:
                event[1].append(text)
                size += len(text)
            continue
        if event is not None:
            yield from _event_entries(server, *event, file)
            event = None
        if header:
            if server.threads and text.endswith("started with:"):
                server = _Server(server.starts + 1)  # numbers of threads begin again
            continue
        assert found is not None
        event, size = (number, [found[4] or ""], found), len(text)
    if event is not None:
        yield from _event_entries(server, *event, file)


def _event_entries(server: _Server, line: int, argument: list[str], event: re.Match[str], file: str) -> Iterator[Entry]:
    """Return the entries of one event."""
    if event[1]:
        try:
            server.time = _time(event[1])
        except ValueError as error:
            yield Reject(file, line, f"time: {error}")
            return
    number, command = event[2], event[3]
    text = "\n".join(argument).rstrip("\n")
    thread = server.threads.setdefault(number, _Thread())
    if command in ("Connect", "Change user"):
        found = _CONNECT.match(text) if len(text) <= _LONGEST_LOGIN else None
        if found is not None:
            server.threads[number] = _Thread(found[1], found[3])
    elif command == "Init DB":
        thread.database = text.strip() or None
    elif command == "Quit":
        del server.threads[number]
    elif command in ("Query", "Execute"):
        used = _USE.match(text)
        if used is not None:
            thread.database = used[1] or used[2]
        session = f"{number}.{server.starts}" if server.starts else number
        yield QueryRecord(
            text,
            file,
            line,
            DIALECT,
            started_at=server.time,
            user=thread.user,
            schema=thread.database,
            session_id=f"{file}:{session}",
            spans=True,
        )


def _time(text: str) -> datetime | None:
    old = _OLD_TIME.match(text)
    if old is None:
        return parse_time(text)
    year, month, day, hour, minute, second = map(int, old.groups())
    return datetime(2000 + year, month, day, hour, minute, second)  # as the server's clock says: taken as UTC
