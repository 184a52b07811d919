"""Copying a store from one backend to another, or bringing an older copy up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from govtool.errors import ConflictError, IntegrityError, StoreError
from govtool.store import log
from govtool.store.backends.objects import Objects, ReadableObjects
from govtool.store.codec import digest, unseal
from govtool.store.commit import Commit, slot_key
from govtool.store.reader import MARKER
from govtool.store.store import Store
from govtool.store.tombstones import Tombstones, read_tombstones
from govtool.store.upkeep.reachable import all_commits, forgotten_keys, reachable_keys

_BATCH = 32
_MUTABLE = ("tags/", "hint/")
_SKIPPED = ("index/", "tmp/", "log/", "tags/", "hint/")


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a copy: ``objects`` were written, with ``size`` bytes together; ``present`` were there already."""

    objects: int
    size: int
    present: int
    removed: int = 0
    """Objects that the source has forgotten, and that an older copy still held."""


def copy_store(source: Store, target: Objects, *, progress: Callable[[int, int], None] | None = None) -> Copied:
    """Copy all that belongs to a store: fragments first, then slots in order, names, and the marker at the end.

    So an interrupted copy is no store yet (or still the old version of one), and running it again completes it. Content
    that has a hash is verified on the way. Writers may go on meanwhile; what they commit after the start may be left
    out. What the source has forgotten (`govtool.store.upkeep.forget`) is removed from an older copy.

    Args:
        source: The store to copy.
        target: Where to; empty, or an older copy of the same store.
        progress: Called with (objects done, objects).

    Raises:
        StoreError: ``store.exists`` if another store is there.
        ConflictError: if the copy got commits of its own.
        IntegrityError: if something in the source is damaged.
    """
    marker = target.get(MARKER)
    if marker is not None and unseal(marker, MARKER).get("store_id") != source.store_id:
        raise StoreError(
            f"there is another store at {target.uri}",
            code="store.exists",
            location=target.uri,
            hint="copy to an empty place, or to an older copy of this store",
        )
    version = _read_version(source.objects)
    here = {info.key for info in target.scan("")}
    gone = forgotten_keys(source.objects)  # whoever forgot may have been killed before all of it was deleted
    # The copy may be newer than its source: what it forgot does not come back.
    unwanted = gone | forgotten_keys(target) if marker is not None else gone
    keys = [key for key in (*version.contents, *version.slots) if key not in unwanted]
    written = size = 0
    for start in range(0, len(keys), _BATCH):
        batch = [key for key in keys[start : start + _BATCH] if key not in here or key.startswith("log/")]
        for key, data in _read(source, version, batch):
            if _put(target, key, data):
                written, size = written + 1, size + len(data)
        if progress:
            progress(min(start + _BATCH, len(keys)), len(keys))
    if read_tombstones(source.objects) != version.tombstones:
        raise IntegrityError("data were forgotten while they were copied", location=source.uri, hint="run it again")
    for key, data in version.names.items():
        target.put(key, data)
        written, size = written + 1, size + len(data)
    data = source.objects.get(MARKER) or b""
    if _put(target, MARKER, data):
        written, size = written + 1, size + len(data)
    left = sorted(gone.intersection(here))
    for key in left:
        target.delete(key)
    present = len(keys) + len(version.names) + 1 - written
    return Copied(written, size, present=present, removed=len(left))


@dataclass(frozen=True, slots=True)
class _Version:
    """What belongs to a store at one time, whatever is committed meanwhile.

    Published indexes are left out: whoever needs one makes it again.
    """

    names: dict[str, bytes]
    """Tags and hints, with what they say."""
    slots: list[str]
    """In order; with each, all that it was made from."""
    needed: set[str]
    """What they refer to."""
    contents: list[str]
    """All other objects, needed or not."""
    tombstones: Tombstones


def _read_version(source: ReadableObjects) -> _Version:
    """Look at what refers to others before what it refers to: that is then there to be listed.

    Raises:
        IntegrityError: Something is damaged, or missing.
    """
    tombstones = read_tombstones(source)
    names = {info.key: source.get(info.key) for prefix in _MUTABLE for info in source.scan(prefix[:-1])}
    sound = {key: data for key, data in names.items() if data is not None and _is_sound(key, data)}
    commits = _with_origins(source, list(all_commits(source)))
    slots = sorted(slot_key(commit.branch, commit.seq) for commit in commits)
    needed = reachable_keys(source, commits)
    contents = sorted(info.key for info in source.scan("") if info.key != MARKER and not info.key.startswith(_SKIPPED))
    for key in sorted(needed.difference(contents)):
        raise _damaged(key, "is missing")
    return _Version(sound, slots, needed, contents, tombstones)


def _is_sound(key: str, data: bytes) -> bool:
    """Return whether a name is to be copied; a damaged hint is not: the next commit writes it.

    Raises:
        IntegrityError: A tag is damaged.
    """
    if key.startswith("hint/"):
        return log.decode_hint(data) is not None
    return bool(unseal(data, key))


def _with_origins(source: ReadableObjects, commits: list[Commit]) -> list[Commit]:
    """Leave out commits that were made from one of another branch which came after that branch was listed.

    Raises:
        IntegrityError: What a commit was made from is missing.
    """
    while True:
        there = {(commit.branch, commit.seq) for commit in commits}
        first: dict[str, int] = {}
        for commit in commits:
            for origin in filter(None, (commit.fork, commit.merged)):
                if (origin.branch, origin.seq) not in there:
                    key = slot_key(origin.branch, origin.seq)
                    if source.get(key) is None:
                        raise _damaged(key, f"is missing, but commit {commit.short} was made from it")
                    first[commit.branch] = min(commit.seq, first.get(commit.branch, commit.seq))
        if not first:
            return commits
        commits = [commit for commit in commits if commit.seq < first.get(commit.branch, commit.seq + 1)]


def _put(target: Objects, key: str, data: bytes) -> bool:
    """Write an object unless it is there; return whether it was written.

    Raises:
        ConflictError: Another commit is in its slot.
    """
    if target.create(key, data):
        return True
    if key.startswith("log/") and target.get(key) != data:
        raise ConflictError(
            f"the copy has a commit of its own: {key}",
            location=target.uri,
            hint="copy to an empty place; branches are merged within one store",
        )
    return False


def _read(source: Store, version: _Version, keys: list[str]) -> Iterable[tuple[str, bytes]]:
    for key, data in zip(keys, source.objects.get_many(keys), strict=True):
        if data is None:
            if key not in version.needed and not key.startswith("log/"):
                continue  # nothing referred to it, and it was removed meanwhile
            raise IntegrityError(f"{key} vanished while it was copied", location=key, hint="run it again")
        stated = key.rsplit("/", 1)[-1].split(".", 1)[0]
        if key.startswith(("frag/", "pack/", "manifest/")) and stated != digest(data):
            raise _damaged(key, "is damaged")
        if key.startswith("log/"):
            unseal(data, key)
        yield key, data


def _damaged(key: str, what: str) -> IntegrityError:
    return IntegrityError(
        f"{key} {what}",
        location=key,
        hint="restore this object from a backup; govtool store fsck lists all that is wrong and what to do",
    )
