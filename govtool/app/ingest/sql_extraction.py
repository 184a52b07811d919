"""Render, parse, resolve and fold: what the scripts of an ingest make of the graph.

``govtool.capture.sql`` does them: ``extract`` for every script, ``reuse`` for those that changed, or whose looks at
others have other answers than at the last ingest. The graph is the same to the byte.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from govtool.answers.coverage import Coverage
from govtool.app.ingest.payload import IngestPayload, fact_fragments
from govtool.app.ingest.query_paths import unnamed_queries
from govtool.app.ingest.sql_lineage import QUERY, SourceLineage, digest_of, extracted_lineage, lineage_with_memos
from govtool.app.ingest.sql_memo_files import BROKEN
from govtool.app.ingest.sql_options import facts_in, renamed_models, schema_diagnostics, unmatched_relations
from govtool.app.ingest.stale import KeptLineage, has_failures, kept_lineage
from govtool.app.project.aliases import configured
from govtool.app.project.sources import check_replacement, overlapping_sources
from govtool.errors import IntegrityError
from govtool.model import Diagnostic
from govtool.model.fact import Fact

if TYPE_CHECKING:
    from govtool.app.ingest.sql_meter import SqlMeter
    from govtool.app.ingest.sql_texts import SqlTexts
    from govtool.capture.sql.extract import Extraction, Options
    from govtool.store import Store


def extracted(
    store: Store, branch: str, read: SqlTexts, meter: SqlMeter, *, keeps: bool, with_texts: bool
) -> IngestPayload:
    """Return what an ingest commits.

    Args:
        store: With the earlier ingest of the source, if there is one.
        branch: The branch that is committed to.
        read: The scripts, and how they are read.
        meter: Shows the progress.
        keeps: Keep the earlier lineage of files that cannot be read now.
        with_texts: Keep the texts of what is not understood.
    """
    try:
        return _SqlExtraction(store, branch, read, meter, by_memos=True, with_texts=with_texts).payload(keeps=keeps)
    except (*BROKEN, IntegrityError):  # of what the cache holds, or of what it refers to: neither is needed
        return _SqlExtraction(store, branch, read, meter, by_memos=False).payload(keeps=keeps)


class _SqlExtraction:
    """From texts to what is committed: of all scripts, or of those that changed."""

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
        """Return what is committed; ``keeps`` keeps the earlier lineage of files that cannot be read now."""
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
            self._assumed + self._unnamed(found) + extraction.diagnostics + kept.notes,
            extraction.shortfalls,
            {"stale": len(kept.notes)} if kept.notes else {},
            more=fact_fragments(read.source, (*facts, *kept.facts)),
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

    def _unnamed(self, found: SourceLineage | Extraction) -> tuple[Diagnostic, ...]:
        """A warning if paths name the results of queries that have no name."""
        settings = self._read.settings
        if settings.relation_from:
            return ()
        if isinstance(found, SourceLineage):
            queries = found.queries()
        else:
            queries = [d.statement.file for d in found.derivations if d.target_kind == QUERY]
        return unnamed_queries(list(dict.fromkeys(queries)), list(self._read.scripts), settings.dialect)

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
    # Nothing comes after the names: what does may be taken for the value of a source called `secret`, and masked.
    message = (
        f"each statement counts twice; `sources drop` one of them: its files are also those of {', '.join(others)}"
    )
    return (Diagnostic("source-overlap", "warning", message),)


def _with_schema(settings: Options, kept: KeptLineage) -> Options:
    """Options with the columns of kept datasets; schemas that are given otherwise come first."""
    known = kept.schema()
    return replace(settings, schema=known if settings.schema is None else known.merged(settings.schema))
