"""Reading the log: the head of a branch, its history, what is live at a commit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from govtool.errors import IntegrityError
from govtool.store.backends.objects import ReadableObjects
from govtool.store.codec import digest
from govtool.store.commit import Commit, Origin, branch_key, decode_slot, slot_key, slot_parent
from govtool.store.manifest import Entry, Live, NodeRef, decode_node

_FAR = 16
"""A hint that lags by more than this is helped out by a listing."""
_LINKS = 16
"""Links of the history that a commit to a local store checks: its cost must not grow with the store's age."""
_SLOTS = 256
"""Slots that a check of the history reads at once."""


class Hint(NamedTuple):
    """The best-effort pointer to the newest slot of a branch: it may lag, and is only a place to start looking."""

    seq: int
    id: str


def hint_key(branch: str) -> str:
    """The key of a branch's hint."""
    return f"hint/{branch_key(branch)}"


def encode_hint(hint: Hint) -> bytes:
    """The bytes of a hint."""
    return json.dumps({"id": hint.id, "seq": hint.seq}).encode()


def decode_hint(data: bytes | None) -> Hint | None:
    """Read a hint; anything that is not one counts as none."""
    try:
        body = json.loads(data or b"")
        hint = Hint(body["seq"], body["id"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return hint if type(hint.seq) is int and hint.seq > 0 and isinstance(hint.id, str) else None


class Position(NamedTuple):
    """The head of a branch, and the lag of its hint (``None``: there is no usable hint)."""

    head: Commit | None
    lag: int | None
    sure: bool = True
    """True if the slot after it was looked at, and was free."""


def read_position(objects: ReadableObjects, branch: str, *, hasty: bool = False) -> Position:
    """Find the newest commit of a branch.

    Three requests where the hint is right or lags by one: the hint, the slot after it, and the hint's slot unless the
    one after it was there; then, the slot after that.

    Args:
        objects: The store's objects.
        branch: A checked branch name.
        hasty: Do not look behind a slot that was found after the hint's: a writer who tries to take the one behind it
            is told as much.

    Raises:
        IntegrityError: if a slot that was read is damaged or does not continue the one before it.
    """
    hint = decode_hint(objects.get(hint_key(branch)))
    if hint is None:
        return Position(_listed_head(objects, branch, 0), None)
    found = read_ahead(objects, branch, hint.seq, hint.id, most=1 if hasty else None)
    if found:
        return Position(found[-1], found[-1].seq - hint.seq, sure=not hasty)
    head = read_slot(objects, branch, hint.seq)
    if head is None:  # The hint is ahead of the log, as after a restore: only a listing tells.
        return Position(_listed_head(objects, branch, 0), None)
    if head.id != hint.id:
        named = hint_key(branch)
        raise chain_error(
            slot_key(branch, head.seq),
            f"is not the commit {hint.id[:7]} that {named} names",
            f"; if the slot is as it was written, remove {named}",
        )
    return Position(head, 0)


def read_ahead(
    objects: ReadableObjects, branch: str, seq: int, parent: str, *, most: int | None = None
) -> list[Commit]:
    """The commits after slot ``seq``, whose commit is ``parent``, oldest first; a long gap is skipped by a listing.

    Args:
        objects: The store's objects.
        branch: A checked branch name.
        seq: The slot to start from.
        parent: The id of its commit.
        most: Stop after so many.
    """
    found: list[Commit] = []
    while (most is None or len(found) < most) and (commit := read_slot(objects, branch, seq + 1)) is not None:
        if commit.fork is None and commit.parent != parent:
            raise chain_error(slot_key(branch, seq), "is not what the commit after it was made from")
        found.append(commit)
        seq, parent = commit.seq, commit.id
        if len(found) == _FAR and (last := _listed_head(objects, branch, seq)) is not None:
            found.append(last)
            seq, parent = last.seq, last.id
    return found


def read_slot(objects: ReadableObjects, branch: str, seq: int) -> Commit | None:
    """The commit of one slot, or ``None`` if there is none."""
    data = objects.get(slot_key(branch, seq))
    return None if data is None else decode_slot(data, branch=branch, seq=seq)


def read_parent(objects: ReadableObjects, commit: Commit) -> Commit | None:
    """The commit that ``commit`` was made from, verified; ``None`` for the first one.

    Raises:
        IntegrityError: ``store.corrupt-chain`` if the parent is gone or is not the one that ``commit`` names.
    """
    if commit.parent is None:
        return None
    branch, seq = (commit.fork.branch, commit.fork.seq) if commit.fork else (commit.branch, commit.seq - 1)
    parent = read_slot(objects, branch, seq)
    where = slot_key(branch, seq)
    if parent is None:
        raise chain_error(where, f"is missing, but commit {commit.short} was made from it")
    if parent.id != commit.parent:
        raise chain_error(where, f"is not what commit {commit.short} was made from")
    return parent


def read_origin(objects: ReadableObjects, origin: Origin | None) -> Commit | None:
    """The commit at another place of the log, verified; ``None`` for ``None``.

    Raises:
        IntegrityError: ``store.corrupt-chain`` if it is gone or is another one.
    """
    if origin is None:
        return None
    commit = read_slot(objects, origin.branch, origin.seq)
    if commit is None or commit.id != origin.id:
        raise chain_error(slot_key(origin.branch, origin.seq), f"is not the commit {origin.id[:7]} that was merged")
    return commit


def walk(objects: ReadableObjects, commit: Commit | None) -> Iterator[Commit]:
    """``commit`` and its ancestors, newest first, each verified against the one that names it."""
    while commit is not None:
        yield commit
        commit = read_parent(objects, commit)


def check_chain(objects: ReadableObjects, newest: Commit, oldest: int = 1) -> None:
    """Check that every slot before a commit is what the one after it was made from.

    Slots are hashed, not decoded: some 40 microseconds each on a local disk.

    Args:
        objects: The store's objects.
        newest: The commit to begin with.
        oldest: The number of the last slot to look at.

    Raises:
        IntegrityError: ``store.corrupt-chain`` if a slot is missing or was changed.
    """
    seq, parent = newest.seq, newest.parent
    last = max(newest.start, oldest)
    while seq > last:
        slots = [slot_key(newest.branch, number) for number in range(seq - 1, max(seq - _SLOTS, last) - 1, -1)]
        for where, data in zip(slots, objects.get_many(slots), strict=True):
            if data is None:
                raise chain_error(where, f"is missing, but commit {seq} was made from it")
            if digest(data) != parent:
                raise chain_error(where, f"is not what commit {seq} was made from")
            seq, parent = seq - 1, slot_parent(data, newest.branch, seq - 1)
    if seq <= oldest or newest.start == 1:
        return
    first = newest if newest.seq == seq else read_slot(objects, newest.branch, seq)
    fork = None if first is None else read_parent(objects, first)
    if fork is not None:
        check_chain(objects, fork, oldest)


def check_newest(objects: ReadableObjects, head: Commit, oldest: int = 1) -> None:
    """`check_chain` of the newest slots of a local store, before a commit is made on top.

    Args:
        objects: The store's objects; nothing is looked at in a bucket, where each slot is a request, nor in memory.
        head: What the new commit is to be made from.
        oldest: A slot that is known to be right, and all before it.

    Raises:
        IntegrityError: ``store.corrupt-chain`` if a slot is missing or was changed.
    """
    if not getattr(objects, "is_remote", False) and not objects.uri.startswith("memory:"):
        check_chain(objects, head, max(head.seq - _LINKS, oldest))


def check_link(objects: ReadableObjects, commit: Commit) -> None:
    """Check that the commit after one was made from it, or took it over: one request, for who came by its number.

    Raises:
        IntegrityError: ``store.corrupt-chain`` if it was made from another one, or is missing.
    """
    after = read_slot(objects, commit.branch, commit.seq + 1)
    if after is None:
        raise chain_error(slot_key(commit.branch, commit.seq + 1), "is missing, but later commits were made from it")
    if commit.id not in (after.parent, after.merged.id if after.merged else None):
        raise chain_error(slot_key(commit.branch, commit.seq), f"is not what commit {after.short} was made from")


class Nodes:
    """Reads manifest nodes; those of a remote store by way of the local cache.

    Attributes:
        objects: The store's objects.
        requests: How many nodes were asked for and were not at hand.
    """

    def __init__(self, objects: ReadableObjects) -> None:
        self.objects = objects
        self.requests = 0

    def read(self, refs: list[NodeRef]) -> list[tuple[tuple[Entry, ...], tuple[NodeRef, ...]]]:
        """See `read_nodes`."""
        if getattr(self.objects, "is_remote", False):
            from govtool.store import blobs

            return _decoded(
                refs, blobs.through([ref.sha256 for ref in refs], lambda at: self._fetch([refs[i] for i in at]))
            )
        return _decoded(refs, self._fetch(refs))

    def _fetch(self, refs: list[NodeRef]) -> list[bytes | None]:
        self.requests += len(refs)
        return self.objects.get_many([ref.key for ref in refs])


def read_sources(nodes: Nodes, commit: Commit, sources: Iterable[str]) -> Live:
    """Read the contents of some sources at a commit, from few nodes: the newest first, until each was retracted.

    Raises:
        IntegrityError: if a manifest node is missing or damaged.
    """
    wanted = set(sources)
    taken: list[tuple[Entry, ...]] = []
    left = set(wanted)

    def take(entries: tuple[Entry, ...]) -> None:
        taken.append(tuple(entry for entry in entries if entry.source in left))
        left.difference_update(entry.source for entry in entries if entry.op == "-")

    def visit(refs: Iterable[NodeRef]) -> None:
        for ref in reversed(tuple(refs)):
            if not any(map(ref.mentions, left)):
                continue
            ((entries, children),) = nodes.read([ref])
            if children:
                visit(children)
            else:
                take(entries)

    take(commit.manifest.tail)
    visit(commit.manifest.refs)
    live = Live()
    for entries in reversed(taken):
        live.feed(entries)
    return live


def read_live(objects: ReadableObjects, commit: Commit, nodes: Nodes | None = None) -> Live:
    """Read the live contents of a commit.

    Args:
        objects: The store's objects.
        commit: The commit.
        nodes: Where to read nodes from, if not from the objects themselves.

    Raises:
        IntegrityError: if a manifest node is missing or damaged.
    """
    live = Live()
    items: list[NodeRef | tuple[Entry, ...]] = list(commit.manifest.refs)
    while any(isinstance(item, NodeRef) for item in items):
        wanted = [item for item in items if isinstance(item, NodeRef)]
        read = iter(nodes.read(wanted) if nodes else read_nodes(objects, wanted))
        below: list[NodeRef | tuple[Entry, ...]] = []
        for item in items:
            if isinstance(item, NodeRef):
                entries, children = next(read)
                below.extend(children if children else (entries,))
            else:
                below.append(item)
        items = below
    for item in items:
        if not isinstance(item, NodeRef):
            live.feed(item)
    live.feed(commit.manifest.tail)
    return live


def read_nodes(objects: ReadableObjects, refs: list[NodeRef]) -> list[tuple[tuple[Entry, ...], tuple[NodeRef, ...]]]:
    """The contents of manifest nodes, verified, in order."""
    return _decoded(refs, objects.get_many([ref.key for ref in refs]))


def _decoded(
    refs: list[NodeRef], contents: Sequence[bytes | None]
) -> list[tuple[tuple[Entry, ...], tuple[NodeRef, ...]]]:
    nodes = []
    for ref, data in zip(refs, contents, strict=True):
        if data is None or digest(data) != ref.sha256:
            raise IntegrityError(
                f"{ref.key} is {'missing' if data is None else 'damaged'}",
                code="store.corrupt-manifest",
                location=ref.key,
                hint="run govtool store fsck, and restore this object from a backup or a copy of the store",
            )
        node = decode_node(data, ref.key)
        nodes.append((node.entries, node.children))
    return nodes


def _listed_head(objects: ReadableObjects, branch: str, after: int) -> Commit | None:
    start = slot_key(branch, after) if after else ""
    keys = [info.key for info in objects.scan(f"log/{branch_key(branch)}", start)]
    seqs = [int(name) for key in keys if (name := key.rsplit("/", 1)[1].removesuffix(".json")).isdigit()]
    if not seqs:
        return None
    head = read_slot(objects, branch, max(seqs))
    if head is None:
        raise chain_error(slot_key(branch, max(seqs)), "is listed but cannot be read")
    return head


def chain_error(where: str, what: str, more: str = "") -> IntegrityError:
    """The error for a history that does not hang together at the slot ``where``."""
    return IntegrityError(
        f"the history is broken: {where} {what}",
        code="store.corrupt-chain",
        location=where,
        hint="a slot was edited, replaced or removed: restore the slot from a backup or a copy of the store; govtool"
        f" store fsck lists all that is wrong{more}",
    )
