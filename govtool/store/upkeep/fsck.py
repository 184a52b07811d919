"""Checking a store: hashes, the chain, holes, hints, tags; and an anchor kept elsewhere.

Hashes within the store show damage and clumsy edits. Whoever rewrites the whole chain, or rolls it back, is seen only
by comparing with something outside: an anchor, printed after a commit and kept where the store's writers cannot
change it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from govtool import clock
from govtool.errors import IntegrityError, StoreError, UsageError
from govtool.store import log, published, refs
from govtool.store.backends.times import SKEW
from govtool.store.codec import digest
from govtool.store.commit import Commit, FragmentRef, slot_key
from govtool.store.manifest import Entry
from govtool.store.names import DEFAULT_BRANCH, FORGOTTEN, check_branch
from govtool.store.reader import MARKER, read_marker
from govtool.store.store import Store
from govtool.store.tombstones import Tombstones, branch_ends, read_tombstones
from govtool.store.upkeep.reachable import listed_slots

_PREFIX = "govtool-anchor"
_BATCH = 64


class Anchor(NamedTuple):
    """A fixed point of a store's history: at slot ``seq`` of ``branch`` was the commit ``id``, and there were tags."""

    store_id: str
    branch: str
    seq: int
    id: str
    tags: tuple[str, ...] = ()
    """Digests of the tags with their commits (`tag_digest`), sorted."""

    @property
    def text(self) -> str:
        """One line: ``govtool-anchor:1:<store>:<branch>:<seq>:<sha256>``; 2, with tags joined by commas behind it."""
        version = 2 if self.tags else 1
        line = f"{_PREFIX}:{version}:{self.store_id}:{self.branch}:{self.seq}:{self.id}"
        return f"{line}:{','.join(self.tags)}" if self.tags else line


def tag_digest(name: str, commit_id: str) -> str:
    """A tag and its commit as 16 hex digits."""
    return digest(f"{name}\n{commit_id}".encode())[:16]


def parse_anchor(text: str) -> Anchor:
    """Read what `Anchor.text` wrote.

    Raises:
        UsageError: ``usage.anchor``.
    """
    parts = text.strip().split(":")
    tagged = parts.pop() if len(parts) == 7 and parts[1] == "2" else ""
    known = parts[:2] == [_PREFIX, "2" if tagged else "1"]
    if len(parts) != 6 or not known or not parts[4].isdecimal() or len(parts[5]) != 64:
        raise UsageError(f"{text[:80]!r} is not an anchor", code="usage.anchor", hint="govtool store anchor prints one")
    return Anchor(parts[2], check_branch(parts[3]), int(parts[4]), parts[5], tuple(tagged.split(",")) if tagged else ())


def anchor(store: Store, branch: str = DEFAULT_BRANCH) -> Anchor:
    """The anchor of a branch's head.

    Raises:
        StoreError: ``store.empty`` if it has no commits.
    """
    head = store.head(branch)
    if head is None:
        raise StoreError(f"branch {branch!r} has no commits", code="store.empty", hint="ingest something first")
    return Anchor(store.store_id, branch, head.seq, head.id, _tag_digests(store))


def _tag_digests(store: Store) -> tuple[str, ...]:
    """The digests of all tags that can be read, sorted."""
    found = []
    for name in refs.tag_names(store.objects):
        with contextlib.suppress(StoreError):  # a damaged one is reported for itself
            commit = refs.read_tag(store.objects, name)
            found += [tag_digest(name, commit.id)] if commit is not None else []
    return tuple(sorted(found))


class Problem(NamedTuple):
    """One thing that is wrong. ``code`` is that of the error that a reader would get."""

    code: str
    key: str
    message: str
    command: str = ""
    """The way to mend it, where the code alone does not tell."""

    @property
    def remedy(self) -> str:
        """The way to mend it."""
        if self.command:
            return self.command
        if self.key.startswith("hint/") and self.code == "store.corrupt":
            return "remove it: the next commit writes it again"
        if self.key.startswith("hint/"):
            return "restore the slots from a backup, or remove the hint to accept the branch as it is"
        return _REMEDIES.get(self.code, _RESTORE)


