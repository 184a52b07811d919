"""Query logs into the graph: records are deduplicated and grouped by session, and distinct statements parsed once.

Memory is bounded by the distinct statements and by some forty bytes a record; trees are held for a group of statements
at a time.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from govtool.answers.ingest import CoverageDemand, IngestResult
from govtool.app.coverage.sources import coverage_fragments, ranked
from govtool.app.ingest.logs import local
from govtool.app.ingest.logs.local import LogFindings, gather, weight
from govtool.app.ingest.logs.meter import Meter
from govtool.app.ingest.logs.parts import costliest, worst
from govtool.app.ingest.logs.pool import Pool, Setup
from govtool.app.ingest.logs.request import LogRequest, Report
from govtool.app.ingest.logs.step_files import spool_key, spooled
from govtool.app.ingest.logs.steps import survey_or_problem
from govtool.app.ingest.payload import IngestKey, already_ingested, commit_message, has_source, remote_address, require
from govtool.app.ingest.reader_digest import BatchDigest
from govtool.app.ingest.sql_options import SourceText, file_name, options, root_of
from govtool.app.project import spark_session
from govtool.app.project.aliases import configured
from govtool.app.project.sources import check_replacement, named_source
from govtool.app.project.user import user_name
from govtool.arrays.threads import cores
from govtool.errors import EngineError, UsageError
from govtool.given_files import open_given
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.capture.logs.pieces import ByteSpan, Piece, SpanSurvey
    from govtool.capture.logs.read import LogOptions
    from govtool.capture.sql.extract import Options
    from govtool.store import Store

_STDIN = "<stdin>"


def ingest_log(
    store: Store,
    request: LogRequest,
    *,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
    stdin: IO[bytes] | None = None,
    progress: Report | None = None,
    demand: CoverageDemand | None = None,
) -> IngestResult:
    """Read logs, and commit what their statements say to the store.

    Rejects, failed statements and what is not understood are counted and reported; the rest is ingested. The graph does
    not depend on the engine, nor on how many processes it has. An ingest of a log that is not small keeps what it has
    done until its commit: if it is killed, the same ingest goes on there.

    Raises:
        UsageError: nothing to read, an unknown format, dialect or engine, an unreadable schema.
        EvidenceError: more than ``max_errors`` rejects (``evidence.max-errors``).
        RefusedIngestError: less was understood than ``demand`` asks for; nothing was committed.
        EngineError: a worker process died, the log changed while it was read, or Spark is missing or failed.
        StoreError: the commit could not be written; the store is as it was.
    """
    from govtool.capture.logs.read import LogOptions, check_options

    paths = request.sql.paths
    if not paths:
        raise UsageError("nothing to read", code="usage.arguments", hint="govtool ingest log FILE")
    _check_engine(request)
    source, origin = named_source("log", paths, request.sql.source, store=store, replace=request.replace)
    settings = replace(options(request.sql, source), keep_literals=request.keep_literals)
    how = check_options(LogOptions(request.format, request.map, settings.dialect))
    root = root_of(paths)
    text = SourceText(root)
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(_logs(paths, root, stdin))
        engine: _Engine
        if request.engine == "spark":
            from govtool.app.ingest.logs import spark

            session = stack.enter_context(spark_session.session(request.master, "ingest log", spark.SETTINGS))
            engine = spark.Engine(stack, session, how, settings, store, source)
        else:
            engine = _Local(stack, how, settings, request.workers)
        surveyed = _surveyed(files, engine)
        batch = _batch(source, settings, how, request, surveyed)
        known = already_ingested(store, IngestKey("ingest log", source, batch, len(files), text, origin), branch)
        again = demand is not None and demand.shortfalls
        if known is not None and not again:
            return known
        replaced = check_replacement(store, branch, source, origin) if known is None else ()
        pieces = _pieces(surveyed, how)
        gathered = engine.gather(pieces, len(surveyed), request.max_errors, Meter(progress, weight(pieces)), batch)
        if known is not None:
            return replace(known, shortfalls=tuple(costliest(gathered.findings.failures)))
        _check_unchanged(surveyed, engine)
        read = sum(not log.problem for log in surveyed.values())
        key = IngestKey("ingest log", source, batch, read, text, origin)
        return _commit(store, key, replaced, gathered, settings, message, author, branch, demand)


class _Engine(Protocol):
    """An engine that does the work."""

    def surveys(self, spans: Sequence[ByteSpan]) -> list[SpanSurvey | str]:
        """Return the contents of spans, in their order; for one that cannot be read, the reason."""

    def gather(
        self, pieces: Sequence[Piece], logs: int, max_errors: int | None, meter: Meter, batch: str
    ) -> LogFindings:
        """Read logs and understand what is in them.

        Args:
            pieces: Of all logs, in order.
            logs: How many logs there are.
            max_errors: Rejects beyond which it is given up.
            meter: Is told how far it is.
            batch: What identifies all this.
        """


class _Local:
    """This machine; processes and what they keep on disk last until a stack is closed."""

    def __init__(self, stack: contextlib.ExitStack, how: LogOptions, settings: Options, workers: int | None) -> None:
        self._stack = stack
        self._how = how
        self._settings = settings
        self._workers = workers

    def surveys(self, spans: Sequence[ByteSpan]) -> list[SpanSurvey | str]:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(8, cores())) as threads:  # hashing lets other threads run
            return list(threads.map(survey_or_problem, spans))

    def gather(
        self, pieces: Sequence[Piece], logs: int, max_errors: int | None, meter: Meter, batch: str
    ) -> LogFindings:
        large = weight(pieces) > local.SMALL
        workers = self._workers or (cores() if large else 1)
        spool = None
        if large or workers > 1:
            spool = self._stack.enter_context(spooled(spool_key(batch)))
        pool = self._stack.enter_context(Pool(Setup(self._how, self._settings, spool), workers))
        return gather(pool, pieces, logs, max_errors, meter)


def _check_engine(request: LogRequest) -> None:
    spark_session.check_engine(request.engine, request.master)
    if request.engine == "spark" and request.workers is not None:
        raise UsageError("--workers applies only to the local engine", code="usage.arguments", hint="--master local[4]")


# -- what is read ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _logs(paths: tuple[str, ...], root: Path, stdin: IO[bytes] | None) -> Iterator[dict[str, Path]]:
    """The logs by the names they are known under; standard input and pipes become files, as they are read twice."""
    from govtool.capture.logs.read import find_logs

    with contextlib.ExitStack() as stack:
        found: dict[str, Path] = {}

        def copied(stream: IO[bytes]) -> Path:
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="govtool-")), "log")
            with copy.open("wb") as file:
                shutil.copyfileobj(stream, file)
            return copy

        for path in paths:
            if path == "-":
                found[_STDIN] = copied(stdin or io.BytesIO())
                continue
            for log in find_logs(Path(path)):
                name = file_name(log, root)
                if log.is_file():
                    found[name] = log.absolute()
                else:
                    try:
                        with open_given(log) as pipe:
                            found[name] = copied(pipe)
                    except OSError as error:
                        why = f"cannot be read: {error.strerror or error}"
                        raise UsageError(why, code="usage.no-such-path", location=str(log)) from error
        yield found


@dataclass(frozen=True, slots=True)
class _Surveyed:
    """A log as it was before it was read."""

    path: Path
    state: tuple[int, ...] = ()
    """Size, time of the last change, file number."""
    spans: tuple[tuple[ByteSpan, SpanSurvey], ...] = ()
    problem: str = ""
    """The reason why it cannot be read."""

    @property
    def size(self) -> int:
        """Its bytes; 0 where they are not known."""
        return self.state[0] if self.state else 0


def _state(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


def _surveyed(files: Mapping[str, Path], engine: _Engine) -> dict[str, _Surveyed]:
    """The spans of each log and what they hold."""
    from govtool.capture.logs.pieces import spans

    states: dict[str, tuple[int, ...]] = {}
    problems: dict[str, str] = {}
    wanted: list[ByteSpan] = []
    for name, path in files.items():
        try:
            states[name] = _state(path)
            wanted.extend(spans(name, path, states[name][0]))
        except OSError as error:
            problems[name] = error.strerror or str(error)
    held: dict[str, list[tuple[ByteSpan, SpanSurvey]]] = {}
    for span, about in zip(wanted, engine.surveys(wanted), strict=True):
        if isinstance(about, str):
            problems[span.name] = about
        else:
            held.setdefault(span.name, []).append((span, about))
    return {
        name: _Surveyed(path, problem=problems[name])
        if name in problems
        else _Surveyed(path, states[name], tuple(held.get(name, ())))
        for name, path in files.items()
    }


def _pieces(surveyed: Mapping[str, _Surveyed], how: LogOptions) -> list[Piece]:
    """The pieces that the logs are read in; a log that cannot be surveyed is one, which is reported when it is read."""
    from govtool.capture.logs.pieces import ByteSpan, Piece, pieces

    made: list[Piece] = []
    for name, log in surveyed.items():
        whole = Piece(ByteSpan(name, str(log.path), 0, log.size if log.state else 1), 1, True, log.size)
        try:
            made.extend(pieces(log.spans, how) if not log.problem else [whole])
        except (OSError, UsageError):  # when it is read it is a reject, or an error if there is no other log
            made.append(whole)
    return made


def _batch(
    source: str, settings: Options, how: LogOptions, request: LogRequest, surveyed: Mapping[str, _Surveyed]
) -> str:
    """A digest of the input and its settings: the same again is the same batch."""
    batch = BatchDigest(
        "log",
        source,
        settings.dialect,
        settings.default_catalog,
        settings.default_schema,
        settings.namespace,
        None if settings.schema is None else repr(settings.schema),
        how.format,
        sorted(how.map.items()),
        request.keep_literals,
        [[name, log.problem, [about.digest for _, about in log.spans]] for name, log in surveyed.items()],
    )
    return str(batch)


def _check_unchanged(surveyed: Mapping[str, _Surveyed], engine: _Engine) -> None:
    """Refuse to commit a mixture of two states of a log; lines that were added do no harm.

    Raises:
        EngineError: A log changed while it was read (``engine.log-changed``).
    """
    for name, log in surveyed.items():
        with contextlib.suppress(OSError):
            if log.problem or _state(log.path) == log.state:
                continue
            if engine.surveys([span for span, _ in log.spans]) == [seen for _, seen in log.spans]:
                continue
        raise EngineError(
            "the log changed while it was read; nothing was committed",
            code="engine.log-changed",
            location=name,
            hint="run the command again, with a copy if it goes on changing",
        )


# -- what is committed -------------------------------------------------------------------------------------------------


def _commit(
    store: Store,
    key: IngestKey,
    replaced: tuple[str, ...],
    gathered: LogFindings,
    settings: Options,
    message: str | None,
    author: str | None,
    branch: str,
    demand: CoverageDemand | None,
) -> IngestResult:
    from govtool.model.columnar import DERIVATIONS
    from govtool.store import Changes, Fragment

    source, files, text = key.source, key.files, key.text
    findings = gathered.findings
    dialect = gathered.dialects[0] if len(gathered.dialects) == 1 else settings.dialect
    schema = () if settings.schema is None else settings.schema.diagnostics
    diagnostics = (*schema, *gathered.notes, *worst(findings.diagnostics))
    reasons = ranked(source, findings.costs)
    codes = findings.codes + Counter(d.code for d in (*schema, *gathered.notes))
    shortfalls = tuple(costliest(findings.failures))
    if demand is not None:
        empty = not gathered.counts.get("records")
        replaces = empty and has_source(store, branch, source)
        require(demand, key, findings.coverage, diagnostics, shortfalls, tuple(reasons), empty=empty, replaces=replaces)
    summary: dict[str, Any] = {
        "command": "ingest log",
        "source": source,
        "dialect": dialect,
        "files": files,
        "coverage": findings.coverage.counts(),
        **gathered.counts,
        "diagnostics": dict(sorted(codes.items())),
    }
    counted = coverage_fragments(
        source,
        findings.coverage,
        diagnostics,
        files=files,
        dialect=dialect,
        reasons=reasons,
        kind="log",
        place=key.origin.place if key.origin is not None else "",
    )
    fragments = [Fragment(source, DERIVATIONS, data, rows) for data, rows in gathered.fragments]
    uploaded = tuple(gathered.uploaded)
    aliases = configured()
    if aliases:
        fragments = [aliases.fragment(fragment) for fragment in fragments]
        read = (Fragment(ref.source, ref.table, store.read(ref), ref.rows) for ref in uploaded)
        uploaded = tuple([store.upload(aliases.fragment(fragment)) for fragment in read])
        fragments += aliases.facts(source)
    result = store.commit(
        Changes(retract=(source, *replaced), add=(*fragments, *counted), uploaded=uploaded),
        message=message or commit_message(key),
        author=author or user_name(),
        batch=aliases.batch(key.identity),
        summary=summary,
        branch=branch,
    )
    return IngestResult(
        result.commit,
        result.created,
        source,
        files,
        findings.coverage,
        diagnostics,
        text,
        shortfalls,
        gathered.counts,
        reasons,
        address=remote_address(store),
    )
