"""SQL text into the graph, in seven verbs: read, key, render, parse, resolve, fold, commit.

    read      scripts, options and the name of the source           ``read_sql``
    key       a digest of all that decides the result               ``key_of``; a batch that the head has ends here
    render    templates become SQL                                  ``ScriptMaker.render``
    parse     text becomes statements, and what they define         ``ScriptMaker.parse``, ``Batch.add``
    resolve   statements are walked, each when its turn comes       ``walk_all``
    fold      what a script leaves behind becomes derivations       ``PartMaker.part``
    commit    fragments replace those of the last ingest            ``ingest_once``

Render to fold are those of ``govtool.capture.sql``: ``extract`` does them for every script, ``reuse`` for those that
changed, or whose looks at others have other answers than at the last ingest. The graph is the same to the byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from govtool.answers.coverage import Coverage
from govtool.answers.ingest import CoverageDemand, IngestResult
from govtool.app.ingest.payload import IngestKey, IngestPayload, ingest_once
from govtool.app.ingest.reader_digest import reader_digest
from govtool.app.ingest.sql_lineage import SourceLineage, digest_of, extracted_lineage, lineage_with_memos
from govtool.app.ingest.sql_memo_files import BROKEN
from govtool.app.ingest.sql_meter import SqlMeter, counting
from govtool.app.ingest.sql_options import (
    Progress,
    SourceText,
    SqlRequest,
    facts_in,
    options,
    renamed_models,
    root_of,
    schema_diagnostics,
    scripts,
    unmatched_relations,
)
from govtool.app.ingest.stale import KeptLineage, has_failures, kept_lineage
from govtool.app.project.aliases import configured
from govtool.app.project.sources import SourceOrigin, check_replacement, named_source, overlapping_sources
from govtool.capture.sql.collector import uncollected
from govtool.errors import IntegrityError, UsageError
from govtool.model import Diagnostic
from govtool.model.fact import FACTS, Fact, encode_facts
from govtool.store import Fragment
from govtool.store.names import DEFAULT_BRANCH

if TYPE_CHECKING:
    from pathlib import Path

    from govtool.app.ingest.logs.request import Report
    from govtool.capture.sql.extract import Extraction, Options
    from govtool.capture.sql.files import Script
    from govtool.store import Store


def ingest_sql(
    store: Store,
    request: SqlRequest,
    *,
    message: str | None = None,
    author: str | None = None,
    branch: str = DEFAULT_BRANCH,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
    report: Report | None = None,
    drop_unreadable: bool = False,
    replace_source: bool = False,
    demand: CoverageDemand | None = None,
) -> IngestResult:
    """Read SQL, and commit its lineage to the store.

    What cannot be read or understood is reported in the result and counted in the commit; the rest is ingested. A file
    that cannot be read or understood any more keeps what it said before, unless ``drop_unreadable`` is set; see
    ``govtool.app.ingest.stale``. ``progress`` is called with parts done and in all, ``report`` with stage, rate and
    counts as well.

    Raises:
        UsageError: nothing to read, an unknown dialect, an unreadable schema, a source that was read elsewhere.
        RefusedIngestError: less was understood than ``demand`` asks for; nothing was committed.
        SourceError: the catalog cannot be read.
        StoreError: the commit could not be written; the store is as it was.
    """
    with uncollected():
        read = read_sql(store, request, stdin, replace_source=replace_source)
        key = key_of(read)
        meter = SqlMeter(report or counting(progress))

        def extract() -> IngestPayload:
            keeps = not drop_unreadable
            texts = demand is not None and demand.shortfalls
            try:
                return _SqlIngest(store, branch, read, meter, by_memos=True, with_texts=texts).payload(keeps=keeps)
            except (*BROKEN, IntegrityError):  # of what the cache holds, or of what it refers to: neither is needed
                return _SqlIngest(store, branch, read, meter, by_memos=False).payload(keeps=keeps)

        return ingest_once(
            store,
            key,
            extract,
            message=message,
            author=author,
            branch=branch,
            demand=demand,
            without_stale=drop_unreadable,
        )


@dataclass(frozen=True, slots=True)
class SqlTexts:
    """What a request names: scripts, and how they are read."""

    request: SqlRequest
    source: str
    origin: SourceOrigin
    settings: Options
    found: tuple[Script | Diagnostic, ...]
    text: SourceText

    @property
    def scripts(self) -> Iterator[Script]:
        """The scripts that could be read."""
        return (item for item in self.found if not isinstance(item, Diagnostic))

    @property
    def how(self) -> list[object]:
        """All but the texts that decides the result, as JSON values."""
        return self._how(project.digest for project in self.settings.projects)

    @property
    def how_read(self) -> list[object]:
        """All but the texts that decides how statements are read, as JSON values: without descriptions and owners."""
        return self._how(project.rendering_digest for project in self.settings.projects)

    def _how(self, projects: Iterable[str]) -> list[object]:
        settings, explain = self.settings, self.request.explain
        return [
            reader_digest("explained" if explain else "sql"),
            self.source,
            settings.dialect,
            settings.default_catalog,
            settings.default_schema,
            settings.namespace,
            settings.relation_from,
            sorted((key, repr(value)) for key, value in settings.variables.items()),
            None if settings.schema is None else repr(settings.schema),
            *projects,
            *(["explain"] if explain else ()),
        ]


def read_sql(store: Store, request: SqlRequest, stdin: IO[bytes] | None, *, replace_source: bool) -> SqlTexts:
    """Read what a request names.

    Raises:
        UsageError: As ``ingest_sql``.
        SourceError: The catalog cannot be read.
    """
    if not request.paths:
        raise UsageError("nothing to read", code="usage.arguments", hint="govtool ingest sql FOLDER")
    root = root_of(request.paths)
    source, origin = named_source("sql", request.paths, request.source, store=store, replace=replace_source, root=root)
    settings = options(request, source)
    found = (*scripts(request, root, stdin), *_hooks(settings, root))
    stdin_text = {i.file: i.text for i in found if not isinstance(i, Diagnostic) and i.file == "<stdin>"}
    return SqlTexts(request, source, origin, settings, found, SourceText(root, stdin_text))


def _hooks(settings: Options, root: Path) -> Iterator[Script]:
    """The SQL that dbt projects under the root run beside their models, as scripts of their dbt_project.yml."""
    from govtool.capture.dbt.project import PROJECT_FILE
    from govtool.capture.sql.files import Script

    for project in settings.projects:
        if project.hooks and (root / project.folder / PROJECT_FILE).is_file():
            yield Script(f"{project.folder}/{PROJECT_FILE}".lstrip("/"), project.hooks)


def key_of(read: SqlTexts) -> IngestKey:
    """Return the identity of an ingest: its input and settings. The same again is the same batch."""
    digest = hashlib.sha256(json.dumps(read.how).encode())
    for item in read.found:
        texts = (item.file, item.code) if isinstance(item, Diagnostic) else (item.file, item.text)
        for part in texts:
            data = (part or "").encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
    files = sum(1 for _ in read.scripts)
    return IngestKey("ingest sql", read.source, f"sql:{digest.hexdigest()}", files, read.text, read.origin)


class _SqlIngest:
    """From texts to what is committed."""

    def __init__(
        self,
        store: Store,
        branch: str,
        read: SqlTexts,
        meter: SqlMeter,
        *,
        by_memos: bool,
        with_texts: bool = False,
    ) -> None:
        self._store = store
        self._branch = branch
        self._read = read
        self._meter = meter
        # A database's answers, and aliases, are no part of memos.
        self._with_texts = with_texts
        self._by_memos = by_memos and not read.request.explain and not configured()
        self._assumed = schema_diagnostics(read.settings) + unmatched_relations(read.found, read.settings)
        self._assumed += renamed_models(read.found, read.settings) + _read_twice(store, branch, read)

    def payload(self, *, keeps: bool) -> IngestPayload:
        """Return all that the source says now; ``keeps`` keeps what files said before that failed."""
        settings = self._read.settings
        found = self._with_memos(settings) or self._extracted(settings)
        kept = KeptLineage()
        facts = self._facts(found)
        if keeps:
            kept = self._kept(found, facts)
        if kept.derivations:  # other files may read what the lost ones define
            settings = _with_schema(settings, kept)
            found = self._with_memos(settings) or self._extracted(settings)
            facts = self._facts(found)
            kept = self._kept(found, facts)
        lineage = found if isinstance(found, SourceLineage) else None
        extraction = found.extraction if isinstance(found, SourceLineage) else found
        read = self._read
        base = IngestPayload(
            read.source,
            read.settings.dialect,
            sum(1 for _ in read.scripts),
            Coverage.of(extraction),
            kept.derivations if lineage is not None else (*extraction.derivations, *kept.derivations),
            self._assumed + extraction.diagnostics + kept.notes,
            extraction.shortfalls,
            {"stale": len(kept.notes)} if kept.notes else {},
            more=_fact_fragments(read.source, (*facts, *kept.facts)),
        )
        return base if lineage is None else lineage.payload(base, self._meter.wrote)

    def _with_memos(self, settings: Options) -> SourceLineage | None:
        """The lineage with what is still right of the last ingest; None where that cannot be."""
        read = self._read
        if not self._by_memos:
            return None
        how = digest_of(read.how_read)
        report, texts = self._meter.report, self._with_texts
        workers = read.request.workers
        return lineage_with_memos(
            self._store, self._branch, read.found, settings, how, report, with_texts=texts, workers=workers
        )

    def _extracted(self, settings: Options) -> Extraction:
        read = self._read
        extraction = extracted_lineage(read.found, settings, self._meter.report)
        if read.request.explain and read.request.catalog is not None:
            from govtool.app.ingest.postgres_explain import explained

            extraction = explained(read.request.catalog, list(read.found), settings, extraction)
        return extraction

    def _facts(self, found: SourceLineage | Extraction) -> tuple[Fact, ...]:
        read = self._read
        if isinstance(found, SourceLineage):
            return found.facts(read.found, read.settings)
        return facts_in(read.found, read.settings, found.derivations)

    def _kept(self, found: SourceLineage | Extraction, facts: tuple[Fact, ...]) -> KeptLineage:
        """Return the earlier lineage of files that failed; the store is read only if some did."""
        extraction = found.extraction if isinstance(found, SourceLineage) else found
        if not has_failures(extraction.diagnostics):
            return KeptLineage()
        head = self._store.seen(self._branch)
        if head is None:
            return KeptLineage()
        read = self._read
        noted = self._assumed + extraction.diagnostics
        (earlier,) = check_replacement(self._store, self._branch, read.source, read.origin) or (read.source,)
        return kept_lineage(self._store, head, earlier, noted, found.derivations, facts)


def _read_twice(store: Store, branch: str, read: SqlTexts) -> tuple[Diagnostic, ...]:
    """A warning if other sources have files of this one: their statements are in the graph, and count, twice."""
    others = overlapping_sources(store, branch, read.source, read.origin)
    if not others:
        return ()
    message = (
        f"its files are also those of {', '.join(others)}: each statement counts twice; `sources drop` one of them"
    )
    return (Diagnostic("source-overlap", "warning", message),)


def _with_schema(settings: Options, kept: KeptLineage) -> Options:
    """Options with the columns of kept datasets; schemas that are given otherwise come first."""
    known = kept.schema()
    return replace(settings, schema=known if settings.schema is None else known.merged(settings.schema))


def _fact_fragments(source: str, facts: tuple[Fact, ...]) -> tuple[Fragment, ...]:
    """The fragment of a source's facts, if there are any."""
    return (Fragment(source, FACTS, encode_facts(facts), len(set(facts))),) if facts else ()
