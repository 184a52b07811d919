"""Exact plans in a job's spool of records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from govtool.records.plan import catalyst
from govtool.records.plan.clock import Clock
from govtool.records.plan.expressions import UdfReference
from govtool.records.plan.nodes import Plan, Session
from govtool.redaction import failure_of

_PLAIN = frozenset({"spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive"})


@dataclass(frozen=True, slots=True)
class Planned:
    """The exact plan of one action, or the reason why there is none."""

    process: str
    """The file of the spool that it is from."""
    application: str
    number: int
    """That of the execution in the job's own spool."""
    plan: Plan | None
    reason: str = ""


def read_spool(folder: Path) -> Iterator[Planned]:
    """The plans of a spool, in order. A line that was cut off is left out.

    Functions and rows of the driver are written with the first action after they were made, so that a process is read
    from its start.
    """
    for file in sorted(folder.glob("*.jsonl")):
        udfs: dict[str, UdfReference] = {}
        rows: dict[int, catalyst.DriverRows] = {}
        for line in _lines(file):
            _remember(line, udfs, rows)
            yield _captured(file.stem, line, udfs, rows)


def read_frame(text: str, version: str, folder: Path, here: dict[str, Any]) -> Planned:
    """The plan of a DataFrame of this process.

    Args:
        text: What the reader of plans wrote of it.
        version: Spark's.
        folder: The process's spool of plans, with functions and rows that were handed out before.
        here: ``functions`` and ``rows`` that were not.
    """
    udfs: dict[str, UdfReference] = {}
    rows: dict[int, catalyst.DriverRows] = {}
    for file in sorted(folder.glob(f"{os.getpid()}-*.jsonl")):
        for line in _lines(file):
            _remember(line, udfs, rows)
    _remember(here, udfs, rows)
    return _captured("", {**json.loads(text), "spark": version}, udfs, rows)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        for text in lines:
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict) and (line.get("e") == "replay" or "break" in line):
                yield line


def _remember(line: dict[str, Any], udfs: dict[str, UdfReference], rows: dict[int, catalyst.DriverRows]) -> None:
    for digest, each in (line.get("functions") or {}).items():
        reason = str(each.get("reason", ""))
        udfs[digest] = UdfReference(each["module"], each["qualname"], each["digest"], "python", reason)
    for each in line.get("rows") or ():
        if each["ids"]:
            rows[each["ids"][0]] = catalyst.DriverRows(each["ids"], each["rows"], str(each.get("reason", "")))


def _captured(
    process: str, line: dict[str, Any], udfs: dict[str, UdfReference], rows: dict[int, catalyst.DriverRows]
) -> Planned:
    application, number = str(line.get("application", "")), int(line.get("n", 0))
    if "exact" not in line:
        return Planned(process, application, number, None, str(line.get("break", "the plan is missing")))
    try:
        clock = Clock.of(line.get("now"))
        settings = {**line["settings"], **(line.get("began") or {})}
        plan = catalyst.read(line["exact"], session_of(line["spark"], settings), udfs, rows, clock)
    except Exception as error:  # a plan that is read wrongly costs its own rows, not those of the others
        return Planned(process, application, number, None, f"the plan cannot be read: {failure_of(error)}")
    return Planned(process, application, number, plan)


def session_of(version: str, settings: dict[str, str]) -> Session:
    """The session of an event."""
    return Session(
        version,
        settings.get("spark.sql.ansi.enabled", "true") == "true",
        settings.get("spark.sql.session.timeZone", "UTC"),
        settings.get("spark.sql.caseSensitive", "false") == "true",
        tuple(sorted((name, value) for name, value in settings.items() if name not in _PLAIN)),
    )
