"""Locations of event logs: single files, rolling directories, folders of either.

A rolling log, ``eventlog_v2_<application>``, has its events in ``events_<n>_…`` files, of which a ``.compact`` one
stands for all up to its number, and its state in the name of ``appstatus_…``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from govtool.errors import UsageError
from govtool.given_files import refuse_link_out

ROLLING = "eventlog_v2_"
_EVENTS = re.compile(r"events_(\d+)_(.+?)(?:\.(?:zstd|lz4|snappy|lzf))?(\.compact)?\Z")
_CODEC = re.compile(r"\.(?:zstd|zst|lz4|snappy|lzf|gz|gzip|compact|inprogress|json|jsonl|log|txt)\Z")
_NOT_LOGS = re.compile(r"\.(?:crc|md|csv|parquet|jar|py)\Z|\A[._]")
IN_PROGRESS = ".inprogress"


@dataclass(frozen=True, slots=True)
class EventLog:
    """The log of one application."""

    name: str
    """For messages: the file or directory."""
    parts: tuple[Path, ...]
    """Files in order."""
    finished: bool = True
    """False: Spark marks the log as that of a running, or killed, application."""
    missing: tuple[int, ...] = ()
    """Numbers of parts that are not there."""

    @property
    def application(self) -> str:
        """The application's id in the name; a log that has lost its beginning has no other."""
        name = Path(self.name).name.removeprefix(ROLLING)
        while (cut := _CODEC.search(name)) is not None:
            name = name[: cut.start()]
        return name


def find(path: Path) -> list[EventLog]:
    """The logs that a path stands for: itself, or of a folder all in it, sorted by name.

    Raises:
        UsageError: There is no such path, a folder without a log, or one with a link out of it.
    """
    if not path.exists():
        raise UsageError(
            f"no such file or folder: {path}", code="usage.no-such-path", hint="govtool ingest spark --help"
        )
    if not path.is_dir():
        if not path.is_file():  # a device has no end, and a pipe is not read twice
            raise UsageError(f"not a file: {path}", code="usage.no-such-path", hint="govtool ingest spark --help")
        return [EventLog(path.as_posix(), (path,), not path.name.endswith(IN_PROGRESS))]
    rolling = _rolling(path)
    if rolling is not None:
        return [rolling]
    found: list[EventLog] = []
    for entry in sorted(path.iterdir()):
        if _NOT_LOGS.search(entry.name):
            continue
        refuse_link_out(entry, path)
        if entry.is_dir():
            inner = _rolling(entry)
            if inner is not None:
                found.append(inner)
        elif entry.is_file():
            found.append(EventLog(entry.as_posix(), (entry,), not entry.name.endswith(IN_PROGRESS)))
    if not found:
        raise UsageError(
            f"no event log in {path}",
            code="usage.empty-folder",
            hint="spark.eventLog.dir is the folder in which an application writes its log",
        )
    return found


def _rolling(path: Path) -> EventLog | None:
    """A rolling log; None if the folder is none."""
    parts: dict[int, Path] = {}
    compacted = 0
    statuses = []
    for entry in sorted(path.iterdir()):
        if entry.name.startswith("appstatus_"):
            statuses.append(entry.name)
        found = _EVENTS.match(entry.name)
        if found is None:
            continue
        refuse_link_out(entry, path)
        number = int(found[1])
        if found[3]:
            compacted = max(compacted, number)
            parts[number] = entry  # it stands for the plain file of its number too
        elif number not in parts or not parts[number].name.endswith(".compact"):
            parts[number] = entry
    if not parts and not (path.name.startswith(ROLLING) and statuses):
        return None
    numbers = sorted(number for number in parts if number >= compacted)
    first = compacted or 1
    missing = tuple(n for n in range(first, max(numbers, default=first)) if n not in parts)
    # Both states can be seen for a moment while Spark renames one into the other.
    finished = any(not name.endswith(IN_PROGRESS) for name in statuses)
    return EventLog(path.as_posix(), tuple(parts[number] for number in numbers), finished, missing)
