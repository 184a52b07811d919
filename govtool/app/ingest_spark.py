"""Spark event logs into the graph: what ran, what it read and wrote, and which columns came of which."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from govtool import __version__
from govtool.app.coverage import Coverage
from govtool.app.ingest import IngestResult, Said, commit_said, known_batch, said_before
from govtool.app.sql import Progress, SourceText, root_of, source_name
from govtool.errors import UsageError
from govtool.names import DEFAULT_NAMESPACE
from govtool.store import Fragment
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.capture.spark.eventlog.files import EventLog
    from govtool.capture.spark.eventlog.read import Gathered
    from govtool.store import Store


@dataclass(frozen=True, slots=True)
class SparkRequest:
    """What to read and how to understand it."""

    paths: tuple[str, ...]
    """Event logs: files, rolling directories, folders of either."""
    source: str | None = None
    database: str = "default"
    """Of tables that a plan names without one."""
    namespace: str = DEFAULT_NAMESPACE
    """Of tables of the catalog; needed to keep two metastores apart."""


def ingest_spark(
    store: Store,
    request: SparkRequest,
    *,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
    progress: Progress | None = None,
) -> IngestResult:
    """Read Spark event logs, and commit what they say to the store.

    What cannot be read or understood is reported in the result and counted in the commit; the rest is ingested.

    Raises:
        UsageError: nothing to read.
        StoreError: the commit could not be written; the store is as it was.
    """
    if not request.paths:
        raise UsageError("nothing to read", code="usage.arguments", hint="govtool ingest spark LOG")
    source = request.source or source_name(request.paths)
    logs = find_logs(request.paths)
    text = SourceText(root_of(request.paths))
    batch = _batch(source, request, (log for log, _ in logs))
    files = sum(len(log.parts) for log, _ in logs)
    known = known_batch(store, branch, source, batch)
    if known is not None:
        coverage, diagnostics = said_before(store, known, source)
        return IngestResult(known, False, source, files, coverage, diagnostics, text)
    gathered = read(logs, source, request, progress)
    return commit_gathered(
        store, gathered, batch=batch, files=files, text=text, message=message, author=author, branch=branch
    )


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
            found.setdefault(tuple(part.absolute() for part in log.parts), (log, _label(Path(log.name), root)))
    return list(found.values())


def read(
    logs: list[tuple[EventLog, str]], source: str, request: SparkRequest, progress: Progress | None = None
) -> Gathered:
    """Read event logs as a stream: no more of them is held than what they say."""
    from govtool.capture.spark.eventlog.read import read_logs, size_of
    from govtool.capture.spark.plantext.scans import Names

    total = sum(size_of(log) for log, _ in logs)
    done = 0

    def advance(size: int) -> None:
        nonlocal done
        done += size
        if progress is not None:
            progress(min(done, total), total)

    return read_logs(logs, source, Names(request.database, request.namespace), advance)


def commit_gathered(
    store: Store,
    gathered: Gathered,
    *,
    batch: str,
    files: int,
    text: SourceText,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
) -> IngestResult:
    """Commit what Spark executions say, as what their source says.

    Raises:
        StoreError: the commit could not be written; the store is as it was.
    """
    from govtool.model.run import RUNS, encode_runs

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
    derivations = gathered.derivations()
    diagnostics = tuple(dict.fromkeys((*gathered.notes, *(n for d in derivations for n in d.diagnostics))))
    counts = {
        "applications": gathered.applications,
        "executions": sum(outcomes.values()),
        "runs": dict(sorted(gathered.statuses.items())),
        "breaks": dict(sorted(gathered.breaks.items())),
    }
    more = (Fragment(gathered.source, RUNS, encode_runs(gathered.runs), len(gathered.runs)),) if gathered.runs else ()
    said = Said(gathered.source, "spark", files, coverage, derivations, diagnostics, counts=counts, more=more)
    result = commit_said(store, said, "ingest spark", batch=batch, message=message, author=author, branch=branch)
    return IngestResult(
        result.commit, result.created, gathered.source, files, coverage, diagnostics, text, counts=counts
    )


def _label(path: Path, root: Path) -> str:
    try:
        name = path.absolute().relative_to(root).as_posix()
    except ValueError:
        name = path.name
    return (name if name != "." else path.name).encode("utf-8", "backslashreplace").decode()


def _batch(source: str, request: SparkRequest, logs: Iterable[EventLog]) -> str:
    """A digest of what is read and how: the same again is the same batch."""
    digest = hashlib.sha256()
    how = [_reader(), source, request.database, request.namespace]
    digest.update(json.dumps(how).encode())
    for log in logs:
        digest.update(json.dumps([log.name, log.finished, list(log.missing)]).encode("utf-8", "surrogatepass"))
        for part in log.parts:
            digest.update(part.name.encode("utf-8", "surrogatepass"))
            try:
                with part.open("rb") as raw:
                    digest.update(hashlib.file_digest(raw, "sha256").digest())
            except OSError as error:
                digest.update(repr(error).encode())
    return f"spark:{digest.hexdigest()}"


def _reader() -> str:
    """What identifies the reader: its own source."""
    digest = hashlib.sha256(f"{__version__} {version('pyarrow')}".encode())
    package = Path(__file__).parents[1]
    for file in sorted([*(package / "capture" / "spark").rglob("*.py"), *(package / "model").glob("*.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()
