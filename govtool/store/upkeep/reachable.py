"""Objects that the slots of a store refer to, over all branches and all history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from govtool.store import log, refs
from govtool.store.backends.objects import ReadableObjects
from govtool.store.commit import Commit, FragmentRef, branch_key, decode_slot, slot_key
from govtool.store.manifest import Entry, NodeRef
from govtool.store.tombstones import branch_ends, read_tombstones

_AT_ONCE = 32
"""Slots that are asked for together."""


def listed_slots(objects: ReadableObjects, branch: str) -> list[int]:
    """The numbers of a branch's slots, ascending.

    A listing may miss a slot that is made while it goes on, and hold the one after it: those between are looked up.
    """
    names = [info.key.rsplit("/", 1)[1] for info in objects.scan(f"log/{branch_key(branch)}")]
    seqs = {int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit()}
    between = sorted(set(range(min(seqs), max(seqs))).difference(seqs)) if seqs else ()
    return sorted({*seqs, *(seq for seq in between if objects.get(slot_key(branch, seq)) is not None)})


def all_commits(objects: ReadableObjects) -> Iterator[Commit]:
    """Every commit of every branch, oldest first within a branch.

    Raises:
        IntegrityError: A slot is damaged, or missing: between others, before the first, or after the last that is
            there. What it referred to is not known.
    """
    for branch in sorted({*refs.branch_names(objects), *refs.hinted_names(objects)}):
        hint = log.decode_hint(objects.get(log.hint_key(branch)))  # before the slots: commits may go on meanwhile
        seqs = listed_slots(objects, branch)
        for seq in sorted(set(range(seqs[0], seqs[-1])).difference(seqs)) if seqs else ():
            raise log.chain_error(slot_key(branch, seq), "is missing")
        for start in range(0, len(seqs), _AT_ONCE):
            yield from _commits(objects, branch, seqs[start : start + _AT_ONCE])
        _require_newest(hint, branch, seqs)


def _commits(objects: ReadableObjects, branch: str, seqs: Sequence[int]) -> Iterator[Commit]:
    for seq, data in zip(seqs, objects.get_many([slot_key(branch, seq) for seq in seqs]), strict=True):
        if data is None:
            raise log.chain_error(slot_key(branch, seq), "is listed but cannot be read")
        commit = decode_slot(data, branch=branch, seq=seq)
        if seq == seqs[0]:
            log.read_parent(objects, commit)
        yield commit


def _require_newest(hint: log.Hint | None, branch: str, seqs: Sequence[int]) -> None:
    """Refuse a branch whose newest slot is gone: the hint names a later one.

    Raises:
        IntegrityError: It does.
    """
    if hint is not None and hint.seq > (seqs[-1] if seqs else 0):
        raise log.chain_error(slot_key(branch, hint.seq), f"is missing, which {log.hint_key(branch)} names")


def named_commits(objects: ReadableObjects) -> set[str]:
    """The ids of the commits that have a name: the newest of each branch, and those that are tagged.

    Where such a commit names the published index of the one before it, that one's id, too.

    Raises:
        IntegrityError: if one of them is damaged.
    """
    heads = (log.read_position(objects, branch).head for branch in refs.branch_names(objects))
    tagged = (refs.read_tag(objects, tag) for tag in refs.tag_names(objects))
    named = [commit for commit in (*heads, *tagged) if commit is not None and not commit.closed]
    return {name for commit in named for name in (commit.id, commit.content_id)}


def reachable_keys(objects: ReadableObjects, commits: Iterable[Commit]) -> set[str]:
    """The keys of the manifest nodes and fragments that the commits refer to, dead ones included.

    Of fragments that were forgotten, the ones that stand in their place; but what the newest commit of a branch says
    stays, though it was forgotten once: it was ingested again.

    Raises:
        IntegrityError: if a manifest node is missing or damaged.
    """
    tombstones = read_tombstones(objects)
    keys: set[str] = set()
    if tombstones:
        for end in branch_ends(objects):
            keys.update(fragment_keys(log.read_live(objects, end).entries()))
    seen: set[str] = set()
    for entries in _all_entries(objects, commits, seen):
        keys.update(ref.key for entry in entries if entry.adds for ref in tombstones.needed(entry))
    return keys | seen


def _all_entries(objects: ReadableObjects, commits: Iterable[Commit], keys: set[str]) -> Iterator[tuple[Entry, ...]]:
    """Yield the entries of commits, those of a node once; the keys of nodes are added to ``keys``."""
    for commit in commits:
        yield commit.manifest.tail
        waiting = [ref for ref in commit.manifest.refs if ref.key not in keys]
        while waiting:
            keys.update(ref.key for ref in waiting)
            below: dict[str, NodeRef] = {}
            for entries, children in log.read_nodes(objects, waiting):
                yield entries
                below.update({ref.key: ref for ref in children if ref.key not in keys})
            waiting = list(below.values())


def all_entries(objects: ReadableObjects, commits: Iterable[Commit]) -> Iterator[Entry]:
    """The entries of commits that add fragments, dead ones included; one may come several times.

    Raises:
        IntegrityError: if a manifest node is missing or damaged.
    """
    for entries in _all_entries(objects, commits, set()):
        yield from (entry for entry in entries if entry.adds)


def fragment_keys(entries: Iterable[Entry]) -> Iterator[str]:
    """The keys of the objects with the fragments that entries add."""
    for entry in entries:
        if entry.adds:
            yield FragmentRef.of(entry).key


def forgotten_keys(objects: ReadableObjects) -> set[str]:
    """The keys of objects that were forgotten and that no newest commit of a branch refers to.

    Raises:
        IntegrityError: if a slot or a manifest node is missing or damaged.
    """
    tombstones = read_tombstones(objects)
    if not tombstones:
        return set()
    entries = all_entries(objects, all_commits(objects))
    keys = {ref.key for entry in entries for ref in tombstones.removed(entry)}
    return keys - reachable_keys(objects, all_commits(objects))
