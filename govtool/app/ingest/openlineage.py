"""OpenLineage into the graph and out of it.

A source keeps the merged state of its events beside the derivations made of it (table ``openlineage``), so that events
which arrive later, in whatever order, are merged with those that came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from govtool.answers.coverage import Coverage
from govtool.answers.ingest import IngestResult
from govtool.app.ingest.payload import IngestKey, IngestPayload, fact_fragments, ingest_once, run_fragments
from govtool.app.ingest.reader_digest import BatchDigest
from govtool.app.ingest.sql_options import Progress, SourceText, check_dialect, file_name, root_of
from govtool.app.project.path_root import paths_root
from govtool.app.project.sources import SourceOrigin, named_source, unknown_source
from govtool.errors import EvidenceError, UsageError
from govtool.given_files import open_given
from govtool.model import Derivation, Diagnostic
from govtool.model.parquet import read_parquet, write_parquet
from govtool.model.spread import buckets_for, number_of
from govtool.store import Fragment
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.answers.ingest import CoverageDemand
    from govtool.capture.openlineage.derive import OpenLineageFindings
    from govtool.capture.openlineage.events import Event
    from govtool.capture.openlineage.export import Exported
    from govtool.capture.openlineage.merge import MergedEvents, StateRow
    from govtool.store import Commit, Reader, Store

ROWS_PER_FRAGMENT = 512
"""The target size of a fragment of merged events."""

MAX_NOTES = 100_000
"""Notes of what is no event, or cannot be read whole: each takes some kilobytes of memory."""
_TRIES = 5
"""Number of attempts of a merge while other processes add to the same source."""


@dataclass(frozen=True, slots=True)
class OpenLineageRequest:
    """OpenLineage events, and how to read them."""

    paths: tuple[str, ...]
    """Files and folders of JSON or JSON lines, plain or compressed, or ``-`` for standard input."""
    source: str | None = None
    dialect: str = ""
    """Of SQL facets whose event does not tell."""
    append: bool = False
    """Merge with the earlier events of the source instead of replacing them."""
    replace: bool = False
    """True: a source that was read elsewhere may be replaced."""


@dataclass(slots=True)
class Read:
    """Events, merged as they were read."""

    state: MergedEvents
    texts: dict[str, str] = field(default_factory=dict)
    """SQL as it came, by digest: for the extractor, never stored."""
    notes: list[Diagnostic] = field(default_factory=list)
    files: int = 0
    events: int = 0
    noted: int = 0

    def add(self, event: Event, dialect: str) -> None:
        """Merge an event."""
        from govtool.capture.openlineage.sql import attach

        sql = attach(event, dialect)
        if sql is not None:
            self.texts[sql[0]] = sql[1]
        self.state.add(event)
        self.events += 1

    def note(self, notes: Iterable[Diagnostic]) -> None:
        """Keep notes; what was no event is counted.

        Raises:
            EvidenceError: There are more than any file of events has (``evidence.max-errors``).
        """
        for note in notes:
            self.noted += 1
            if self.noted > MAX_NOTES:
                raise EvidenceError(
                    f"more than {MAX_NOTES:,} lines are not events, or cannot be read whole; the last: {note.message}",
                    code="evidence.max-errors",
                    location=f"{note.file}:{note.line}",
                    hint="are these events of OpenLineage? govtool ingest spark reads event logs of Spark",
                )
            if note.severity == "error":
                self.state.reject(note)
            else:
                self.notes.append(note)


def empty() -> Read:
    """Nothing read yet."""
    from govtool.capture.openlineage.merge import MergedEvents

    return Read(MergedEvents())


def ingest_openlineage(
    store: Store,
    request: OpenLineageRequest,
    *,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
    demand: CoverageDemand | None = None,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read OpenLineage events, and commit their lineage, runs and facts to the store.

    What is no event is reported in the result and counted in the commit; the rest is ingested.

    Raises:
        RefusedIngestError: less was understood than ``demand`` asks for; nothing was committed.
        UsageError: nothing to read, an unknown dialect.
        StoreError: the commit could not be written; the store is as it was.
    """
    if not request.paths:
        raise UsageError("nothing to read", code="usage.arguments", hint="govtool ingest openlineage events.jsonl")
    dialect = check_dialect(request.dialect)
    read = read_events(request.paths, dialect, stdin, progress)
    root = root_of(request.paths)
    replace = request.replace or request.append  # what is merged replaces nothing
    source, origin = named_source("openlineage", request.paths, request.source, store=store, replace=replace)
    return commit_events(
        store,
        read,
        source,
        append=request.append,
        message=message,
        author=author,
        branch=branch,
        text=SourceText(root),
        origin=origin,
        demand=demand,
    )


