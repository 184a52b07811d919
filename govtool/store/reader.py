"""Read access to a store."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from govtool.errors import IntegrityError, StoreError, UsageError
from govtool.store import log
from govtool.store.backends.objects import ReadableObjects, in_parallel
from govtool.store.codec import digest, unseal
from govtool.store.commit import Commit, FragmentRef
from govtool.store.names import DEFAULT_BRANCH, check_branch

if TYPE_CHECKING:
    from govtool.store.tombstones import Tombstones

MARKER = "govtool.json"
"""The object that makes a place a store: its format and its id."""


class Reader:
    """A store, for reading.

    Attributes:
        uri: The address, as it is shown.
        objects: The place that holds the bytes.
    """

    def __init__(self, objects: ReadableObjects, store_id: str | None = None) -> None:
        """Use ``Store.open`` or ``quick.open_reader``; this constructor checks nothing."""
        self.objects = objects
        self.uri = objects.uri
        self._store_id = store_id
        self.nodes = log.Nodes(objects)
        self._tombstones: Tombstones | None = None

    @property
    def store_id(self) -> str:
        """Random, made by ``init``; copies of a store share it. Read from the marker when it is first needed."""
        if self._store_id is None:
            self._store_id = read_marker(self.objects)
        return self._store_id

    @property
    def is_remote(self) -> bool:
        """True if a request is worth saving."""
        return bool(getattr(self.objects, "is_remote", False))

    @property
    def cache_id(self) -> str:
        """The store's name in the local cache. For a remote one this costs no request."""
        return digest(self.uri.encode())[:32] if self.is_remote else self.store_id

    def head(self, branch: str = DEFAULT_BRANCH) -> Commit | None:
        """The newest commit of a branch, or ``None`` if it has none."""
        head = log.read_position(self.objects, check_branch(branch)).head
        return None if head is None or head.closed else head

    def resolve(self, ref: str, branch: str = DEFAULT_BRANCH) -> Commit:
        """The commit that ``ref`` names.

        Args:
            ref: ``HEAD``, a branch, a tag, a sequence number, the first hex digits (4 or more) of an id, or an ISO
                date or datetime (the newest commit at or before it; a date means the end of that day in UTC). ``~N``
                after any of these goes N commits back.
            branch: Where ``HEAD``, numbers and dates are looked up.

        Raises:
            UnknownNameError: ``usage.unknown-ref``.
            AmbiguousNameError: ``usage.ambiguous-ref`` for an id prefix that several commits share.
        """
        from govtool.store import resolve

        return resolve.resolve(self.objects, ref, check_branch(branch))

    def log(self, branch: str = DEFAULT_BRANCH, limit: int | None = None) -> Iterator[Commit]:
        """The commits of a branch, newest first, each verified against its successor."""
        return self.history(self.head(branch), limit)

    def history(self, commit: Commit | None, limit: int | None = None) -> Iterator[Commit]:
        """A commit and its ancestors, newest first, each verified against its successor; nothing of None.

        Raises:
            UsageError: the limit is negative (``usage.limit``).
        """
        if limit is not None and limit < 0:
            raise UsageError(f"the limit is negative: {limit}", code="usage.limit")
        return islice(log.walk(self.objects, commit), None if limit is None else min(limit, sys.maxsize))

    def fragments(self, commit: Commit) -> tuple[FragmentRef, ...]:
        """The fragments that are live at a commit, sorted."""
        live = log.read_live(self.objects, commit, self.nodes)
        return tuple(sorted(FragmentRef.of(entry) for entry in live.entries() if entry.adds))

    def fragments_of(self, commit: Commit, source: str) -> tuple[FragmentRef, ...]:
        """The live fragments of one source, sorted; from as few manifest nodes as can be."""
        live = log.read_sources(self.nodes, commit, (source,))
        return tuple(sorted(FragmentRef.of(entry) for entry in live.entries(source) if entry.adds))

    def batches(self, commit: Commit, source: str) -> frozenset[str]:
        """The batches of a source's live fragments; one, for a source that is always replaced as a whole."""
        return frozenset(entry.batch for entry in log.read_sources(self.nodes, commit, (source,)).entries(source))

    def read(self, ref: FragmentRef) -> bytes:
        """The bytes of a fragment, verified.

        Raises:
            IntegrityError: ``store.corrupt-fragment`` if they are missing or not what was written.
        """
        return self.read_many((ref,))[0]

    def read_many(self, refs: Sequence[FragmentRef]) -> list[bytes]:
        """`read` for several fragments, in parallel where that helps."""
        result: list[bytes] = []
        for ref, data in zip(refs, self._contents(refs), strict=True):
            if data is None and (found := self._instead_of(ref)) is not None:
                result.append(found)
                continue
            if data is None or digest(data) != ref.sha256:
                state = "missing" if data is None else "damaged"
                raise IntegrityError(
                    f"fragment {ref.sha256[:12]} of source {ref.source!r} is {state}",
                    code="store.corrupt-fragment",
                    location=ref.key,
                    hint="run govtool store fsck; restore the object from a backup, or remove it and ingest again",
                )
            result.append(data)
        return result

    def _instead_of(self, ref: FragmentRef) -> bytes | None:
        """The fragment to read in place of a missing one; None if the store has not forgotten it.

        Raises:
            StoreError: It was removed on purpose, and nothing is in its place (``store.forgotten``).
        """
        from govtool.store.tombstones import read_tombstones

        name = (ref.table, ref.sha256)
        known = self._tombstones
        if known is None or (name not in known.forgotten and name not in known.moved):
            self._tombstones = known = read_tombstones(self.objects)
        if name in known.forgotten and known.place(ref) is None:
            raise StoreError(
                f"what source {ref.source!r} stated here was removed from the store (govtool store forget)",
                code="store.forgotten",
                location=ref.key,
                hint="ask a later version: govtool log names the commit that removed it",
            )
        place = known.place(ref)
        return None if place is None or place == ref else self.read(place)

    def _contents(self, refs: Sequence[FragmentRef]) -> Sequence[bytes | None]:
        """The bytes of fragments, unverified; those of a remote store by way of the local cache."""
        if not self.is_remote:
            return self._fetch(refs)
        from govtool.store import blobs

        return blobs.through([ref.sha256 for ref in refs], lambda missing: self._fetch([refs[i] for i in missing]))

    def _fetch(self, refs: Sequence[FragmentRef]) -> list[bytes | None]:
        """The bytes of fragments: objects of their own each, and of every pack one stretch with all that is wanted."""
        alone = [ref for ref in refs if not ref.pack]
        found = dict(zip((ref.sha256 for ref in alone), self.objects.get_many([r.key for r in alone]), strict=True))
        packed: dict[str, list[FragmentRef]] = {}
        for ref in refs:
            if ref.pack:
                packed.setdefault(ref.key, []).append(ref)
        # One request a pack, even where some of the stretch is not wanted: a request costs more than the bytes.
        spans = [
            (key, min(ref.offset for ref in inner), max(ref.offset + ref.size for ref in inner))
            for key, inner in packed.items()
        ]
        many = len(spans) > 1 and self.is_remote
        stretches = (
            in_parallel(lambda span: self.objects.get_range(*span), spans)
            if many
            else [self.objects.get_range(*span) for span in spans]
        )
        for (key, start, _), data in zip(spans, stretches, strict=True):
            for ref in packed[key]:
                low = ref.offset - start
                found[ref.sha256] = None if data is None else data[low : low + ref.size]
        return [found[ref.sha256] for ref in refs]


def read_marker(objects: ReadableObjects) -> str:
    """Check the format of a store and return its id.

    Raises:
        StoreError: ``store.missing`` if there is no store.
        FormatError: ``store.format`` if a newer version made it.
        IntegrityError: ``store.corrupt`` if the marker is damaged.
    """
    data = objects.get(MARKER)
    if data is None:
        raise no_store(objects.uri)
    store_id = unseal(data, MARKER).get("store_id")
    if not isinstance(store_id, str):
        raise IntegrityError(f"{MARKER} names no store", location=objects.uri, hint="run govtool store fsck")
    return store_id


def no_store(uri: str) -> StoreError:
    """The error for a place that holds no store; with the one in it, where that is a project's folder."""
    hint = f"make one: govtool init --store {shlex.quote(uri)}; or give the address of another: --store"
    inside = Path(uri) / ".govtool"
    if "://" not in uri and inside.is_dir():
        hint = f"its store is {inside}"
    return StoreError(
        f"there is no store at {uri}",
        code="store.missing",
        location=uri,
        hint=hint,
    )
