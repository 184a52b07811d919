"""Indexes that are published in a store: made by `publish_index`, asked page by page by who has no index of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from govtool.errors import ConflictError, FormatError, GovtoolError, IntegrityError, StoreError
from govtool.graph import layout
from govtool.graph.index import Index
from govtool.graph.paging import pages
from govtool.store import published
from govtool.store.codec import digest
from govtool.store.commit import PublishedName

if TYPE_CHECKING:
    from govtool.store import Commit, Reader, Store

Progress = Callable[[int, int], None]

FORMATS = f"{pages.FORMAT}.{layout.FORMAT}"
"""The formats of pages and of what they are cut from, in a root's name: others' are not looked at."""
SMALL = 256 * 1024
"""Bytes of an index, compressed, up to which it is fetched whole at once: fewer requests than a few pages."""
A_REQUEST = 128 * 1024
"""Bytes that take about as long as a request: when pages have cost as much as the whole would, the whole is fetched."""
_FEWEST = 12
_CHUNK = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of `publish_index`."""

    created: bool
    """False: the index was there already."""
    pages: int
    size: int
    """Bytes of the pages."""
    whole: int
    """Bytes of the whole index, compressed."""


def publish_index(
    store: Store, commit: Commit, index: Index, progress: Progress | None = None, *, author: str | None = None
) -> Publication:
    """Put the index of a commit into the store, so that others need not build it: cut into pages, and whole.

    The slot after the commit names the index, which a reader demands: it is a commit that changes nothing else.

    Args:
        store: Where the commit is.
        commit: The commit.
        index: Its index.
        progress: Called with pages done and pages in all.
        author: Of the commit that names the index; by default the user.

    Raises:
        ConflictError: the commit is not the newest of its branch, or is not any more.
        StoreError: it cannot be written. What was written already is not seen, and gc removes it.
    """
    from govtool.app.coverage.total import total_coverage
    from govtool.app.project.user import user_name
    from govtool.app.questions.facts import dataset_owners
    from govtool.graph.paging.cut import cut

    found = _bound_root(store, commit, from_store=True)
    if found is not None:
        return _publication(found, created=False)
    named = published.named_root(store.objects, commit)
    if named is None:
        _require_head(store, commit)
    index = index.folded()
    cuts = published.PartWriter(store.objects, commit.content_id)
    about = {"coverage": total_coverage(store, commit).counts(), "owners": dataset_owners(store, commit)}
    root = cut(index, about, cuts.add, progress)
    cuts.end()
    whole = published.PartWriter(store.objects, commit.content_id, compress=True)
    buffer = memoryview(index.buffer)
    for start in range(0, len(buffer), _CHUNK):
        whole.add(bytes(buffer[start : start + _CHUNK]))
    whole.end()
    parts = {"pages": published.to_json(cuts.parts), "whole": published.to_json(whole.parts)}
    root = replace(root, meta={**root.meta, "parts": parts, "commit": commit.content_id})
    data = pages.encode_root(root)
    published.put_root(store.objects, commit.content_id, FORMATS, data)
    name = PublishedName(commit.content_id, digest(data))
    if named != name:
        published.land_name(store.objects, _require_head(store, commit), name, author or user_name())
    return _publication(root, created=True)


def _require_head(store: Store, commit: Commit) -> Commit:
    """The newest commit of the branch. It must have the content of the given commit.

    Raises:
        ConflictError: It is another one.
    """
    head = store.head(commit.branch)
    if head is None or head.content_id != commit.content_id:
        raise ConflictError(
            f"commit {commit.seq} ({commit.short}) is not the newest of branch {commit.branch!r}",
            location=store.uri,
            hint="publish the index of the newest commit: govtool index --publish",
        )
    return head


def _publication(root: pages.Root, *, created: bool) -> Publication:
    whole = sum(part.size for part in published.from_json(root.meta["parts"]["whole"]))
    return Publication(created, len(root.offset) - 1, root.offset[-1], whole)


