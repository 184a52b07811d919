"""Forgetting: fragments are removed from every version of a store, and a commit records it.

First what is to be read instead is written, with a tombstone (``govtool.store.tombstones``) that names it. Then every
branch whose newest commit holds such a fragment gets a commit without it; from then on it is forgotten. Then the
objects are deleted that nothing else refers to. Killed in between, the same command completes it.

Slots cannot be changed, as each is named by the next one: what a message, an author or a source's name holds stays.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from govtool.errors import IntegrityError
from govtool.store import log, published
from govtool.store.branches import again, existing, list_branches
from govtool.store.codec import JsonValue, digest
from govtool.store.commit import Commit, FragmentRef
from govtool.store.manifest import Entry, Live, Manifest
from govtool.store.names import FORGOTTEN
from govtool.store.tombstones import (
    TABLE,
    FragmentName,
    ReplacedBy,
    Tombstones,
    encode_tombstones,
    read_tombstones,
)
from govtool.store.upkeep.reachable import all_commits, all_entries, forgotten_keys, reachable_keys
from govtool.store.writer import Writer

if TYPE_CHECKING:
    from govtool.store.store import Store


class StandIn(NamedTuple):
    """A fragment that is stored in the place of another one of the same table."""

    data: bytes
    rows: int


@dataclass(frozen=True, slots=True)
class Removal:
    """The fragments to remove.

    Attributes:
        fragments: By table and sha256, with what is read instead; None: nothing is.
        sources: Sources that are retracted as a whole, though others may keep some of their fragments.
        reason: For people, kept in the tombstone.
    """

    fragments: Mapping[FragmentName, StandIn | None]
    sources: frozenset[str] = frozenset()
    reason: str = ""


class ForgottenMeanwhileError(Exception):
    """Another command forgot something since the history was looked through; nothing was removed.

    What was to stand in the place of fragments may hold what the other one removed: all must be looked through again.
    """


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of `forget`."""

    commits: tuple[Commit, ...]
    """One a branch that was changed."""
    removed: tuple[str, ...] = ()
    """The keys of the deleted objects, sorted."""
    indexes: tuple[str, ...] = field(default=())
    """The ids of commits whose published index was deleted."""
    lost: tuple[FragmentName, ...] = ()
    """Fragments that were damaged before, and went with the pack that they shared with a removed one."""

    def and_then(self, later: Forgotten) -> Forgotten:
        """What became of this removal and of a later one."""
        return Forgotten(
            (*self.commits, *later.commits),
            tuple(sorted({*self.removed, *later.removed})),
            tuple(sorted({*self.indexes, *later.indexes})),
            tuple(dict.fromkeys((*self.lost, *later.lost))),
        )


def fragments_in_history(store: Store) -> dict[FragmentName, list[FragmentRef]]:
    """Every fragment that a reader of some version may get, once for each of its sources and places.

    These are the fragments that commits of any branch add, and those that stand in the place of removed ones, each
    under its own name. One that was removed is among them only while its object is there: it was ingested again, or
    the removal was interrupted.

    Raises:
        IntegrityError: a slot, a manifest node or a tombstone is damaged.
    """
    tombstones = read_tombstones(store.objects)
    there = _objects_there(store) if tombstones.forgotten else frozenset()
    found: dict[FragmentName, dict[FragmentRef, None]] = {}
    for entry in all_entries(store.objects, all_commits(store.objects)):
        for ref in tombstones.chain(FragmentRef.of(entry)):
            if (ref.table, ref.sha256) not in tombstones.forgotten or ref.key in there:
                found.setdefault((ref.table, ref.sha256), {})[ref] = None
    return {name: list(refs) for name, refs in found.items()}


def _objects_there(store: Store) -> frozenset[str]:
    """The keys of all objects that hold fragments."""
    return frozenset(info.key for folder in ("frag", "pack") for info in store.objects.scan(folder))


