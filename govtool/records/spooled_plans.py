"""Exact plans in a job's spool of records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from govtool.records.plan import catalyst
from govtool.records.plan.checkpoints import Checkpoint
from govtool.records.plan.clock import Clock
from govtool.records.plan.expressions import UdfReference
from govtool.records.plan.nodes import Plan, Session
from govtool.records.plan.term_pieces import Unread
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
        known = _Known.of([file])
        for line in _lines(file):
            known.remember(line)
            yield known.captured(file.stem, line)


def read_frame(text: str, version: str, application: str, folder: Path, here: dict[str, Any]) -> Planned:
    """The plan of a DataFrame of this process.

    Args:
        text: What the reader of plans wrote of it.
        version: Spark's.
        application: The id of its application.
        folder: The process's spool of plans, with functions and rows that were handed out before.
        here: ``functions`` and ``rows`` that were not.
    """
    files = sorted(folder.glob(f"{os.getpid()}-*.jsonl"))
    known = _Known.of(files)
    for file in files:
        for line in _lines(file):
            known.remember(line)
            if known.is_kept(line):
                known.captured("", line)
    known.remember(here)
    return known.captured("", {**json.loads(text), "spark": version, "application": application})


def read_alone(text: str, version: str, functions: dict[str, Any]) -> Planned:
    """The plan of a DataFrame of another process, of whose driver's rows nothing is known.

    Args:
        text: What the reader of plans wrote of it.
        version: Spark's.
        functions: Those of the process by digest.
    """
    known = _Known()
    known.remember({"functions": functions})
    return known.captured("", {**json.loads(text), "spark": version})


@dataclass(slots=True)
class _Known:
    """What the lines of a process said before, and its checkpoints.

    Attributes:
        udfs: Python functions by the digest of their command.
        rows: Those of the driver by the id of the first column of their leaf.
        rdds: The RDDs of checkpoints, by application and id of the query execution whose rows they have.
        checkpoints: Those whose plans were read, by application and RDD.
    """

    udfs: dict[str, UdfReference] = field(default_factory=dict)
    rows: dict[int, catalyst.DriverRows] = field(default_factory=dict)
    rdds: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    checkpoints: dict[str, dict[int, Checkpoint]] = field(default_factory=dict)

    @staticmethod
    def of(files: Iterable[Path]) -> _Known:
        """Nothing but the notes of checkpoints: each may stand behind the line of its execution."""
        known = _Known()
        for file in files:
            for line in _lines(file, "checkpoint"):
                execution = str(line["application"]), int(line["query_execution"])
                known.rdds.setdefault(execution, []).append(int(line["rdd"]))
        return known

    def is_kept(self, line: dict[str, Any]) -> bool:
        """Return whether a checkpoint has the rows of an execution."""
        return _execution(line) in self.rdds

    def remember(self, line: dict[str, Any]) -> None:
        """Take in functions and rows of the driver."""
        for digest, each in (line.get("functions") or {}).items():
            reason = str(each.get("reason", ""))
            self.udfs[digest] = UdfReference(each["module"], each["qualname"], each["digest"], "python", reason)
        for each in line.get("rows") or ():
            if each["ids"]:
                reason = str(each.get("reason", ""))
                self.rows[each["ids"][0]] = catalyst.DriverRows(each["ids"], each["rows"], reason, each.get("rdd"))

    def captured(self, process: str, line: dict[str, Any]) -> Planned:
        """The plan of a line; also kept for the plans behind it, if a checkpoint has its rows."""
        made = self._read(process, line)
        for rdd in self.rdds.get(_execution(line), ()):
            kept = Checkpoint(rdd, made.plan, made.reason)
            self.checkpoints.setdefault(made.application, {})[rdd] = kept
        return made

    def _read(self, process: str, line: dict[str, Any]) -> Planned:
        application, number = str(line.get("application", "")), int(line.get("n", 0))
        if "exact" not in line:
            return Planned(process, application, number, None, str(line.get("break", "the plan is missing")))
        try:
            session = session_of(line["spark"], {**line["settings"], **(line.get("began") or {})})
            checkpoints = self.checkpoints.get(application)
            plan = catalyst.read(line["exact"], session, self.udfs, self.rows, Clock.of(line.get("now")), checkpoints)
        except Unread as error:
            return Planned(process, application, number, None, f"the plan cannot be read: {error}")
        except Exception as error:  # a plan that is read wrongly costs its own rows, not those of the others
            return Planned(process, application, number, None, f"the plan cannot be read: {failure_of(error)}")
        return Planned(process, application, number, plan)


def _execution(line: dict[str, Any]) -> tuple[str, int]:
    return str(line.get("application", "")), int(line.get("query_execution", -1))


def _lines(file: Path, kind: str = "replay") -> Iterator[dict[str, Any]]:
    """The lines of a kind, which each line begins with; a line without one says why there is no plan."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        for text in lines:
            if not text.startswith(f'{{"e":"{kind}"') and kind != "replay":
                continue
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict) and (line.get("e") == kind or (kind == "replay" and "break" in line)):
                yield line


def session_of(version: str, settings: dict[str, str]) -> Session:
    """The session of an event."""
    return Session(
        version,
        settings.get("spark.sql.ansi.enabled", "true") == "true",
        settings.get("spark.sql.session.timeZone", "UTC"),
        settings.get("spark.sql.caseSensitive", "false") == "true",
        tuple(sorted((name, value) for name, value in settings.items() if name not in _PLAIN)),
    )