@dataclass(frozen=True, slots=True)
class Published:
    """The published index of a commit."""

    store: Reader
    commit: Commit
    root: pages.Root

    def open(self, bring: Callable[[], Index]) -> Index:
        """The index: read page by page if it is large, else (and when much of it is asked) what ``bring`` brings."""
        from govtool.graph.paging.paged import MOST, PagedIndex

        whole = _publication(self.root, created=False).whole
        if whole <= SMALL:
            return bring()
        most = min(MOST, max(_FEWEST, whole // A_REQUEST))
        return PagedIndex(self.root, self._read, lambda: bring().buffer, most)

    def pieces(self) -> list[bytes]:
        """The whole index, downloaded.

        Raises:
            IntegrityError: it is gone or damaged: build the index.
        """
        parts = published.from_json(self.root.meta["parts"]["whole"])
        return list(published.read_whole(self.store.objects, self.commit.content_id, parts))

    def _read(self, numbers: Sequence[int]) -> Mapping[int, bytes]:
        root = self.root
        parts = published.from_json(root.meta["parts"]["pages"])
        wanted = [published.PageRange(root.offset[n], root.offset[n + 1], root.digest(n).hex()) for n in numbers]
        return dict(
            zip(numbers, published.read_pages(self.store.objects, self.commit.content_id, parts, wanted), strict=True)
        )


def find_published(store: Reader, commit: Commit) -> Published | None:
    """The published index of a commit of a remote store, if there is a sound one.

    Raises:
        StoreError: the store cannot be read.
    """
    if not store.is_remote:
        return None
    try:
        root = _bound_root(store, commit)
    except StoreError as error:
        if error.code != "store.denied":
            raise
        root = None  # Whoever may not list may read all the same.
    if root is None:
        return None
    try:
        _keep_coverage(store, commit, root.meta["coverage"])
        _keep_owners(store, commit, root.meta.get("owners"))
    except (IntegrityError, FormatError, KeyError):
        return None
    return Published(store, commit, root)


def _bound_root(store: Reader, commit: Commit, *, from_store: bool = False) -> pages.Root | None:
    """The root of a commit's published index: named by a slot, sound, and bound to this commit and no other."""
    name = published.named_root(store.objects, commit)
    data = None if name is None else published.read_root(store.objects, name, FORMATS, from_store=from_store)
    if data is None:
        return None
    with contextlib.suppress(IntegrityError, FormatError, KeyError):
        root = published.decoded(data)
        published.parts_in(root.meta)
        if root.meta.get("commit") == commit.content_id:
            return root
    return None


def index_problem(store: Reader, commit: Commit, build: Callable[[], Index]) -> str | None:
    """Build a commit's index again and compare it with the published one.

    Args:
        store: The store.
        commit: The commit.
        build: Builds the index from the commit's fragments; called only if one is published.

    Returns:
        The first difference in words; None if there is none, or nothing is published.

    Raises:
        StoreError: The store cannot be read.
    """
    from govtool.app.coverage.sources import read_coverage
    from govtool.app.questions.facts import read_owners
    from govtool.graph.paging.cut import cut

    root = _bound_root(store, commit, from_store=True)
    if root is None:
        return None
    index = build()
    about = {"coverage": read_coverage(store, commit).total.counts(), "owners": read_owners(store, commit)}
    made = cut(index, about, lambda _: None)
    if {name: root.meta.get(name) for name in about} != about:
        return "its coverage or its owners are not those of the commit"
    if (list(made.offset), made.digests) != (list(root.offset), root.digests):
        return "its pages are not those of the commit"
    meta = {**made.meta, "parts": root.meta["parts"], "commit": commit.content_id}
    if pages.decode_root(pages.encode_root(replace(made, meta=meta))) != root:
        return "its table of pages is not that of the commit"
    try:
        pieces = published.read_whole(
            store.objects, commit.content_id, published.from_json(root.meta["parts"]["whole"])
        )
        whole = b"".join(pieces)
    except (IntegrityError, KeyError) as error:
        return str(error)
    return None if whole == bytes(memoryview(index.buffer)) else "the whole index is not that of the commit"


def _keep_coverage(store: Reader, commit: Commit, counts: Any) -> None:
    """Every answer shows the coverage: it came with the root, and the fragments that say so need not be read."""
    from govtool.app.coverage.total import coverage_dir, write_total
    from govtool.store import cache

    directory = coverage_dir(store, commit)

    if not cache.lookup(directory):
        with contextlib.suppress(GovtoolError):
            cache.publish(directory, lambda folder: write_total(folder, counts))


def _keep_owners(store: Reader, commit: Commit, owners: Any) -> None:
    """Owners are shown with answers, too. A root of an earlier version has none: then the facts are read."""
    from govtool.app.questions.facts import keep_owners, owners_dir
    from govtool.store import cache

    if isinstance(owners, dict) and not cache.lookup(owners_dir(store, commit)):
        keep_owners(store, commit, owners)
