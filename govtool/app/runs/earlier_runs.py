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
class RunFragment:
    """A fragment with runs.

    Attributes:
        ref: It in the store.
        data: Its contents.
        names: The ids of its runs, and their applications.
    """

    ref: FragmentRef
    data: bytes
    names: tuple[tuple[str, str], ...]

    def runs(self) -> list[Run]:
        """Its runs.

        Raises:
            IntegrityError: It holds something else.
        """
        return decode_runs(self.data)


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """The runs of one source at a commit, or at none, by fragment."""

    fragments: tuple[RunFragment, ...] = ()

    @staticmethod
    def of(store: Reader, commit: Commit | None, source: str) -> EarlierRuns:
        """The runs of a source.

        Raises:
            StoreError: A fragment cannot be read.
            IntegrityError: A fragment is not what was written.
        """
        refs = [] if commit is None else [ref for ref in store.fragments_of(commit, source) if ref.table == RUNS]
        contents = zip(refs, store.read_many(refs), strict=True)
        return EarlierRuns(tuple(RunFragment(ref, data, tuple(decode_run_names(data))) for ref, data in contents))

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all runs."""
        return frozenset(run for each in self.fragments for run, _ in each.names)

    @property
    def applications(self) -> frozenset[str]:
        """The applications of all runs, as they name them and as their ids begin."""
        pairs = (pair for each in self.fragments for pair in each.names)
        return frozenset(name for run, own in pairs for name in (own, run.rpartition("/")[0] or run))

    def written_again(self, added: Collection[str]) -> tuple[RunFragment, ...]:
        """The fragments that are not kept as they are where runs are added: these are in them, or they are merged.

        None is kept under aliases: what was recorded under other ones is renamed.

        Args:
            added: The ids of the added runs.
        """
        if configured():
            return self.fragments
        again = {each.ref: each for each in self.fragments if any(run in added for run, _ in each.names)}
        rows = len(added) + sum(ref.rows for ref in again)
        while True:
            small = [each for each in self.fragments if each.ref not in again and each.ref.rows <= 2 * rows]
            if len(small) < MERGED:
                return tuple(again.values())
            again.update((each.ref, each) for each in small)
            rows += sum(each.ref.rows for each in small)


def earlier_derivations(store: Reader, commit: Commit, source: str) -> list[Derivation]:
    """The derivations of a source at a commit.

    Raises:
        StoreError: A fragment cannot be read.
        IntegrityError: A fragment is not what was written.
    """
    from govtool.model.columnar import DERIVATIONS, decode

    refs = [ref for ref in store.fragments_of(commit, source) if ref.table == DERIVATIONS]
    return [derivation for data in store.read_many(refs) for derivation in decode(data)]
