"""Indexes of commits that are published in the store, for readers on other machines.

    index/<commit>/<formats>-<sha256>.root     the root, named by what it contains
    index/<commit>/<sha256>.part               pages, or parts of the whole index, named by what they contain

A published index is a help and never the truth: it is made of what the commit holds, anyone may make it again, and
``store gc`` removes it when the commit is no longer the newest of a branch and has no tag. Everything is created only,
and verified when it is read: parts and roots by their names, pages by the digests in the root, and the root by the
commit that it names, so that the index of one commit never answers for another. The root's digest stands in the slot
after that commit, and a reader takes no other root: whoever may write objects, but no slots, cannot forge one. Who may
write slots can: ``store fsck --deep`` builds the index again and compares.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from govtool.errors import FormatError, IntegrityError
from govtool.store import blobs, log
from govtool.store.backends.objects import Objects, ReadableObjects, in_parallel
from govtool.store.codec import JsonValue, digest
from govtool.store.commit import Commit, PublishedName
from govtool.store.writer import Writer

if TYPE_CHECKING:
    from govtool.graph.paging.pages import Root

FOLDER = "index"
PART = 32 * 1024**2
"""Bytes of a part, about."""
NEAR = 16 * 1024
"""Pages that lie less than this many bytes apart are fetched in one request."""


@dataclass(frozen=True, slots=True)
class PublishedPart:
    """An object that holds a stretch of something larger. ``size`` is in bytes, as stored."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class PageRange:
    """The place of a page: bytes of all parts together, and the first hex digits of its sha256."""

    start: int
    end: int
    name: str


def folder(commit: str) -> str:
    """The folder of a commit's indexes."""
    return f"{FOLDER}/{commit}"


def part_key(commit: str, sha256: str) -> str:
    """The key of a part."""
    return f"{folder(commit)}/{sha256}.part"


class PartWriter:
    """Uploads a sequence of pieces as parts; a piece is never cut in two.

    Args:
        objects: The store's objects.
        commit: Whose index it is.
        compress: Whether parts are compressed as a whole.
    """

    def __init__(self, objects: Objects, commit: str, *, compress: bool = False) -> None:
        self.parts: list[PublishedPart] = []
        self._objects = objects
        self._commit = commit
        self._compress = compress
        self._held: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        self._held.append(piece)
        self._size += len(piece)
        if self._size >= PART:
            self.end()

    def end(self) -> None:
        """Upload what is held."""
        if not self._held:
            return
        data = b"".join(self._held)
        if self._compress:
            data = zlib.compress(data, 6)
        part = PublishedPart(digest(data), len(data))
        key = part_key(self._commit, part.sha256)
        if not self._objects.create(key, data):
            self._objects.put(key, data)  # Perhaps left by a publisher that was killed: made young, so that gc waits.
        self.parts.append(part)
        self._held, self._size = [], 0


def put_root(objects: Objects, commit: str, formats: str, data: bytes) -> None:
    """Make an index visible. Its parts must be there."""
    objects.create(f"{folder(commit)}/{formats}-{digest(data)}.root", data)


def root_key(name: PublishedName, formats: str) -> str:
    """The key of a root."""
    return f"{folder(name.commit)}/{formats}-{name.root}.root"


def named_root(objects: ReadableObjects, commit: Commit) -> PublishedName | None:
    """The name of a commit's published index, as it or the next slot of its branch states it.

    Raises:
        IntegrityError: The next slot is damaged.
    """
    if commit.published is not None:
        return commit.published
    after = log.read_slot(objects, commit.branch, commit.seq + 1)
    if after is None or after.parent != commit.id or after.published is None:
        return None
    return after.published if after.published.commit == commit.id else None


def read_root(objects: ReadableObjects, name: PublishedName, formats: str) -> bytes | None:
    """The root of that name in these formats, if it is there and sound."""
    if len(name.root) != 64:
        return None
    (data,) = blobs.through([name.root], lambda _: objects.get_many([root_key(name, formats)]))
    return data if data is not None and digest(data) == name.root else None


def land_name(objects: Objects, head: Commit, name: PublishedName, author: str) -> Commit:
    """Commit the name of a published index on top of the commit whose content it is.

    Raises:
        LostSlotError: Somebody else committed meanwhile.
    """
    writer = Writer(objects, head.branch)
    summary: dict[str, JsonValue] = {"command": "index", "index": {"commit": name.commit, "root": name.root}}
    draft = writer.draft(head, author=author, message="publish the index", summary=summary)
    return writer.land(draft, head.manifest)


