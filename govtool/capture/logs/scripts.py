"""The folded statements of a log, as scripts for the extractor."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from govtool.capture.logs.dedup import DistinctStatement, LogCollector, NameContext
from govtool.capture.logs.effects import reads_only
from govtool.capture.logs.names import needs_schema
from govtool.capture.logs.sessions import SessionStatements, StatementIdentity, StatementRuns, find
from govtool.capture.sql.resolve.logged import LoggedScript, LoggedStatement
from govtool.clock import iso

MAX_USERS = 20
"""Users that are named of a statement; the rest is counted."""


class Ordered(NamedTuple):
    """A script, and where in the log the first run of its first statement is."""

    order: int
    reads: bool
    """True if it only reads: nothing else needs it."""
    script: LoggedScript


@dataclass(frozen=True, slots=True)
class LogScripts:
    """A log as scripts for the extractor."""

    definitions: tuple[LoggedScript, ...]
    """Those that make, fill or change tables."""
    queries: tuple[LoggedScript, ...]
    """Those that only read: there may be many, and none needs another."""
    sessions: int
    rolled_back: int
    parts: int


def fold(collector: LogCollector) -> LogScripts:
    """Fold a log that is read to its end."""
    found = find(collector)
    statements = {StatementIdentity(s.fingerprint, s.dialect): s for s in collector.log.statements}
    made = [*alone(found, statements), *episodes(found, statements)]
    return LogScripts(
        named(script for script in made if not script.reads),
        tuple(script.script for script in sorted(made) if script.reads),
        found.sessions,
        found.rolled_back,
        found.parts,
    )


def alone(found: SessionStatements, statements: Mapping[StatementIdentity, DistinctStatement]) -> Iterable[Ordered]:
    """The statements that stand alone."""
    contexts: dict[StatementIdentity, dict[NameContext, StatementRuns]] = {}
    for (identity, context), runs in found.alone.items():
        contexts.setdefault(identity, {})[context] = runs
    for identity, several in contexts.items():
        yield from alone_in(statements[identity], several)


def alone_in(statement: DistinctStatement, contexts: Mapping[NameContext, StatementRuns]) -> Iterable[Ordered]:
    """A statement in each of its contexts; once a catalog if no schema matters to it."""
    reads = is_query(statement)
    for context, runs in _merged(statement, contexts).items():
        label = f"{runs.session}#{statement.fingerprint[:12]}.{_mark(statement.dialect, context)}"
        script = LoggedScript(label, (_logged(statement, context, runs),), statement.dialect)
        yield Ordered(runs.order, reads, script)


def is_query(statement: DistinctStatement) -> bool:
    """Return whether a statement only reads, so that no other needs it; False where that is not plain."""
    return not statement.effects and ";" not in statement.text.rstrip("; \t\r\n") and reads_only(statement.text)


def episodes(found: SessionStatements, statements: Mapping[StatementIdentity, DistinctStatement]) -> Iterable[Ordered]:
    """The episodes, their scripts named by their sessions."""
    for signature, runs in found.episodes.items():
        yield episode([(statements[identity], context) for identity, context in signature], runs)


def episode(statements: Sequence[tuple[DistinctStatement, NameContext]], runs: Sequence[StatementRuns]) -> Ordered:
    """An episode as a script, named by its session."""
    logged = tuple(_logged(statement, context, own) for (statement, context), own in zip(statements, runs, strict=True))
    return Ordered(runs[0].order, False, LoggedScript(runs[0].session, logged, statements[0][0].dialect))


def named(scripts: Iterable[Ordered]) -> tuple[LoggedScript, ...]:
    """Definitions in order of the log; of the episodes of one session all but the first are numbered."""
    seen: dict[str, int] = {}
    result = []
    for _, _, script in sorted(scripts):
        number = seen[script.session] = seen.get(script.session, 0) + 1
        name = script.session if number == 1 else f"{script.session}#{number}"
        result.append(script if number == 1 else LoggedScript(name, script.statements, script.dialect))
    return tuple(result)


def _merged(
    statement: DistinctStatement, contexts: Mapping[NameContext, StatementRuns]
) -> Mapping[NameContext, StatementRuns]:
    """Make one of the runs in several schemas of a statement that no schema matters to."""
    if len(contexts) == 1 or needs_schema(statement.text, statement.dialect):
        return contexts
    kept: dict[NameContext, StatementRuns] = {}
    for context, runs in contexts.items():
        plain = NameContext(context.catalog)
        known = kept.get(plain)
        if known is None:
            kept[plain] = runs
        else:
            known.merge(runs)
    return kept


def _mark(dialect: str, context: NameContext) -> str:
    """A few digits that tell the contexts of a statement apart."""
    key = json.dumps([dialect, context.catalog, context.schema, context.search_path])
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _logged(statement: DistinctStatement, context: NameContext, runs: StatementRuns) -> LoggedStatement:
    return LoggedStatement(
        statement.text,
        runs.file,
        runs.line,
        runs.spans,
        context.catalog,
        context.schema,
        context.search_path,
        _principal(runs.users),
        moment(runs.first),
        moment(runs.last),
        runs.count,
    )


def _principal(users: set[str]) -> str | None:
    names = sorted(name for name in users if name)
    if not names:
        return None
    more = len(names) - MAX_USERS
    return ", ".join(names[:MAX_USERS]) + (f" and {more} more" if more > 0 else "")


def moment(time: float) -> str | None:
    """ISO 8601 of seconds since 1970; None where there is no time."""
    return iso(datetime.fromtimestamp(time, UTC)) if abs(time) != float("inf") else None
