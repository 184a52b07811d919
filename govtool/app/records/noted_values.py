"""Private values of writes, which must lie in the fragments that the writes were recorded with.

A write notes the digest of that fragment (``RecordRun.private``), as it notes those of its plan and its positions.
``store forget`` may put another fragment in its place, which a tombstone tells. Writes of older versions note nothing,
and are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from govtool.app.records.damaged import DamagedFragment, decoded_beside_damage, fragments_beside_damage
from govtool.errors import IntegrityError, StoreError
from govtool.model.records import PRIVATE_VALUES, PrivateValues, RecordRun, decode_private
from govtool.redaction import SECRET
from govtool.store.commit import FragmentRef

if TYPE_CHECKING:
    from govtool.store import Reader
    from govtool.store.tombstones import Tombstones

_OTHERS = "its values of {} are not those that the run was recorded with"


def others_error(run: RecordRun) -> IntegrityError:
    """The error about values under the name of a write that are not those which it notes."""
    return IntegrityError(
        f"the private values of {run.run} are not those that it was recorded with",
        code="store.corrupt-fragment",
        hint="govtool store fsck names the object; restore it from a backup or a copy of the store",
    )


def lacks_texts(run: RecordRun, found: FragmentRef, values: PrivateValues) -> bool:
    """Return whether texts were removed from the values of a write: with ``***`` instead, its plan is another one.

    Args:
        run: The write.
        found: The fragment that holds its values: that which the write notes, or the one in its place.
        values: Its values there.
    """
    return bool(run.private) and found.sha256 != run.private and SECRET in values.values


class NotedValues:
    """The fragments with private values of a version, or of one of its sources."""

    def __init__(self, store: Reader, refs: Iterable[FragmentRef]) -> None:
        self._store = store
        self._refs = {ref.sha256: ref for ref in refs if ref.table == PRIVATE_VALUES}

    @cached_property
    def _tombstones(self) -> Tombstones:
        from govtool.store.tombstones import read_tombstones

        return read_tombstones(self._store.objects)

    def fragment_of(self, run: RecordRun) -> FragmentRef | None:
        """The fragment that a write notes, or the one in its place; None if it notes none, or none of them is there.

        Raises:
            IntegrityError: A tombstone is damaged.
        """
        if not run.private or run.private in self._refs:
            return self._refs.get(run.private)
        chain = self._tombstones.chain(FragmentRef("", PRIVATE_VALUES, run.private, 0, 0))
        return next((self._refs[ref.sha256] for ref in chain if ref.sha256 in self._refs), None)

    def is_forgotten(self, run: RecordRun) -> bool:
        """Return whether the fragment that a write notes was removed on purpose.

        Raises:
            IntegrityError: A tombstone is damaged.
        """
        return (PRIVATE_VALUES, run.private) in self._tombstones.forgotten

    def read_all(self, runs: Iterable[RecordRun], damaged: list[DamagedFragment]) -> dict[str, PrivateValues]:
        """The private values of all writes, by run id, without those that are not as a write notes, or lack texts.

        Args:
            runs: The writes.
            damaged: Fragments come into it that cannot be read, or hold other values than a write notes.

        Raises:
            StoreError: The store cannot be read.
        """
        found: dict[str, PrivateValues] = {}
        places: dict[str, dict[str, PrivateValues]] = {}
        for ref, rows in fragments_beside_damage(self._store, list(self._refs.values()), decode_private, damaged):
            places[ref.sha256] = {each.run: each for each in rows}
            found.update(places[ref.sha256])
        for run in runs:
            if run.private and run.run in found:
                self._choose(run, found, places, damaged)
        return found

    def _choose(
        self,
        run: RecordRun,
        found: dict[str, PrivateValues],
        places: dict[str, dict[str, PrivateValues]],
        damaged: list[DamagedFragment],
    ) -> None:
        """Replace the values of a write that were found under its name by those that it notes."""
        own = self.fragment_of(run)
        values = places[own.sha256].get(run.run) if own is not None else None
        if own is not None and values is not None:
            if lacks_texts(run, own, values):
                del found[run.run]
            else:
                found[run.run] = values
            return
        del found[run.run]
        others = (self._refs[sha256] for sha256, rows in places.items() if run.run in rows)
        damaged += [DamagedFragment(ref, _OTHERS.format(run.run)) for ref in others]

    def written_with_values(self, runs: Sequence[RecordRun]) -> set[str] | None:
        """The ids of writes whose private values are there, or are damaged in a way that hides whose they are.

        Fragments are decoded only where others stand in their place, or for writes that note none.

        Args:
            runs: The writes, each with a plan.

        Returns:
            The ids; None if a damaged fragment may hold the values of any of the writes.

        Raises:
            StoreError: The store cannot be read.
        """
        kept: set[str] = set()
        unsure: dict[FragmentRef, None] = {}
        replaced: set[str] = set()
        for run in runs:
            own = self.fragment_of(run)
            if not run.private:
                unsure.update(dict.fromkeys(self._refs.values()))
            elif self.is_forgotten(run):
                unsure.update({} if own is None else {own: None})
                replaced.update([] if own is None else [own.sha256])
            else:  # nothing of them was removed; where they are not sound, fsck says so
                kept.add(run.run)
        damaged: list[DamagedFragment] = []
        for ref in unsure:
            lacking = ref.sha256 in replaced
            kept.update(each.run for each in self._left(ref, damaged) if not (lacking and SECRET in each.values))
        return None if damaged else kept

    def _left(self, ref: FragmentRef, damaged: list[DamagedFragment]) -> list[PrivateValues]:
        """What is left of a fragment: nothing if it was removed as a whole."""
        try:
            rows, lost = decoded_beside_damage(self._store, [ref], decode_private)
        except StoreError as error:
            if error.code != "store.forgotten":
                raise
            return []
        damaged += lost
        return rows
