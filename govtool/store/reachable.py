"""Objects that the slots of a store refer to, over all branches and all history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from govtool.store import log, refs
from govtool.store.commit import Commit, FragmentRef, branch_key
from govtool.store.manifest import Entry, NodeRef
from govtool.store.objects import ReadableObjects


def listed_slots(objects: ReadableObjects, branch: str) -> list[int]:
    """The numbers of a branch's slots, ascending."""
    names = [info.key.rsplit("/", 1)[1] for info in objects.scan(f"log/{branch_key(branch)}")]
    return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit())


def all_commits(objects: ReadableObjects) -> Iterator[Commit]:
    """Every commit of every branch, oldest first within a branch.

    Raises:
        IntegrityError: if a slot is damaged.
    """
    for branch in refs.branch_names(objects):
        for seq in listed_slots(objects, branch):
            commit = log.read_slot(objects, branch, seq)
            if commit is not None:
                yield commit


def named_commits(objects: ReadableObjects) -> set[str]:
    """The ids of the commits that have a name: the newest of each branch, and those that are tagged.

    Raises:
        IntegrityError: if one of them is damaged.
    """
    heads = (log.read_position(objects, branch).head for branch in refs.branch_names(objects))
    tagged = (refs.read_tag(objects, tag) for tag in refs.tag_names(objects))
    return {commit.id for commit in (*heads, *tagged) if commit is not None and not commit.closed}


def reachable_keys(objects: ReadableObjects, commits: Iterable[Commit]) -> set[str]:
    """The keys of the manifest nodes and fragments that the commits refer to, dead ones included.

    Raises:
        IntegrityError: if a manifest node is missing or damaged.
    """
    keys: set[str] = set()
    for commit in commits:
        keys.update(fragment_keys(commit.manifest.tail))
        waiting = [ref for ref in commit.manifest.refs if ref.key not in keys]
        while waiting:
            keys.update(ref.key for ref in waiting)
            below: dict[str, NodeRef] = {}
            for entries, children in log.read_nodes(objects, waiting):
                keys.update(fragment_keys(entries))
                below.update({ref.key: ref for ref in children if ref.key not in keys})
            waiting = list(below.values())
    return keys


def fragment_keys(entries: Iterable[Entry]) -> Iterator[str]:
    """The keys of the objects with the fragments that entries add."""
    for entry in entries:
        if entry.adds:
            yield FragmentRef.of(entry).key