def forget(
    store: Store, removal: Removal, branch: str, *, author: str, message: str, known: Tombstones | None = None
) -> Forgotten:
    """Remove fragments from all versions of a store.

    Args:
        store: The store.
        removal: The fragments.
        branch: The branch that gets a commit in any case.
        author: For people.
        message: The commits' message.
        known: What was forgotten when the fragments were looked through; by default, now.

    Raises:
        ForgottenMeanwhileError: More was forgotten since.
        IntegrityError: a slot, a manifest node or a tombstone is damaged; nothing was removed.
        UnknownNameError: ``usage.unknown-branch``.
        StoreError: the store cannot be written. The same command again completes what was begun.
    """
    known = read_tombstones(store.objects) if known is None else known
    history = fragments_in_history(store)
    moved, lost = _moved(store, history, removal, known)
    tombstone = _write(store, removal, moved, known)
    about = author, message
    try:
        commits = [_commit(store, branch, removal, moved, tombstone, known=known, about=about)]
    except ForgottenMeanwhileError:
        _settle(store, removal, moved)
        raise
    for name in sorted({each.name for each in list_branches(store)} - {branch}):
        commits.append(_commit(store, name, removal, moved, tombstone, known=None, about=about))
    indexes = _drop_indexes(store, removal, known)
    # Of an earlier removal that was interrupted, what it left behind goes, too.
    removed = sorted(_objects_there(store) & forgotten_keys(store.objects))
    for key in removed:
        store.objects.delete(key)
    _settle(store, removal, moved)
    return Forgotten(tuple(filter(None, commits)), tuple(removed), indexes, lost)


def _settle(store: Store, removal: Removal, moved: Mapping[FragmentName, int]) -> None:
    """Delete what was written of fragments and no commit refers to; see that what stands in their place is there.

    Others may forget the same at the same time, and find theirs to be of no use.
    """
    made = {
        FragmentRef("", table, digest(new.data), len(new.data), new.rows).key: new.data
        for (table, _), new in removal.fragments.items()
        if new is not None
    }
    alone = {FragmentRef("", table, sha256, size, 0).key for (table, sha256), size in moved.items()}
    if not (made or alone):
        return
    used = reachable_keys(store.objects, all_commits(store.objects))
    unused = (made.keys() | alone) - used
    restored = [key for key in sorted(made.keys() & used) if store.objects.create(key, made[key])]
    if restored:  # or were they removed for good just now?
        unused |= set(restored) - reachable_keys(store.objects, all_commits(store.objects))
    for key in sorted(unused):
        store.objects.delete(key)


def _moved(
    store: Store, history: Mapping[FragmentName, list[FragmentRef]], removal: Removal, known: Tombstones
) -> tuple[dict[FragmentName, int], tuple[FragmentName, ...]]:
    """Give fragments that share a pack with a removed one an object of their own.

    One that was forgotten before stays where it is, and goes with the pack, unless it was ingested again since. One
    that is damaged goes with the pack, too: what is read in its place may be a part of the removed one.

    Returns:
        The size of each, and those of them that are damaged.
    """
    packs = {ref.pack for name in removal.fragments for ref in history.get(name, ()) if ref.pack}
    again = _live_names(store) if packs and known.forgotten else frozenset()
    moved: dict[FragmentName, int] = {}
    lost: list[FragmentName] = []
    for name, refs in history.items():
        packed = [ref for ref in refs if ref.pack in packs]
        if not packed or name in removal.fragments or (name in known.forgotten and name not in again):
            continue
        try:
            _create(store, packed[0]._replace(pack="", offset=0), store.read(packed[0]))
        except IntegrityError:
            lost.append(name)
        moved[name] = packed[0].size
    return moved, tuple(lost)


def _live_names(store: Store) -> frozenset[FragmentName]:
    """The fragments that the newest commits of all branches add under their own names."""
    heads = (each.head for each in list_branches(store))
    return frozenset(
        (entry.table, entry.sha256)
        for head in heads
        for entry in log.read_live(store.objects, head).entries()
        if entry.adds
    )


def _create(store: Store, ref: FragmentRef, data: bytes) -> None:
    if not store.objects.create(ref.key, data):
        store.objects.put(ref.key, data)  # perhaps left behind: made young, so that gc waits


