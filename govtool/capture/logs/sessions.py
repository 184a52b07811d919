"""Sessions of a log, folded to what has to be parsed: each distinct statement of equal context once.

A statement that stands alone is a script of its own, whoever ran it how often. Statements that depend on their session,
because a table comes and goes in it, stay together in order of time: an *episode*, from the making of its first table
until none of its tables is left. Equal episodes are one. What a transaction rolled back was not written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from govtool.capture.logs.dedup import ABORTING, FAILED_STATEMENT, Collector, Context, Log
from govtool.capture.logs.effects import Effect, reads_only, words
from govtool.capture.logs.names import needs_schema
from govtool.capture.sql.logged import LoggedScript, LoggedStatement
from govtool.clock import iso

MAX_EPISODE = 2_000
"""Statements of an episode from which on the next making of a table begins a new one."""

MAX_USERS = 20
"""Users that are named of a statement; the rest is counted."""

COMMITTING = frozenset({"mysql", "oracle", "snowflake", "doris", "starrocks", "singlestore"})
"""Dialects in which a definition commits the transaction it is in."""

IMPLICIT = frozenset({"oracle"})
"""Dialects in which a transaction is always open."""

_LIFE = frozenset({"temp", "create", "drop", "rename"})
_NONE: frozenset[str] = frozenset()

Key = tuple[int, int]
"""A statement and its context, by number."""


@dataclass(slots=True)
class _Runs:
    """What is known of the runs of a statement (or of one in an episode)."""

    record: int
    """The first run, by index into the log."""
    count: int = 0
    first: float = float("inf")
    last: float = float("-inf")
    users: set[int] = field(default_factory=set)

    def add(self, record: int, log: Log) -> None:
        time = log.time[record]
        self.count += 1
        if time < self.first:
            self.first = time
            self.record = record
        self.last = max(self.last, time)
        self.users.add(log.user[record])

    def merge(self, other: _Runs) -> None:
        """Add the runs of the same in another context."""
        if other.first < self.first or (other.first == self.first and other.record < self.record):
            self.first, self.record = other.first, other.record
        self.count += other.count
        self.last = max(self.last, other.last)
        self.users |= other.users


@dataclass(slots=True)
class _Episode:
    """Statements that stay together, while they are collected."""

    keys: list[Key] = field(default_factory=list)
    runs: list[list[int]] = field(default_factory=list)
    since: dict[Key, int] = field(default_factory=dict)
    """Where a statement is since the last making or dropping of a table: once more changes nothing."""
    made: set[Key] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Folded:
    """A log as scripts for the extractor."""

    definitions: tuple[LoggedScript, ...]
    """Those that make, fill or change tables."""
    queries: tuple[LoggedScript, ...]
    """Those that only read: there may be many, and none needs another."""
    sessions: int
    rolled_back: int
    """Runs that were undone."""
    parts: int
    """Scripts that were left out because their statements are in the log."""


def fold(collector: Collector) -> Folded:
    """Fold a log that is read to its end."""
    return _Fold(collector).run()


class _Fold:
    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.log = collector.log
        self.alone: dict[Key, _Runs] = {}
        self.episodes: dict[tuple[Key, ...], list[_Runs]] = {}
        self.rolled_back = 0
        self.words: dict[int, frozenset[str]] = {}

    def run(self) -> Folded:
        import numpy as np

        log = self.log
        if not log.statement:
            return Folded((), (), 0, 0, 0)
        statement = np.frombuffer(log.statement, dtype=np.int32)
        session = np.frombuffer(log.session, dtype=np.int32)
        time = np.frombuffer(log.time, dtype=np.float64)
        used = np.ones(len(statement), dtype=bool)
        parts = [index for query, index in log.scripts.items() if query in log.parents]
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
        return self._folded(len(parts))

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
        kept, contexts = _Replay(self.collector, records).run()
        self.rolled_back += sum(log.statement[r] >= 0 for r in records) - len(kept)
        tracked = self._tracked(kept)
        episode: _Episode | None = None
        live: set[str] = set()
        for record in kept:
            number = log.statement[record]
            key = (number, contexts[record])
            acts = [
                e
                for e in log.statements[number].effects
                if e.kind in _LIFE and (e.name in tracked or e.other in tracked)
            ]
            if not acts and not (tracked and episode is not None and tracked & self._words(number)):
                runs = self.alone.get(key)
                if runs is None:
                    runs = self.alone[key] = _Runs(record)
                runs.add(record, log)
                continue
            makes = {e.name for e in acts if e.kind in ("temp", "create")}
            if (
                episode is not None
                and makes
                and (not live or (live <= makes and key in episode.made) or len(episode.keys) >= MAX_EPISODE)
            ):
                self._close(episode)
                episode = None
            if episode is None:
                if not makes:
                    # Drops what the session did not make, or reads what is not made yet: nothing comes of it here.
                    self.alone.setdefault(key, _Runs(record)).add(record, log)
                    continue
                episode = _Episode()
                live = set()
            for effect in acts:
                if effect.kind in ("temp", "create"):
                    live.add(effect.name)
                else:
                    live.discard(effect.name)
                    if effect.other:
                        live.add(effect.other)
            self._take(episode, key, record, bool(acts))
        if episode is not None:
            self._close(episode)

    def _take(self, episode: _Episode, key: Key, record: int, acts: bool) -> None:
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

    def _folded(self, parts: int) -> Folded:
        log = self.log
        self._merge_contexts()
        definitions: list[tuple[int, LoggedScript]] = []
        queries: list[tuple[int, LoggedScript]] = []
        for key, runs in self.alone.items():
            distinct = log.statements[key[0]]
            label = f"{log.sessions[log.session[runs.record]]}#{distinct.fingerprint[:12]}.{key[1]}"
            script = LoggedScript(label, (self._logged(key, runs),), distinct.dialect)
            (queries if reads_only(distinct.text) else definitions).append((runs.record, script))
        seen: dict[int, int] = {}
        for signature, parts_of in self.episodes.items():
            session = log.session[parts_of[0].record]
            seen[session] = seen.get(session, 0) + 1
            label = log.sessions[session] + (f"#{seen[session]}" if seen[session] > 1 else "")
            statements = tuple(self._logged(key, runs) for key, runs in zip(signature, parts_of, strict=True))
            script = LoggedScript(label, statements, log.statements[signature[0][0]].dialect)
            definitions.append((parts_of[0].record, script))
        return Folded(
            tuple(script for _, script in sorted(definitions, key=lambda pair: pair[0])),
            tuple(script for _, script in sorted(queries, key=lambda pair: pair[0])),
            len(log.sessions),
            self.rolled_back,
            parts,
        )

    def _merge_contexts(self) -> None:
        """Make one of the runs in several schemas of a statement that no schema matters to."""
        contexts: dict[int, list[int]] = {}
        for number, context in self.alone:
            contexts.setdefault(number, []).append(context)
        for number, several in contexts.items():
            distinct = self.log.statements[number]
            if len(several) == 1 or needs_schema(distinct.text, distinct.dialect):
                continue
            kept: dict[str | None, Key] = {}
            for context in sorted(several):
                catalog = self.log.contexts[context].catalog
                key = kept.setdefault(catalog, (number, self.collector.context_number(Context(catalog))))
                runs = self.alone.pop((number, context))
                known = self.alone.get(key)
                if known is None:
                    self.alone[key] = runs
                else:
                    known.merge(runs)

    def _logged(self, key: Key, runs: _Runs) -> LoggedStatement:
        log = self.log
        context = log.contexts[key[1]]
        return LoggedStatement(
            log.statements[key[0]].text,
            log.files[log.file[runs.record]],
            log.line[runs.record],
            bool(log.spans[runs.record]),
            context.catalog,
            context.schema,
            context.search_path,
            self._principal(runs.users),
            moment(runs.first),
            moment(runs.last),
            runs.count,
        )

    def _principal(self, users: set[int]) -> str | None:
        names = sorted(name for user in users if (name := self.log.users[user]))
        if not names:
            return None
        more = len(names) - MAX_USERS
        return ", ".join(names[:MAX_USERS]) + (f" and {more} more" if more > 0 else "")


class _Replay:
    """Transactions and names of one session."""

    def __init__(self, collector: Collector, records: list[int]) -> None:
        self.collector = collector
        self.log = collector.log
        self.records = records
        self.contexts: dict[int, int] = {}
        self.undone: set[int] = set()
        self.now = Context()
        self.begun: int | None = None
        self.before = Context()
        self.outside: Context | None = None
        """What SET LOCAL hides until the transaction ends."""
        self.savepoints: list[tuple[str, int, Context]] = []
        self.aborted = False

    def run(self) -> tuple[list[int], dict[int, int]]:
        """The records that count, and the context of each."""
        log = self.log
        for place, record in enumerate(self.records):
            number = log.statement[record]
            if number == FAILED_STATEMENT:
                self.aborted = self.begun is not None
                continue
            distinct = log.statements[number]
            if self.begun is None and distinct.dialect in IMPLICIT:
                self._begin(place)
            self.contexts[record] = self._context(record)
            for effect in distinct.effects:
                self._apply(effect, place, distinct.dialect)
        kept = [r for r in self.records if log.statement[r] >= 0 and r not in self.undone]
        return kept, self.contexts

    def _context(self, record: int) -> int:
        """What the record says, and where it is silent what the session has set."""
        number = self.log.context[record]
        if self.now == Context():
            return number
        said = self.log.contexts[number]
        if said.schema is not None or said.search_path:
            return number
        catalog = said.catalog if said.catalog is not None else self.now.catalog
        return self.collector.context_number(Context(catalog, self.now.schema, self.now.search_path))

    def _begin(self, place: int) -> None:
        self.begun, self.before, self.savepoints, self.aborted = place, self.now, [], False

    def _end(self) -> None:
        if self.outside is not None:
            self.now, self.outside = self.outside, None
        self.begun, self.savepoints, self.aborted = None, [], False

    def _apply(self, effect: Effect, place: int, dialect: str) -> None:
        kind = effect.kind
        if kind == "use" and effect.change is not None:
            if effect.local and self.begun is None:
                return
            if effect.local and self.outside is None:
                self.outside = self.now
            change = effect.change
            self.now = Context(
                change.catalog if change.catalog is not None else self.now.catalog,
                change.schema if change.schema is not None else self.now.schema,
                change.search_path or (() if change.schema is not None else self.now.search_path),
            )
        elif kind == "begin":
            if self.begun is None:
                self._begin(place)
        elif kind == "savepoint":
            self.savepoints.append((effect.name, place, self.now))
        elif kind == "commit":
            if self.aborted and dialect in ABORTING:
                self._undo(place, dialect)
            self._end()
        elif kind == "rollback":
            self._undo(place, dialect)
            self._end()
        elif kind == "back":
            for at in range(len(self.savepoints) - 1, -1, -1):
                name, since, context = self.savepoints[at]
                if name == effect.name:
                    self._forget(since, place)
                    self.now = context if dialect in ABORTING else self.now
                    # What is behind it is undone for good: going back once more does not look at it again.
                    self.savepoints[at:] = [(name, place + 1, self.now)]
                    self.aborted = False
                    return
        elif kind in ("create", "drop", "rename") and dialect in COMMITTING:
            self._end()

    def _undo(self, place: int, dialect: str) -> None:
        if self.begun is None:
            return
        self._forget(self.begun, place)
        if dialect in ABORTING:
            self.now, self.outside = self.before, None

    def _forget(self, since: int, until: int) -> None:
        """Take back what was written between two places; what was read was read, but for tables that never were."""
        log = self.log
        span = [r for r in self.records[since : until + 1] if log.statement[r] >= 0 and r not in self.undone]
        made = {e.name for r in span for e in log.statements[log.statement[r]].effects if e.kind in ("temp", "create")}
        for record in span:
            distinct = log.statements[log.statement[record]]
            of_session = distinct.effects and not _does_more(distinct.effects)
            if not of_session and (not reads_only(distinct.text) or made & words(distinct.text)):
                self.undone.add(record)


def _does_more(effects: tuple[Effect, ...]) -> bool:
    """Whether a statement with effects may do more than change its session."""
    return any(e.kind in _LIFE for e in effects) or len(effects) > 1


def moment(time: float) -> str | None:
    """ISO 8601 of seconds since 1970; None where there is no time."""
    return iso(datetime.fromtimestamp(time, UTC)) if abs(time) != float("inf") else None
