"""Reads query logs into the graph: records, deduplicated and grouped by session, then what is distinct is parsed once.

Memory is bounded by the distinct statements and by some forty bytes a record; trees are held for a group of statements
at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from govtool.app.coverage import Coverage
from govtool.app.ingest import IngestResult, Said, commit_said, extractor_digest, known_batch, said_before
from govtool.app.sql import Progress, SourceText, SqlRequest, check_dialect, options, root_of, source_name
from govtool.errors import EvidenceError, UnknownNameError, UsageError
from govtool.model import Diagnostic
from govtool.names import join_name, split_name
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.capture.logs.dedup import Collector, Log
    from govtool.capture.logs.read import LogOptions
    from govtool.capture.logs.record import Reject
    from govtool.capture.logs.sessions import Folded
    from govtool.capture.sql.extract import Extraction, Options, Shortfall
    from govtool.capture.sql.logged import LoggedScript
    from govtool.store import Store

GROUP = 10_000
"""Queries whose trees are held at a time."""

MAX_LISTED = 1_000
"""Rejects that are listed; the rest is counted."""

_STDIN = "<stdin>"
_EVERY = 4_096


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which logs to read, and how to understand what is in them."""

    sql: SqlRequest
    """Paths, dialect, schema, defaults. The dialect is that of statements whose log does not say."""
    format: str = "auto"
    map: Mapping[str, str] = field(default_factory=dict)
    keep_literals: bool = False
    max_errors: int | None = None
    """Rejects beyond which the ingest is given up; None: never."""


@dataclass(slots=True)
class _Read:
    """What the reading of logs gave."""

    collector: Collector
    rejects: list[Diagnostic] = field(default_factory=list)
    rejected: int = 0
    files: int = 0
    digest: str = ""
    unknown: dict[str, Diagnostic] = field(default_factory=dict)
    """Dialects that a log names and nobody knows."""


