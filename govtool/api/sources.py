"""Changes to the sources of a graph: retract one, or undo a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from govtool.api.arguments import Ref, checked
from govtool.api.ingest_options import CommitOptions, opened

if TYPE_CHECKING:
    from govtool.store import Commit
    from govtool.store.revert import RevertResult


@checked
def drop_source(
    name: str,
    **options: Unpack[CommitOptions],
) -> Commit:
    """Retract everything that a source put into the graph, and return the commit. Earlier versions keep it.

    Args:
        name: The source.
        **options: Those of every commit: see `CommitOptions`.

    Raises:
        UnknownNameError: there is no such source at the head of the branch (``usage.unknown-source``).
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.project import sources
    from govtool.app.project.project import existing_branch
    from govtool.app.project.user import user_name

    store = opened(options)
    branch = existing_branch(store, options.get("branch"))
    author = options.get("author") or user_name()
    return sources.drop_source(store, name, message=options.get("message"), author=author, branch=branch).commit


@checked
def revert_commit(
    ref: Ref,
    *,
    dry_run: bool = False,
    **options: Unpack[CommitOptions],
) -> RevertResult:
    """Undo a commit: its sources get what they had before it, in a new commit.

    Args:
        ref: The commit to undo: ``HEAD``, a number, an id, a tag.
        dry_run: Commit nothing; the result names the ``sources`` that would change.
        **options: Those of every commit: see `CommitOptions`.

    Returns:
        The commit, and the one that is ``undone``; ``created`` is false where nothing of that is left.

    Raises:
        ConflictError: sources were changed again since (``store.conflict``).
        UnknownNameError: there is no such commit or branch.
        StoreError: there is no store, or the commit could not be written; then the store is as it was.
    """
    from govtool.app.project.project import commit_at, existing_branch
    from govtool.app.project.user import user_name
    from govtool.store.revert import revert_commit as revert

    store = opened(options)
    branch = existing_branch(store, options.get("branch"))
    undone = commit_at(store, str(ref), branch)
    author = options.get("author") or user_name()
    return revert(store, undone, branch, author=author, message=options.get("message"), dry_run=dry_run)
