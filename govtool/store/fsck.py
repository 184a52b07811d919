"""Checking a store: hashes, the chain, holes, hints, tags; and an anchor kept elsewhere.

Hashes within the store show damage and clumsy edits. Whoever rewrites the whole chain, or rolls it back, is seen only
by comparing with something outside: an anchor, printed after a commit and kept where the store's writers cannot
change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from govtool.errors import IntegrityError, StoreError, UsageError
from govtool.store import log, published, refs
from govtool.store.codec import digest
from govtool.store.commit import Commit, slot_key
from govtool.store.manifest import Entry
from govtool.store.names import DEFAULT_BRANCH, check_branch
from govtool.store.reachable import fragment_keys, listed_slots
from govtool.store.reader import MARKER, read_marker
from govtool.store.store import Store

_PREFIX = "govtool-anchor"
_BATCH = 64


class Anchor(NamedTuple):
    """A fixed point of a store's history: at slot ``seq`` of ``branch`` was the commit ``id``."""

    store_id: str
    branch: str
    seq: int
    id: str

    @property
    def text(self) -> str:
        """One line: ``govtool-anchor:1:<store>:<branch>:<seq>:<sha256>``."""
        return f"{_PREFIX}:1:{self.store_id}:{self.branch}:{self.seq}:{self.id}"


def parse_anchor(text: str) -> Anchor:
    """Read what `Anchor.text` wrote.

    Raises:
        UsageError: ``usage.anchor``.
    """
    parts = text.strip().split(":")
    if len(parts) != 6 or parts[:2] != [_PREFIX, "1"] or not parts[4].isdecimal() or len(parts[5]) != 64:
        raise UsageError(f"{text[:80]!r} is not an anchor", code="usage.anchor", hint="govtool store anchor prints one")
    return Anchor(parts[2], check_branch(parts[3]), int(parts[4]), parts[5])


def anchor(store: Store, branch: str = DEFAULT_BRANCH) -> Anchor:
    """The anchor of a branch's head.

    Raises:
        StoreError: ``store.empty`` if it has no commits.
    """
    head = store.head(branch)
    if head is None:
        raise StoreError(f"branch {branch!r} has no commits", code="store.empty", hint="ingest something first")
    return Anchor(store.store_id, branch, head.seq, head.id)


class Problem(NamedTuple):
    """One thing that is wrong. ``code`` is that of the error that a reader would get."""

    code: str
    key: str
    message: str

    @property
    def remedy(self) -> str:
        """The way to mend it."""
        if self.key.startswith("hint/"):
            return "restore the slots from a backup, or remove the hint to accept the branch as it is"
        return _REMEDIES.get(self.code, _RESTORE)


_RESTORE = "restore this object from a backup or a copy of the store"
_REMEDIES = {
    "store.corrupt-fragment": "restore this object from a backup or a copy, or remove it and ingest its source again",
    "store.corrupt-chain": f"{_RESTORE}; until then later commits answer, but no commit is made on top",
    "store.corrupt-index": "remove the folder of this index, and publish it again: govtool index --publish",
    "store.corrupt-time": "set the clocks of the machines that write; the commits can be used",
    "store.anchor": "compare with a copy of the store, and find out who rewrote it",
    "store.format": "upgrade govtool",
}


@dataclass(frozen=True, slots=True)
class Check:
    """The result of `fsck`: ``problems`` is empty for a sound store."""

    problems: tuple[Problem, ...]
    commits: int
    nodes: int
    fragments: int
    bytes_read: int