def ingest_log(
    store: Store,
    request: LogRequest,
    *,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Read logs, and commit what their statements say to the store.

    Rejects, failed statements and what is not understood are counted and reported; the rest is ingested.

    Raises:
        UsageError: nothing to read, an unknown format or dialect, an unreadable schema.
        EvidenceError: more than ``max_errors`` rejects (``evidence.max-errors``).
        StoreError: the commit could not be written; the store is as it was.
    """
    from govtool.capture.logs.read import LogOptions, check_options

    paths = request.sql.paths
    if not paths:
        raise UsageError("nothing to read", code="usage.arguments", hint="govtool ingest log FILE")
    source = request.sql.source or source_name(paths)
    settings = replace(options(request.sql, source), keep_literals=request.keep_literals)
    how = check_options(LogOptions(request.format, request.map, settings.dialect))
    root = root_of(paths)
    text = SourceText(root)
    with _logs(paths, root, stdin) as files:
        batch = _batch(source, settings, how, request, files)
        known = known_batch(store, branch, source, batch)
        if known is not None:
            coverage, diagnostics = said_before(store, known, source)
            return IngestResult(known, False, source, len(files), coverage, diagnostics, text)
        read = _read(files, how, request.max_errors, progress)
    said = _understand(read, settings, source, progress)
    result = commit_said(store, said, "ingest log", batch=batch, message=message, author=author, branch=branch)
    return IngestResult(
        result.commit,
        result.created,
        source,
        said.files,
        said.coverage,
        said.diagnostics,
        text,
        said.shortfalls,
        said.counts,
    )


@contextlib.contextmanager
def _logs(paths: tuple[str, ...], root: Path, stdin: IO[bytes] | None) -> Iterator[dict[str, Path]]:
    """The logs by the names they are known under; standard input and pipes become files, as they are read twice."""
    from govtool.capture.logs.read import find_logs

    with contextlib.ExitStack() as stack:
        found: dict[str, Path] = {}

        def spooled(stream: IO[bytes]) -> Path:
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="govtool-")), "log")
            with copy.open("wb") as file:
                shutil.copyfileobj(stream, file)
            return copy

        for path in paths:
            if path == "-":
                found[_STDIN] = spooled(stdin or io.BytesIO())
                continue
            for log in find_logs(Path(path)):
                name = _name(log, root)
                if log.is_file():
                    found[name] = log
                else:
                    with log.open("rb") as pipe:
                        found[name] = spooled(pipe)
        yield found


def _name(path: Path, root: Path) -> str:
    try:
        name = path.absolute().relative_to(root).as_posix()
    except ValueError:
        name = path.name
    return name.encode("utf-8", "backslashreplace").decode()


def _batch(source: str, settings: Options, how: LogOptions, request: LogRequest, files: Mapping[str, Path]) -> str:
    """A digest of what is read and how: the same again is the same batch."""
    digest = hashlib.sha256()
    said = [
        extractor_digest(),
        source,
        settings.dialect,
        settings.default_catalog,
        settings.default_schema,
        settings.namespace,
        None if settings.schema is None else repr(settings.schema),
        how.format,
        sorted(how.map.items()),
        request.keep_literals,
    ]
    digest.update(json.dumps(said).encode())
    for name, path in files.items():
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            content = str(error)
        digest.update(f"{len(name)}:{name}{content}".encode())
    return f"log:{digest.hexdigest()}"


def _read(files: Mapping[str, Path], how: LogOptions, max_errors: int | None, progress: Progress | None) -> _Read:
    from govtool.capture.logs.dedup import Collector
    from govtool.capture.logs.read import read_log
    from govtool.capture.logs.record import Reject

    unknown: dict[str, Diagnostic] = {}
    read = _Read(Collector(lambda name: _dialect(name, how.dialect, unknown)), unknown=unknown)
    total = sum(path.stat().st_size for path in files.values() if path.exists()) or 1
    before = 0
    for name, path in files.items():
        try:
            raw: IO[bytes] = path.open("rb")
        except OSError as error:
            _reject(read, Reject(name, 1, f"cannot be read: {error.strerror}"), max_errors)
            continue
        with raw:
            read.files += 1
            add = read.collector.add
            try:
                for number, entry in enumerate(read_log(raw, name, how)):
                    if isinstance(entry, Reject):
                        _reject(read, entry, max_errors)
                    else:
                        add(entry)
                    if progress is not None and number % _EVERY == 0:
                        progress((before + raw.tell()) * 500 // total, 1000)
            except UsageError as error:
                if len(files) == 1:
                    raise
                _reject(read, Reject(name, 1, error.message, fatal=True), max_errors)
            before += raw.tell()
    return read


def _reject(read: _Read, reject: Reject, max_errors: int | None) -> None:
    read.rejected += 1
    if max_errors is not None and read.rejected > max_errors:
        raise EvidenceError(
            f"more than {max_errors:,} records cannot be read; the last: {reject.message}",
            code="evidence.max-errors",
            location=f"{reject.file}:{reject.line}",
            hint="is the --format right?",
        )
    if read.rejected <= MAX_LISTED:
        severity = "error" if reject.fatal else "warning"
        read.rejects.append(Diagnostic("reject", severity, reject.message, reject.file, reject.line))


def _dialect(name: str, default: str, unknown: dict[str, Diagnostic]) -> str:
    """The canonical name of a dialect that a record has; of one that nobody knows, the default."""
    if not name:
        return default
    try:
        return check_dialect(name)
    except UnknownNameError as error:
        note = (
            f"the log has statements of a dialect {name[:60]}, which is not known; read as {default or 'generic SQL'}"
        )
        unknown[name] = Diagnostic("unknown-dialect", "warning", note, candidates=tuple(sorted(error.nearest)))
        return default


def _understand(read: _Read, settings: Options, source: str, progress: Progress | None) -> Said:
    from govtool.capture.logs.sessions import fold

    log = read.collector.log
    folded = fold(read.collector)
    settings = _in_database(settings, {context.catalog for context in log.contexts if context.catalog})
    parts: list[Extraction] = list(_extracted(folded, settings, progress))
    coverage = sum((Coverage.of(part) for part in parts), Coverage())
    withheld, missing = _withheld(log)
    coverage += missing
    shortfalls = tuple(s for part in parts for s in part.shortfalls) + withheld
    diagnostics = [d for part in parts for d in part.diagnostics] + [s.diagnostic for s in withheld]
    rejects = list(read.rejects)
    if read.rejected > len(rejects):
        more = f"{read.rejected - len(rejects):,} more records cannot be read"
        rejects.append(Diagnostic("reject", "warning", more))
    schema = () if settings.schema is None else settings.schema.diagnostics
    counts = {
        "records": log.counts.records,
        "failed": log.counts.failed,
        "unfinished": log.counts.unfinished,
        "rolled_back": folded.rolled_back,
        "scripts": folded.parts,
        "rejected": read.rejected,
        "sessions": folded.sessions,
        "distinct": len(log.statements),
        "users": sum(1 for user in log.users if user),
    }
    dialects = sorted({s.dialect for s in log.statements})
    return Said(
        source,
        dialects[0] if len(dialects) == 1 else settings.dialect,
        read.files,
        coverage,
        [derivation for part in parts for derivation in part.derivations],
        (*schema, *rejects, *read.unknown.values(), *diagnostics),
        shortfalls,
        counts,
    )


def _in_database(settings: Options, catalogs: set[str]) -> Options:
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


def _extracted(folded: Folded, settings: Options, progress: Progress | None) -> Iterator[Extraction]:
    from govtool.capture.sql.extract import extract_in_turn

    total = len(folded.definitions) + len(folded.queries) or 1
    done = 0

    def groups() -> Iterator[Sequence[LoggedScript]]:
        nonlocal done
        yield folded.definitions
        done = len(folded.definitions)
        for start in range(0, len(folded.queries), GROUP):
            group = folded.queries[start : start + GROUP]
            yield group
            done += len(group)

    def told(some: int, of: int) -> None:
        if progress is not None:
            progress(500 + (done * 500 + some) // (total + 1), 1000)

    yield from extract_in_turn(groups(), settings, told)


def _withheld(log: Log) -> tuple[tuple[Shortfall, ...], Coverage]:
    """Statements without their whole text: opaque, each distinct one."""
    from govtool.capture.sql.extract import Shortfall

    found = []
    runs = 0
    for (reason, _), item in log.withheld.items():
        said = (
            f"the log cut it off after {item.characters:,} characters"
            if reason == "truncated"
            else "the log does not have its text"
        )
        found.append(Shortfall("opaque", Diagnostic(reason, "error", said, item.file, item.line), item.runs, "", ""))
        runs += item.runs
    return tuple(found), Coverage(statements=len(found), opaque=len(found), runs_opaque=runs)
