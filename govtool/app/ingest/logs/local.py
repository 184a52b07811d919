"""The local engine: one process folds the log, any number of them reads, resolves and writes.

What comes out does not depend on how many there are: pieces are put together in the order of the log, queries are
grouped by their fingerprints, and derivations are sorted into fragments by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.ingest.logs import parts, steps
from govtool.app.ingest.logs.meter import Meter
from govtool.app.ingest.logs.parts import Findings
from govtool.app.ingest.logs.pool import Job, Pool, Setup
from govtool.app.ingest.payload import DERIVATIONS_PER_FRAGMENT
from govtool.errors import EvidenceError, UsageError
from govtool.model import Diagnostic
from govtool.model.spread import buckets_for

if TYPE_CHECKING:
    from govtool.capture.logs.collected_bytes import Collected
    from govtool.capture.logs.pieces import Piece
    from govtool.capture.logs.query_record import QueryRecord, Reject
    from govtool.capture.sql.extract import Options
    from govtool.capture.sql.resolve.knowledge import Knowledge
    from govtool.capture.sql.resolve.logged import LoggedScript
    from govtool.store import FragmentRef

BATCH = 10_000
"""Records that are sent to another process at a time, where one process has to read them in turn."""

SMALL = 4 << 20
"""Bytes of logs up to which no other process is started: starting takes longer."""

PACKED = 10
"""The assumed ratio of a log's size to its compressed size."""

_DEFINITIONS = "definitions"
_USAGE = "usage"


@dataclass(slots=True)
class LogFindings:
    """The findings of logs, ready to be committed."""

    findings: Findings
    notes: list[Diagnostic]
    """Rejects and the like, which belong to no statement."""
    counts: dict[str, int]
    dialects: list[str]
    fragments: list[tuple[bytes, int]] = field(default_factory=list)
    """Parquet bytes of derivations, and their rows."""
    uploaded: list[FragmentRef] = field(default_factory=list)
    """Fragments of derivations that are in the store already."""


def weight(pieces: Sequence[Piece]) -> int:
    """Return the approximate number of bytes to read."""
    return sum(_weight(piece) for piece in pieces)


def _weight(piece: Piece) -> int:
    size = piece.span.end - piece.span.start
    return size * PACKED if piece.whole and _is_packed(piece) else size


def _is_packed(piece: Piece) -> bool:
    from govtool.capture.logs.stream import is_plain

    try:
        with Path(piece.span.path).open("rb") as file:
            return not is_plain(file.read(4))
    except OSError:
        return False


def gather(pool: Pool, pieces: Sequence[Piece], logs: int, max_errors: int | None, meter: Meter) -> LogFindings:
    """Read logs and understand what is in them.

    Args:
        pool: Runs the steps.
        pieces: Of all logs, in order.
        logs: How many logs there are.
        max_errors: Rejects beyond which it is given up.
        meter: Is told how far it is.

    Raises:
        EvidenceError: there are more rejects (``evidence.max-errors``).
        UsageError: the format of the only log cannot be told.
        EngineError: a worker process died.
    """
    from govtool.capture.logs.collected_bytes import Collected, load
    from govtool.capture.logs.dedup import LogCollector
    from govtool.capture.logs.scripts import fold

    collector = LogCollector(lambda name: name)
    whole = Collected(collector.log)
    for job, data in pool.results(_reading(pieces, pool.setup, logs, meter)):
        part = load(data)
        steps.absorb(collector, whole, part)
        check_rejects(whole, max_errors)
        meter.read(_weight_of(job), whole)
    log = collector.log
    folded = fold(collector)
    catalogs = {context.catalog for context in log.contexts if context.catalog}
    catalog = catalogs.pop() if len(catalogs) == 1 else None
    counts = {
        "records": log.counts.records,
        "failed": log.counts.failed,
        "unfinished": log.counts.unfinished,
        "rolled_back": folded.rolled_back,
        "scripts": folded.parts,
        "rejected": whole.rejected,
        "sessions": folded.sessions,
        "distinct": len(log.statements),
        "users": sum(1 for user in log.users if user),
    }
    gathered = LogFindings(
        steps.withheld_findings((reason, item) for (reason, _), item in log.withheld.items()),
        steps.notes_of(whole, pool.setup.how.dialect),
        counts,
        sorted({s.dialect for s in log.statements}),
    )
    definitions, queries = folded.definitions, folded.queries
    del collector, whole, log, folded  # what was read is not needed any more
    _resolve(pool, gathered, definitions, queries, catalog, meter)
    return gathered