def read_pages(
    objects: ReadableObjects, commit: str, parts: Sequence[PublishedPart], wanted: Sequence[PageRange]
) -> list[bytes]:
    """Pages by range requests, verified; those that lie together in one request each, and requests at once.

    Raises:
        IntegrityError: A page is gone or not what was written.
        StoreError: The store cannot be reached.
    """
    starts = [0, *accumulate(part.size for part in parts)]

    def fetch(missing: list[int]) -> list[bytes | None]:
        runs = list(_runs([wanted[place] for place in missing], starts))

        def fetch_run(run: tuple[int, int, int]) -> bytes | None:
            number, low, high = run
            key = part_key(commit, parts[number].sha256)
            return objects.get_range(key, low - starts[number], high - starts[number])

        answers = [fetch_run(run) for run in runs] if len(runs) < 2 else in_parallel(fetch_run, runs)
        found: list[bytes | None] = []
        for place in missing:
            page = wanted[place]
            data = None
            for (_, low, high), answer in zip(runs, answers, strict=True):
                if low <= page.start and page.end <= high and answer is not None:
                    data = answer[page.start - low : page.end - low]
            found.append(data)
        return found

    pages = blobs.through([page.name for page in wanted], fetch)
    for page, data in zip(wanted, pages, strict=True):
        if data is None or not hashlib.sha256(data).hexdigest().startswith(page.name):
            raise IntegrityError(
                f"a page of the index of commit {commit[:7]} is {'missing' if data is None else 'damaged'}",
                code="store.corrupt-index",
                location=folder(commit),
                hint="govtool index --publish",
            )
    return [data for data in pages if data is not None]


def _runs(wanted: Iterable[PageRange], starts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Requests: the number of a part, and the first and one past the last byte of all parts together."""
    held: tuple[int, int, int] | None = None
    for page in sorted(wanted, key=lambda page: page.start):
        number = bisect_right(starts, page.start) - 1
        if held is not None and held[0] == number and page.start - held[2] < NEAR:
            held = (number, held[1], page.end)
            continue
        if held is not None:
            yield held
        held = (number, page.start, page.end)
    if held is not None:
        yield held


def read_whole(objects: ReadableObjects, commit: str, parts: Sequence[PublishedPart]) -> Iterator[bytes]:
    """The pieces of a whole index, verified and decompressed, one part at a time.

    Raises:
        IntegrityError: A part is gone or not what was written.
    """
    for part in parts:
        data = objects.get(part_key(commit, part.sha256))
        if data is None or digest(data) != part.sha256:
            raise IntegrityError(
                f"a part of the index of commit {commit[:7]} is {'missing' if data is None else 'damaged'}",
                code="store.corrupt-index",
                location=part_key(commit, part.sha256),
                hint="govtool index --publish",
            )
        yield zlib.decompress(data)


def to_json(parts: Iterable[PublishedPart]) -> list[list[Any]]:
    """Parts as JSON values."""
    return [[part.sha256, part.size] for part in parts]


def from_json(body: Iterable[Sequence[Any]]) -> tuple[PublishedPart, ...]:
    """Undo `to_json`."""
    return tuple(PublishedPart(str(sha256), int(size)) for sha256, size in body)


def parts_of(data: bytes) -> list[str]:
    """The names of the parts that a root refers to.

    Raises:
        IntegrityError: it is no root of a published index.
    """
    return [part.sha256 for part in contents_of(data)[1]]


def contents_of(data: bytes) -> tuple[str, list[PublishedPart]]:
    """The commit that a root is bound to (empty in roots of earlier versions), and its parts.

    Raises:
        IntegrityError: it is no root of a published index.
    """
    meta = decoded(data).meta
    return str(meta.get("commit", "")), parts_in(meta)


def decoded(data: bytes) -> Root:
    """The root of an index.

    Raises:
        IntegrityError: it is none.
    """
    from govtool.graph.paging import pages

    try:
        return pages.decode_root(data)
    except (FormatError, KeyError, TypeError, ValueError) as error:
        raise IntegrityError("this is not the root of an index", code="store.corrupt-index") from error


def parts_in(meta: Mapping[str, Any]) -> list[PublishedPart]:
    """The parts that a decoded root refers to.

    Raises:
        IntegrityError: it is no root of a published index.
    """
    try:
        return [part for name in ("pages", "whole") for part in from_json(meta["parts"][name])]
    except (KeyError, TypeError, ValueError) as error:
        raise IntegrityError("this is not the root of an index", code="store.corrupt-index") from error


def needed_keys(objects: ReadableObjects, keys: Iterable[str], commits: Iterable[str]) -> set[str]:
    """Of the keys below `FOLDER` those that are worth keeping: sound roots of some commits, and their parts.

    Args:
        objects: The store's objects.
        keys: All keys there.
        commits: The ids of the commits whose indexes are kept.
    """
    kept = {folder(commit): commit for commit in commits}
    needed: set[str] = set()
    for key in keys:
        commit = kept.get(key.rsplit("/", 1)[0])
        data = objects.get(key) if commit is not None and key.endswith(".root") else None
        if commit is None or data is None:
            continue
        with contextlib.suppress(IntegrityError):
            needed.update(part_key(commit, sha256) for sha256 in parts_of(data))
            needed.add(key)
    return needed
