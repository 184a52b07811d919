"""Commits, fragments and the bytes of a slot.

A slot, ``log/<branch>/<seq>.json``, is one commit: canonical JSON (sorted keys, no spaces, ASCII) with a digest of its
own body. The commit's id is the sha256 of the slot's bytes; each slot names its parent's id, so the log is a hash
chain. Formats are versioned: a reader refuses a slot of a newer format and ignores fields that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from govtool.errors import IntegrityError
from govtool.store.codec import JsonValue, digest, seal, unseal
from govtool.store.manifest import EMPTY, Entry, Manifest
from govtool.store.packs import pack_key

_PARENT = re.compile(rb'"parent":"([0-9a-f]{64})"')
"""The parent in a slot. In a text its quotes would be escaped; a summary may have such a key of its own, too."""


class Fragment(NamedTuple):
    """New data for a commit: the bytes of one file of one table, said by one source."""

    source: str
    table: str
    """A short plain name such as ``derivation``; becomes part of the key."""
    data: bytes
    rows: int


class FragmentRef(NamedTuple):
    """A fragment in the store. ``size`` is in bytes, ``sha256`` in hex."""

    source: str
    table: str
    sha256: str
    size: int
    rows: int
    pack: str = ""
    """The sha256 of the pack that it is in, from byte ``offset`` on; empty: it is an object of its own."""
    offset: int = 0

    @staticmethod
    def of(entry: Entry) -> FragmentRef:
        """The fragment that an entry of the manifest adds."""
        e = entry
        return FragmentRef(e.source, e.table, e.sha256, e.size, e.rows, e.pack, e.offset)

    @property
    def key(self) -> str:
        """The object that holds the bytes, relative to the store."""
        return pack_key(self.pack) if self.pack else f"frag/{self.table}/{self.sha256}.parquet"


class Changes(NamedTuple):
    """The changes of a commit: first every fragment of the sources in ``retract`` vanishes, then ``add`` is added.

    Fragments are a set: adding bytes that a source already has changes nothing.
    """

    retract: tuple[str, ...] = ()
    add: tuple[Fragment, ...] = ()
    uploaded: tuple[FragmentRef, ...] = ()
    """Added as well: what ``Store.upload`` put there before, perhaps from other processes."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that are touched, sorted."""
        return tuple(sorted({*self.retract, *(f.source for f in self.add), *(ref.source for ref in self.uploaded)}))


class Origin(NamedTuple):
    """A place in the log: where a branch was forked off, or what was merged."""

    branch: str
    seq: int
    id: str


class PublishedName(NamedTuple):
    """A published index, as the commit after it names it: whoever cannot make commits cannot put another in place."""

    commit: str
    """The id of the commit whose index it is; the commit that names it has the same content."""
    root: str
    """The sha256 of its root."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of the store. Times are ISO 8601 in UTC and never decrease along a branch."""

    seq: int
    """1 for the first commit of a store; grows by one along a branch."""
    id: str
    """sha256 of the slot's bytes, in hex."""
    parent: str | None
    branch: str
    batch: str
    """Idempotence key: a batch that a source already says is not committed again."""
    author: str
    time: str
    tool: str
    message: str
    summary: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)
    sources: tuple[str, ...] = ()
    """The sources that this commit touched, sorted."""
    manifest: Manifest = field(default=EMPTY, hash=False, repr=False)
    start: int = 1
    """The number of the branch's first slot: what is before it belongs to the branch that it was forked off from."""
    fork: Origin | None = None
    """The place of the parent, if not one slot below on the same branch."""
    merged: Origin | None = None
    """The commit of another branch that this one took over."""
    closed: bool = False
    """The branch was deleted by this commit."""

    @property
    def short(self) -> str:
        """The first seven hex digits of the id."""
        return self.id[:7]

    def repairs(self, seq: int) -> bool:
        """Return whether this commit took over a slot of its own branch, whose time was in the future."""
        own = self.merged is not None and self.merged.branch == self.branch
        return own and (self.fork is None or self.fork.seq < seq or self.fork.branch != self.branch) and seq < self.seq

    @property
    def published(self) -> PublishedName | None:
        """The published index that this commit names; None if it names none."""
        body = self.summary.get("index")
        if self.sources or not isinstance(body, dict) or not isinstance(body.get("commit"), str):
            return None
        return PublishedName(str(body["commit"]), str(body.get("root")))

    @property
    def content_id(self) -> str:
        """The id of the commit whose content this one has: its own, or that whose published index it names."""
        named = self.published
        return self.id if named is None else named.commit


