"""Ingests of every kind: the key of the input, the payload that is read from it, and its commit.

An ingest replaces everything that its source said before. It is idempotent: the batch is named by a digest of what was
read and how, and a batch that the store already holds makes no commit. Derivations are spread over fragments by a hash
of their file, so that files that did not change keep their fragment. A file that cannot be read this time keeps what it
said (``govtool.app.ingest.stale``); where too little is understood, nothing is committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict

from govtool.answers.coverage import Coverage, Reason
from govtool.answers.ingest import EMPTY, CoverageDemand, IngestResult, RefusedIngestError, reading_hint
from govtool.app.coverage.sources import coverage_fragments, read_coverage, reasons_of, unread_files
from govtool.app.coverage.unread import reach_fragments
from govtool.app.ingest.sql_options import SourceText
from govtool.app.ingest.stale import stale_files
from govtool.app.project.aliases import Aliases, configured
from govtool.app.project.sources import SourceOrigin, check_replacement
from govtool.app.project.user import user_name
from govtool.model import Derivation, Diagnostic
from govtool.model.fact import FACTS, Fact, encode_facts
from govtool.model.spread import buckets_for, number_of
from govtool.redaction import clean_location
from govtool.store import Changes, Fragment
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from govtool.capture.sql.extract import Shortfall
    from govtool.model.run import Run
    from govtool.store import CommitResult, FragmentRef, Store

DERIVATIONS_PER_FRAGMENT = 512
"""The target size of a fragment; the number of buckets is the power of two that comes nearest from above."""


class CommitKeywords(TypedDict, total=False):
    """Keywords of every function that ingests, which hands them on to ``ingest_once``."""

    message: str | None
    """The commit's message; by default the kind and the source."""
    author: str | None
    """The commit's author; by default the user's name."""
    branch: str
    """The branch to commit to; by default ``main``."""
    demand: CoverageDemand | None
    """How much has to be understood for a commit; None: any part."""


@dataclass(frozen=True, slots=True)
class IngestPayload:
    """The result of reading a source, ready to be committed."""

    source: str
    dialect: str
    files: int
    coverage: Coverage
    derivations: Sequence[Derivation]
    diagnostics: tuple[Diagnostic, ...]
    shortfalls: tuple[Shortfall, ...] = ()
    counts: Mapping[str, Any] = field(default_factory=dict)
    """More figures for the commit's summary."""
    more: tuple[Fragment, ...] = ()
    """Further tables that the source keeps in the store."""
    parts: EncodedParts | None = None
    """More derivations, that are encoded already."""
    kept: tuple[FragmentRef, ...] = ()
    """What the source keeps as it is in the store; it is neither read nor written again."""
    sizes: Mapping[str, int] | None = None
    """Datasets, columns and edges, where not all derivations are at hand."""
    committed: Callable[[], None] | None = None
    """Called when the payload is in the store."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing in what was read: no statement, derivation, run or fact."""
        known = self.coverage.statements or self.coverage.ignored or self.derivations or self.kept
        return not known and not any(fragment.rows for fragment in self.more)


@dataclass(frozen=True, slots=True)
class EncodedParts:
    """Derivations and other tables that are encoded one fragment at a time, as all of them may not fit in memory.

    The figures are known when all fragments have been taken.
    """

    fragments: Iterable[Fragment]
    columns: Mapping[str, Collection[str]]
    """Columns by dataset; queries apart."""
    queries: Callable[[], int]
    """Number of columns of queries."""
    edges: Callable[[], int]


@dataclass(frozen=True, slots=True)
class IngestKey:
    """The identity of an ingest: everything that decides its result."""

    command: str
    source: str
    batch: str
    """Names what is read and how: the same again is the same batch."""
    files: int
    text: SourceText
    origin: SourceOrigin | None = None
    """What is read; None where the source's name says it."""

    @property
    def identity(self) -> str:
        """The batch and the place that it was read from."""
        return self.batch if self.origin is None else self.batch + self.origin.mark


