"""One version of a graph, opened: its commit, its index, and how much of its evidence was understood."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from govtool.answers.version import GraphVersion
from govtool.app.questions.governance import Governance

if TYPE_CHECKING:
    from govtool.app.versions.index import Progress
    from govtool.graph.index import Index
    from govtool.store import Commit, Reader


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of the graph, ready for questions."""

    index: Index
    version: GraphVersion
    store: Reader
    commit: Commit
    evidence: tuple[str, ...]
    """The kinds of evidence in the index; empty for all."""
    governance: Governance = field(compare=False, repr=False)
    guard: AbstractContextManager[object] = field(compare=False, repr=False)
    """Held while the index is read. An index that is read page by page from a remote store changes as it is read, so
    it serves one thread at a time; any other is only ever read, and needs no guard."""


def open_snapshot(
    store: Reader, commit: Commit, evidence: Sequence[str] | None = None, progress: Progress | None = None
) -> Snapshot:
    """Open the graph of a commit; its index is built if the cache has none.

    Args:
        store: Where the commit is.
        commit: The commit.
        evidence: Only what is known in these ways: ``sql``, ``plan`` …, ``static`` or ``runtime``; default: everything.
        progress: Called with steps done and steps in all while the index is built.

    Raises:
        UnknownNameError: Nothing is known in one of these ways (``usage.unknown-evidence``).
        StoreError: A fragment cannot be read.
    """
    from govtool.app.versions.index import open_index
    from govtool.app.versions.version import version_of

    known: tuple[str, ...] = ()
    if evidence:
        from govtool.app.questions.compare import chosen_evidence

        known = chosen_evidence(store, commit, evidence)
    index = open_index(store, commit, progress, evidence=known)
    version = version_of(store, commit)
    guard: AbstractContextManager[object] = threading.RLock() if index.is_paged else nullcontext()
    return Snapshot(index, version, store, commit, known, Governance(index, store, commit), guard)
