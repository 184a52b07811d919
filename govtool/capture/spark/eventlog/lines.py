"""Lines of an event log: those of wanted events, whole; the rest is passed over without being held or parsed.

Most of a log are task events, and plans that adaptive execution repeats. Every line begins with its
event's name, so that what it is can be told from its first bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from govtool.capture.compressed import UnreadableStreamError

MAX_LINE = 64 << 20
"""Bytes of one event that are held; a plan of 8 million characters is the largest that was seen."""
_HEAD = 160

WANTED = frozenset(
    {
        "SparkListenerLogStart",
        "SparkListenerApplicationStart",
        "SparkListenerApplicationEnd",
        "SparkListenerEnvironmentUpdate",
        "SparkListenerSQLExecutionStart",
        "SparkListenerSQLExecutionEnd",
        "SparkListenerSQLAdaptiveExecutionUpdate",
        "SparkListenerDriverAccumUpdates",
        "SparkListenerStageCompleted",
        "SparkListenerJobStart",
        "SparkListenerJobEnd",
        "StreamingQueryListener$QueryProgressEvent",
        "CreateTableEvent",
        "DropTableEvent",
        "RenameTableEvent",
    }
)
_PREFIX = b'{"Event":"'
_LOOSE = re.compile(rb'\s*\{\s*"Event"\s*:\s*"([\w.$]+)"')


class Line(NamedTuple):
    """One event."""

    number: int
    """1-based, in the file."""
    event: str
    """Its name without its package; empty for a line that is no event."""
    data: bytes


class Broken(NamedTuple):
    """A part of a log that cannot be read."""

    number: int
    message: str
    fatal: bool = False
    """The rest of the file is lost."""


def wanted_lines(pieces: Iterator[bytes]) -> Iterator[Line | Broken]:
    """The lines of wanted events, and what is none; never raises."""
    number = 1
    held: list[bytes] = []
    size = 0
    passing = False
    try:
        for piece in pieces:
            start = 0
            while (end := piece.find(b"\n", start)) >= 0:
                if passing:
                    passing = False
                elif held:
                    held.append(piece[start:end])
                    yield from _line(number, b"".join(held))
                else:
                    yield from _line(number, piece[start:end])
                held, size = [], 0
                number += 1
                start = end + 1
            rest = piece[start:]
            if passing or not rest:
                continue
            held.append(rest)
            size += len(rest)
            if size > _HEAD and len(held) < 3 and _unwanted(b"".join(held)[:_HEAD]):
                held, size, passing = [], 0, True
            elif size > MAX_LINE:
                yield Broken(number, f"an event of more than {MAX_LINE >> 20} MiB")
                held, size, passing = [], 0, True
    except UnreadableStreamError as error:
        if held:
            yield Broken(number, "half a line")
        yield Broken(number, str(error), fatal=True)
        return
    if held:
        yield from _line(number, b"".join(held), last=True)


def name_of(head: bytes) -> str | None:
    """The event that a line begins with, without its package; None if it is no event."""
    if head.startswith(_PREFIX):
        end = head.find(b'"', 10)
        name = head[10:end] if end >= 0 else b""
    else:
        found = _LOOSE.match(head)
        if found is None:
            return None
        name = found[1]
    return name[name.rfind(b".") + 1 :].decode("ascii", "replace")


def _unwanted(head: bytes) -> bool:
    name = name_of(head)
    return name is not None and name not in WANTED


def _line(number: int, data: bytes, *, last: bool = False) -> Iterator[Line | Broken]:
    name = name_of(data[:_HEAD])
    if name is None:
        if data.strip(b"\0 \t\r"):
            yield Broken(number, "half a line" if last else "no Spark event")
    elif last and not data.rstrip().endswith(b"}"):
        yield Broken(number, "half a line")
    elif name in WANTED:
        yield Line(number, name, data)
