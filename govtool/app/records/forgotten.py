"""Which commit removed the private values of a recorded run (``govtool store forget``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from govtool.errors import UsageError
from govtool.model.records import PRIVATE, RECORD_RUNS, decode_record_runs
from govtool.store.names import FORGOTTEN

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.store import Commit, Reader
    from govtool.store.commit import FragmentRef

CODE = "usage.forgotten"
"""The code of the error about private values that were removed."""


@contextmanager
def naming_the_commit(store: Reader, commit: Commit, run: RecordRun) -> Iterator[None]:
    """Add to an error about private values that were removed which commit did it, and when.

    Raises:
        UsageError: The values were removed (``usage.forgotten``).
    """
    try:
        yield
    except UsageError as error:
        if error.code != CODE:
            raise
        by = " or ".join(
            f"commit {each.seq} ({each.short}) at {each.time[:16]}" for each in removals(store, commit, run)
        )
        message = f"{error.message}; {by} removed them" if by else error.message
        raise UsageError(message, code=CODE, hint=f"govtool show {run.run}") from None


def has_forgotten_values(store: Reader) -> bool:
    """Return whether private values of any run were removed from a store."""
    from govtool.store.tombstones import read_tombstones

    return any(table.startswith(PRIVATE) for table, _ in read_tombstones(store.objects).forgotten)


def forgotten_applications(store: Reader, commit: Commit) -> frozenset[str]:
    """Return the applications of recorded writes of a version whose private values were removed from the store.

    Writes whose values may be in a damaged fragment are not among them.

    Raises:
        StoreError: The store cannot be read.
    """
    from govtool.app.records.damaged import decoded_beside_damage
    from govtool.app.records.noted_values import NotedValues

    if not has_forgotten_values(store):
        return frozenset()
    refs = store.fragments(commit)
    writes, _ = decoded_beside_damage(store, [ref for ref in refs if ref.table == RECORD_RUNS], decode_record_runs)
    noted = NotedValues(store, refs)
    kept = noted.written_with_values([each for each in writes if each.plan])
    if kept is None:
        return frozenset()
    return frozenset(each.application for each in writes if each.plan and each.run not in kept)


def removals(store: Reader, commit: Commit, run: RecordRun) -> list[Commit]:
    """The commits that removed private values of a run's source, oldest first; of each branch the first with each."""
    from govtool.store.tombstones import branch_ends, decode_tombstones

    refs = [ref for ref in store.fragments(commit) if ref.table == RECORD_RUNS]
    sources = {ref.source for ref in refs if any(each.run == run.run for each in decode_record_runs(store.read(ref)))}
    found = {}
    for head in branch_ends(store.objects):
        for ref in store.fragments_of(head, FORGOTTEN):
            removed = decode_tombstones(store.read(ref), ref.key).forgotten
            first = _first_with(store, head, ref.sha256)
            before = [each for source in sources for each in _before(store, first, source)]
            if any(each.table.startswith(PRIVATE) and (each.table, each.sha256) in removed for each in before):
                found[first.id] = first
    return sorted(found.values(), key=lambda each: (each.time, each.seq))


def _before(store: Reader, commit: Commit, source: str) -> tuple[FragmentRef, ...]:
    _, *parent = store.history(commit, 2)
    return store.fragments_of(parent[0], source) if parent else ()


def _first_with(store: Reader, head: Commit, tombstone: str) -> Commit:
    """The first commit of a branch that has a tombstone; tombstones are never retracted."""
    low, high, found = head.start, head.seq, head
    while low < high:
        middle = store.resolve(str((low + high) // 2), head.branch)
        if any(ref.sha256 == tombstone for ref in store.fragments_of(middle, FORGOTTEN)):
            found, high = middle, middle.seq
        else:
            low = middle.seq + 1
    return found
