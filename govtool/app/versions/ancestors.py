"""Causal order: input versions whose writing a version of the graph does not know.

"Any provenance that an object's provenance refers to is recorded, too" (Muniswamy-Reddy, Macko and Seltzer, "Making a
Cloud Provenance-Aware", TaPP 2009, section 3) cannot be enforced on events that come in any order. So it is made
visible: a run that read a version which no known run wrote keeps that version, and it is listed until the writing
arrives, or is retracted with its reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.app.runs.lookup import read_history
from govtool.model.version import VERSION_TABLES, DatasetVersion, decode_version
from govtool.store.branches import list_branches
from govtool.store.upkeep.reachable import all_commits, all_entries

if TYPE_CHECKING:
    from govtool.query.runs.history import History
    from govtool.store import Commit, FragmentRef, Reader, Store


@dataclass(frozen=True, slots=True, order=True)
class UnknownAncestor:
    """A version of a dataset that was read, and whose writing is not known."""

    dataset: str
    """The dataset that was made of it; empty for a run that wrote none."""
    ancestor: str
    """The dataset that was read."""
    digest: str | None
    """The identity of the version that was read; None: there was no data to look at."""
    run: str
    """The run that read it."""
    branch: str


def unknown_ancestors(store: Store) -> list[UnknownAncestor]:
    """The input versions of unknown writing at the newest commits of all branches, sorted.

    A snapshot counts as the writing of what it identifies, also where a later one has taken its place.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    recorded = frozenset(_ever_recorded(store))
    found: set[UnknownAncestor] = set()
    for branch in list_branches(store):
        found.update(unknown_at(store, branch.head, recorded))
    return sorted(found, key=lambda each: (each.dataset, each.ancestor, each.digest or "", each.run, each.branch))


def unknown_at(
    store: Reader, commit: Commit, recorded: frozenset[tuple[str, str]] = frozenset()
) -> Iterator[UnknownAncestor]:
    """The input versions of unknown writing at one commit.

    Args:
        store: The store.
        commit: The commit.
        recorded: Datasets and digests of versions that some snapshot identified.

    Raises:
        StoreError: a fragment cannot be read.
        IntegrityError: a fragment is not what was written.
    """
    versions = list(_versions(store, [ref for ref in store.fragments(commit) if ref.table in VERSION_TABLES]))
    recorded |= {(version.dataset, version.identity.digest) for version in versions}
    for version in versions:
        for ancestor in version.ancestors:
            if ancestor.commit is None and (ancestor.dataset, ancestor.digest) not in recorded:
                yield UnknownAncestor(version.dataset, ancestor.dataset, ancestor.digest, version.run, commit.branch)
    yield from _read_by_runs(read_history(store, commit), recorded, commit.branch)


def _read_by_runs(history: History, recorded: frozenset[tuple[str, str]], branch: str) -> Iterator[UnknownAncestor]:
    for run in history.runs:
        made = run.outputs[0].dataset if run.outputs else ""
        for read in history.unknown_inputs(run):
            digest = read.identity.digest if read.identity is not None else None
            if (read.dataset, digest) not in recorded:
                yield UnknownAncestor(made, read.dataset, digest, run.id, branch)


def _ever_recorded(store: Store) -> Iterator[tuple[str, str]]:
    """Datasets and digests of all snapshots of the history."""
    from govtool.store.commit import FragmentRef

    entries = all_entries(store.objects, all_commits(store.objects))
    refs = {e.sha256: FragmentRef.of(e) for e in entries if e.table in VERSION_TABLES}
    for version in _versions(store, refs.values()):
        yield version.dataset, version.identity.digest


def _versions(store: Reader, refs: Iterable[FragmentRef]) -> Iterator[DatasetVersion]:
    for data in store.read_many(list(refs)):
        yield decode_version(data)