_RESTORE = "restore this object from a backup or a copy of the store"
_REMEDIES = {
    "store.corrupt-fragment": "restore this object from a backup or a copy, or remove it and ingest its source again",
    "store.corrupt-chain": f"{_RESTORE}; until then later commits answer, but no commit is made on top",
    "store.corrupt-index": "remove the folder of this index, and publish it again: govtool index --publish",
    "store.corrupt-time": "set the clocks of the machines that write; the commits can be used",
    "store.clock": "find the machine with that clock, and run govtool store repair-clock",
    "store.anchor": "compare with a copy of the store, and find out who rewrote it",
    "store.format": "upgrade govtool",
    "store.forgotten": "run govtool store gc --grace 0; if it stays, it was ingested again: govtool store forget",
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
        self._tombstones = Tombstones()
        self._forgotten: set[str] = set()
        self._bytes = 0

    def run(self, against: Anchor | None, contents: bool, progress: Callable[[int, int], None] | None) -> Check:
        self._attempt(MARKER, lambda: read_marker(self._objects))
        self._attempt(FORGOTTEN, self._read_tombstones)
        for branch in sorted({*refs.branch_names(self._objects), *refs.hinted_names(self._objects)}):
            self._check_branch(branch)
        for commit in list(self._commits.values()):
            self._check_parents(commit)
            self._check_manifest(commit)
        for end in self._ends():
            self._check_clock(end, clock.iso(clock.now() + SKEW))
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

    def _ends(self) -> Iterator[Commit]:
        """The newest commits of branches that were not deleted."""
        newest = dict(sorted(self._commits))
        yield from (end for item in newest.items() if not (end := self._commits[item]).closed)

    def _check_branch(self, branch: str) -> None:
        hint = self._objects.get(log.hint_key(branch))  # before the slots: commits may go on meanwhile
        seqs = listed_slots(self._objects, branch)
        for seq in seqs:
            self._attempt(slot_key(branch, seq), lambda seq=seq: self._read_slot(branch, seq))  # type: ignore[misc]
        for seq in sorted({*range(seqs[0], seqs[-1] + 1)}.difference(seqs)) if seqs else ():
            self._report("store.corrupt-chain", slot_key(branch, seq), f"slot {seq} of branch {branch!r} is missing")
        self._check_hint(branch, seqs, hint)

    def _check_hint(self, branch: str, seqs: list[int], data: bytes | None) -> None:
        """A hint may lag, but not be ahead, and it must be one: readers pass over another, and list the branch."""
        hint = log.decode_hint(data)
        if hint is None and data is not None:
            self._report("store.corrupt", log.hint_key(branch), f"the hint of branch {branch!r} is damaged")
        elif hint is not None:
            pointed, newest = self._commits.get((branch, hint.seq)), seqs[-1] if seqs else 0
            if hint.seq > newest:
                message = f"the hint knows of slot {hint.seq}, but the newest is {newest}: the branch was rolled back"
                self._report("store.corrupt-chain", log.hint_key(branch), message)
            elif pointed is not None and pointed.id != hint.id:
                key = log.hint_key(branch)
                message = f"slot {hint.seq} of branch {branch!r} is not the commit {hint.id[:7]} that {key} names"
                remedy = f"{_RESTORE}; if it is as it was written, remove {key}"
                self._problems[Problem("store.corrupt-chain", slot_key(branch, hint.seq), message, remedy)] = None

    def _read_slot(self, branch: str, seq: int) -> None:
        commit = log.read_slot(self._objects, branch, seq)
        if commit is not None:
            self._commits[branch, seq] = commit

    def _check_parents(self, commit: Commit) -> None:
        key = slot_key(commit.branch, commit.seq)
        if commit.parent is None and commit.seq != 1 and not commit.repairs(commit.seq - 1):
            self._report("store.corrupt-chain", key, f"commit {commit.short} has no parent, but is not the first one")
        parent = self._parent(commit)
        if commit.published is not None and (parent is None or parent.content_id != commit.published.commit):
            self._report("store.corrupt-index", key, f"commit {commit.short} names the index of another content")
        for ancestor in filter(None, (parent, self._merged(commit))):
            if ancestor.time > commit.time and not (ancestor.branch == commit.branch and commit.repairs(ancestor.seq)):
                message = f"commit {commit.short} is of {commit.time}, before {ancestor.short}, which it was made from"
                self._report("store.corrupt-time", key, message)

    def _check_clock(self, head: Commit, limit: str) -> None:
        if head.time > limit:
            message = f"the newest commit of branch {head.branch!r} is of {head.time}, which is in the future"
            self._report("store.clock", slot_key(head.branch, head.seq), message)

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
        if not entry.adds:
            return
        for ref in self._tombstones.needed(entry):
            self._fragments[ref.key] = max(self._fragments.get(ref.key, 0), ref.offset + ref.size)
        self._forgotten.update(ref.key for ref in self._tombstones.removed(entry))

    def _read_tombstones(self) -> None:
        self._tombstones = read_tombstones(self._objects)

    def _check_forgotten(self, there: Collection[str]) -> None:
        """Report forgotten objects that exist; but a source that was removed as a whole may be ingested again."""
        wanted: set[str] = set()
        if self._forgotten.intersection(there):
            self._attempt(FORGOTTEN, lambda: wanted.update(self._ingested_again()))
        for key in sorted(self._forgotten.difference(self._fragments, wanted)):
            if key in there:
                self._report("store.forgotten", key, "this object was forgotten and is still there, or is there again")

    def _ingested_again(self) -> set[str]:
        """The keys of live fragments that were removed once, with nothing in their place."""
        removed = {name for name, new in self._tombstones.forgotten.items() if new is None}
        return {
            FragmentRef.of(entry).key
            for end in branch_ends(self._objects)
            for entry in log.read_live(self._objects, end).entries()
            if (entry.table, entry.sha256) in removed
        }

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
        lost = set(against.tags).difference(_tag_digests(self._store)) if against.tags else ()
        if lost:
            self._report("store.anchor", "tags/", f"{len(lost)} of the anchor's tags were deleted or moved since")

    def _check_published(self, contents: bool) -> None:
        """Check published indexes: roots as named, bound to the commit of their folder, with all of their parts."""
        there = {info.key: info.size for info in self._objects.scan(published.FOLDER)}
        names_of: dict[str, set[str]] = {}  # several, where a wrong index was removed and published again
        for commit in self._commits.values():
            if commit.published is not None:
                names_of.setdefault(commit.published.commit, set()).add(commit.published.root)
        roots_of: dict[str, list[str]] = {}
        for key in there:
            if key.endswith(".root"):
                roots_of.setdefault(key.rpartition("/")[0], []).append(key)
        for content, names in sorted(names_of.items()):
            roots = roots_of.get(published.folder(content))
            if roots and not any(key.endswith(f"-{name}.root") for key in roots for name in names):
                message = f"the root that a commit names, {min(names)[:12]}, is not here; readers take no other"
                self._report("store.corrupt-index", published.folder(content), message)
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
        self._check_forgotten(there)
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