def fsck(
    store: Store,
    *,
    against: Anchor | None = None,
    contents: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Check:
    """Check everything; never stops at the first problem.

    Args:
        store: The store.
        against: An anchor from earlier.
        contents: Read and hash every fragment; otherwise only look whether it is there with the right size.
        progress: Called with (fragments checked, fragments).
    """
    return _Checker(store).run(against, contents, progress)


class _Checker:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._objects = store.objects
        self._problems: dict[Problem, None] = {}
        self._commits: dict[tuple[str, int], Commit] = {}
        self._nodes: set[str] = set()
        self._fragments: dict[str, int] = {}
        self._bytes = 0

    def run(self, against: Anchor | None, contents: bool, progress: Callable[[int, int], None] | None) -> Check:
        self._attempt(MARKER, lambda: read_marker(self._objects))
        for branch in refs.branch_names(self._objects):
            self._check_branch(branch)
        for commit in list(self._commits.values()):
            self._check_parents(commit)
            self._check_manifest(commit)
        for tag in refs.tag_names(self._objects):
            self._attempt(refs.tag_key(tag), lambda tag=tag: refs.read_tag(self._objects, tag))  # type: ignore[misc]
        if against is not None:
            self._check_anchor(against)
        self._check_published(contents)
        self._check_fragments(contents, progress)
        return Check(
            tuple(sorted(self._problems)), len(self._commits), len(self._nodes), len(self._fragments), self._bytes
        )

    def _report(self, code: str, key: str, message: str) -> None:
        self._problems[Problem(code, key, message)] = None

    def _attempt(self, key: str, action: Callable[[], object]) -> bool:
        try:
            action()
        except StoreError as error:
            self._report(error.code, error.location or key, error.message)
            return False
        return True

    def _check_branch(self, branch: str) -> None:
        seqs = listed_slots(self._objects, branch)
        for seq in seqs:
            self._attempt(slot_key(branch, seq), lambda seq=seq: self._read_slot(branch, seq))  # type: ignore[misc]
        for seq in sorted({*range(seqs[0], seqs[-1] + 1)}.difference(seqs)) if seqs else ():
            self._report("store.corrupt-chain", slot_key(branch, seq), f"slot {seq} of branch {branch!r} is missing")
        hint = log.decode_hint(self._objects.get(log.hint_key(branch)))
        if hint is not None and seqs:
            pointed = self._commits.get((branch, hint.seq))
            if hint.seq > seqs[-1]:
                message = f"the hint knows of slot {hint.seq}, but the newest is {seqs[-1]}: the branch was rolled back"
                self._report("store.corrupt-chain", log.hint_key(branch), message)
            elif pointed is not None and pointed.id != hint.id:
                message = f"slot {hint.seq} of branch {branch!r} is not the commit {hint.id[:7]} that was written"
                self._report("store.corrupt-chain", slot_key(branch, hint.seq), message)

    def _read_slot(self, branch: str, seq: int) -> None:
        commit = log.read_slot(self._objects, branch, seq)
        if commit is not None:
            self._commits[branch, seq] = commit

    def _check_parents(self, commit: Commit) -> None:
        key = slot_key(commit.branch, commit.seq)
        if commit.parent is None and commit.seq != 1:
            self._report("store.corrupt-chain", key, f"commit {commit.short} has no parent, but is not the first one")
        for ancestor in filter(None, (self._parent(commit), self._merged(commit))):
            if ancestor.time > commit.time:
                message = f"commit {commit.short} is of {commit.time}, before {ancestor.short}, which it was made from"
                self._report("store.corrupt-time", key, message)

    def _parent(self, commit: Commit) -> Commit | None:
        branch, seq = (commit.fork.branch, commit.fork.seq) if commit.fork else (commit.branch, commit.seq - 1)
        if commit.parent is not None and (branch, seq) in self._commits:
            parent = self._commits[branch, seq]
            if parent.id != commit.parent:
                message = f"slot {seq} of branch {branch!r} is not what commit {commit.short} was made from"
                self._report("store.corrupt-chain", slot_key(branch, seq), message)
            return parent
        self._attempt(slot_key(branch, seq), lambda: log.read_parent(self._objects, commit))
        return None

    def _merged(self, commit: Commit) -> Commit | None:
        if commit.merged is not None:
            self._attempt(commit.branch, lambda: log.read_origin(self._objects, commit.merged))
            return self._commits.get((commit.merged.branch, commit.merged.seq))
        return None

    def _check_manifest(self, commit: Commit) -> None:
        for entry in commit.manifest.tail:
            self._note_fragment(entry)
        waiting = list(commit.manifest.refs)
        while waiting:
            ref = waiting.pop()
            if ref.key in self._nodes:
                continue
            self._nodes.add(ref.key)
            try:
                ((entries, children),) = log.read_nodes(self._objects, [ref])
            except StoreError as error:
                self._report(error.code, ref.key, error.message)
                continue
            for entry in entries:
                self._note_fragment(entry)
            waiting.extend(children)

    def _note_fragment(self, entry: Entry) -> None:
        """An object with a fragment must be there, and large enough: a pack ends with the last of its fragments."""
        for key in fragment_keys([entry]):
            self._fragments[key] = max(self._fragments.get(key, 0), entry.offset + entry.size)

    def _check_anchor(self, against: Anchor) -> None:
        key = slot_key(against.branch, against.seq)
        commit = self._commits.get((against.branch, against.seq))
        if against.store_id != self._store.store_id:
            self._report("store.anchor", MARKER, f"the anchor is of another store, {against.store_id}")
        elif commit is None:
            self._report("store.anchor", key, f"slot {against.seq} of the anchor is gone: the branch was rolled back")
        elif commit.id != against.id:
            message = f"slot {against.seq} holds {commit.short}, not {against.id[:7]}: history was rewritten"
            self._report("store.anchor", key, message)

    def _check_published(self, contents: bool) -> None:
        """Published indexes: roots as their names say, bound to the commit of their folder, with all of their parts."""
        there = {info.key: info.size for info in self._objects.scan(published.FOLDER)}
        for key in sorted(there):
            if key.endswith(".root"):
                self._check_root(key, there)
            elif contents and key.endswith(".part"):
                data = self._objects.get(key)
                self._bytes += len(data or b"")
                if data is None or not key.endswith(f"/{digest(data)}.part"):
                    self._report("store.corrupt-index", key, "a part of an index is damaged: its sha256 is another")

    def _check_root(self, key: str, there: Mapping[str, int]) -> None:
        data = self._objects.get(key) or b""
        self._bytes += len(data)
        commit = key.split("/")[1]
        if not key.endswith(f"-{digest(data)}.root"):
            self._report("store.corrupt-index", key, "the root of an index is damaged: its sha256 is another")
            return
        try:
            bound, parts = published.contents_of(data)
        except IntegrityError as error:
            self._report("store.corrupt-index", key, error.message)
            return
        if bound and bound != commit:
            self._report("store.corrupt-index", key, f"this is the index of commit {bound[:7]}, not of {commit[:7]}")
        for part in parts:
            name = published.part_key(commit, part.sha256)
            if there.get(name) != part.size:
                reason = "has another size" if name in there else "is missing"
                self._report("store.corrupt-index", name, f"a part of the index of commit {commit[:7]} {reason}")

    def _check_fragments(self, contents: bool, progress: Callable[[int, int], None] | None) -> None:
        there = {info.key: info.size for folder in ("frag", "pack") for info in self._objects.scan(folder)}
        keys = sorted(self._fragments)
        for done, key in enumerate(keys, 1):
            if key not in there:
                self._report("store.corrupt-fragment", key, "the fragment is missing")
            elif there[key] != self._fragments[key] and (key.startswith("frag/") or there[key] < self._fragments[key]):
                message = f"the fragment has {there[key]} bytes instead of {self._fragments[key]}"
                self._report("store.corrupt-fragment", key, message)
            if progress and not contents:
                progress(done, len(keys))
        if contents:
            for done, (key, good) in enumerate(self._hash([key for key in keys if key in there]), 1):
                if not good:
                    self._report("store.corrupt-fragment", key, "the fragment is damaged: its sha256 is another")
                if progress:
                    progress(done, len(keys))

    def _hash(self, keys: list[str]) -> Iterator[tuple[str, bool]]:
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            for key, data in zip(batch, self._objects.get_many(batch), strict=True):
                self._bytes += len(data or b"")
                yield key, data is not None and key.endswith((f"/{digest(data)}.parquet", f"/{digest(data)}.pack"))
