"""The records of a log, deduplicated as they arrive: only a few numbers of each are kept.

A statement is kept once a fingerprint, and nothing is parsed here. Everything else that a record says becomes small
numbers in flat arrays (about 40 bytes a record), which ``sessions`` orders and folds.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from govtool.capture.logs.effects import Effect, effects
from govtool.capture.logs.query_record import OK, UNFINISHED, QueryRecord
from govtool.capture.sql.syntax.fingerprint import fingerprint
from govtool.names import fold

ABORTING = frozenset({"postgres", "redshift", "materialize", "risingwave"})
"""Dialects in which a failed statement dooms its transaction: COMMIT rolls it back."""

_REMEMBERED = 50_000
"""Exact texts whose fingerprint is remembered: machines repeat themselves to the letter."""

_EMPTY = re.compile(r"\A[\s;]*\Z")

FAILED_STATEMENT = -1
"""In place of a statement's number: one that failed."""


@dataclass(frozen=True, slots=True)
class NameContext:
    """The meaning of names without a catalog or a schema; canonical parts."""

    catalog: str | None = None
    schema: str | None = None
    search_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DistinctStatement:
    """A statement of the log, once a fingerprint."""

    text: str
    fingerprint: str
    dialect: str
    effects: tuple[Effect, ...]


@dataclass(slots=True)
class Withheld:
    """Statements whose text the log does not have: cut off, or empty."""

    file: str
    line: int
    """Of the first."""
    characters: int
    runs: int = 0


@dataclass(slots=True)
class RecordCounts:
    """Records by what became of them."""

    records: int = 0
    failed: int = 0
    unfinished: int = 0


@dataclass(slots=True)
class Log:
    """All records of an ingest, deduplicated. Parallel arrays have an entry a record."""

    statement: array[int] = field(default_factory=lambda: array("i"))
    context: array[int] = field(default_factory=lambda: array("i"))
    session: array[int] = field(default_factory=lambda: array("i"))
    user: array[int] = field(default_factory=lambda: array("i"))
    file: array[int] = field(default_factory=lambda: array("i"))
    line: array[int] = field(default_factory=lambda: array("q"))
    time: array[float] = field(default_factory=lambda: array("d"))
    """Seconds since 1970; minus infinity where the log has none."""
    spans: bytearray = field(default_factory=bytearray)
    order: array[int] = field(default_factory=lambda: array("q"))
    """Places of the records in a larger log that this one is a part of; empty: their indexes."""
    statements: list[DistinctStatement] = field(default_factory=list)
    contexts: list[NameContext] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    withheld: dict[tuple[str, str], Withheld] = field(default_factory=dict)
    """By reason (``truncated``, ``withheld``) and a digest of the text."""
    counts: RecordCounts = field(default_factory=RecordCounts)
    scripts: list[tuple[str, int]] = field(default_factory=list)
    """Queries that may turn out to be scripts whose parts are in the log: id and the record's index."""
    parents: set[str] = field(default_factory=set)


