"""What the store holds of a job's earlier runs: most of it stays as it is stored.

A job that runs every night would else write all of its runs again each time. Fragments of runs are merged as they grow
in number, so that there are a few of each size, and a run is written again a few times in its life.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from govtool.app.project.aliases import configured
from govtool.model.run import RUNS, decode_run_names, decode_runs

if TYPE_CHECKING:
    from govtool.model import Derivation
    from govtool.model.run import Run
    from govtool.store import Commit, FragmentRef, Reader

MERGED = 8
"""Fragments of about the size of what is added, or smaller, at which they are merged with it."""


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """The runs of one source at a commit, or at none.

    Attributes:
        names: Of each fragment with runs the ids of its runs and their applications.
    """

    names: tuple[tuple[FragmentRef, tuple[tuple[str, str], ...]], ...] = ()

    @staticmethod
    def of(store: Reader, commit: Commit | None, source: str) -> EarlierRuns:
        """The runs of a source.

        Raises:
            StoreError: A fragment cannot be read.
            IntegrityError: A fragment is not what was written.
        """
        refs = () if commit is None else store.fragments_of(commit, source)
        return EarlierRuns(tuple((ref, tuple(decode_run_names(store.read(ref)))) for ref in refs if ref.table == RUNS))

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all runs."""
        return frozenset(run for _, names in self.names for run, _ in names)

    @property
    def applications(self) -> frozenset[str]:
        """The applications of all runs, as they name them and as their ids begin."""
        named = (each for _, names in self.names for run, own in names for each in (own, run.rpartition("/")[0] or run))
        return frozenset(named)

    def kept(self, added: Collection[str]) -> tuple[FragmentRef, ...]:
        """The fragments that may stay as they are where runs are added: none of these is in them.

        None stays under aliases: what was recorded under other ones is renamed.

        Args:
            added: The ids of the added runs.
        """
        if configured():
            return ()
        again = {ref for ref, names in self.names if any(run in added for run, _ in names)}
        rows = len(added) + sum(ref.rows for ref in again)
        while True:
            small = [ref for ref, _ in self.names if ref not in again and ref.rows <= 2 * rows]
            if len(small) < MERGED:
                return tuple(ref for ref, _ in self.names if ref not in again)
            again.update(small)
            rows += sum(ref.rows for ref in small)


def read_runs(store: Reader, refs: Collection[FragmentRef]) -> list[Run]:
    """The runs of fragments.

    Raises:
        StoreError: A fragment cannot be read.
        IntegrityError: A fragment is not what was written.
    """
    return [run for ref in refs for run in decode_runs(store.read(ref))]


def earlier_derivations(store: Reader, commit: Commit, source: str) -> list[Derivation]:
    """The derivations of a source at a commit.

    Raises:
        StoreError: A fragment cannot be read.
        IntegrityError: A fragment is not what was written.
    """
    from govtool.model.columnar import DERIVATIONS, decode

    refs = (ref for ref in store.fragments_of(commit, source) if ref.table == DERIVATIONS)
    return [derivation for ref in refs for derivation in decode(store.read(ref))]