def _write(store: Store, removal: Removal, moved: Mapping[FragmentName, int], known: Tombstones) -> Entry:
    """Write the fragments that are read instead, and the tombstone; return the tombstone's entry."""
    replaced: dict[FragmentName, ReplacedBy | None] = {}
    for (table, sha256), new in removal.fragments.items():
        # One that was forgotten before and came back: earlier versions keep what they have in its place.
        if new is None or (table, sha256) not in known.forgotten:
            replaced[table, sha256] = None if new is None else ReplacedBy(digest(new.data), len(new.data), new.rows)
        if new is not None:
            _create(store, FragmentRef("", table, digest(new.data), len(new.data), new.rows), new.data)
    data = encode_tombstones(Tombstones(replaced, dict(moved)), removal.reason)
    entry = Entry("~", FORGOTTEN, uuid.uuid4().hex, TABLE, digest(data), len(data), len(replaced))
    _create(store, FragmentRef.of(entry), data)
    return entry


def _commit(
    store: Store,
    branch: str,
    removal: Removal,
    moved: Mapping[FragmentName, int],
    tombstone: Entry,
    *,
    known: Tombstones | None,
    about: tuple[str, str],
) -> Commit | None:
    """Commit the rest of the sources concerned to a branch; None if there are none and nothing is said to be known.

    Raises:
        ForgottenMeanwhileError: More than what is known was forgotten.
    """

    def attempt() -> Commit | None:
        head = existing(store, branch)
        if known is not None and read_tombstones(store.objects) != known:
            raise ForgottenMeanwhileError
        live = log.read_live(store.objects, head)
        touched = _touched(live, removal, moved)
        if not touched and known is None:
            return None
        entries = [left for source in touched for left in _left(live.entries(source), removal, moved)]
        return _land(store, head, head.manifest.apply(touched, [*entries, tombstone]), touched, removal, about)

    return again(attempt)


def _touched(live: Live, removal: Removal, moved: Mapping[FragmentName, int]) -> list[str]:
    names = {e.source for e in live.entries() if (e.table, e.sha256) in removal.fragments}
    names.update(e.source for e in live.entries() if e.pack and (e.table, e.sha256) in moved)
    return sorted(names.union(removal.sources.intersection(live.sources)))


def _left(entries: Iterable[Entry], removal: Removal, moved: Mapping[FragmentName, int]) -> Iterable[Entry]:
    """The entries of a source that stay; of the same batches, so that it is not ingested again unchanged."""
    for entry in entries:
        name = (entry.table, entry.sha256)
        if entry.source in removal.sources:
            continue
        if not entry.adds or name not in removal.fragments:
            yield entry._replace(op="~", pack="", offset=0) if name in moved else _again(entry)
        elif (new := removal.fragments[name]) is not None:
            sha256, size = digest(new.data), len(new.data)
            yield entry._replace(op="~", sha256=sha256, size=size, rows=new.rows, pack="", offset=0)


def _again(entry: Entry) -> Entry:
    return entry._replace(op="~") if entry.adds else entry


def _land(
    store: Store, head: Commit, manifest: Manifest, touched: list[str], removal: Removal, about: tuple[str, str]
) -> Commit:
    author, message = about
    writer = Writer(store.objects, head.branch)
    summary: dict[str, JsonValue] = {"command": "store forget", "forgotten": len(removal.fragments)}
    sources = tuple(sorted({*touched, FORGOTTEN}))
    draft = writer.draft(head, author=author, message=message, summary=summary, sources=sources)
    return writer.land(draft, manifest)


def _drop_indexes(store: Store, removal: Removal, known: Tombstones) -> tuple[str, ...]:
    """Delete the published indexes of commits that held a removed fragment: they repeat its content."""
    listed: dict[str, list[str]] = {}
    for info in store.objects.scan(published.FOLDER):
        listed.setdefault(info.key.split("/")[1], []).append(info.key)
    clean = {
        commit.id
        for commit in (all_commits(store.objects) if listed else ())
        if commit.id in listed and not _holds(store, commit, removal, known)
    }
    stale = sorted(set(listed) - clean)
    for name in stale:
        for key in listed[name]:
            store.objects.delete(key)
    return tuple(stale)


def _holds(store: Store, commit: Commit, removal: Removal, known: Tombstones) -> bool:
    """Return whether a reader of a commit got a removed fragment, directly or in the place of another one."""
    return any(
        entry.source in removal.sources
        or any((ref.table, ref.sha256) in removal.fragments for ref in known.chain(FragmentRef.of(entry)))
        for entry in log.read_live(store.objects, commit).entries()
    )
