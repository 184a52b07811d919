"""Garbage collection: what killed and beaten writers left behind.

Slots are never freed, and whatever any slot refers to stays. What nothing refers to goes once it is older than a grace
period, for a writer creates fragments before the slot that refers to them. Published indexes stay for commits that have
a name: the newest of a branch, and those that are tagged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from govtool import clock
from govtool.errors import UsageError
from govtool.store import published
from govtool.store.backends.objects import ObjectInfo
from govtool.store.store import Store
from govtool.store.upkeep.reachable import all_commits, named_commits, reachable_keys

GRACE = timedelta(days=1)
"""The minimum age of garbage; more than the longest commit can take."""
_SWEPT = ("frag", "pack", "manifest", "tmp", published.FOLDER)


@dataclass(frozen=True, slots=True)
class Collection:
    """Render what was collected, or would be."""

    removed: tuple[ObjectInfo, ...]
    """Sorted by key."""
    young: int
    """Unreferenced objects that were left alone because of the grace period."""
    kept: int
    """Objects that are referred to."""

    @property
    def size(self) -> int:
        """Bytes that were removed, or would be."""
        return sum(info.size for info in self.removed)


def collect(
    store: Store,
    *,
    grace: timedelta = GRACE,
    dry_run: bool = False,
    now: Callable[[], datetime] = clock.now,
    progress: Callable[[int, int], None] | None = None,
) -> Collection:
    """Remove what nothing refers to.

    Args:
        store: The store.
        grace: Leave alone what is younger.
        dry_run: List what would be deleted, and delete nothing.
        now: The clock; what counts is its distance to the times that the store's server gave the objects.
        progress: Called with (removed, to remove).

    Raises:
        IntegrityError: if a slot or manifest node is damaged; then nothing is removed.
        UsageError: for a negative grace period.
    """
    if grace < timedelta(0):
        raise UsageError("the grace period is negative", code="usage.grace")
    # First list, then mark: what a commit refers to that happens in between is seen.
    listed = _swept(store)
    used = _used(store, listed)
    unused = [info for info in listed if info.key not in used]
    old = {info.key for info in unused if now() - info.modified > grace}
    if old and not dry_run:
        # A writer that found one of these there already has made it young again.
        fresh = {info.key: info for info in _swept(store)}
        old = {key for key in old if key in fresh and now() - fresh[key].modified > grace}
    removed = sorted(info for info in unused if info.key in old)
    if not dry_run:
        for number, info in enumerate(removed, 1):
            store.objects.delete(info.key)
            if progress:
                progress(number, len(removed))
    return Collection(tuple(removed), young=len(unused) - len(removed), kept=len(listed) - len(unused))


def _swept(store: Store) -> list[ObjectInfo]:
    """All objects that may be garbage."""
    return [info for prefix in _SWEPT for info in _scan(store, prefix)]


def _used(store: Store, listed: Iterable[ObjectInfo]) -> set[str]:
    """What commits refer to, and the published indexes that are still needed."""
    used = reachable_keys(store.objects, all_commits(store.objects))
    indexes = [info.key for info in listed if info.key.startswith(f"{published.FOLDER}/")]
    if indexes:
        used |= published.needed_keys(store.objects, indexes, named_commits(store.objects))
    return used


def _scan(store: Store, prefix: str) -> list[ObjectInfo]:
    """The objects below a folder, with the staging files that obstore's own listing of a local folder hides."""
    from govtool.store.backends.files import LocalFiles
    from govtool.store.backends.local import LocalObjects

    objects = getattr(store.objects, "below", store.objects)
    if isinstance(objects, LocalObjects):
        return list(LocalFiles(objects.root).scan(prefix))
    return list(objects.scan(prefix))