# -- reading -----------------------------------------------------------------------------------------------------------


def _reading(pieces: Sequence[Piece], setup: Setup, logs: int, meter: Meter) -> Iterator[Job]:
    """Pieces that a process can read alone are jobs; others are read here, and their records are sent."""
    for number, piece in enumerate(pieces):
        name = f"read-{number:06}"
        if piece.whole and _weight(piece) > 2 * SMALL:
            for part, batch in enumerate(_batches(piece, setup, meter, only=logs == 1)):
                yield Job(f"{name}-{part:06}", _collect, (batch,))
        else:
            yield Job(name, _collect_piece, (piece, logs == 1))


def _batches(piece: Piece, setup: Setup, meter: Meter, *, only: bool) -> Iterator[list[QueryRecord | Reject]]:
    from govtool.capture.logs.pieces import bounded
    from govtool.capture.logs.query_record import Reject
    from govtool.capture.logs.read import read_log

    name = piece.span.name
    try:
        with Path(piece.span.path).open("rb") as raw:
            records = read_log(bounded(raw, piece.size), name, setup.how)
            before = 0
            while batch := list(islice(records, BATCH)):
                meter.at(
                    max(0, raw.tell() - before) * _weight(piece) // piece.size
                )  # in Parquet, the end is read first
                before = raw.tell()
                yield batch
    except UsageError as error:
        if only:
            raise
        yield [Reject(name, 1, error.message, fatal=True)]
    except OSError as error:
        yield [Reject(name, 1, f"cannot be read: {error.strerror}", fatal=True)]


def _collect(setup: Setup, batch: list[QueryRecord | Reject]) -> bytes:
    from govtool.capture.logs.collected_bytes import dump

    return dump(steps.collect(batch, setup.how.dialect))


def _collect_piece(setup: Setup, piece: Piece, only: bool) -> bytes:
    from govtool.capture.logs.collected_bytes import dump

    return dump(steps.collect_piece(piece, setup.how, only=only))


def _weight_of(job: Job) -> int:
    """Return the bytes that a job has read itself; what was sent to it is counted when it is read."""
    (first, *_) = job.arguments
    return 0 if isinstance(first, list) else _weight(first)


def check_rejects(whole: Collected, max_errors: int | None) -> None:
    """Give up if there are too many rejects.

    Raises:
        EvidenceError: there are (``evidence.max-errors``).
    """
    if max_errors is None or whole.rejected <= max_errors:
        return
    last = whole.rejects[min(max_errors, len(whole.rejects) - 1)]
    raise EvidenceError(
        f"more than {max_errors:,} records cannot be read; the last: {last.message}",
        code="evidence.max-errors",
        location=f"{last.file}:{last.line}",
        hint="is this the format of the log? --from FORMAT names another",
    )


# -- resolving ---------------------------------------------------------------------------------------------------------


def _resolve(
    pool: Pool,
    gathered: LogFindings,
    definitions: Sequence[LoggedScript],
    queries: Sequence[LoggedScript],
    catalog: str | None,
    meter: Meter,
) -> None:
    """Definitions first, then queries with what those say, then once more those that other queries help."""
    findings = gathered.findings
    meter.resolving(len(definitions), len(queries))
    names = []
    _watch(pool, meter)
    for job, data in pool.results([Job(_DEFINITIONS, _definitions, (definitions, catalog))]):
        found, _ = parts.findings_in(data)
        findings.add(found)
        names.append(job.name)
    meter.resolved(len(definitions), findings)
    _watch(pool, meter)
    groups = _grouped(queries)
    several = steps.groups_for(len(queries)) > 1
    shown: list[dict[str, list[str]]] = []
    again: list[LoggedScript] = []
    jobs = (
        Job(f"queries-{number:06}", _queries, (group, catalog, not several, False))
        for number, group in enumerate(groups)
    )
    for job, data in pool.results(jobs):
        found, more = parts.findings_in(data)
        findings.add(found)
        names.append(job.name)
        shown.append(more["usage"])
        group = job.arguments[0]
        again.extend(group[place] for place in more["again"])
        meter.resolved(len(group) - len(more["again"]), findings)
    if again:
        order = {script.session: place for place, script in enumerate(queries)}
        for _ in pool.results([Job(_USAGE, _usage, (shown,))]):
            pass
        _watch(pool, meter)
        jobs = (
            Job(f"again-{number:06}", _queries, (group, catalog, True, True))
            for number, group in enumerate(_grouped(sorted(again, key=lambda script: order[script.session])))
        )
        for job, data in pool.results(jobs):
            found, _ = parts.findings_in(data)
            findings.add(found)
            names.append(job.name)
            meter.resolved(len(job.arguments[0]), findings)
    pool.watch(None)
    _write(pool, gathered, names, meter)


