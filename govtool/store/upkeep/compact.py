"""Compaction: a commit that changes nothing but writes the manifest anew, without what is dead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.errors import GovtoolError
from govtool.store import log
from govtool.store.branches import again, existing
from govtool.store.codec import JsonValue
from govtool.store.commit import Commit, CommitResult
from govtool.store.manifest import EMPTY
from govtool.store.names import DEFAULT_BRANCH
from govtool.store.writer import Writer

if TYPE_CHECKING:
    from govtool.store.writable import WritableStore

_WORTH = 1024


def compaction_due(commit: Commit, live: int) -> bool:
    """Return whether compaction is worth a commit: more than half of at least a thousand entries are dead.

    Args:
        commit: The head.
        live: How many fragments are live at it.
    """
    return commit.manifest.stored > max(_WORTH, 2 * live)


def keep_compact(store: WritableStore, commit: Commit, entries: int, *, author: str) -> CommitResult | None:
    """Compact a commit's branch if that is due. It never fails: the commit is done already.

    Looking takes a read of the manifest, so it is done only when that has grown to twice its size, from a thousand
    entries on: a handful of times in the life of a store.

    Args:
        store: The store.
        commit: The commit.
        entries: How many entries it added, at most.
        author: For people.

    Returns:
        The commit that compacted, if there is one.
    """
    stored = commit.manifest.stored
    if (stored // _WORTH).bit_length() == (max(0, stored - entries) // _WORTH).bit_length():
        return None
    try:
        live = sum(1 for _ in log.read_live(store.objects, commit, store.nodes).entries())
        return compact(store, commit.branch, author=author) if compaction_due(commit, live) else None
    except GovtoolError:
        return None


def compact(store: WritableStore, branch: str = DEFAULT_BRANCH, *, author: str) -> CommitResult:
    """Rewrite the manifest of a branch's head; fragments, history and known batches stay as they are.

    Returns:
        The new commit, whose summary has the entries before and after; ``created`` is false if nothing is dead.

    Raises:
        UnknownNameError: ``usage.unknown-branch``.
    """

    def attempt() -> CommitResult:
        head = existing(store, branch)
        entries = sorted(log.read_live(store.objects, head).entries())
        if head.manifest.stored == len(entries):
            return CommitResult(head, created=False)
        writer = Writer(store.objects, branch)
        summary: dict[str, JsonValue] = {"compacted": {"before": head.manifest.stored, "after": len(entries)}}
        draft = writer.draft(head, author=author, message="compact", summary=summary)
        return CommitResult(writer.land(draft, EMPTY.apply((), entries)), created=True)

    return again(attempt)