def read_events(
    paths: Iterable[str], dialect: str = "", stdin: IO[bytes] | None = None, progress: Progress | None = None
) -> Read:
    """Read and merge the events of files, folders and standard input.

    Raises:
        UsageError: a path does not exist, or a folder is empty.
    """
    from govtool.capture.logs.read import find_logs

    given = list(paths)
    root = root_of(given)
    files: list[Path | None] = []
    for path in given:
        files += [None] if path == "-" else find_logs(Path(path))
    read = empty()
    read.files = len(files)
    for number, file in enumerate(files):
        if progress is not None:
            progress(number, len(files))
        if file is None:
            if stdin is None:
                raise UsageError("standard input is not available here", code="usage.stdin")
            _read_file(stdin, "<stdin>", read, dialect)
            continue
        name = file_name(file, root)
        try:
            with open_given(file) as raw:
                _read_file(raw, name, read, dialect)
        except OSError as error:
            read.note([Diagnostic("unreadable", "error", f"cannot be read: {error.strerror or error}", name)])
    return read


def _read_file(raw: IO[bytes], name: str, read: Read, dialect: str) -> None:
    from govtool.capture.logs.query_record import Reject
    from govtool.capture.logs.rows import json_rows
    from govtool.capture.logs.stream import BinaryStreamError, chunks, lines, text_only
    from govtool.capture.openlineage.events import EventReader

    reader = EventReader(name)
    stated: set[str] = set()
    try:
        for row in json_rows(lines(text_only(chunks(raw)), name), name):
            if isinstance(row, Reject):
                read.note([Diagnostic("not-json", "error", row.message, name, row.line)])
                continue
            for event in reader.events(row[1], row[0]):
                read.add(event, dialect)
            read.note(_condensed(reader.notes, stated))
            reader.notes.clear()
    except BinaryStreamError as error:
        read.note([Diagnostic("not-json", "error", str(error), name)])


def _condensed(notes: list[Diagnostic], stated: set[str]) -> Iterator[Diagnostic]:
    """Notes without repetition: for parts of events, only the first of each kind."""
    for note in notes:
        if note.severity == "error":
            yield note
        elif note.message not in stated:
            stated.add(note.message)
            yield note


def commit_events(
    store: Store,
    read: Read,
    source: str,
    *,
    append: bool,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
    text: SourceText | None = None,
    origin: SourceOrigin | None = None,
    demand: CoverageDemand | None = None,
) -> IngestResult:
    """Commit merged events as what a source says; with ``append``, merged with what it said before.

    Raises:
        StoreError: the commit could not be written; the store is as it was.
    """
    from govtool.capture.openlineage.derive import derive

    text = text or SourceText(Path.cwd())
    previous: list[Derivation] = []
    base = store.head(branch)

    def extract() -> IngestPayload:
        return _payload(source, read, derive(read.state, read.texts, previous, source=source))

    for _ in range(_TRIES):
        if append and base is not None:
            read.state.update(read_state(store, base, source))
            previous += _derivations(store, base, source)
        ingest_key = IngestKey("ingest openlineage", source, _batch(source, read.state), read.files, text, origin)
        result = ingest_once(store, ingest_key, extract, message=message, author=author, branch=branch, demand=demand)
        if not append or result.commit.parent == (base.id if base else None) or not result.created:
            break
        # Others committed meanwhile; if it was to this source, their events must not be lost.
        base = store.resolve(str(result.commit.seq - 1), branch)
        theirs = read_state(store, base, source).entities
        if all(read.state.entities.get(key) == registers for key, registers in theirs.items()):
            break
    return result