def ingest_once(
    store: Store,
    key: IngestKey,
    extract: Callable[[], IngestPayload],
    *,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
    demand: CoverageDemand | None = None,
    without_stale: bool = False,
) -> IngestResult:
    """Commit what ``extract`` reads for a source, unless the head of the branch has this batch already; then
    ``extract`` is not called.

    Args:
        store: The store.
        key: What is about to be read.
        extract: Reads it.
        message: The commit's message.
        author: The commit's author.
        branch: Where to commit.
        demand: How much has to be understood for a commit; None: any part.
        without_stale: Read again where the head keeps what files said before that cannot be read now, and commit even
            if nothing can be read.

    Raises:
        UsageError: The source was read from elsewhere, and may not be replaced.
        RefusedIngestError: Less was understood than ``demand`` asks for; nothing was committed.
        StoreError: the commit could not be written; the store is as it was.
    """
    known = already_ingested(store, key, branch)
    if known is not None and not (without_stale and stale_files(known.diagnostics)):
        known = replace(known, drops_unreadable=without_stale)
        return replace(known, shortfalls=extract().shortfalls) if demand is not None and demand.shortfalls else known
    earlier = check_replacement(store, branch, key.source, key.origin)
    payload = extract()
    reasons = _reasons(payload)
    if demand is not None:
        replaces = payload.is_empty and has_source(store, branch, key.source)
        found = (payload.coverage, payload.diagnostics, payload.shortfalls, reasons)
        demand = replace(demand, nothing=without_stale)
        require(demand, key, *found, empty=payload.is_empty, replaces=replaces)
    result = commit_payload(
        store, payload, key, reasons=reasons, also_replaces=earlier, message=message, author=author, branch=branch
    )
    if payload.committed is not None:
        payload.committed()
    return IngestResult(
        result.commit,
        result.created,
        payload.source,
        payload.files,
        payload.coverage,
        payload.diagnostics,
        key.text,
        payload.shortfalls,
        payload.counts,
        reasons,
        drops_unreadable=without_stale,
        address=remote_address(store),
    )


def _reasons(payload: IngestPayload) -> tuple[Reason, ...]:
    """The reasons for incomplete coverage, costliest first; a file that was not read counts as one statement."""
    return reasons_of(payload.source, (*payload.shortfalls, *unread_files(payload.diagnostics)))


def has_source(store: Store, branch: str, name: str) -> bool:
    """Return whether the head of a branch has anything of a source."""
    head = store.seen(branch)
    return head is not None and bool(store.batches(head, name))


def require(
    demand: CoverageDemand,
    key: IngestKey,
    coverage: Coverage,
    diagnostics: tuple[Diagnostic, ...],
    shortfalls: tuple[Shortfall, ...],
    reasons: tuple[Reason, ...],
    *,
    empty: bool,
    replaces: bool,
) -> None:
    """Refuse a commit that is empty, or of which too little was understood.

    Args:
        demand: How much has to be understood.
        key: What was read.
        coverage: What was understood of it.
        diagnostics: What is to be said of it.
        shortfalls: The statements that were not understood.
        reasons: What these lack.
        empty: There is nothing in it.
        replaces: The source is in the graph.

    Raises:
        RefusedIngestError: It was; with everything that an outcome would show.
    """
    problem = demand.problem(coverage, diagnostics, empty=empty)
    if problem:
        message = f"{problem}; nothing was committed"
        if problem != EMPTY:
            hint = reading_hint(key.command.removeprefix("ingest "), diagnostics)
        elif replaces:
            hint = f"if this is meant: govtool sources drop {key.source} takes away what it said before"
        else:
            hint = "check the path: no statement, table or event was found there"
        raise RefusedIngestError(message, diagnostics, key.text, shortfalls, reasons, coverage, hint)


def already_ingested(store: Store, key: IngestKey, branch: str = DEFAULT_BRANCH) -> IngestResult | None:
    """Return the result of an ingest if the head of the branch already has it; None if there is something to read.

    Raises:
        StoreError: the store cannot be read.
    """
    known = store.known(branch, key.source, configured().batch(key.identity))
    if known is None:
        return None
    report = read_coverage(store, known, with_diagnostics=True, source=key.source)
    coverage = sum((entry.coverage for entry in report.sources if entry.source == key.source), Coverage())
    diagnostics = tuple(diagnostic for name, diagnostic in report.diagnostics if name == key.source)
    reasons = tuple(reason for reason in report.reasons if reason.source == key.source)
    address = remote_address(store)
    return IngestResult(
        known, False, key.source, key.files, coverage, diagnostics, key.text, reasons=reasons, address=address
    )


def remote_address(store: Store) -> str:
    """The address of a store, without secrets, where it is remote; else nothing."""
    return clean_location(store.uri) if store.is_remote else ""


