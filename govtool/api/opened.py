"""One opened version of the graph: its store, its commit, and its index once a question needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from govtool.api.arguments import Texts, texts

if TYPE_CHECKING:
    from govtool.app.versions.index import Progress
    from govtool.app.versions.opening import Snapshot
    from govtool.store import Commit, Reader

_Result = TypeVar("_Result")


class OpenedVersion:
    """One version of the graph, whose index is opened by the first question that needs it.

    Args:
        store: Where the commit is.
        commit: The version.
        branch: Where numbers and dates of other commits are looked up; by default ``main``.
        progress: Called with steps done and steps in all while an index is built.
    """

    def __init__(
        self, store: Reader, commit: Commit, branch: str | None = None, progress: Progress | None = None
    ) -> None:
        """Keep the parts; see the class docstring."""
        self._reader, self._commit, self._branch, self._progress = store, commit, branch, progress
        self._lock = threading.RLock()
        self._snapshots: dict[tuple[str, ...], Snapshot] = {}

    def __repr__(self) -> str:
        """``<govtool.Graph file:///data/.govtool, commit 3 (7f3a1c0)>``."""
        return f"<govtool.Graph {self.store}, commit {self._commit.seq} ({self._commit.id[:7]})>"

    @property
    def store(self) -> str:
        """The URI of the store."""
        return self._reader.uri

    @property
    def commit(self) -> Commit:
        """The commit: its number, id, time and author."""
        return self._commit

    def snapshot(self, evidence: Texts | None = None) -> Snapshot:
        """The index and the version that answers are computed from; for code inside of govtool.

        Raises:
            UnknownNameError: Nothing is known in one of the ways of ``evidence`` (``usage.unknown-evidence``).
            StoreError: A fragment cannot be read.
        """
        from govtool.app.versions.opening import open_snapshot

        key = tuple(texts(evidence))
        with self._lock:
            found = self._snapshots.get(key)
            if found is None:
                found = self._snapshots[key] = open_snapshot(self._reader, self._commit, key, self._progress)
            return found

    def _fetch(self, question: Callable[[Snapshot], _Result], evidence: Texts | None = None) -> _Result:
        """Put a question; once more if it failed on an index of the cache that turns out to be damaged."""
        ways = texts(evidence)  # once: it may be an iterator
        snapshot = self.snapshot(ways)
        try:
            with snapshot.guard:
                return question(snapshot)
        except Exception:
            if not self._reopened(snapshot, ways):
                raise
        snapshot = self.snapshot(ways)
        with snapshot.guard:
            return question(snapshot)

    def _reopened(self, used: Snapshot, evidence: Texts | None) -> bool:
        """Return whether another index takes the place of the one that was used: that was damaged, and is discarded."""
        from govtool.app.versions.index import discard_damaged

        key = tuple(texts(evidence))
        with self._lock:
            if self._snapshots.get(key) is not used:  # another thread has met the same damage
                return True
            if not discard_damaged(used.store, used.commit, used.evidence):
                return False
            del self._snapshots[key]
            return True
