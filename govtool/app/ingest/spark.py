"""Spark event logs into the graph: runs with their inputs and outputs, and the lineage of columns."""

from __future__ import annotations

import gc
import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from govtool.answers.coverage import Coverage
from govtool.answers.ingest import IngestResult
from govtool.app.ingest.payload import (
    DERIVATIONS_PER_FRAGMENT,
    CommitKeywords,
    EncodedParts,
    IngestKey,
    IngestPayload,
    ingest_once,
)
from govtool.app.ingest.reader_digest import BatchDigest
from govtool.app.ingest.sql_options import Progress, SourceText, file_name, root_of
from govtool.app.project.sources import named_source
from govtool.capture.spark.eventlog.gathered import EventLogFindings, Seen, SpilledFindings
from govtool.capture.spark.eventlog.spill import PARTS
from govtool.errors import UsageError
from govtool.model import Diagnostic
from govtool.model.spread import buckets_for
from govtool.names import DEFAULT_NAMESPACE
from govtool.store import Fragment
from govtool.store.backends.failures import translate

if TYPE_CHECKING:
    from govtool.capture.spark.eventlog.files import EventLog
    from govtool.model import Derivation
    from govtool.model.shortfall import Shortfall
    from govtool.store import Store

EDGES_PER_FRAGMENT = 1 << 16
"""The target size of a fragment of plans that have thousands of columns."""
ALLOCATIONS = 200_000
"""Objects between two collections while logs are read."""


@dataclass(frozen=True, slots=True)
class SparkRequest:
    """Spark event logs, and how to read them."""

    paths: tuple[str, ...]
    """Event logs: files, rolling directories, folders of either."""
    source: str | None = None
    database: str = "default"
    """Of tables that a plan names without one."""
    namespace: str = DEFAULT_NAMESPACE
    """Of tables of the catalog; needed to keep two metastores apart."""
    replace: bool = False
    """True: a source that was read elsewhere may be replaced."""


def ingest_spark(
    store: Store,
    request: SparkRequest,
    *,
    progress: Progress | None = None,
    **commit: Unpack[CommitKeywords],
) -> IngestResult:
    """Read Spark event logs, and commit their runs and lineage to the store.

    What cannot be read or understood is reported in the result and counted in the commit; the rest is ingested.

    Raises:
        RefusedIngestError: less was understood than ``demand`` asks for; nothing was committed.
        UsageError: nothing to read.
        StoreError: the commit could not be written; the store is as it was.
    """
    if not request.paths:
        raise UsageError("nothing to read", code="usage.arguments", hint="govtool ingest spark LOG")
    source, origin = named_source("spark", request.paths, request.source, store=store, replace=request.replace)
    logs = find_logs(request.paths)
    files = sum(len(log.parts) for log, _ in logs)
    batch = _batch(source, request, (log for log, _ in logs))
    key = IngestKey("ingest spark", source, batch, files, SourceText(root_of(request.paths)), origin)
    with ExitStack() as stack:

        def extract() -> IngestPayload:
            spilled = stack.enter_context(_spilled_findings())  # until all of it is committed
            return _payload(read(logs, EventLogFindings(source, spilled=spilled), request, progress), spilled, files)

        return ingest_once(store, key, extract, **commit)


@contextmanager
def _spilled_findings() -> Iterator[SpilledFindings]:
    """Room on a disk for what logs say.

    Raises:
        StoreError: it cannot be put there.
    """
    spilled = SpilledFindings.new()
    try:
        yield spilled
    except OSError as error:
        raise translate(error, "spill the findings of the logs", tempfile.gettempdir()) from error
    finally:
        spilled.close()


def find_logs(paths: Iterable[str]) -> list[tuple[EventLog, str]]:
    """The event logs of paths, each once, with the name that messages give it.

    Raises:
        UsageError: A path does not exist, or a folder holds no log.
    """
    from govtool.capture.spark.eventlog.files import find

    given = list(paths)
    if "-" in given:
        raise UsageError(
            "an event log is read from a file", code="usage.stdin", hint="govtool ingest spark /var/log/spark-events"
        )
    root = root_of(given)
    found: dict[tuple[Path, ...], tuple[EventLog, str]] = {}
    for path in given:
        for log in find(Path(path)):
            found.setdefault(tuple(part.absolute() for part in log.parts), (log, file_name(Path(log.name), root)))
    return list(found.values())


