"""A spool, read: what each process of a job wrote, and what of it is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_LINE = 64 << 20
"""Bytes of one line that are read."""

NUMBERED = ("execution", "root", "inference", "started", "batch", "settings")
"""Facts of an execution that Spark's store may have only after it was written down."""

Line = Mapping[str, Any]


@dataclass(slots=True)
class Process:
    """One process of a job."""

    name: str
    facts: Line = field(default_factory=dict)
    """Its script, digest, Python and host."""
    sessions: list[Line] = field(default_factory=list)
    executions: list[Line] = field(default_factory=list)
    connected: list[Line] = field(default_factory=list)
    """Writes over Spark Connect, by plan text."""
    rdd_actions: list[Line] = field(default_factory=list)
    """Actions of RDDs, which have no plans."""
    streams: list[Line] = field(default_factory=list)
    """Notes of the Python patches: streams, batches, data of the driver."""
    progress: list[Line] = field(default_factory=list)
    """Batches of streaming queries: their numbers, offsets and rows."""
    numbers: dict[int, Line] = field(default_factory=dict)
    """Numbers of executions that were known only after they were written down, by ``n``."""
    troubles: list[str] = field(default_factory=list)
    end: Line | None = None
    """None: the process was killed, or could not write its end."""
    torn: int = 0
    """Lines that were cut off."""


def read_spool(folder: Path) -> list[Process]:
    """Read the files of a spool, in order of their names; a folder that is gone has none."""
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == ".jsonl")
    except OSError:
        return []
    found = []
    for file in files:
        process = Process(file.stem)
        try:
            for line in _lines(file, process):
                _take(line, process)
        except OSError as error:
            process.troubles.append(f"spool: {error.strerror or error}")
        process.executions = [{**line, **process.numbers.get(line.get("n", -1), {})} for line in process.executions]
        found.append(process)
    return found


def _lines(file: Path, process: Process) -> Iterator[Line]:
    with file.open("rb") as raw:
        while data := raw.readline(MAX_LINE):
            if not data.strip():
                continue
            try:
                line = json.loads(data)
            except (ValueError, RecursionError):
                line = None
            if isinstance(line, dict):
                yield line
            else:
                process.torn += 1


def _take(line: Line, process: Process) -> None:
    match line.get("e"):
        case "process":
            process.facts = line
        case "session":
            process.sessions.append(line)
        case "execution":
            process.executions.append(line)
        case "connect":
            process.connected.append(line)
        case "rdd":
            process.rdd_actions.append(line)
        case "progress":
            process.progress.append(line)
        case "end":
            process.end = line
        case "number" if isinstance(line.get("n"), int):
            process.numbers[line["n"]] = {key: line[key] for key in NUMBERED if key in line}
        case "trouble":
            process.troubles.append(str(line.get("what", "")))
        case _:
            process.streams.append(line)
