"""Sessions of a log, folded to what has to be parsed: each distinct statement of equal context once.

A statement that stands alone is a script of its own, whoever ran it how often. Statements that depend on their session,
because a table comes and goes in it, stay together in order of time: an *episode*, from the making of its first table
until none of its tables is left. Equal episodes are one. What a transaction rolled back was not written.

What a fold finds can be merged with what a fold of other sessions finds, in any order; ``scripts`` makes of it what the
extractor reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from govtool.capture.logs.dedup import Log, LogCollector, NameContext
from govtool.capture.logs.effects import LIFE, Effect, words
from govtool.capture.logs.session_order import Replay

MAX_EPISODE = 2_000
"""Statements of an episode from which on the next making of a table begins a new one."""

_NONE: frozenset[str] = frozenset()

_Key = tuple[int, int]
"""A statement and its context, by number."""


class StatementIdentity(NamedTuple):
    """The identity of a statement."""

    fingerprint: str
    dialect: str


Where = tuple[StatementIdentity, NameContext]
"""A statement, and what its names mean."""


@dataclass(slots=True)
class StatementRuns:
    """The runs of a statement (or of one in an episode)."""

    order: int
    """Of the first run in time, its place in the log; of equal times the lower one is first."""
    session: str
    file: str
    line: int
    spans: bool
    """Of the first run, likewise."""
    count: int
    first: float
    last: float
    """Seconds since 1970; infinite where there is no time."""
    users: set[str]

    def merge(self, other: StatementRuns) -> None:
        """Add the runs that another fold has found, or those in another context."""
        if (other.first, other.order) < (self.first, self.order):
            self.order, self.session, self.file = other.order, other.session, other.file
            self.line, self.spans, self.first = other.line, other.spans, other.first
        self.count += other.count
        self.last = max(self.last, other.last)
        self.users |= other.users


@dataclass(slots=True)
class SessionStatements:
    """The folded statements of sessions."""

    alone: dict[Where, StatementRuns] = field(default_factory=dict)
    episodes: dict[tuple[Where, ...], list[StatementRuns]] = field(default_factory=dict)
    """By their statements, in order of time, the runs of each."""
    sessions: int = 0
    rolled_back: int = 0
    """Runs that were undone."""
    parts: int = 0
    """Scripts that were left out because their statements are in the log."""


def find(collector: LogCollector) -> SessionStatements:
    """Fold the sessions of a log that is read to its end."""
    return _Fold(collector).run()


@dataclass(slots=True)
class _Runs:
    """``StatementRuns`` by the numbers of the log."""

    record: int
    count: int = 0
    first: float = float("inf")
    last: float = float("-inf")
    users: set[int] = field(default_factory=set)

    def add(self, record: int, log: Log) -> None:
        time = log.time[record]
        self.count += 1
        if (time, record) < (self.first, self.record):
            self.first = time
            self.record = record
        self.last = max(self.last, time)
        self.users.add(log.user[record])


@dataclass(slots=True)
class _Episode:
    """Statements that stay together, while they are collected."""

    keys: list[_Key] = field(default_factory=list)
    runs: list[list[int]] = field(default_factory=list)
    since: dict[_Key, int] = field(default_factory=dict)
    """Position of a statement since the last making or dropping of a table: once more changes nothing."""
    made: set[_Key] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    """Tables that it made and that are still there."""

    def ends_before(self, key: _Key, makes: set[str]) -> bool:
        """Return whether a statement that makes tables begins another episode."""
        again = self.live <= makes and key in self.made
        return not self.live or again or len(self.keys) >= MAX_EPISODE

    def live_after(self, effects: Iterable[Effect]) -> None:
        """Take in tables that come and go."""
        for effect in effects:
            if effect.kind in ("temp", "create"):
                self.live.add(effect.name)
            else:
                self.live.discard(effect.name)
                if effect.other:
                    self.live.add(effect.other)


class _Fold:
    def __init__(self, collector: LogCollector) -> None:
        self.collector = collector
        self.log = collector.log
        self.alone: dict[_Key, _Runs] = {}
        self.episodes: dict[tuple[_Key, ...], list[_Runs]] = {}
        self.rolled_back = 0
        self.words: dict[int, frozenset[str]] = {}

    def run(self) -> SessionStatements:
        import numpy as np

        log = self.log
        if not log.statement:
            return SessionStatements()
        statement = np.frombuffer(log.statement, dtype=np.int32)
        session = np.frombuffer(log.session, dtype=np.int32)
        time = np.frombuffer(log.time, dtype=np.float64)
        used = np.ones(len(statement), dtype=bool)
        parts = [index for query, index in log.scripts if query in log.parents]
        used[parts] = False
        acts = np.array([bool(s.effects) for s in log.statements] + [False], dtype=bool)  # the last: failed ones
        stateful = np.zeros(len(log.sessions), dtype=bool)
        stateful[session[acts[statement] & used]] = True
        walked = stateful[session] & used
        self._alone(np.flatnonzero(used & ~walked & (statement >= 0)))
        rest = np.flatnonzero(walked)
        rest = rest[np.lexsort((rest, time[rest], session[rest]))]
        ends = np.flatnonzero(np.diff(session[rest])) + 1
        for records in np.split(rest, ends) if len(rest) else ():
            self._session(records.tolist())
        return self._found(len(parts))

    def _alone(self, records: Any) -> None:
        """Count the runs of statements of sessions in which nothing comes or goes."""
        import numpy as np

        log = self.log
        if not len(records):
            return
        statement = np.frombuffer(log.statement, dtype=np.int32)[records].astype(np.int64)
        context = np.frombuffer(log.context, dtype=np.int32)[records]
        time = np.frombuffer(log.time, dtype=np.float64)[records]
        user = np.frombuffer(log.user, dtype=np.int32)[records].astype(np.int64)
        contexts = len(log.contexts)
        order = np.lexsort((records, time, statement * contexts + context))
        key = (statement * contexts + context)[order]
        starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
        ends = np.concatenate((starts[1:], [len(key)]))
        pairs = (
            np.unique(np.stack((key, user[order])), axis=1)
            if len(log.users) > 1
            else np.stack((key[starts], user[order][starts]))
        )
        bounds = np.searchsorted(pairs[0], key[starts])
        bounds_end = np.searchsorted(pairs[0], key[starts], side="right")
        for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            first = int(order[start])
            pair = (int(statement[first]), int(context[first]))
            self.alone[pair] = _Runs(
                int(records[first]),
                end - start,
                float(time[first]),
                float(time[order[end - 1]]),
                set(pairs[1][bounds[number] : bounds_end[number]].tolist()),
            )

    # -- one session ---------------------------------------------------------------------------------------------------

    def _session(self, records: list[int]) -> None:
        """Walk a session in order of time: transactions first, then names, then tables that come and go."""
        log = self.log
        kept, contexts = Replay(self.collector, records).run()
        self.rolled_back += sum(log.statement[r] >= 0 for r in records) - len(kept)
        tracked = self._tracked(kept)
        episode: _Episode | None = None
        for record in kept:
            number = log.statement[record]
            key = (number, contexts[record])
            acts = [
                e
                for e in log.statements[number].effects
                if e.kind in LIFE and (e.name in tracked or e.other in tracked)
            ]
            if not acts and not (tracked and episode is not None and tracked & self._words(number)):
                runs = self.alone.get(key)
                if runs is None:
                    runs = self.alone[key] = _Runs(record)
                runs.add(record, log)
                continue
            makes = {e.name for e in acts if e.kind in ("temp", "create")}
            if episode is not None and makes and episode.ends_before(key, makes):
                self._close(episode)
                episode = None
            if episode is None:
                if not makes:
                    # Drops what the session did not make, or reads what is not made yet: nothing comes of it here.
                    self.alone.setdefault(key, _Runs(record)).add(record, log)
                    continue
                episode = _Episode()
            episode.live_after(acts)
            self._take(episode, key, record, bool(acts))
        if episode is not None:
            self._close(episode)

    def _take(self, episode: _Episode, key: _Key, record: int, acts: bool) -> None:
        at = episode.since.get(key)
        if at is not None and not acts:
            episode.runs[at].append(record)
            return
        if acts:
            episode.since.clear()
            episode.made.add(key)
        else:
            episode.since[key] = len(episode.keys)
        episode.keys.append(key)
        episode.runs.append([record])

    def _close(self, episode: _Episode) -> None:
        signature = tuple(episode.keys)
        found = self.episodes.get(signature)
        if found is None:
            found = self.episodes[signature] = [_Runs(records[0]) for records in episode.runs]
        for runs, records in zip(found, episode.runs, strict=True):
            for record in records:
                runs.add(record, self.log)

    def _tracked(self, records: list[int]) -> set[str] | frozenset[str]:
        """Names of tables that the session makes and drops, renames, or makes twice in different ways."""
        makers: dict[str, int] = {}
        tracked: set[str] = set()
        statements = self.log.statements
        for record in records:
            number = self.log.statement[record]
            for effect in statements[number].effects:
                if effect.kind == "temp":
                    tracked.add(effect.name)
                elif effect.kind == "create":
                    if makers.setdefault(effect.name, number) != number:
                        tracked.add(effect.name)
                elif effect.kind == "drop" and effect.name in makers:
                    tracked.add(effect.name)
                elif effect.kind == "rename" and (effect.name in makers or effect.name in tracked):
                    tracked.update((effect.name, effect.other))
        return tracked or _NONE

    def _words(self, number: int) -> frozenset[str]:
        found = self.words.get(number)
        if found is None:
            found = self.words[number] = words(self.log.statements[number].text)
        return found

    # -- what comes of it ----------------------------------------------------------------------------------------------

    def _found(self, parts: int) -> SessionStatements:
        log = self.log
        return SessionStatements(
            {self._where(key): self._named(runs) for key, runs in self.alone.items()},
            {
                tuple(map(self._where, keys)): [self._named(runs) for runs in several]
                for keys, several in self.episodes.items()
            },
            len(log.sessions),
            self.rolled_back,
            parts,
        )

    def _where(self, key: _Key) -> Where:
        statement = self.log.statements[key[0]]
        return StatementIdentity(statement.fingerprint, statement.dialect), self.log.contexts[key[1]]

    def _named(self, runs: _Runs) -> StatementRuns:
        log = self.log
        record = runs.record
        return StatementRuns(
            log.order[record] if log.order else record,
            log.sessions[log.session[record]],
            log.files[log.file[record]],
            log.line[record],
            bool(log.spans[record]),
            runs.count,
            runs.first,
            runs.last,
            {log.users[user] for user in runs.users},
        )
