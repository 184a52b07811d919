"""Dry runs of ingests: the ingest into a store over the real one, and what its commit changes.

The ingest is the very same, so that nothing is judged twice and differently; only what it writes stays in memory. The
differences are those of ``diff``, and those of ``check`` under the same policies before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from govtool.answers.ingest_plan import IngestPlan
from govtool.app.questions.governance import Governance, day_of
from govtool.errors import ConflictError, StoreError, UsageError
from govtool.model.diagnostic import Diagnostic
from govtool.query.versions.diff import Difference
from govtool.store.commit import Commit

if TYPE_CHECKING:
    from govtool.answers.coverage import Coverage
    from govtool.answers.ingest import IngestResult
    from govtool.store import Reader, Store


def ingest_or_plan(
    store: Store,
    ingest: Callable[[Store], IngestResult],
    *,
    dry_run: bool,
    policy: Sequence[str] | None,
    publish: bool,
) -> IngestResult:
    """Ingest into a store, or only find out what that would change.

    Args:
        store: The store.
        ingest: Commits to the store that it is given.
        dry_run: Leave the store as it is; the result has a ``plan``, and its commit is in no store.
        policy: The policies whose classes and findings a dry run compares; None: those in the folder ``policies``.
        publish: Publish the index of the commit.

    Raises:
        UsageError: Policies without a dry run, or mistaken ones.
        GovtoolError: As ``ingest``, which is refused in a dry run where it would be refused otherwise.
    """
    if not dry_run:
        if policy:
            raise UsageError("policies need a dry run", code="usage.arguments", hint="--dry-run, or govtool check")
        result = ingest(store)
        return published_ingest(store, result) if publish else result
    from govtool.store import Store
    from govtool.store.backends.overlay import OverlayObjects

    over = Store(OverlayObjects(store.objects), store.store_id)
    result = ingest(over)
    return replace(result, plan=_plan(over, result, policy))


def published_ingest(store: Store, result: IngestResult) -> IngestResult:
    """Publish the index of an ingest's commit, if it made one in a remote store.

    The commit stands whatever happens here: who publishes next, or asks without an index, is not worse off. A store
    that fails meanwhile is a diagnostic of the result.
    """
    if not (result.created and store.is_remote):
        return result
    from govtool.app.versions.index import open_index
    from govtool.app.versions.published import publish_index

    head = store.head(result.commit.branch) or result.commit  # a compaction may have followed, or somebody's commit
    try:
        publish_index(store, head, open_index(store, head), author=result.commit.author)
    except ConflictError:  # somebody committed meanwhile, and publishes that
        return result
    except StoreError as error:
        message = f"the commit stands, but its index is not published: {error.message}"
        note = Diagnostic("store.not-published", "warning", message)
        return replace(result, diagnostics=(*result.diagnostics, note))
    return result


def _plan(store: Store, result: IngestResult, policy: Sequence[str] | None) -> IngestPlan:
    base = _base(store, result)
    before = base or _empty(result.commit.branch)
    lineage = governed = Difference(())
    policies: tuple[str, ...] = ()
    if result.created:
        from govtool.app.questions.diff import diff_commits

        lineage = diff_commits(store, before, result.commit)
        governed, policies = _governed(store, before, result.commit, policy)
    return IngestPlan(
        store=store.uri,
        branch=result.commit.branch,
        base=base,
        source=result.source,
        replaces=result.commit.sources if result.created else (result.source,),
        commits=result.created,
        files=result.files,
        coverage=result.coverage,
        former=None if base is None else _coverage(store, base, result.source),
        policies=policies,
        difference=Difference.of((*lineage.changes, *governed.changes)),
    )


def _base(store: Store, result: IngestResult) -> Commit | None:
    """The commit before the ingest's; not the head that was seen first, if others committed meanwhile."""
    from govtool.store.log import read_parent

    return read_parent(store.objects, result.commit) if result.created else result.commit


def _governed(
    store: Store, old: Commit, new: Commit, policy: Sequence[str] | None
) -> tuple[Difference, tuple[str, ...]]:
    """The classes and findings that differ, and the names of the policies' files; nothing without policies."""
    before, after = _governance(store, old), _governance(store, new)
    known = before.policies_if_any(policy)
    if known is None:
        return Difference(()), ()
    from govtool.policy.rules.baseline import policy_changes

    day = day_of(None)
    changes = tuple(policy_changes(before.governed(policy, day), after.governed(policy, day), day))
    return Difference(changes), tuple(file.document.file for file in known.files)


def _governance(store: Reader, commit: Commit) -> Governance:
    """Governance over an index in memory: the cache keeps no version that does not exist."""
    from govtool.app.versions.index import built_index, cached_index

    return Governance(cached_index(store, commit) or built_index(store, commit), store, commit)


def _coverage(store: Reader, commit: Commit, source: str) -> Coverage | None:
    from govtool.app.coverage.sources import COVERAGE_TABLE, source_rows

    refs = [ref for ref in store.fragments_of(commit, source) if ref.table == COVERAGE_TABLE]
    return next((row.coverage for ref in refs for row in source_rows(store.read(ref))), None)


def _empty(branch: str) -> Commit:
    """The version before the first commit."""
    return Commit(0, "", None, branch, "", "", "", "", "")
