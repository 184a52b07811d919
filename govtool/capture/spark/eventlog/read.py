"""Event logs to runs and derivations: each log as a stream, what equal work says only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from govtool.capture.compressed import UnreadableError, content
from govtool.capture.spark.eventlog.application import Application
from govtool.capture.spark.eventlog.executions import HOW, Executed, Interpreter, named
from govtool.capture.spark.eventlog.files import EventLog
from govtool.capture.spark.eventlog.lines import Broken, Line, wanted_lines
from govtool.capture.spark.identity import Place, alias_derivations, declarations
from govtool.capture.spark.plantext.scans import Names
from govtool.model import Derivation, Diagnostic
from govtool.model.run import Run

MAX_NOTES = 20
"""Unreadable lines of one file that are listed; the rest is counted."""

OnBytes = Callable[[int], None]
"""Told how many bytes of a file have been read."""


@dataclass(slots=True)
class Seen:
    """A derivation and when it was seen."""

    derivation: Derivation
    first: str
    last: str
    run: str | None
    count: int = 1


@dataclass(slots=True)
class Gathered:
    """What logs say, together."""

    source: str = ""
    how: str = HOW
    """The kind of evidence."""
    names: Names = field(default_factory=Names)
    runs: list[Run] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Actions by how far they were understood."""
    statuses: Counter[str] = field(default_factory=Counter)
    breaks: Counter[str] = field(default_factory=Counter)
    applications: int = 0
    events: int = 0
    broken: int = 0
    """Lines that are no events, or cut off."""
    unread: int = 0
    """Files of which nothing could be read."""
    places: dict[str, Place] = field(default_factory=dict)
    columns: dict[str, dict[str, str | None]] = field(default_factory=dict)
    _seen: dict[Derivation, Seen] = field(default_factory=dict)
    _standing: dict[tuple[str, str], Seen] = field(default_factory=dict)
    _all: list[Seen] = field(default_factory=list)
    _plans: dict[str, str] = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)

    def read(self, log: EventLog, label: str, progress: OnBytes | None = None) -> None:
        """Read one log; what of it cannot be read is noted, and the rest is kept."""
        application = Application(log.application)
        interpreter = Interpreter(application, self.names)
        actions: list[Executed] = []
        for missing in log.missing:
            self._note("unreadable", "error", f"part {missing} of the log is not there: what it said is lost", label)
        for part in log.parts:
            name = label if len(log.parts) == 1 else f"{label}/{part.name}"
            try:
                with part.open("rb") as raw:
                    self._part(raw, name, application, interpreter, actions, progress)
            except OSError as error:
                self._note("unreadable", "error", f"cannot be read: {error.strerror or error}", name)
                self.unread += 1
        for group in application.rest():
            actions.extend(interpreter.actions(group))
        if not application.events:
            self._note("not-a-log", "error", "no Spark event in it", label)
            self.unread += 1
            return
        self.applications += 1
        self._ending(application, log, label)
        script = application.script or application.name or application.id or log.application
        for executed in actions:
            self.take(named(executed, script, self.source))

    def _part(
        self,
        raw: IO[bytes],
        name: str,
        application: Application,
        interpreter: Interpreter,
        actions: list[Executed],
        progress: OnBytes | None,
    ) -> None:
        listed = 0
        try:
            pieces = content(raw)
            for line in wanted_lines(_told(pieces, raw, progress)):
                if isinstance(line, Line):
                    try:
                        for group in application.feed(line, name):
                            actions.extend(interpreter.actions(group))
                        continue
                    except (ValueError, RecursionError) as error:
                        said = "not JSON" if isinstance(error, ValueError) else "nested too deep"
                        line = Broken(line.number, f"{said}: an event is lost")
                self.broken += 1
                listed += 1
                if listed <= MAX_NOTES or line.fatal:
                    code = "unreadable" if line.fatal else "not-json"
                    self._note(code, "error", line.message, name, line.number)
        except UnreadableError as error:
            self._note("unreadable", "error", str(error), name)
            self.broken += 1
        if listed > MAX_NOTES:
            self._note("not-json", "error", f"{listed - MAX_NOTES} more lines are no events", name)

    def _ending(self, application: Application, log: EventLog, label: str) -> None:
        if application.unmatched():
            text = f"{application.unmatched()} executions of which only the end is in the log"
            self._note("break.start", "warning", text, label)
            self.breaks["break.start"] += application.unmatched()
        if not application.version and not application.id:
            self._note("incomplete-log", "warning", "the beginning of the log is not there", label)
        if application.ended is None:
            state = "a running application, or one that was killed" if not log.finished else "no event tells its end"
            self._note("unfinished-application", "info", f"the log ends before its application: {state}", label)

    def _note(self, code: str, severity: str, message: str, file: str, line: int | None = 1) -> None:
        self.notes.append(Diagnostic(code, severity, message, file, line))

    def take(self, executed: Executed) -> None:
        """Take in what one action did; once a run."""
        self.outcomes[executed.outcome] += 1
        run = executed.run
        if executed.outcome == "ignored" and run.status == "complete":
            return
        if run.id in self._ids:
            return  # the same log twice: a plain and a compressed copy
        self._ids.add(run.id)
        plan = self._plans.setdefault(run.plan, run.plan)
        self.runs.append(replace(run, plan=plan))
        self.statuses[run.status] += 1
        self.breaks.update(note.code for note in run.breaks)
        for identity, place in executed.places.items():
            known = self.places.get(identity)
            if known is not None:
                place = replace(known, aliases=tuple(dict.fromkeys((*known.aliases, *place.aliases))))
            self.places[identity] = place
        for dataset, columns in executed.columns.items():
            into = self.columns.setdefault(dataset, {})
            for path, type_ in columns.items():
                into[path] = type_ or into.get(path)
        for derivation in (executed.derivation, *executed.views):
            if derivation is not None:
                self._say(derivation)

    def _say(self, derivation: Derivation) -> None:
        """What was said before is counted; unless something else was put in its place meanwhile."""
        statement = derivation.statement
        plain = replace(derivation, statement=replace(statement, run=None, first_seen=None, last_seen=None))
        place = (derivation.target, statement.file)
        known = self._seen.get(plain)
        if derivation.mode == "replace" and known is not None and self._standing.get(place) is not known:
            known = None
        if known is None:
            known = Seen(plain, statement.first_seen or "", statement.last_seen or "", statement.run)
            self._seen[plain] = known
            self._all.append(known)
        else:
            known.count += 1
            known.first = min(known.first, statement.first_seen or known.first)
            if (statement.last_seen or "") >= known.last:
                known.last, known.run = statement.last_seen or known.last, statement.run
        self._standing[place] = known

    def resume(self, derivations: Iterable[Derivation], runs: Iterable[Run]) -> None:
        """Take in what the source said before: what is said again is counted on."""
        for run in runs:
            if run.id not in self._ids:
                self._ids.add(run.id)
                self.runs.append(run)
        for derivation in derivations:
            statement = derivation.statement
            if statement.kind in ("alias", "dataset"):
                for column in derivation.columns:
                    self.columns.setdefault(derivation.target, {})[column.path] = column.type
                continue
            plain = replace(
                derivation, statement=replace(statement, run=None, first_seen=None, last_seen=None, count=1)
            )
            seen = Seen(
                plain, statement.first_seen or "", statement.last_seen or "", statement.run, max(1, statement.count)
            )
            self._seen[plain] = seen
            self._standing[derivation.target, statement.file] = seen
            self._all.append(seen)

    def derivations(self) -> list[Derivation]:
        """All derivations: of what ran, of names that are one dataset, of columns that were seen."""
        found = []
        for seen in self._all:
            statement = replace(
                seen.derivation.statement,
                first_seen=seen.first or None,
                last_seen=seen.last or None,
                run=seen.run,
                count=seen.count,
            )
            found.append(replace(seen.derivation, statement=statement))
        columns = {dataset: dict(known) for dataset, known in self.columns.items()}
        for derivation in found:
            known = columns.setdefault(derivation.target, {})
            for column in derivation.columns:
                known.setdefault(column.path, column.type)
        found += alias_derivations(self.places.values(), columns, how=self.how, source=self.source)
        told = {dataset: tuple(known.items()) for dataset, known in columns.items()}
        found += declarations(self.places, told, how=self.how, source=self.source)
        return sorted(found, key=_order)


def read_logs(
    logs: Iterable[tuple[EventLog, str]], source: str, names: Names | None = None, progress: OnBytes | None = None
) -> Gathered:
    """Read event logs, one after the other, each with the label by which messages name it."""
    gathered = Gathered(source, names=names or Names())
    for log, label in logs:
        gathered.read(log, label, progress)
    return gathered


def size_of(log: EventLog) -> int:
    """Bytes of a log's files."""
    return sum(_size(part) for part in log.parts)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _told(pieces: Iterable[bytes], raw: IO[bytes], progress: OnBytes | None) -> Iterator[bytes]:
    before = 0
    for piece in pieces:
        yield piece
        if progress is not None:
            position = raw.tell()
            progress(position - before)
            before = position


def _order(derivation: Derivation) -> tuple[str, ...]:
    statement = derivation.statement
    return (
        statement.file,
        statement.first_seen or "",
        derivation.target,
        statement.kind,
        statement.run or "",
        repr(derivation.edges),
    )
