"""The steps of an ingest of logs: functions of data, which every engine calls, in this process or in others."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from govtool.answers.coverage import Coverage
from govtool.app.coverage.sources import costs_of
from govtool.app.ingest.logs.parts import Findings, LogPart, costliest, part_of, worst
from govtool.app.ingest.sql_options import check_dialect
from govtool.errors import UnknownNameError, UsageError
from govtool.model import Diagnostic
from govtool.names import join_name, split_name

if TYPE_CHECKING:
    from govtool.capture.logs.collected_bytes import Collected
    from govtool.capture.logs.dedup import LogCollector, Withheld
    from govtool.capture.logs.pieces import ByteSpan, Piece, SpanSurvey
    from govtool.capture.logs.query_record import Entry
    from govtool.capture.logs.read import LogOptions
    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.resolve.knowledge import Knowledge
    from govtool.capture.sql.resolve.logged import LoggedScript
    from govtool.capture.sql.stages import StageProgress

Advance = Callable[[int, int, int], None]
"""Takes how many statements more are done, how many more of them were not understood, and how many are distinct."""

GROUP = 1_000
"""Queries that are resolved together: the trees of that many are all that a process holds."""

MAX_LISTED = 1_000
"""Rejects that are listed; the rest is counted."""


def survey_or_problem(span: ByteSpan) -> SpanSurvey | str:
    """Return the contents of a span; for one that cannot be read, the reason."""
    from govtool.capture.logs.pieces import survey

    try:
        return survey(span)
    except OSError as error:
        return error.strerror or str(error)


def collect_piece(piece: Piece, how: LogOptions, *, only: bool) -> Collected:
    """Read one piece of a log.

    Args:
        piece: Which one.
        how: How to read it.
        only: Whether there is no other log: then one whose format cannot be told is an error, and no reject.

    Raises:
        UsageError: there is no other log, and its format cannot be told.
    """
    from govtool.capture.logs.collected_bytes import Collected
    from govtool.capture.logs.pieces import read_piece
    from govtool.capture.logs.query_record import Reject

    name = piece.span.name
    try:
        return collect(read_piece(piece, how), how.dialect)
    except UsageError as error:
        if only:
            raise
        reject = Reject(name, 1, error.message, fatal=True)
    except OSError as error:
        reject = Reject(name, 1, f"cannot be read: {error.strerror}")
    return Collected(rejects=[reject], rejected=1)


def collect(entries: Iterable[Entry], default: str) -> Collected:
    """Deduplicate records; ``default`` is the dialect of those that name one which nobody knows."""
    from govtool.capture.logs.collected_bytes import Collected
    from govtool.capture.logs.dedup import LogCollector
    from govtool.capture.logs.query_record import Reject

    unknown: set[str] = set()

    def dialect(name: str) -> str:
        if not name:
            return default
        try:
            return check_dialect(name)
        except UnknownNameError:
            unknown.add(name)
            return default

    collector = LogCollector(dialect)
    add = collector.add
    rejects: list[Reject] = []
    rejected = 0
    for entry in entries:
        if isinstance(entry, Reject):
            rejected += 1
            if rejected <= MAX_LISTED:
                rejects.append(entry)
        else:
            add(entry)
    return Collected(collector.log, rejects, rejected, sorted(unknown))


def absorb(collector: LogCollector, whole: Collected, part: Collected) -> None:
    """Add what a further piece of a log holds."""
    collector.absorb(part.log)
    whole.rejects.extend(part.rejects[: MAX_LISTED - len(whole.rejects)])
    whole.rejected += part.rejected
    whole.unknown = sorted({*whole.unknown, *part.unknown})


def notes_of(collected: Collected, default: str) -> list[Diagnostic]:
    """Rejects and unknown dialects."""
    notes = [
        Diagnostic("reject", "error" if reject.fatal else "warning", reject.message, reject.file, reject.line)
        for reject in collected.rejects
    ]
    if collected.rejected > len(notes):
        more = f"{collected.rejected - len(notes):,} more records cannot be read"
        notes.append(Diagnostic("reject", "warning", more))
    for name in collected.unknown:
        text = (
            f"the log has statements of a dialect {name[:60]}, which is not known; read as {default or 'generic SQL'}"
        )
        try:
            check_dialect(name)
        except UnknownNameError as error:
            notes.append(Diagnostic("unknown-dialect", "warning", text, candidates=tuple(sorted(error.nearest))))
    return notes


def in_database(settings: Options, catalogs: set[str]) -> Options:
    """A schema without catalogs describes the one database that the log is of, if it is of one."""
    schema = settings.schema
    if schema is None or len(catalogs) != 1:
        return settings
    (catalog,) = catalogs
    tables = {
        join_name([catalog, name]) if len(split_name(name)) == 2 else name: columns
        for name, columns in schema.tables.items()
    }
    return replace(settings, schema=replace(schema, tables=tables))


def groups_for(queries: int) -> int:
    """Into how many groups queries are put."""
    return max(1, -(-queries // GROUP))


def group_of(script: LoggedScript, groups: int) -> int:
    """The group of a query, which depends on its text only."""
    return zlib.crc32(script.statements[0].text.encode("utf-8", "surrogatepass")) * groups >> 32


def counting(statements: int, advance: Advance | None) -> Callable[[StageProgress], None] | None:
    """Report the stages of an extraction of so many statements as statements done: of each stage its part."""
    from govtool.capture.sql.stages import DESCRIBING, PARSING, RESOLVING

    if advance is None:
        return None
    # The rest is to write down what was found.
    parts = {PARSING: (0.0, 0.35), RESOLVING: (0.35, 0.35), DESCRIBING: (0.7, 0.2)}
    counted = [0, 0, 0]

    def report(stage: StageProgress) -> None:
        before, part = parts[stage.name]
        done = int(statements * (before + part * stage.done / max(1, stage.total)))
        done, failed, distinct = (
            max(0, now - before) for now, before in zip((done, stage.failed, stage.distinct), counted, strict=True)
        )
        counted[:] = (counted[0] + done, counted[1] + failed, counted[2] + distinct)
        if done or failed or distinct:
            advance(done, failed, distinct)

    return report


def resolve_definitions(
    scripts: Sequence[LoggedScript], settings: Options, advance: Advance | None = None
) -> tuple[LogPart, Knowledge]:
    """Extract all that makes or fills tables; ``advance`` takes statements done, and those not understood."""
    from govtool.capture.sql.extract import extract_definitions

    extraction, knowledge = extract_definitions(scripts, settings, counting(len(scripts), advance))
    return part_of(extraction), knowledge


def resolve_queries(
    scripts: Sequence[LoggedScript],
    settings: Options,
    knowledge: Knowledge,
    *,
    final: bool,
    advance: Advance | None = None,
) -> tuple[LogPart, list[LoggedScript]]:
    """Extract a group of queries; unless ``final``, those that other groups may help are returned.

    The part's ``more["usage"]`` are the columns that the group shows.
    """
    from govtool.capture.sql.extract import extract_queries
    from govtool.capture.sql.resolve.knowledge import usage_to_value

    queries = extract_queries(scripts, settings, knowledge, final=final, report=counting(len(scripts), advance))
    shown = {
        name: columns - knowledge.used.get(name, frozenset())
        for name, columns in queries.usage.items()
        if not columns <= knowledge.used.get(name, frozenset())
    }
    part = part_of(queries.extraction, {"usage": usage_to_value(shown)})
    return part, [scripts[number] for number in queries.unsettled]


def withheld_findings(withheld: Iterable[tuple[str, Withheld]]) -> Findings:
    """Statements without their whole text, each with the reason: opaque, each distinct one."""
    from govtool.capture.sql.extract import Shortfall

    found = []
    for reason, item in withheld:
        message = (
            f"the log cut it off after {item.characters:,} characters"
            if reason == "truncated"
            else "the log does not have its text"
        )
        found.append(Shortfall("opaque", Diagnostic(reason, "error", message, item.file, item.line), item.runs, "", ""))
    findings = Findings(
        Coverage(statements=len(found), opaque=len(found), runs_opaque=sum(s.runs for s in found)),
        diagnostics=worst([s.diagnostic for s in found]),
        costs=costs_of(found),
        failures=costliest(found),
    )
    findings.codes.update(s.diagnostic.code for s in found)
    return findings
