"""Committing: the protocol of docs/store.md.

1. Read the head. 2. A batch that its sources hold already is a no-op. 3. Create the fragments. 4. Create the next
slot: this is the commit. 5. Move the hint.

Whether a batch is known needs no request in the common case. Fragments are content addressed and what is live is never
collected, so a batch with a fragment that this writer itself created cannot have been committed before. Only when all
of them were there already is the manifest read and compared.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from govtool import clock
from govtool.errors import ConflictError, StoreError, UnknownNameError, UsageError
from govtool.redaction import clean_prose
from govtool.release import __version__
from govtool.store import log
from govtool.store.backends.objects import Objects
from govtool.store.backends.times import AHEAD, LEAP, SKEW, check_clock
from govtool.store.codec import JsonValue, canonical, digest
from govtool.store.commit import (
    Changes,
    Commit,
    CommitResult,
    Fragment,
    FragmentRef,
    Origin,
    decode_slot,
    encode_slot,
    slot_key,
)
from govtool.store.entries import as_created, entries_of, holds, placed
from govtool.store.manifest import Entry, Live, Manifest, node_key
from govtool.store.names import FORGOTTEN, check_source, check_table

COMMIT_TIMEOUT = 120.0
"""Seconds for which a writer tries again when others win."""
SUMMARY_LIMIT = 64 * 1024
"""Most bytes of JSON in a commit's summary: slots are read often."""
TEXT_LIMIT = 8 * 1024
"""Most characters in a message, an author or a batch."""
_FIRST_PAUSE = 0.01
"""Seconds; each further pause may be twice as long."""
_LONGEST_PAUSE = 0.25
"""Seconds. Somebody wins every round, so that long pauses would only leave slots unused."""
_LOOK_AHEAD = 4
_EMPTY = 40
"""How often in a row a slot may be said to be taken and have nothing in it; with the pauses, at least some seconds.
Servers may refuse both of two writers who meet; but one of them has the slot soon."""
_SMALL = 4
"""A commit of more fragments than this looks first which of them are there already; fewer are a request or two."""


class LostSlotError(ConflictError):
    """Somebody else took the slot; the caller may look again and try the next one."""