class CommitResult(NamedTuple):
    """The result of ``Store.commit``: ``created`` is false if the batch was known already; ``commit`` is the head."""

    commit: Commit
    created: bool


def slot_key(branch: str, seq: int) -> str:
    """The key of a slot. Zero padding makes the order of a listing the order of the log."""
    return f"log/{branch_key(branch)}/{seq:012d}.json"


def branch_key(branch: str) -> str:
    """A branch name as one path segment (``=`` cannot occur in a branch name)."""
    return branch.replace("/", "=")


def _origin_body(origin: Origin | None) -> dict[str, Any] | None:
    return None if origin is None else {"branch": origin.branch, "seq": origin.seq, "id": origin.id}


def _origin(body: Any) -> Origin | None:
    return None if body is None else Origin(str(body["branch"]), int(body["seq"]), str(body["id"]))


def encode_slot(commit: Commit, nonce: str) -> bytes:
    """The bytes of the slot of ``commit``, whose ``id`` is ignored.

    Args:
        commit: What to write.
        nonce: Random text that makes this writer's bytes its own: a slot that holds them was won by this writer, even
            if the answer to its request was lost.
    """
    body: dict[str, Any] = {
        "format": commit.manifest.format,
        "seq": commit.seq,
        "parent": commit.parent,
        "branch": commit.branch,
        "batch": commit.batch,
        "author": commit.author,
        "time": commit.time,
        "tool": commit.tool,
        "message": commit.message,
        "summary": dict(commit.summary),
        "sources": list(commit.sources),
        "manifest": commit.manifest.to_json(),
        "start": commit.start,
        "nonce": nonce,
    }
    for name, value in (("fork", _origin_body(commit.fork)), ("merged", _origin_body(commit.merged))):
        if value is not None:
            body[name] = value
    if commit.closed:
        body["closed"] = True
    return seal(body)


def slot_parent(data: bytes, branch: str, seq: int) -> str | None:
    """The id of the parent in the bytes of a slot, without decoding the rest where that can be.

    Raises:
        IntegrityError: if the slot is damaged.
    """
    found = _PARENT.findall(data)
    return found[0].decode() if len(found) == 1 else decode_slot(data, branch=branch, seq=seq).parent


def decode_slot(data: bytes, *, branch: str, seq: int) -> Commit:
    """Read a slot and check that it is the one that was asked for.

    Raises:
        IntegrityError: if it is damaged or belongs elsewhere.
        FormatError: if a newer version wrote it.
    """
    where = slot_key(branch, seq)
    body = unseal(data, where)
    try:
        commit = Commit(
            seq=int(body["seq"]),
            id=digest(data),
            parent=body["parent"],
            branch=str(body["branch"]),
            batch=str(body["batch"]),
            author=str(body["author"]),
            time=str(body["time"]),
            tool=str(body["tool"]),
            message=str(body["message"]),
            summary=dict(body["summary"]),
            sources=tuple(body["sources"]),
            manifest=Manifest.from_json(body["manifest"]),
            start=int(body["start"]),
            fork=_origin(body.get("fork")),
            merged=_origin(body.get("merged")),
            closed=bool(body.get("closed", False)),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise IntegrityError(f"{where} is not a commit", location=where, hint="run govtool store fsck") from error
    if (commit.branch, commit.seq) != (branch, seq):
        raise IntegrityError(
            f"{where} holds commit {commit.seq} of branch {commit.branch!r}",
            location=where,
            hint="a slot was copied or renamed by hand; run govtool store fsck",
        )
    return commit
