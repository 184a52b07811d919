"""One session in order of time: what its names mean at each statement, and what its transactions took back."""

from __future__ import annotations

from govtool.capture.logs.dedup import ABORTING, FAILED_STATEMENT, LogCollector, NameContext
from govtool.capture.logs.effects import LIFE, Effect, outer_words, reads_only, words
from govtool.capture.sql.scripts.session import SessionChange

COMMITTING = frozenset({"mysql", "oracle", "snowflake", "doris", "starrocks", "singlestore"})
"""Dialects in which a definition commits the transaction it is in."""

IMPLICIT = frozenset({"oracle"})
"""Dialects in which a transaction is always open."""

_BEGINS, _ENDS = frozenset({"begin", "savepoint"}), frozenset({"commit", "rollback", "back"})
_BEGIN_WORDS = frozenset({"begin", "start", "bt", "savepoint"})
_ROLLBACK_WORDS = frozenset({"rollback", "abort"})


class Replay:
    """Transactions and names of one session."""

    def __init__(self, collector: LogCollector, records: list[int]) -> None:
        self.collector = collector
        self.log = collector.log
        self.records = records
        self.contexts: dict[int, int] = {}
        self.undone: set[int] = set()
        self.now = NameContext()
        self.begun: int | None = None
        self.before = NameContext()
        self.outside: NameContext | None = None
        """Settings hidden by SET LOCAL until the transaction ends."""
        self.savepoints: list[tuple[str, int, NameContext]] = []
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
        """Return the context of the record, completed by the session's settings."""
        number = self.log.context[record]
        if self.now == NameContext():
            return number
        logged = self.log.contexts[number]
        if logged.schema is not None or logged.search_path:
            return number
        catalog = logged.catalog if logged.catalog is not None else self.now.catalog
        return self.collector.context_number(NameContext(catalog, self.now.schema, self.now.search_path))

    def _begin(self, place: int) -> None:
        self.begun, self.before, self.savepoints, self.aborted = place, self.now, [], False

    def _end(self) -> None:
        if self.outside is not None:
            self.now, self.outside = self.outside, None
        self.begun, self.savepoints, self.aborted = None, [], False

    def _apply(self, effect: Effect, place: int, dialect: str) -> None:
        kind = effect.kind
        if kind == "use" and effect.change is not None:
            self._use(effect.change, local=effect.local)
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
            self._back_to(effect.name, place, dialect)
        elif kind in ("create", "drop", "rename") and dialect in COMMITTING:
            self._end()

    def _use(self, change: SessionChange, *, local: bool) -> None:
        """Change the names' context; ``SET LOCAL`` lasts until the transaction ends."""
        if local and self.begun is None:
            return
        if local and self.outside is None:
            self.outside = self.now
        self.now = NameContext(
            change.catalog if change.catalog is not None else self.now.catalog,
            change.schema if change.schema is not None else self.now.schema,
            change.search_path or (() if change.schema is not None else self.now.search_path),
        )

    def _back_to(self, savepoint: str, place: int, dialect: str) -> None:
        """Roll back to the latest savepoint of a name."""
        for at in range(len(self.savepoints) - 1, -1, -1):
            name, since, context = self.savepoints[at]
            if name == savepoint:
                self._forget(since, place)
                self.now = context if dialect in ABORTING else self.now
                # What is behind it is undone for good: going back once more does not look at it again.
                self.savepoints[at:] = [(name, place + 1, self.now)]
                self.aborted = False
                return

    def _undo(self, place: int, dialect: str) -> None:
        if self.begun is None:
            return
        self._forget(self.begun, place)
        if dialect in ABORTING:
            self.now, self.outside = self.before, None

    def _forget(self, since: int, until: int) -> None:
        """Take back what was written between two places; what was read was read, but for tables that never were."""
        log = self.log
        edges = {self.records[since], self.records[until]}
        span = [
            r
            for r in self.records[since : until + 1]
            if log.statement[r] >= 0 and r not in self.undone and not (r in edges and self._is_partial(r))
        ]
        made = {e.name for r in span for e in log.statements[log.statement[r]].effects if e.kind in ("temp", "create")}
        for record in span:
            distinct = log.statements[log.statement[record]]
            of_session = distinct.effects and not does_more(distinct.effects)
            if not of_session and (not reads_only(distinct.text) or made & words(distinct.text)):
                self.undone.add(record)

    def _is_partial(self, record: int) -> bool:
        """Return whether a record that begins or ends a transaction, a script, may also write outside of it.

        Then it stays as a whole: what was undone is kept too, but nothing that was written is lost.
        """
        distinct = self.log.statements[self.log.statement[record]]
        turns = [e.kind for e in distinct.effects if e.kind in _BEGINS or e.kind in _ENDS]
        first, last = outer_words(distinct.text)
        if not turns:
            return False
        begins, ends = turns[0] in _BEGINS, turns[-1] in _ENDS
        if (begins and first not in _BEGIN_WORDS) or (ends and last not in _ROLLBACK_WORDS):
            return True
        return len(turns) > begins + ends


def does_more(effects: tuple[Effect, ...]) -> bool:
    """Return whether a statement with effects may do more than change its session."""
    return any(e.kind in LIFE for e in effects) or len(effects) > 1