class Writer:
    """Writes one commit to a branch.

    Args:
        objects: The store's objects.
        branch: A checked branch name.
        now: The clock.
        sleep: Waits for so many seconds.
        nodes: Reads manifest nodes, and knows how many were read for this commit already.
    """

    def __init__(
        self,
        objects: Objects,
        branch: str,
        *,
        now: Callable[[], datetime] = clock.now,
        sleep: Callable[[float], None] = time.sleep,
        nodes: log.Nodes | None = None,
    ) -> None:
        self._objects = objects
        self._branch = branch
        self._now = now
        self._sleep = sleep
        self._nodes = nodes or log.Nodes(objects)
        self._remote = bool(getattr(objects, "is_remote", False))

    def commit(
        self,
        changes: Changes,
        *,
        message: str,
        author: str,
        batch: str,
        summary: Mapping[str, JsonValue],
        must_exist: bool = False,
        merged: Origin | None = None,
        position: log.Position | None = None,
    ) -> CommitResult:
        """See `govtool.store.store.Store.commit`; ``must_exist`` refuses a branch without commits."""
        _check(changes, message, author, batch, summary)
        batch = batch or uuid.uuid4().hex
        position = position or log.read_position(self._objects, self._branch, hasty=self._remote)
        base = position.head
        self._require_branch(base, must_exist)
        entries, data = entries_of(changes, batch)
        items: list[tuple[str, bytes]] = []
        created: list[bool] = []
        live: Live | None = None
        # To read what is live of a large manifest costs more than to write a few fragments: it is read only if all of
        # them were there already.
        if base is not None and (not base.manifest.levels or len(data) > _SMALL):
            live = log.read_sources(self._nodes, base, changes.sources)
        held = live is not None and holds(live, changes, entries)
        if not held:
            there = {(e.table, e.sha256): (e.pack, e.offset) for e in live.entries()} if live else {}
            entries, items = placed(entries, data, there, pack=self._remote)
            created = self._objects.create_many(items)
            if base is not None and live is None and not any(created):
                held = holds(log.read_sources(self._nodes, base, changes.sources), changes, entries)
        if base is not None and held:
            # Another writer may have committed since: whether the changes are held is asked of the newest commit.
            later = [] if position.sure else log.read_ahead(self._objects, self._branch, base.seq, base.id)
            if not later:
                return CommitResult(base, created=False)
            return self.commit(
                changes,
                message=message,
                author=author,
                batch=batch,
                summary=summary,
                must_exist=must_exist,
                merged=merged,
                position=log.Position(later[-1], None),
            )
        self._renew(items, created)
        fresh = {key for (key, _), new in zip(items, created, strict=True) if new}
        entries = as_created(entries, fresh)
        draft = Commit(
            seq=0,
            id="",
            parent=None,
            branch=self._branch,
            batch=batch,
            author=clean_prose(author),
            time="",
            tool=f"govtool {__version__}",
            message=clean_prose(message),
            summary=summary,
            sources=changes.sources,
            merged=merged,
        )
        return self._land(draft, changes, entries, base, position.lag)

    def _require_branch(self, base: Commit | None, must_exist: bool) -> None:
        if (base is None and must_exist) or (base is not None and base.closed):
            raise UnknownNameError(
                f"there is no branch {self._branch!r}",
                code="usage.unknown-branch",
                hint=f"run govtool branch create {self._branch}",
            )

    def upload(self, fragment: Fragment) -> FragmentRef:
        """Write a fragment that no commit refers to yet; see `govtool.store.store.Store.upload`."""
        check_source(fragment.source)
        check_table(fragment.table)
        data = fragment.data
        ref = FragmentRef(fragment.source, fragment.table, digest(data), len(data), fragment.rows)
        self._renew([(ref.key, data)], [self._objects.create(ref.key, data)])
        return ref

    def draft(
        self,
        head: Commit | None,
        *,
        author: str,
        message: str,
        summary: Mapping[str, JsonValue] | None = None,
        sources: tuple[str, ...] = (),
        after: str = "",
    ) -> Commit:
        """The commit that follows a commit, for `land`, which gives it its id and content.

        Args:
            head: The parent, on the same branch; None if there is none.
            author: For people.
            message: For people.
            summary: Of the command.
            sources: Those that are touched.
            after: A time before which the commit is not, besides the parent's.
        """
        newest = max(head.time, after) if head is not None else after or None
        return Commit(
            seq=head.seq + 1 if head is not None else 1,
            id="",
            parent=head.id if head is not None else None,
            branch=self._branch,
            batch=uuid.uuid4().hex,
            author=clean_prose(author),
            time=self.timestamp(newest),
            tool=f"govtool {__version__}",
            message=clean_prose(message),
            summary=summary or {},
            sources=sources,
            start=head.start if head is not None else 1,
        )

    def land(self, draft: Commit, manifest: Manifest) -> Commit:
        """Commit ``draft`` with exactly this manifest on top of its parent; there is no rebase.

        Raises:
            LostSlotError: if another commit is in the slot.
            StoreError: ``store.no-conditional-put`` if the server says that it is taken, and nothing is in it.
        """
        manifest, nodes = manifest.folded()
        self._create_nodes(nodes)
        empty, pause = 0, _FIRST_PAUSE
        while True:
            commit, winner = self._put_slot(replace(draft, manifest=manifest))
            if commit is not None:
                self._put_hint(commit)
                return commit
            if winner is not None:
                raise LostSlotError(
                    f"branch {self._branch!r} moved on meanwhile",
                    location=self._objects.uri,
                    hint="run the command again",
                )
            empty += 1  # S3 may refuse two writers who meet, and then the slot is still free.
            self._require_taken(draft.seq, empty)
            self._sleep(random.uniform(0, pause))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _land(
        self, draft: Commit, changes: Changes, entries: list[Entry], base: Commit | None, lag: int | None
    ) -> CommitResult:
        written: set[str] = set()
        deadline = time.monotonic() + COMMIT_TIMEOUT
        pause = _FIRST_PAUSE
        losses = empty = 0
        while True:
            manifest = (base.manifest if base else Manifest()).apply(changes.retract, entries)
            # A commit that writes a node leaves the hint one behind, which costs its readers nothing, so that it
            # needs no more requests than others. This works when the hint is up to date.
            manifest, nodes = manifest.folded(now=lag == 0 and not self._nodes.requests)
            self._create_nodes({s: data for s, data in nodes.items() if s not in written})
            written.update(nodes)
            commit, winner = self._put_slot(self._child(draft, base, manifest))
            if commit is not None:
                if not ((nodes or self._nodes.requests) and lag == 0):
                    self._put_hint(commit)
                self._nodes.requests = 0
                return CommitResult(commit, created=True)
            if time.monotonic() > deadline:
                raise ConflictError(
                    f"other writers won every slot of branch {self._branch!r} for {COMMIT_TIMEOUT:.0f} seconds",
                    location=self._objects.uri,
                    hint="run the command again; nothing was committed",
                )
            self._sleep(random.uniform(0, pause))
            pause = min(pause * 2, _LONGEST_PAUSE)
            losses += 1
            empty = empty + 1 if winner is None else 0
            if winner is None:  # S3 may refuse two writers who meet, and then the slot is still free.
                self._require_taken(_seq_after(base), empty)
                continue
            passed = self._passed(base, winner, look_ahead=losses % _LOOK_AHEAD == 0)
            base, lag = passed[-1], None
            entries = [e._replace(op="~") if e.adds else e for e in entries]  # They may have added the same.
            if base.closed:
                raise ConflictError(f"branch {self._branch!r} was deleted meanwhile", hint="run govtool branch list")
            # A long gap is skipped over by a listing: then nobody saw whether the batch went by.
            gap = base.seq - winner.seq >= len(passed)
            if (gap or any(c.batch == draft.batch for c in passed)) and holds(
                log.read_sources(self._nodes, base, changes.sources), changes, entries
            ):
                return CommitResult(base, created=False)

    def _require_taken(self, seq: int, empty: int) -> None:
        """Give up on a slot that the server says is taken, and of which it has nothing, again and again.

        Raises:
            StoreError: ``store.no-conditional-put``.
        """
        if empty < _EMPTY:
            return
        key = slot_key(self._branch, seq)
        raise StoreError(
            f"the server says {empty} times that {key} exists, and has no such object: it refuses every commit",
            code="store.no-conditional-put",
            location=self._objects.uri,
            hint="check the rules of the bucket and what stands before it; nothing was committed",
        )

    def _child(self, draft: Commit, base: Commit | None, manifest: Manifest) -> Commit:
        """The draft with a manifest, as the commit after ``base``: the first of the branch if there is none."""
        if base is None:
            return replace(draft, seq=1, parent=None, time=self.timestamp(None), manifest=manifest, start=1)
        at = self.timestamp(base.time)
        return replace(draft, seq=base.seq + 1, parent=base.id, time=at, manifest=manifest, start=base.start)

    def _passed(self, base: Commit | None, winner: Commit, *, look_ahead: bool) -> list[Commit]:
        """The commits that were made since ``base``, oldest first, as far as they were looked for.

        The next slot is probably free: trying to take it shows as much as looking. Who keeps losing looks ahead.

        Raises:
            IntegrityError: ``base`` is not what the winner was made from.
        """
        if look_ahead:
            return [winner, *log.read_ahead(self._objects, self._branch, winner.seq, winner.id)]
        if base is not None and winner.fork is None and winner.parent != base.id:
            raise log.chain_error(slot_key(self._branch, base.seq), "is not what the commit after it was made from")
        return [winner]

    def _create_nodes(self, nodes: Mapping[str, bytes]) -> None:
        items = [(node_key(sha256), data) for sha256, data in nodes.items()]
        self._renew(items, self._objects.create_many(items))

    def _renew(self, items: list[tuple[str, bytes]], created: list[bool]) -> None:
        """Write again an object that could not be created, which is safe as its content is its name.

        Perhaps nothing refers to it yet: then this makes it young, so that gc leaves it alone. Perhaps it is not even
        there: S3 may refuse two writers who meet, and the other one may have failed.
        """
        for (key, content), new in zip(items, created, strict=True):
            if not new:
                self._objects.put(key, content)

    def _put_slot(self, attempt: Commit) -> tuple[Commit, None] | tuple[None, Commit | None]:
        """Try to take a slot: the commit if it was won, else who has it."""
        slot = encode_slot(attempt, nonce=uuid.uuid4().hex)
        key = slot_key(attempt.branch, attempt.seq)
        won = replace(attempt, id=digest(slot))
        try:
            if self._objects.create(key, slot):
                return won, None
        except StoreError as error:
            if error.code != "store.unreachable":
                raise
            self._settle(key, slot, error)
            return won, None
        # The slot is taken; by ourselves, if the answer to a request that was sent twice got lost.
        found = self._objects.get(key)
        if found == slot:
            return won, None
        return None, None if found is None else decode_slot(found, branch=attempt.branch, seq=attempt.seq)

    def _settle(self, key: str, slot: bytes, error: StoreError) -> None:
        """After an answer that did not come: return if the slot is ours, else raise an error with what is known."""
        try:
            found = self._objects.get(key)
        except StoreError:
            raise StoreError(
                f"{error.message}; whether the commit was made cannot be known now",
                code=error.code,
                location=error.location,
                hint="run the command again when the store can be reached: a batch is applied once",
            ) from error
        if found != slot:
            raise error

    def _put_hint(self, commit: Commit) -> None:
        try:
            self._objects.put(log.hint_key(commit.branch), log.encode_hint(log.Hint(commit.seq, commit.id)))
        except StoreError:
            return  # The commit stands; readers find it by looking ahead of the old hint.

    def timestamp(self, newest: str | None) -> str:
        """The time of a commit on top of one of the time ``newest``: never before it, nor in the future by the store.

        Raises:
            StoreError: ``store.clock`` if this machine's clock is wrong, or the newest commit's by more than `AHEAD`.
        """
        now = self._now()
        ahead = now - datetime.fromisoformat(newest) if newest is not None else None
        if ahead is None or ahead > LEAP or -ahead > SKEW:
            check_clock(self._objects, now)
        if newest is None or ahead is None or ahead >= timedelta(0):
            return clock.iso(now)
        if -ahead > AHEAD:
            raise StoreError(
                f"the clock says {clock.iso(now)}, but the newest commit is of {newest}",
                code="store.clock",
                location=self._objects.uri,
                hint="set this machine's clock, or if that commit's time is wrong: govtool store repair-clock; nothing"
                " was committed",
            )
        return newest  # a clock that was ahead stops nobody


def _seq_after(base: Commit | None) -> int:
    """The number of the commit after one; 1 for the first of a branch."""
    return 1 if base is None else base.seq + 1


def _check(changes: Changes, message: str, author: str, batch: str, summary: Mapping[str, JsonValue]) -> None:
    if not changes.sources:
        raise UsageError("a commit must touch a source", code="usage.empty-commit")
    for source in changes.sources:
        check_source(source)
        if source == FORGOTTEN:
            raise UsageError(f"{source!r} is not a source of lineage", code="usage.source", hint="choose another name")
    for table in (*(fragment.table for fragment in changes.add), *(ref.table for ref in changes.uploaded)):
        check_table(table)
    for name, text in (("message", message), ("author", author), ("batch", batch)):
        if len(text) > TEXT_LIMIT:
            raise UsageError(f"the {name} is longer than {TEXT_LIMIT} characters", code=f"usage.{name}")
    try:
        size = len(canonical(dict(summary)))
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"the summary is not JSON: {error}", code="usage.summary") from error
    if size > SUMMARY_LIMIT:
        raise UsageError(f"the summary has {size} bytes, more than {SUMMARY_LIMIT}", code="usage.summary")
