"""Records of workflow runs in all versions of a store: those that cannot be read, and those that do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from govtool.app.workflow_runs.record_checks import require_sound
from govtool.app.workflow_runs.stored import DamagedRun, damaged_run, misplaced
from govtool.errors import FormatError, IntegrityError, StoreError
from govtool.model.workflow_run import WORKFLOW_RUNS, decode_workflow_runs
from govtool.store.commit import FragmentRef
from govtool.store.tombstones import read_tombstones
from govtool.store.upkeep.reachable import all_commits, all_entries

if TYPE_CHECKING:
    from govtool.store import Store


def damaged_workflow_runs(store: Store) -> Iterator[DamagedRun]:
    """Every run of which the record cannot be read, is that of another run, or does not hang together.

    Raises:
        StoreError: The store cannot be read.
        IntegrityError: A slot, a manifest node or a tombstone is damaged.
    """
    forgotten = read_tombstones(store.objects).forgotten
    entries = (each for each in all_entries(store.objects, all_commits(store.objects)) if each.table == WORKFLOW_RUNS)
    # One content under two names is two problems; one fragment in several packs is one.
    refs = {(entry.source, entry.sha256): FragmentRef.of(entry) for entry in entries}
    for ref in refs.values():
        if forgotten.get((ref.table, ref.sha256), ref) is not None and (why := _problem(store, ref)):
            yield damaged_run(ref, why)


def _problem(store: Store, ref: FragmentRef) -> str:
    """What is wrong with the record of a run; empty: nothing."""
    try:
        (run,) = decode_workflow_runs(store.read(ref))
        if why := misplaced(ref, run):
            return why
        if run.mode == "records":
            require_sound(run)
    except (IntegrityError, FormatError) as error:
        return error.message
    except StoreError as error:
        if error.code != "store.forgotten":
            raise
    return ""
