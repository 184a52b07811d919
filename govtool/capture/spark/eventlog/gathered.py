"""The actions of applications, together: equal work once, with its count and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from sys import intern

from govtool.capture.spark.eventlog.spill import Spill
from govtool.capture.spark.executed import PLAN_TEXT, Executed
from govtool.capture.spark.identity import DatasetPlace, alias_derivations, declarations
from govtool.model import Derivation, Diagnostic
from govtool.model.run import Run
from govtool.model.spread import number_of

_Key = tuple[int, str, str, str, int]
_SEVERITIES = ("error", "warning", "info")


@dataclass(slots=True)
class Seen:
    """A derivation and when it was seen."""

    derivation: Derivation | None
    """None: it was put aside, and is found by its number and row."""
    first: str
    last: str
    run: str | None
    count: int = 1
    number: int = 0
    """By which it is sorted into fragments: of its statement's fingerprint."""
    row: int = 0


@dataclass(slots=True)
class SpilledFindings:
    """Findings that are kept on disk instead of in memory."""

    derivations: Spill[Derivation]
    runs: Spill[Run]
    columns: dict[str, dict[str, str | None]] = field(default_factory=dict)
    """Columns of what was written, with their types, by dataset."""
    queries: dict[str, int] = field(default_factory=dict)
    """Number of columns of each query."""
    notes: dict[Diagnostic, None] = field(default_factory=dict)
    edges: int = 0
    count: int = 0
    """Runs."""

    @staticmethod
    def new() -> SpilledFindings:
        """Nothing yet."""
        from govtool.model.columnar import to_table
        from govtool.model.run import runs_table

        return SpilledFindings(Spill(to_table), Spill(runs_table))

    def add(self, derivation: Derivation, number: int) -> int:
        """Put a derivation aside; returns its row."""
        if derivation.target_kind in ("query", "temporary"):
            self.queries[derivation.target] = len(derivation.columns)
        else:
            into = self.columns.setdefault(derivation.target, {})
            for column in derivation.columns:
                into.setdefault(intern(column.path), column.type)
        self.notes.update(dict.fromkeys(derivation.diagnostics))
        self.edges += len(derivation.edges)
        return self.derivations.add(number, derivation, len(derivation.edges))

    def add_run(self, run: Run) -> None:
        """Put a run aside."""
        self.count += 1
        fields = sum(len(read.fields) for read in run.inputs) + sum(len(written.fields) for written in run.outputs)
        self.runs.add(number_of(run.job), run, fields // 2)

    def close(self) -> None:
        """Give the disk back."""
        self.derivations.close()
        self.runs.close()


@dataclass(slots=True)
class EventLogFindings:
    """The findings of logs, together."""

    source: str = ""
    how: str = PLAN_TEXT
    """The kind of evidence."""
    spilled: SpilledFindings | None = None
    """The target of derivations and runs; None: ``runs`` and `derivations`."""
    runs: list[Run] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Actions by how far they were understood."""
    unclear: list[tuple[str, Diagnostic]] = field(default_factory=list)
    """Of each action that was not fully understood its outcome, and the worst of why."""
    statuses: Counter[str] = field(default_factory=Counter)
    breaks: Counter[str] = field(default_factory=Counter)
    applications: int = 0
    events: int = 0
    broken: int = 0
    """Lines that are no events, or cut off."""
    unread: int = 0
    """Files of which nothing could be read."""
    places: dict[str, DatasetPlace] = field(default_factory=dict)
    columns: dict[str, dict[str, str | None]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    """In the order in which each came first."""
    _known: dict[_Key, Seen] = field(default_factory=dict)
    _standing: dict[tuple[str, str], Seen] = field(default_factory=dict)
    _plans: dict[str, str] = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)

    def note(self, code: str, severity: str, message: str, file: str, line: int | None = 1) -> None:
        """Keep what is to be said of a log."""
        self.notes.append(Diagnostic(code, severity, message, file, line))

    def take(self, executed: Executed) -> None:
        """Take in what one action did; once a run.

        Raises:
            OSError: It is to be put aside, and cannot be.
        """
        self.outcomes[executed.outcome] += 1
        if executed.outcome in ("partial", "opaque"):
            self.unclear.append((executed.outcome, _why(executed)))
        run = executed.run
        if executed.outcome == "ignored" and run.status == "complete":
            return
        if run.id in self._ids:
            return  # the same log twice: a plain and a compressed copy
        self._ids.add(run.id)
        if self.spilled is not None:
            self.spilled.add_run(run)
        else:
            self.runs.append(replace(run, plan=self._plans.setdefault(run.plan, run.plan)))
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
                into[intern(path)] = intern(type_) if type_ else into.get(path)
        for derivation in (executed.derivation, *executed.views):
            if derivation is not None:
                self._count(derivation)

    def _count(self, derivation: Derivation) -> None:
        """Count what was found before, unless something else was put in its place meanwhile."""
        statement = derivation.statement
        plain = derivation._replace(statement=statement._replace(run=None, first_seen=None, last_seen=None))
        place = (derivation.target, statement.file)
        key = _key(plain)
        known = self._known.get(key)
        if derivation.mode == "replace" and known is not None and self._standing.get(place) is not known:
            known = None
        if known is None:
            known = Seen(plain, statement.first_seen or "", statement.last_seen or "", statement.run)
            if self.spilled is not None:
                known.number = number_of(statement.fingerprint)
                known.row = self.spilled.add(plain, known.number)
                known.derivation = None
            self._known[key] = known
            self.seen.append(known)
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
            plain = derivation._replace(
                statement=statement._replace(run=None, first_seen=None, last_seen=None, count=1)
            )
            seen = Seen(
                plain, statement.first_seen or "", statement.last_seen or "", statement.run, max(1, statement.count)
            )
            self._known[_key(plain)] = seen
            self._standing[derivation.target, statement.file] = seen
            self.seen.append(seen)

    def derivations(self) -> list[Derivation]:
        """All derivations that are in memory: of what ran, of names that are one dataset, of columns that were seen."""
        found = []
        for seen in self.seen:
            if seen.derivation is not None:
                statement = seen.derivation.statement._replace(
                    first_seen=seen.first or None,
                    last_seen=seen.last or None,
                    run=seen.run,
                    count=seen.count,
                )
                found.append(seen.derivation._replace(statement=statement))
        columns = {dataset: dict(known) for dataset, known in self.columns.items()}
        for derivation in found:
            known = columns.setdefault(derivation.target, {})
            for column in derivation.columns:
                known.setdefault(column.path, column.type)
        types = {dataset: tuple(known.items()) for dataset, known in columns.items()}
        found += alias_derivations(self.places.values(), columns, how=self.how, source=self.source)
        found += declarations(self.places, types, how=self.how, source=self.source)
        return sorted(found, key=_order)

    def declared(self) -> Iterator[Derivation]:
        """The names that are one dataset, and the columns that were seen, one dataset after the other."""
        made = self.spilled.columns if self.spilled is not None else {}
        for identity, place in sorted(self.places.items()):
            names = {name.id for name in (place.name, *place.aliases)}
            known = {name: {**self.columns.get(name, {})} for name in names}
            for name, columns in known.items():
                for path, type_ in made.get(name, {}).items():
                    columns.setdefault(path, type_)
            yield from alias_derivations([place], known, how=self.how, source=self.source)
            types = {identity: tuple(known[identity].items())}
            yield from declarations({identity: place}, types, how=self.how, source=self.source)


def _key(plain: Derivation) -> _Key:
    """Return the key of a derivation, without holding it: with its hash, of 64 bits, all that is short of it."""
    return hash(plain), plain.statement.fingerprint, plain.target, plain.statement.file, len(plain.edges)


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


def _why(executed: Executed) -> Diagnostic:
    derivation, run = executed.derivation, executed.run
    return why_incomplete(derivation, (*(derivation.diagnostics if derivation else ()), *run.breaks), run.job)


def why_incomplete(derivation: Derivation | None, noted: Iterable[Diagnostic], file: str) -> Diagnostic:
    """Return the worst of why an action was not fully understood.

    Args:
        derivation: What is known of it, if anything is.
        noted: What was noted of it. Where nothing was, it is a function that the first opaque edge names.
        file: Where it stands.
    """
    worst = min(noted, key=lambda note: _SEVERITIES.index(note.severity), default=None)
    if worst is not None:
        return worst
    reason = next((edge.reason for edge in derivation.edges if edge.reason), None) if derivation else None
    if reason is None:
        return Diagnostic("no-column-lineage", "info", "the plan does not name all columns", file, 1)
    code, _, name = reason.partition(": ")
    return Diagnostic(code, "info", f"{name or code} is not understood", file, 1)