def commit_payload(
    store: Store,
    payload: IngestPayload,
    key: IngestKey,
    *,
    reasons: tuple[Reason, ...] | None = None,
    also_replaces: tuple[str, ...] = (),
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
) -> CommitResult:
    """Replace everything that a source contributed before, and parts of other sources that it takes over; ``reasons``
    are those for incomplete coverage, where they are known.

    Raises:
        StoreError: the commit could not be written; the store is as it was.
    """
    source = payload.source
    aliases = configured()
    derivations = [_with_source(source, derivation) for derivation in payload.derivations]
    more = payload.more
    if aliases:
        derivations = [aliases.derivation(derivation) for derivation in derivations]
        more = tuple(aliases.fragments(source, more))
    parts = payload.parts.fragments if payload.parts is not None else ()
    uploaded = tuple(store.upload(aliases.fragment(part) if aliases else part) for part in parts)
    if aliases and uploaded:
        more = (*more, *aliases.facts(source))
    reasons = _reasons(payload) if reasons is None else reasons
    summary: dict[str, Any] = {
        "command": key.command,
        "source": source,
        "dialect": payload.dialect,
        "files": payload.files,
        "coverage": payload.coverage.counts(),
        **(payload.sizes if payload.sizes is not None else _sizes(derivations, payload.parts, aliases)),
        **payload.counts,
        "diagnostics": dict(sorted(Counter(d.code for d in payload.diagnostics).items())),
    }
    counted = coverage_fragments(
        source,
        payload.coverage,
        [aliases.diagnostic(note) for note in payload.diagnostics] if aliases else payload.diagnostics,
        files=payload.files,
        dialect=payload.dialect,
        reasons=reasons,
        kind=key.origin.kind if key.origin is not None else key.command,
        place=key.origin.place if key.origin is not None else "",
    )
    # A statement names tables as they are written, the graph as aliases have them.
    reach = () if aliases else reach_fragments(source, payload.shortfalls)
    return store.commit(
        Changes(
            retract=(source, *also_replaces),
            add=(*fragments(source, derivations), *counted, *reach, *more),
            uploaded=(*uploaded, *payload.kept),
        ),
        message=message or commit_message(key),
        author=author or user_name(),
        batch=aliases.batch(key.identity),
        summary=summary,
        branch=branch,
    )


def commit_message(key: IngestKey) -> str:
    """The message of an ingest's commit: ``ingest sql:models``, and with the kind where the name does not have it."""
    kind = key.origin.kind if key.origin is not None else None
    return f"ingest {key.source}" if key.source.startswith(f"{kind}:") else f"{key.command} {key.source}"


def fragments(source: str, derivations: Sequence[Derivation]) -> Iterable[Fragment]:
    """Encode derivations into fragments by file; those of a log, which is one file, by statement."""
    from govtool.model.columnar import DERIVATIONS, encode

    buckets = buckets_for(len(derivations), DERIVATIONS_PER_FRAGMENT)
    split: dict[int, list[Derivation]] = {}
    for derivation in derivations:
        evidence = derivation.statement
        name = evidence.file if evidence.first_seen is None else evidence.fingerprint
        split.setdefault(number_of(name) % buckets, []).append(derivation)
    for _, part in sorted(split.items()):
        yield Fragment(source, DERIVATIONS, encode(part), len(part))


def fact_fragments(source: str, facts: Iterable[Fact]) -> tuple[Fragment, ...]:
    """The fragment of a source's facts; none without facts."""
    distinct = set(facts)
    return (Fragment(source, FACTS, encode_facts(distinct), len(distinct)),) if distinct else ()


def run_fragments(source: str, runs: Iterable[Run]) -> Iterator[Fragment]:
    """The fragments of a source's runs, by job."""
    from govtool.model.run import RUNS
    from govtool.model.run import run_fragments as encoded

    return (Fragment(source, RUNS, data, count) for data, count in encoded(runs))


def _with_source(source: str, derivation: Derivation) -> Derivation:
    if derivation.statement.source == source:
        return derivation
    return derivation._replace(statement=derivation.statement._replace(source=source))


def _sizes(derivations: list[Derivation], parts: EncodedParts | None, aliases: Aliases) -> dict[str, int]:
    columns: dict[str, set[str]] = {}
    for derivation in derivations:
        columns.setdefault(derivation.target, set()).update(column.path for column in derivation.columns)
    datasets = {d.target for d in derivations if d.target_kind not in ("query", "temporary")}
    alone = 0
    for name, paths in parts.columns.items() if parts is not None else ():
        target = aliases.dataset(name)
        datasets.add(target)
        if aliases or target in columns:
            columns.setdefault(target, set()).update(paths)
        else:
            alone += len(paths)
    return {
        "datasets": len(datasets),
        "columns": alone + sum(map(len, columns.values())) + (parts.queries() if parts is not None else 0),
        "edges": sum(len(d.edges) for d in derivations) + (parts.edges() if parts is not None else 0),
    }
