"""Tombstones: fragments that were removed on purpose, and the fragments that stand in their place.

A tombstone is a fragment of the source `FORGOTTEN`, added by the commit that forgot (``store.upkeep.forget``) and
never retracted. So it is part of the chain of commits: who may write objects but no commits cannot forge one. It says
of each fragment that was removed which other one is read instead, or none; and where fragments went that shared a pack
with it. Only who finds a fragment missing reads it, and ``fsck``, ``gc`` and ``copy``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from govtool.errors import IntegrityError
from govtool.redaction import clean_prose
from govtool.store import log, refs
from govtool.store.backends.objects import ReadableObjects
from govtool.store.codec import FORMAT, digest, seal, unseal
from govtool.store.commit import Commit, FragmentRef
from govtool.store.manifest import Entry
from govtool.store.names import FORGOTTEN

TABLE = "forgotten"
"""The table of tombstones; a fragment is sealed JSON."""

FragmentName = tuple[str, str]
"""The table and the sha256 of a fragment."""


@dataclass(frozen=True, slots=True)
class ReplacedBy:
    """The fragment that is read instead of another one."""

    sha256: str
    size: int
    """In bytes."""
    rows: int


@dataclass(frozen=True, slots=True)
class Tombstones:
    """All that a store has forgotten."""

    forgotten: Mapping[FragmentName, ReplacedBy | None] = field(default_factory=dict)
    """Fragments that were removed, with what is read instead; None: nothing."""
    moved: Mapping[FragmentName, int] = field(default_factory=dict)
    """Fragments that left a pack for an object of their own, with their size."""

    def __bool__(self) -> bool:
        return bool(self.forgotten or self.moved)

    def chain(self, ref: FragmentRef) -> Iterator[FragmentRef]:
        """A fragment, what stands in its place, and so on: a stand-in may be forgotten, too."""
        seen: set[str] = set()
        while ref.sha256 not in seen:
            seen.add(ref.sha256)
            yield ref
            found = self.forgotten.get((ref.table, ref.sha256))
            if found is None:
                return
            ref = ref._replace(sha256=found.sha256, size=found.size, rows=found.rows, pack="", offset=0)

    def place(self, ref: FragmentRef) -> FragmentRef | None:
        """The fragment to read where one is missing; None if the store knows of none."""
        if (ref.table, ref.sha256) in self.moved:
            return ref._replace(pack="", offset=0)
        last = list(self.chain(ref))[-1]
        return None if last is ref or (last.table, last.sha256) in self.forgotten else last

    def needed(self, entry: Entry) -> Iterator[FragmentRef]:
        """The fragments whose objects a reader of an entry needs: its own, or those that stand in its place."""
        ref = FragmentRef.of(entry)
        if (ref.table, ref.sha256) not in self.forgotten and (ref.table, ref.sha256) not in self.moved:
            yield ref
        elif (found := self.place(ref)) is not None:
            yield found

    def removed(self, entry: Entry) -> Iterator[FragmentRef]:
        """The fragments of an entry that were forgotten: its own, and those that stood in its place."""
        return (ref for ref in self.chain(FragmentRef.of(entry)) if (ref.table, ref.sha256) in self.forgotten)


def encode_tombstones(tombstones: Tombstones, reason: str) -> bytes:
    """The bytes of a tombstone."""
    forgotten = [
        [table, sha256, *((new.sha256, new.size, new.rows) if new else ())]
        for (table, sha256), new in sorted(tombstones.forgotten.items(), key=lambda item: item[0])
    ]
    moved = [[table, sha256, size] for (table, sha256), size in sorted(tombstones.moved.items())]
    return seal({"format": FORMAT, "forgotten": forgotten, "moved": moved, "reason": clean_prose(reason)})


def decode_tombstones(data: bytes, where: str) -> Tombstones:
    """Read what `encode_tombstones` wrote.

    Raises:
        IntegrityError: It is damaged.
    """
    body = unseal(data, where)
    try:
        forgotten = {(str(row[0]), str(row[1])): _replacement(row[2:]) for row in body["forgotten"]}
        moved = {(str(table), str(sha256)): int(size) for table, sha256, size in body["moved"]}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise IntegrityError(f"{where} is not a tombstone", location=where, hint="run govtool store fsck") from error
    return Tombstones(forgotten, moved)


def _replacement(row: list[Any]) -> ReplacedBy | None:
    return ReplacedBy(str(row[0]), int(row[1]), int(row[2])) if row else None


def read_tombstones(objects: ReadableObjects) -> Tombstones:
    """Everything that a store has forgotten, by the newest commits of all branches, deleted ones included.

    Raises:
        IntegrityError: A commit or a tombstone is damaged or missing.
    """
    found: dict[str, Tombstones] = {}
    for head in branch_ends(objects):
        for entry in log.read_sources(log.Nodes(objects), head, (FORGOTTEN,)).entries(FORGOTTEN):
            if entry.adds and entry.sha256 not in found:
                ref = FragmentRef.of(entry)
                data = objects.get(ref.key)
                if data is None or digest(data) != ref.sha256:
                    raise _damaged(ref, missing=data is None)
                found[entry.sha256] = decode_tombstones(data, ref.key)
    return joined(found.values())


def branch_ends(objects: ReadableObjects) -> Iterator[Commit]:
    """The newest commit of each branch; of a deleted one, that which deleted it."""
    for branch in refs.branch_names(objects):
        end = log.read_position(objects, branch).head
        if end is not None:
            yield end


def joined(tombstones: Iterable[Tombstones]) -> Tombstones:
    """Several tombstones as one. Where they differ on a fragment, that which removed more counts."""
    forgotten: dict[FragmentName, ReplacedBy | None] = {}
    moved: dict[FragmentName, int] = {}
    for each in tombstones:
        moved.update(each.moved)
        for name, new in each.forgotten.items():
            forgotten[name] = None if new is None else forgotten.get(name, new)
    return Tombstones(forgotten, {name: size for name, size in moved.items() if name not in forgotten})


def _damaged(ref: FragmentRef, *, missing: bool) -> IntegrityError:
    return IntegrityError(
        f"the tombstone {ref.sha256[:12]} is {'missing' if missing else 'damaged'}",
        code="store.corrupt-fragment",
        location=ref.key,
        hint="run govtool store fsck; restore the object from a backup or a copy of the store",
    )
