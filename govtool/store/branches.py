"""Branches: create, list, delete, merge.

A branch begins with a slot of its own whose parent is on another branch, and ends with a *closing* slot. So every
step is a commit that either happened or did not, and no history is ever lost: a deleted name can be used again, and
continues the numbers of its slots.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from govtool.errors import ConflictError, UnknownNameError, UsageError
from govtool.store import log, refs
from govtool.store.backends.objects import Objects
from govtool.store.commit import Commit, CommitResult, Origin
from govtool.store.manifest import Entry
from govtool.store.names import DEFAULT_BRANCH, FORGOTTEN, check_new_name
from govtool.store.tombstones import Tombstones, read_tombstones
from govtool.store.writer import LostSlotError, Writer

if TYPE_CHECKING:
    from govtool.store.writable import WritableStore

_TRIES = 10
_T = TypeVar("_T")


class Branch(NamedTuple):
    """A branch and its newest commit."""

    name: str
    head: Commit


def list_branches(store: WritableStore) -> tuple[Branch, ...]:
    """The branches that have commits and were not deleted, sorted by name."""
    found = []
    for name in refs.branch_names(store.objects):
        head = store.head(name)
        if head is not None:
            found.append(Branch(name, head))
    return tuple(found)


def create_branch(store: WritableStore, name: str, at: Commit, *, author: str) -> Commit:
    """Start a branch at a commit of any branch.

    Raises:
        UsageError: ``usage.branch`` for a bad name, ``usage.branch-exists`` if there is a branch or tag of that name.
        ConflictError: if someone else made it at the same time.
        IntegrityError: ``store.corrupt-chain`` if the history of ``at`` is broken.
    """
    objects = store.objects
    log.check_newest(objects, at)
    old = log.read_position(objects, check_new_name(name, "branch")).head
    if (old is not None and not old.closed) or refs.read_tag(objects, name) is not None:
        raise UsageError(
            f"there is a {'branch' if old is not None and not old.closed else 'tag'} {name!r} already",
            code="usage.branch-exists",
            hint="choose another name, or delete it first",
        )
    seq = (old.seq if old else at.seq) + 1
    writer = Writer(objects, name)
    draft = writer.draft(at, author=author, message=f"branch {name} from {at.branch} {at.seq}")
    draft = replace(draft, seq=seq, start=seq, fork=Origin(at.branch, at.seq, at.id))
    return writer.land(draft, at.manifest)


def delete_branch(store: WritableStore, name: str, *, author: str) -> Commit:
    """Delete a branch. Its commits stay: by id from a tag, and where they were merged.

    Returns:
        The closing commit.

    Raises:
        UsageError: for the default branch.
        UnknownNameError: ``usage.unknown-branch``.
    """
    if name == DEFAULT_BRANCH:
        raise UsageError(f"the branch {DEFAULT_BRANCH!r} cannot be deleted", code="usage.branch")

    def attempt() -> Commit:
        head = existing(store, name)
        writer = Writer(store.objects, name)
        draft = writer.draft(head, author=author, message=f"delete branch {name}")
        return writer.land(replace(draft, closed=True), head.manifest)

    return again(attempt)


def merge_branch(
    store: WritableStore,
    source: str,
    into: str = DEFAULT_BRANCH,
    *,
    author: str,
    prefer: Literal["source", "target"] | None = None,
) -> CommitResult:
    """Take over into one branch what another changed since they parted.

    The unit is the source, as it is for retraction: what only one side changed is taken; what both changed to the
    same is fine; what both changed differently is a conflict.

    Args:
        store: The store.
        source: The branch with the changes.
        into: The branch to change.
        author: For people.
        prefer: The side that wins conflicts; by default they are an error.

    Returns:
        The merge commit; or the head of ``into`` and ``created`` false if there is nothing to take over.

    Raises:
        ConflictError: ``store.conflict`` with the sources in question as ``nearest``.
        UnknownNameError: ``usage.unknown-branch``.
    """
    if source == into:
        raise UsageError(f"{source!r} cannot be merged into itself", code="usage.branch")

    def attempt() -> CommitResult:
        theirs, ours = existing(store, source), existing(store, into)
        base = common_ancestor(store.objects, theirs, ours)
        if base is not None and base.id == theirs.id:
            return CommitResult(ours, created=False)
        take = _to_take(store.objects, base, theirs, ours, prefer)
        if not take and base is not None and all(c.fork for c in _since(store.objects, theirs, base)):
            return CommitResult(ours, created=False)  # The branch was made, and nothing was done on it.
        writer = Writer(store.objects, into)
        added = [entry._replace(op="~") if entry.adds else entry for entries in take.values() for entry in entries]
        manifest = ours.manifest.apply(take, added)
        message, sources = f"merge branch {source} into {into}", tuple(sorted(take))
        draft = writer.draft(ours, author=author, message=message, sources=sources, after=theirs.time)
        draft = replace(draft, merged=Origin(theirs.branch, theirs.seq, theirs.id))
        return CommitResult(writer.land(draft, manifest), created=True)

    return again(attempt)


def common_ancestor(objects: Objects, one: Commit, other: Commit) -> Commit | None:
    """The newest commit that both were made from, through parents and merges; ``None`` if there is none."""
    sides = {one.id: 1}
    sides[other.id] = sides.get(other.id, 0) | 2
    commits = {one.id: one, other.id: other}
    queue = [_newest_first(commit) for commit in commits.values()]
    heapq.heapify(queue)
    while queue:
        commit = commits[heapq.heappop(queue)[-1]]
        side = sides[commit.id]
        if side == 3:
            return commit
        for parent in _parents(objects, commit):
            seen = sides.get(parent.id, 0)
            if seen | side != seen:
                sides[parent.id] = seen | side
                commits[parent.id] = parent
                heapq.heappush(queue, _newest_first(parent))
    return None


def existing(store: WritableStore, name: str) -> Commit:
    """The head of a branch, for who is about to commit.

    Raises:
        UnknownNameError: ``usage.unknown-branch`` with the branches there are.
        IntegrityError: ``store.corrupt-chain`` if the history is broken.
    """
    head = store.head(name)
    if head is None:
        raise UnknownNameError(
            f"there is no branch {name!r}",
            code="usage.unknown-branch",
            nearest=tuple(branch.name for branch in list_branches(store))[:10],
            hint="govtool branch list",
        )
    log.check_newest(store.objects, head)
    return head


def again(attempt: Callable[[], _T]) -> _T:
    """Call ``attempt`` until nobody else takes the slot that it wants.

    Raises:
        ConflictError: the last one, after ten.
    """
    for _ in range(_TRIES - 1):
        try:
            return attempt()
        except LostSlotError:
            continue
    return attempt()


def _to_take(
    objects: Objects, base: Commit | None, theirs: Commit, ours: Commit, prefer: str | None
) -> dict[str, tuple[Entry, ...]]:
    """The sources to replace in ``ours``, with their entries in ``theirs``."""
    before, source, target = (
        _entries_by_source(objects, base) if base is not None else {},
        _entries_by_source(objects, theirs),
        _entries_by_source(objects, ours),
    )
    # What was forgotten on one side only, or after they parted, is no change.
    forgotten = read_tombstones(objects) if FORGOTTEN in source or FORGOTTEN in target else Tombstones()
    take: dict[str, tuple[Entry, ...]] = {}
    conflicts = []
    for name in sorted({*before, *source, *target}):
        old, new, kept = (_content(side.get(name, ()), forgotten) for side in (before, source, target))
        if new in (old, kept):
            continue
        if name == FORGOTTEN:  # what either side forgot stays forgotten
            take[name] = tuple(dict.fromkeys((*target.get(name, ()), *source.get(name, ()))))
            continue
        if kept != old:
            conflicts.append(name)
            if prefer == "target":
                continue
        take[name] = source.get(name, ())
    if conflicts and prefer is None:
        raise ConflictError(
            f"{len(conflicts)} sources were changed on both branches, {theirs.branch!r} and {ours.branch!r}",
            nearest=tuple(conflicts[:10]),
            hint="choose a side (--prefer source|target), or ingest these sources again on one of them",
        )
    return take


def _entries_by_source(objects: Objects, commit: Commit) -> dict[str, tuple[Entry, ...]]:
    live = log.read_live(objects, commit)
    return {source: tuple(live.entries(source)) for source in live.sources}


def _content(entries: tuple[Entry, ...], forgotten: Tombstones) -> frozenset[tuple[str, str]]:
    """The fragments of entries, with those that are read in place of forgotten ones."""
    found: set[tuple[str, str]] = set()
    for entry in entries:
        found.update((entry.table, ref.sha256) for ref in forgotten.needed(entry))
    return frozenset(found)


def _since(objects: Objects, commit: Commit, base: Commit) -> list[Commit]:
    found = []
    for ancestor in log.walk(objects, commit):
        if ancestor.id == base.id:
            break
        found.append(ancestor)
    return found


def _parents(objects: Objects, commit: Commit) -> list[Commit]:
    parents = [log.read_parent(objects, commit), log.read_origin(objects, commit.merged)]
    return [parent for parent in parents if parent is not None]


def _newest_first(commit: Commit) -> tuple[tuple[int, ...], int, str]:
    # Times never decrease from a commit to the ones made from it; within a branch, numbers grow.
    return tuple(-ord(character) for character in commit.time), -commit.seq, commit.id
