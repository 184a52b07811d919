"""Repair of a branch whose newest commits were made by a clock in the future: nobody could commit on top of them.

The repair is a commit like that of a merge: its parent is the last commit of a possible time, and it takes over what
the later ones hold. So times never decrease from parent to child, and the later slots stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from govtool import clock
from govtool.store import log
from govtool.store.backends.times import SKEW, check_clock
from govtool.store.branches import again, existing
from govtool.store.codec import JsonValue
from govtool.store.commit import Commit, CommitResult, Origin
from govtool.store.names import DEFAULT_BRANCH
from govtool.store.writer import Writer

if TYPE_CHECKING:
    from govtool.store.store import Store

_LISTED = 100
"""Commits that the summary names; of more, it has the first and the last."""


def repair_clock(
    store: Store, branch: str = DEFAULT_BRANCH, *, author: str, now: Callable[[], datetime] = clock.now
) -> CommitResult:
    """Take over the content of commits of the future, at the time of now.

    Args:
        store: The store.
        branch: The branch.
        author: For people.
        now: The clock, which must agree with the store's.

    Returns:
        The commit; or the head and ``created`` false if no commit is of the future.

    Raises:
        StoreError: ``store.clock``: this machine's clock is the one that is wrong.
        UnknownNameError: ``usage.unknown-branch``.
    """

    def attempt() -> CommitResult:
        head = existing(store, branch)
        moment = now()
        limit = clock.iso(moment + SKEW)
        check_clock(store.objects, moment)
        if head.time <= limit:
            return CommitResult(head, created=False)
        future: list[Commit] = []
        base: Commit | None = None
        for base in log.walk(store.objects, head):
            if base.time <= limit:
                break
            future.append(base)
        base = base if base is not None and base.time <= limit else None
        writer = Writer(store.objects, branch, now=now)
        return CommitResult(writer.land(_repair(writer, head, base, future, author), head.manifest), True)

    return again(attempt)


def _repair(writer: Writer, head: Commit, base: Commit | None, future: list[Commit], author: str) -> Commit:
    named: list[JsonValue] = [{"seq": each.seq, "id": each.id, "time": each.time} for each in future[::-1]]
    shown = named if len(named) <= _LISTED else [named[0], named[-1]]
    first = future[-1].seq
    which = f"commit {head.seq}" if first == head.seq else f"commits {first} to {head.seq}"
    draft = writer.draft(
        base,
        author=author,
        message=f"repair clock: {which} of {head.time[:10]} taken over",
        summary={"command": "store repair-clock", "repaired": shown, "count": len(named)},
    )
    return replace(
        draft,
        seq=head.seq + 1,
        start=head.seq + 1,
        fork=None if base is None else Origin(base.branch, base.seq, base.id),
        merged=Origin(head.branch, head.seq, head.id),
    )
