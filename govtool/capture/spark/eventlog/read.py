"""Event logs to runs and derivations: each log as a stream, what equal work says only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from govtool.capture.compressed import UnreadableStreamError, content
from govtool.capture.spark.eventlog.application import Application
from govtool.capture.spark.eventlog.executions import EventLogInterpreter
from govtool.capture.spark.eventlog.files import EventLog
from govtool.capture.spark.eventlog.gathered import EventLogFindings
from govtool.capture.spark.eventlog.lines import Broken, Line, wanted_lines
from govtool.capture.spark.eventlog.runs import environment_run
from govtool.capture.spark.executed import Executed, named
from govtool.capture.spark.plantext.scans import Names

MAX_NOTES = 20
"""Unreadable lines of one file that are listed; the rest is counted."""
WAITING = 50_000
"""Edges of actions that wait for the log to tell its script; then the application's name stands for it."""

OnBytes = Callable[[int], None]
"""Told how many bytes of a file have been read."""


@dataclass(slots=True)
class _Actions:
    """Hands on what the actions of a log did, as soon as the log has told their script."""

    application: Application
    interpreter: EventLogInterpreter
    into: EventLogFindings
    waiting: list[Executed] = field(default_factory=list)
    weight: int = 0

    def add(self, executed: Iterable[Executed]) -> None:
        for each in executed:
            self.waiting.append(each)
            self.weight += 10 + (len(each.derivation.edges) if each.derivation is not None else 0)
        if self.application.script or self.weight > WAITING:
            self.hand_on()

    def hand_on(self) -> None:
        application = self.application
        if self.waiting:
            application.script = application.script or application.name or application.id or application.log
        for each in self.waiting:
            self.into.take(named(each, application.script, self.into.source))
        self.waiting.clear()
        self.weight = 0


def read_log(
    log: EventLog, label: str, into: EventLogFindings, names: Names | None = None, progress: OnBytes | None = None
) -> None:
    """Read one log; what of it cannot be read is noted, and the rest is kept.

    Args:
        log: Where it is.
        label: By which messages name it.
        into: Where what it says goes.
        names: How names of tables are read.
        progress: Told of bytes that were read.

    Raises:
        OSError: What is said is to be put aside, and cannot be.
    """
    application = Application(log.application)
    actions = _Actions(application, EventLogInterpreter(application, names or Names()), into)
    for missing in log.missing:
        into.note("unreadable", "error", f"part {missing} of the log is missing, with its lineage", label)
    for part in log.parts:
        name = label if len(log.parts) == 1 else f"{label}/{part.name}"
        try:
            raw = part.open("rb")
        except OSError as error:
            into.note("unreadable", "error", f"cannot be read: {error.strerror or error}", name)
            into.unread += 1
            continue
        with raw:
            _part(raw, name, actions, progress)
    for group in application.rest():
        actions.add(actions.interpreter.actions(group))
    actions.add(application.rdd_jobs.executed(environment_run(application), application.ended is not None))
    actions.hand_on()
    if not application.events:
        into.note("not-a-log", "error", "no Spark event in it", label)
        into.unread += 1
        return
    into.applications += 1
    _ending(application, log, label, into)


def _part(raw: IO[bytes], name: str, actions: _Actions, progress: OnBytes | None) -> None:
    into, application = actions.into, actions.application
    listed = 0
    try:
        pieces = content(raw)
        for line in wanted_lines(_with_progress(pieces, raw, progress)):
            if isinstance(line, Line):
                try:
                    for group in application.feed(line, name):
                        actions.add(actions.interpreter.actions(group))
                    continue
                except (ValueError, RecursionError) as error:
                    problem = "not JSON" if isinstance(error, ValueError) else "nested too deep"
                    line = Broken(line.number, f"{problem}: an event is lost")
            into.broken += 1
            listed += 1
            if listed <= MAX_NOTES or line.fatal:
                into.note("unreadable" if line.fatal else "not-json", "error", line.message, name, line.number)
    except UnreadableStreamError as error:
        into.note("unreadable", "error", str(error), name)
        into.broken += 1
    if listed > MAX_NOTES:
        into.note("not-json", "error", f"{listed - MAX_NOTES} more lines are no events", name)


def _ending(application: Application, log: EventLog, label: str, into: EventLogFindings) -> None:
    if application.unmatched():
        text = f"{application.unmatched()} executions of which only the end is in the log"
        into.note("break.start", "warning", text, label)
        into.breaks["break.start"] += application.unmatched()
    if not application.version and not application.id:
        into.note("incomplete-log", "warning", "the beginning of the log is not there", label)
    if application.rdd_jobs.lost:
        into.note("break.rdd", "warning", f"{application.rdd_jobs.lost} more jobs of RDDs write or hand rows on", label)
    if application.ended is None:
        state = "a running application, or one that was killed" if not log.finished else "no event reports its end"
        into.note("unfinished-application", "info", f"the log ends before its application: {state}", label)


def read_logs(
    logs: Iterable[tuple[EventLog, str]],
    into: EventLogFindings,
    names: Names | None = None,
    progress: OnBytes | None = None,
) -> EventLogFindings:
    """Read event logs, one after the other, each with the label by which messages name it.

    Raises:
        OSError: What is said is to be put aside, and cannot be.
    """
    for log, label in logs:
        read_log(log, label, into, names, progress)
    return into


def size_of(log: EventLog) -> int:
    """Bytes of a log's files."""
    return sum(_size(part) for part in log.parts)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _with_progress(pieces: Iterable[bytes], raw: IO[bytes], progress: OnBytes | None) -> Iterator[bytes]:
    before = 0
    for piece in pieces:
        yield piece
        if progress is not None:
            position = raw.tell()
            progress(position - before)
            before = position