def _watch(pool: Pool, meter: Meter) -> None:
    meter.stage()
    pool.watch(meter.within)


def _grouped(queries: Sequence[LoggedScript]) -> list[list[LoggedScript]]:
    """Queries in groups that do not depend on their order; within a group in order of the log."""
    groups: list[list[LoggedScript]] = [[] for _ in range(steps.groups_for(len(queries)))]
    for script in queries:
        groups[steps.group_of(script, len(groups))].append(script)
    return [group for group in groups if group]


def _settings(setup: Setup, catalog: str | None) -> Options:
    known: Options | None = setup.made.get("settings")
    if known is None:
        known = setup.made["settings"] = steps.in_database(setup.settings, {catalog} if catalog else set())
    return known


def _definitions(setup: Setup, scripts: Sequence[LoggedScript], catalog: str | None) -> bytes:
    from govtool.capture.sql.collector import uncollected

    with uncollected():  # a collection while the part is written down would visit the trees of all definitions
        part, knowledge = steps.resolve_definitions(scripts, _settings(setup, catalog), setup.advance)
        part.more["knowledge"] = knowledge.to_json()
        return parts.dump(part)


def _usage(setup: Setup, shown: list[dict[str, list[str]]]) -> bytes:
    import json

    from govtool.capture.sql.resolve.knowledge import merge_usage, usage_of_value, usage_to_value

    return json.dumps(usage_to_value(merge_usage(usage_of_value(part) for part in shown))).encode()


def _queries(
    setup: Setup, scripts: Sequence[LoggedScript], catalog: str | None, final: bool, with_usage: bool
) -> bytes:
    knowledge = _knowledge(setup, with_usage=with_usage)
    part, left = steps.resolve_queries(
        scripts, _settings(setup, catalog), knowledge, final=final, advance=setup.advance
    )
    places = {script.session: place for place, script in enumerate(scripts)}
    part.more["again"] = [places[script.session] for script in left]
    return parts.dump(part)


def _knowledge(setup: Setup, *, with_usage: bool) -> Knowledge:
    import json

    from govtool.capture.sql.resolve.knowledge import Knowledge, usage_of_value

    key = f"knowledge {with_usage}"
    known: Knowledge | None = setup.made.get(key)
    if known is None:
        _, more = parts.findings_in(setup.view(_DEFINITIONS))
        known = Knowledge.from_json(more["knowledge"])
        if with_usage:
            known = known.with_usage(usage_of_value(json.loads(bytes(setup.view(_USAGE)))))
        setup.made[key] = known
    return known


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(pool: Pool, gathered: LogFindings, names: Sequence[str], meter: Meter) -> None:
    buckets = buckets_for(gathered.findings.derivations, DERIVATIONS_PER_FRAGMENT)
    step = max(1, buckets // max(1, 4 * pool.workers), min(buckets, 8))
    calls = [(names, first, min(first + step, buckets), buckets) for first in range(0, buckets, step)]
    columns = len(gathered.findings.columns)
    for number, fragments in enumerate(pool.answers(_fragments, calls)):
        for data, rows, some in fragments:
            gathered.fragments.append((data, rows))
            columns += some
        meter.wrote(number + 1, len(calls))
    gathered.counts |= {
        "datasets": len(gathered.findings.datasets),
        "columns": columns,
        "edges": gathered.findings.edges,
    }


def _fragments(setup: Setup, names: Sequence[str], first: int, last: int, buckets: int) -> list[Any]:
    tables = (parts.table_in(setup.view(name)) for name in names)
    return list(parts.bucketed(tables, first, last, buckets))