class LogCollector:
    """Takes records one by one."""

    def __init__(self, dialect_of: Callable[[str], str]) -> None:
        """Start with an empty log.

        Args:
            dialect_of: The canonical name of a dialect as a record has it; empty for an unknown one.
        """
        self.log = Log()
        self._dialect_of = dialect_of
        self._dialects: dict[str, str] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._texts: dict[tuple[str, str], int] = {}
        self._contexts: dict[tuple[object, ...], int] = {}
        self._context_numbers: dict[NameContext, int] = {}
        self._sessions: dict[tuple[str, ...], int] = {}
        self._session_numbers: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._files: dict[str, int] = {}

    def add(self, record: QueryRecord) -> None:
        """Add a record."""
        log = self.log
        counts = log.counts
        counts.records += 1
        dialect = self._dialects.get(record.dialect)
        if dialect is None:
            dialect = self._dialects[record.dialect] = self._dialect_of(record.dialect)
        if record.parent_id is not None:
            log.parents.add(record.parent_id)
        if record.status != OK:
            if record.status == UNFINISHED:
                counts.unfinished += 1
                return
            counts.failed += 1
            if dialect not in ABORTING:
                return
            number = FAILED_STATEMENT
        elif record.truncated:
            self._withhold("truncated", record)
            return
        else:
            text = record.text
            key = (text, dialect)
            known = self._texts.get(key)
            if known is None:
                if _EMPTY.match(text):
                    self._withhold("withheld", record)
                    return
                known = self._statement_number(text, dialect)
                if len(self._texts) >= _REMEMBERED:
                    self._texts.clear()
                self._texts[key] = known
            number = known
        if record.query_id is not None and record.session_id == record.query_id:
            log.scripts.append((record.query_id, len(log.statement)))
        self._append(record, number, dialect)

    def absorb(self, part: Log) -> None:
        """Add the records of a log that was collected elsewhere, behind those that are there.

        Parts of a log that are absorbed in its order come to the same as its records added one by one.
        """
        log = self.log
        base = len(log.statement)
        statements = array("i", [self._absorbed(statement) for statement in part.statements] + [FAILED_STATEMENT])
        _extend(log.statement, part.statement, statements)
        _extend(log.context, part.context, array("i", [self.context_number(c) for c in part.contexts]))
        _extend(
            log.session,
            part.session,
            array("i", [_numbered(self._session_numbers, log.sessions, s) for s in part.sessions]),
        )
        _extend(log.user, part.user, array("i", [_numbered(self._users, log.users, u) for u in part.users]))
        _extend(log.file, part.file, array("i", [_numbered(self._files, log.files, f) for f in part.files]))
        log.line.extend(part.line)
        log.time.extend(part.time)
        log.order.extend(part.order)
        log.spans.extend(part.spans)
        log.scripts.extend((query, base + index) for query, index in part.scripts)
        log.parents |= part.parents
        for key, item in part.withheld.items():
            known = log.withheld.setdefault(key, Withheld(item.file, item.line, item.characters))
            known.runs += item.runs
        counts, more = log.counts, part.counts
        counts.records += more.records
        counts.failed += more.failed
        counts.unfinished += more.unfinished

    def _absorbed(self, statement: DistinctStatement) -> int:
        key = (statement.fingerprint, statement.dialect)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.log.statements)
            self.log.statements.append(statement)
        return number

    def _append(self, record: QueryRecord, number: int, dialect: str) -> None:
        log = self.log
        log.statement.append(number)
        log.context.append(self._context(record, dialect))
        session = (
            (record.session_id,) if record.session_id is not None else (record.file, record.user or "")
        )  # without sessions, what one user ran counts as one, in order of time
        known = self._sessions.get(session)
        if known is None:
            name = session[0] if len(session) == 1 else ":".join(part for part in session if part)
            known = self._sessions[session] = _numbered(self._session_numbers, log.sessions, name)
        log.session.append(known)
        log.user.append(_numbered(self._users, log.users, record.user or ""))
        log.file.append(_numbered(self._files, log.files, record.file))
        log.line.append(record.line)
        log.time.append(seconds(record.started_at))
        log.spans.append(record.spans)

    def _statement_number(self, text: str, dialect: str) -> int:
        key = (fingerprint(text, dialect), dialect)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.log.statements)
            self.log.statements.append(DistinctStatement(text, key[0], dialect, effects(text, dialect)))
        return number

    def _context(self, record: QueryRecord, dialect: str) -> int:
        key = (record.database, record.schema, record.search_path, dialect)
        number = self._contexts.get(key)
        if number is None:
            context = NameContext(
                fold(record.database, quoted=True, dialect=dialect, table=True) if record.database else None,
                fold(record.schema, quoted=True, dialect=dialect, table=True) if record.schema else None,
                tuple(fold(part, quoted=True, dialect=dialect, table=True) for part in record.search_path),
            )
            number = self._contexts[key] = self.context_number(context)
        return number

    def context_number(self, context: NameContext) -> int:
        """The number of a context, old or new."""
        number = self._context_numbers.get(context)
        if number is None:
            number = self._context_numbers[context] = len(self.log.contexts)
            self.log.contexts.append(context)
        return number

    def _withhold(self, reason: str, record: QueryRecord) -> None:
        digest = hashlib.blake2b(record.text.encode("utf-8", "replace"), digest_size=16).hexdigest()
        found = self.log.withheld.get((reason, digest))
        if found is None:
            found = self.log.withheld[reason, digest] = Withheld(record.file, record.line, len(record.text))
        found.runs += 1


def _numbered(numbers: dict[str, int], names: list[str], name: str) -> int:
    number = numbers.get(name)
    if number is None:
        number = numbers[name] = len(names)
        names.append(name)
    return number


def _extend(mine: array[int], theirs: array[int], numbers: array[int]) -> None:
    """Append records of another log, whose numbers are translated; -1 stays -1."""
    import numpy as np

    if len(theirs):
        found = np.frombuffer(numbers, dtype=np.int32)[np.frombuffer(theirs, dtype=np.int32)]
        mine.frombytes(found.tobytes())


def seconds(moment: datetime | None) -> float:
    """Seconds since 1970; minus infinity for None. A naive time is taken as UTC."""
    if moment is None:
        return float("-inf")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()
