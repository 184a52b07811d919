"""Revert: a commit that undoes another one, source by source.

Each source that the commit changed gets what it had before it. As in a merge, the unit is the source: one that was
changed again since is a conflict. No history is lost, and a reverted commit can be ingested again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from govtool.errors import ConflictError, UsageError
from govtool.store import log
from govtool.store.branches import again, existing
from govtool.store.commit import Commit
from govtool.store.names import DEFAULT_BRANCH, FORGOTTEN
from govtool.store.writer import Writer

if TYPE_CHECKING:
    from govtool.store.manifest import Entry
    from govtool.store.writable import WritableStore

_REVERTED = re.compile(r"(?P<verb>revert|reapply) (?=\d+: )")
"""The beginning of a message that `revert_commit` wrote."""


class RevertResult(NamedTuple):
    """The outcome of a revert; ``commit`` is the head of the branch."""

    commit: Commit
    created: bool
    """False: nothing of the undone commit was left, or it was a dry run."""
    undone: Commit
    sources: tuple[str, ...] = ()
    """The sources that get, or in a dry run would get, what they had before; sorted."""


def revert_commit(
    store: WritableStore,
    undone: Commit,
    branch: str = DEFAULT_BRANCH,
    *,
    author: str,
    message: str | None = None,
    dry_run: bool = False,
) -> RevertResult:
    """Give every source that a commit changed what it had before that commit.

    Args:
        store: The store.
        undone: The commit to undo; it may be on any branch.
        branch: The branch to commit to.
        author: For people.
        message: The commit's message.
        dry_run: Leave the store as it is; the result has the sources that would change.

    Returns:
        The commit; or the head of the branch and ``created`` false where nothing of ``undone`` is left in it.

    Raises:
        ConflictError: ``store.conflict``: sources were changed since; they are ``nearest``.
        UnknownNameError: ``usage.unknown-branch``.
        UsageError: The commit forgot something (``usage.forgotten``).
        StoreError: The commit could not be written; the store is as it was.
    """
    if FORGOTTEN in undone.sources:
        raise UsageError(
            f"commit {undone.seq} ({undone.short}) removed text for good: it cannot be undone",
            code="usage.forgotten",
            hint="ingest the sources again",
        )

    def attempt() -> RevertResult:
        head = existing(store, branch)
        take = _restored(store, undone, head)
        if dry_run or not take:
            return RevertResult(head, created=False, undone=undone, sources=tuple(sorted(take)))
        writer = Writer(store.objects, branch)
        added = [entry._replace(op="~") if entry.adds else entry for entries in take.values() for entry in entries]
        draft = writer.draft(
            head,
            author=author,
            message=message or _message(undone),
            summary={"command": "revert", "reverts": undone.id},
            sources=tuple(sorted(take)),
        )
        return RevertResult(
            writer.land(draft, head.manifest.apply(take, added)), created=True, undone=undone, sources=draft.sources
        )

    return again(attempt)


def _message(undone: Commit) -> str:
    """The message: ``revert 6: ingest sql etl``; for a revert, ``reapply 6: …``, and so on."""
    again = _REVERTED.match(undone.message) if undone.summary.get("command") == "revert" else None
    if again is None:
        return f"revert {undone.seq}: {undone.message}"
    verb = "reapply" if again["verb"] == "revert" else "revert"
    return f"{verb} {undone.message[again.end() :]}"


def _restored(store: WritableStore, undone: Commit, head: Commit) -> dict[str, tuple[Entry, ...]]:
    """The sources to change, with what they had before the commit."""
    before = log.read_parent(store.objects, undone)
    take: dict[str, tuple[Entry, ...]] = {}
    conflicts = []
    for source in undone.sources:
        earlier = _entries(store, before, source) if before is not None else ()
        made, now = _entries(store, undone, source), _entries(store, head, source)
        if _content(now) == _content(earlier):
            continue
        if _content(now) != _content(made):
            conflicts.append(source)
        take[source] = earlier
    if conflicts:
        raise ConflictError(
            f"{len(conflicts)} sources of commit {undone.seq} ({undone.short}) were changed since",
            nearest=tuple(conflicts[:10]),
            hint="revert the later commits first, or ingest these sources again: govtool log",
        )
    return take


def _entries(store: WritableStore, commit: Commit, source: str) -> tuple[Entry, ...]:
    return tuple(log.read_sources(store.nodes, commit, (source,)).entries(source))


def _content(entries: tuple[Entry, ...]) -> frozenset[tuple[str, str]]:
    return frozenset((entry.table, entry.sha256) for entry in entries)