def read(
    logs: list[tuple[EventLog, str]], into: EventLogFindings, request: SparkRequest, progress: Progress | None = None
) -> EventLogFindings:
    """Read event logs as a stream.

    Raises:
        OSError: what they say is to be put aside, and cannot be.
    """
    from govtool.capture.spark.eventlog.read import read_logs, size_of
    from govtool.capture.spark.plantext.scans import Names

    total = sum(size_of(log) for log, _ in logs)
    done = 0

    def advance(size: int) -> None:
        nonlocal done
        done += size
        if progress is not None:
            progress(min(done, total), total)

    with _seldom_collected():
        return read_logs(logs, into, Names(request.database, request.namespace), advance)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Have the cyclic collector look less often: plans are trees, and go as they came (a sixth of the time)."""
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _payload(gathered: EventLogFindings, spilled: SpilledFindings, files: int) -> IngestPayload:
    """Turn the executions of Spark into the payload of their source."""
    outcomes = gathered.outcomes
    understood, partial = outcomes["understood"], outcomes["partial"]
    opaque = outcomes["opaque"] + gathered.broken
    coverage = Coverage(
        statements=understood + partial + opaque,
        understood=understood,
        partial=partial,
        opaque=opaque,
        ignored=outcomes["ignored"],
        runs_understood=understood,
        runs_partial=partial,
        runs_opaque=opaque,
        unread=gathered.unread,
    )
    diagnostics = tuple(dict.fromkeys((*gathered.notes, *spilled.notes)))
    counts = {
        "applications": gathered.applications,
        "executions": sum(outcomes.values()),
        "runs": dict(sorted(gathered.statuses.items())),
        "breaks": dict(sorted(gathered.breaks.items())),
    }
    fragments = chain(_derivations(gathered, spilled), _declared(gathered, spilled), _runs(gathered.source, spilled))
    parts = EncodedParts(fragments, spilled.columns, lambda: sum(spilled.queries.values()), lambda: spilled.edges)
    return IngestPayload(
        gathered.source, "spark", files, coverage, (), diagnostics, _shortfalls(gathered), counts=counts, parts=parts
    )


def _shortfalls(gathered: EventLogFindings) -> tuple[Shortfall, ...]:
    """The actions that were not fully understood, and the lines that are no events."""
    from govtool.model.shortfall import Shortfall

    place = next((note for note in gathered.notes if note.severity == "error"), None)
    file, line = (place.file, place.line) if place is not None else (None, None)
    lost = Diagnostic("not-json", "error", "a line that is not an event, or is cut off", file, line)
    found = (*gathered.unclear, *[("opaque", lost)] * gathered.broken)
    return tuple(Shortfall(outcome, note, 1, "", "") for outcome, note in found)


def _derivations(gathered: EventLogFindings, spilled: SpilledFindings) -> Iterator[Fragment]:
    """Return the derivations that were spilled as fragments, by fingerprint, with the times of each."""
    import pyarrow as pa

    from govtool.model.columnar import DERIVATIONS, write_table

    buckets = max(
        buckets_for(len(gathered.seen), DERIVATIONS_PER_FRAGMENT), buckets_for(spilled.edges, EDGES_PER_FRAGMENT)
    )
    by_part: dict[int, list[Seen]] = {}
    for seen in gathered.seen:
        by_part.setdefault(seen.number % PARTS, []).append(seen)
    for first in range(min(buckets, PARTS)):
        tables = []
        rows: list[Seen] = []
        for part in range(first, PARTS, min(buckets, PARTS)):
            table = spilled.derivations.part(part)
            if table is not None:
                tables.append(table)
                rows += by_part[part]  # in the order in which they were added
        if not tables:
            continue
        table = _dated(pa.concat_tables(tables), rows)
        split: dict[int, list[int]] = {}
        names = [table.column(name).to_pylist() for name in ("file", "first_seen", "target", "kind", "run")]
        keys = [tuple(value or "" for value in row) for row in zip(*names, strict=True)]
        for at in sorted(range(len(rows)), key=lambda at: (keys[at], rows[at].row)):
            split.setdefault(rows[at].number % buckets, []).append(at)
        for _, chosen in sorted(split.items()):
            yield Fragment(gathered.source, DERIVATIONS, write_table(table.take(chosen)), len(chosen))


def _declared(gathered: EventLogFindings, spilled: SpilledFindings) -> Iterator[Fragment]:
    """Return what is known of names and columns, dataset by dataset."""
    from govtool.model.columnar import DERIVATIONS, encode

    waiting: list[Derivation] = []
    edges = 0
    for each in gathered.declared():
        into = spilled.columns.setdefault(each.target, {})
        into.update((column.path, column.type) for column in each.columns)
        waiting.append(each)
        edges += len(each.edges)
        if edges > EDGES_PER_FRAGMENT or len(waiting) >= DERIVATIONS_PER_FRAGMENT:
            yield Fragment(gathered.source, DERIVATIONS, encode(waiting), len(waiting))
            spilled.edges += edges
            waiting, edges = [], 0
    spilled.edges += edges
    if waiting:
        yield Fragment(gathered.source, DERIVATIONS, encode(waiting), len(waiting))


def _dated(table: Any, rows: list[Seen]) -> Any:
    """A table of derivations with how often and when each was seen, and by which run last."""
    import pyarrow as pa

    known = {
        "run": pa.array([seen.run for seen in rows], pa.string()),
        "first_seen": pa.array([seen.first or None for seen in rows], pa.string()),
        "last_seen": pa.array([seen.last or None for seen in rows], pa.string()),
        "count": pa.array([seen.count for seen in rows], pa.int64()),
    }
    for name, values in known.items():
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)
    return table


def _runs(source: str, spilled: SpilledFindings) -> Iterator[Fragment]:
    """The runs that were put aside as fragments, by job."""
    import pyarrow as pa

    from govtool.model.run import RUNS, RUNS_PER_FRAGMENT, write_runs

    buckets = min(buckets_for(spilled.count, RUNS_PER_FRAGMENT), PARTS)
    for first in range(buckets):
        tables = [table for part in range(first, PARTS, buckets) if (table := spilled.runs.part(part)) is not None]
        if tables:
            table = pa.concat_tables(tables)
            yield Fragment(source, RUNS, write_runs(table), table.num_rows)


def _batch(source: str, request: SparkRequest, logs: Iterable[EventLog]) -> str:
    """A digest of the input and its settings: the same again is the same batch."""
    batch = BatchDigest("spark", source, request.database, request.namespace)
    for log in logs:
        batch.add_values(log.name, log.finished, list(log.missing))
        for part in log.parts:
            batch.add_values(part.name)
            try:
                with part.open("rb") as raw:
                    batch.add_bytes(hashlib.file_digest(raw, "sha256").digest())
            except OSError as error:
                batch.add_data(error)
    return str(batch)
