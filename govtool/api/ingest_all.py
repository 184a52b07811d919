"""``govtool.ingest()``: bring all sources of govtool.toml up to date."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any, Unpack

from govtool.api.arguments import Texts, checked, texts
from govtool.api.ingest import ingest_catalog, ingest_dbt, ingest_log, ingest_sql
from govtool.api.ingest_events import ingest_openlineage, ingest_prov, ingest_spark
from govtool.api.ingest_options import CommitOptions, opened, publishes
from govtool.errors import UsageError

if TYPE_CHECKING:
    from govtool.answers.ingest_all import IngestAllAnswer, SourceOutcome
    from govtool.app.ingest.all_sources import Ingest
    from govtool.store import Store

INGESTS: dict[str, Ingest] = {
    "sql": ingest_sql,
    "dbt": ingest_dbt,
    "log": ingest_log,
    "catalog": ingest_catalog,
    "openlineage": ingest_openlineage,
    "prov": ingest_prov,
    "spark": ingest_spark,
}
"""The ingest of each kind of source."""


@checked
def ingest(
    only: Texts | None = None,
    *,
    dry_run: bool = False,
    policy: Texts | None = None,
    strict: bool = False,
    min_coverage: float | None = None,
    replace: bool = False,
    publish: bool | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    **options: Unpack[CommitOptions],
) -> IngestAllAnswer:
    """Bring every source of ``[[sources]]`` in govtool.toml up to date, one commit each.

    A source that cannot be read, or of which less was understood than demanded, keeps its last version; the others are
    committed. The answer's ``failed`` are those.

    Args:
        only: Only the sources of these names, paths or kinds.
        dry_run: Change nothing: each result's ``plan`` has what would change by this source alone.
        policy: Of a dry run, the policies whose classes and findings it compares; by default those in ``policies``.
        strict: Commit a source only if everything was understood.
        min_coverage: Commit a source only if this share of its statements was understood, in percent.
        replace: Replace sources also where they were read from another place or by another kind of ingest.
        publish: Publish the index in a remote store once all sources are read; by default as ``[store] publish`` says.
        progress: Called as ``progress(done, total, source)`` before each source.
        **options: Those of every commit: see `CommitOptions`.

    Raises:
        UsageError: govtool.toml is not valid or has no ``[[sources]]``, or there is no such branch.
        StoreError: There is no store, or it cannot be written; sources before this are committed.
    """
    from govtool.answers.ingest_all import IngestAllAnswer
    from govtool.app.ingest.all_sources import chosen_sources, ingest_sources
    from govtool.app.project.listed_sources import live_sources, unlisted_sources
    from govtool.app.project.project import existing_branch

    if policy and not dry_run:
        raise UsageError("policies need a dry run", code="usage.arguments", hint="--dry-run, or govtool check")
    sources = chosen_sources(texts(only))
    store = opened(options)
    branch = existing_branch(store, options.get("branch"))
    own = {"strict": strict, "min_coverage": min_coverage, "replace": replace, "publish": False}
    shared: dict[str, Any] = {**options, **own}
    if dry_run:
        shared.update(dry_run=True, policy=policy)

    def starting(number: int, label: str) -> None:
        if progress is not None:
            progress(number, len(sources), label)

    outcomes = tuple(ingest_sources(sources, INGESTS, shared, starting))
    if publishes(publish) and not dry_run:
        outcomes = _published(store, outcomes)
    head = store.head(branch)
    if any(outcome.error is not None for outcome in outcomes):
        live = live_sources(sources, store, head)
        outcomes = tuple(replaced(each, kept=kept) for each, kept in zip(outcomes, live, strict=True))
    unlisted = unlisted_sources(store, head) if head is not None and not only else ()
    return IngestAllAnswer(store.uri, branch, outcomes, unlisted)


def _published(store: Store, outcomes: tuple[SourceOutcome, ...]) -> tuple[SourceOutcome, ...]:
    """Publish the index once, of the last commit; a diagnostic of that source tells if it failed."""
    from govtool.app.ingest.dry_run import published_ingest

    made = [number for number, each in enumerate(outcomes) if each.result is not None and each.result.created]
    if not made:
        return outcomes
    last = outcomes[made[-1]]
    assert last.result is not None
    published = replaced(last, result=published_ingest(store, last.result))
    return (*outcomes[: made[-1]], published, *outcomes[made[-1] + 1 :])