def _payload(source: str, read: Read, derived: OpenLineageFindings) -> IngestPayload:
    """Turn merged events into a payload."""
    from govtool.capture.openlineage.facts import facts_of
    from govtool.capture.openlineage.runs import runs_of

    coverage = Coverage(
        statements=derived.understood + derived.partial + derived.opaque,
        understood=derived.understood,
        partial=derived.partial,
        opaque=derived.opaque,
        ignored=derived.ignored,
        runs_understood=derived.understood,
        runs_partial=derived.partial,
        runs_opaque=derived.opaque,
    )
    return IngestPayload(
        source,
        "",
        read.files,
        coverage,
        derived.derivations,
        (*derived.diagnostics, *read.notes),
        derived.shortfalls,
        counts={"runs": dict(derived.runs)},
        more=(
            *_fragments(source, read.state),
            *fact_fragments(source, facts_of(read.state, source)),
            *run_fragments(source, runs_of(read.state, source)),
        ),
    )


def read_state(store: Reader, commit: Commit, source: str | None = None) -> MergedEvents:
    """The merged events of a source at a commit, or of all sources.

    Raises:
        StoreError: a fragment cannot be read.
    """
    from govtool.capture.openlineage.merge import TABLE, MergedEvents, StateRow

    state = MergedEvents()
    for ref in store.fragments(commit) if source is None else store.fragments_of(commit, source):
        if ref.table == TABLE:
            columns = read_parquet(store.read(ref)).to_pydict()
            state.update(MergedEvents.of_rows(map(StateRow, columns["kind"], columns["key"], columns["doc"])))
    return state


def export_openlineage(
    store: Reader, commit: Commit, *, source: str | None = None, queries: bool = False, as_runs: bool = False
) -> Exported:
    """Export a commit, or one source of it, as OpenLineage events; ``as_runs``: all of them as events of runs.

    Raises:
        StoreError: a fragment cannot be read.
        UnknownNameError: there is no such source at that commit (``usage.unknown-source``).
    """
    from govtool.capture.openlineage.export import export
    from govtool.capture.openlineage.facets import Kept
    from govtool.capture.openlineage.run_events import run_events

    sources = sorted({ref.source for ref in store.fragments(commit)})
    if source is not None and source not in sources:
        raise unknown_source(source, sources)
    found = [d for name in sources if source in (None, name) for d in _derivations(store, commit, name)]
    kept = Kept(read_state(store, commit, source))
    exported = export(found, time=commit.time, kept=kept, queries=queries, root=paths_root())
    if not as_runs:
        return exported
    events, unused = run_events(exported.events)
    return replace(exported, events=events, datasets=unused)


def _derivations(store: Reader, commit: Commit, source: str) -> list[Derivation]:
    from govtool.model.columnar import DERIVATIONS, decode

    found: list[Derivation] = []
    for ref in sorted(store.fragments_of(commit, source)):
        if ref.table == DERIVATIONS:
            found += decode(store.read(ref))
    return found


def _fragments(source: str, state: MergedEvents) -> Iterator[Fragment]:
    """The state as fragments, by job and dataset: a run more rewrites one of them."""
    from govtool.capture.openlineage.merge import TABLE

    rows = state.rows()
    buckets = buckets_for(sum(map(len, rows.values())), ROWS_PER_FRAGMENT)
    split: dict[int, list[StateRow]] = {}
    for owner in sorted(rows):
        split.setdefault(number_of(owner) % buckets, []).extend(rows[owner])
    for _, part in sorted(split.items()):
        yield Fragment(source, TABLE, _parquet(part), len(part))


def _parquet(rows: list[StateRow]) -> bytes:
    import pyarrow as pa

    text = pa.string()
    schema = pa.schema([("kind", text), ("key", text), ("doc", text)])
    clean = [[part.encode("utf-8", "replace").decode() for part in row] for row in rows]
    columns = [pa.array(column, text) for column in zip(*clean, strict=True)] or [pa.array([], text)] * 3
    return write_parquet(pa.Table.from_arrays(columns, schema=schema))


def _batch(source: str, state: MergedEvents) -> str:
    return str(BatchDigest("openlineage", source, state.digest()))
