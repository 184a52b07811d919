"""Copying a store from one backend to another, or bringing an older copy up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from govtool.errors import ConflictError, IntegrityError, StoreError
from govtool.store import log
from govtool.store.backends.objects import Objects, ReadableObjects
from govtool.store.codec import digest, unseal
from govtool.store.reader import MARKER
from govtool.store.store import Store
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
    listed = _keys(source.objects)
    here = {info.key for info in target.scan("")}
    gone = forgotten_keys(source.objects)  # whoever forgot may have been killed before all of it was deleted
    # The copy may be newer than its source: what it forgot does not come back.
    unwanted = gone | forgotten_keys(target) if marker is not None else gone
    keys = [key for key in listed if key not in unwanted]
    for key in sorted(reachable_keys(source.objects, all_commits(source.objects)).difference(listed)):
        raise _damaged(key, "is missing")
    written = size = 0
    for start in range(0, len(keys), _BATCH):
        batch = [key for key in keys[start : start + _BATCH] if key not in here or key.startswith(("log/", *_MUTABLE))]
        for key, data in _read(source, batch):
            if _put(target, key, data):
                written, size = written + 1, size + len(data)
        if progress:
            progress(min(start + _BATCH, len(keys)), len(keys))
    left = sorted(gone.intersection(here))
    for key in left:
        target.delete(key)
    return Copied(written, size, present=len(keys) - written, removed=len(left))


def _keys(source: ReadableObjects) -> list[str]:
    """What belongs to a store, in the order in which it is copied.

    Published indexes are left out: whoever needs one makes it again.
    """
    # Slots are listed before what they refer to: all that they refer to is then there to be listed.
    slots = [info.key for info in source.scan("log")]
    tags = [info.key for info in source.scan("tags")]
    hints = [info.key for info in source.scan("hint")]
    own = {*slots, *tags, *hints, MARKER}
    others = [key for info in source.scan("") if (key := info.key) not in own and not key.startswith(_SKIPPED)]
    return [*sorted(others), *sorted(slots), *sorted(tags), *sorted(hints), MARKER]


def _put(target: Objects, key: str, data: bytes) -> bool:
    """Write an object unless it is there; return whether it was written.

    Raises:
        ConflictError: Another commit is in its slot.
    """
    if key.startswith(_MUTABLE):
        target.put(key, data)
        return True
    if target.create(key, data):
        return True
    if key.startswith("log/") and target.get(key) != data:
        raise ConflictError(
            f"the copy has a commit of its own: {key}",
            location=target.uri,
            hint="copy to an empty place; branches are merged within one store",
        )
    return False


def _read(source: Store, keys: list[str]) -> Iterable[tuple[str, bytes]]:
    for key, data in zip(keys, source.objects.get_many(keys), strict=True):
        if data is None:
            if key.startswith(_MUTABLE):
                continue
            raise IntegrityError(f"{key} vanished while it was copied", location=key, hint="run it again")
        stated = key.rsplit("/", 1)[-1].split(".", 1)[0]
        if key.startswith(("frag/", "pack/", "manifest/")) and stated != digest(data):
            raise _damaged(key, "is damaged")
        if key.startswith(("log/", "tags/")):
            unseal(data, key)
        if not (key.startswith("hint/") and log.decode_hint(data) is None):  # a damaged one is written by a commit
            yield key, data


def _damaged(key: str, what: str) -> IntegrityError:
    return IntegrityError(
        f"{key} {what}",
        location=key,
        hint="restore this object from a backup; govtool store fsck lists all that is wrong and what to do",
    )
