"""Records of runs beside damage: each fragment is read for itself, so that one stops only the runs that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from govtool.errors import FormatError, IntegrityError

if TYPE_CHECKING:
    from govtool.store import FragmentRef, Reader

_SHOWN = 3
"""Runs that a message names."""


@dataclass(frozen=True, slots=True)
class DamagedFragment:
    """A fragment of recorded runs that cannot be read."""

    ref: FragmentRef
    why: str

    def error(self, runs: Iterable[str] = ()) -> IntegrityError:
        """The error of a question that needs it.

        Args:
            runs: Those that it may hold.
        """
        names = list(dict.fromkeys(runs))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        whose = ", ".join(names[:_SHOWN]) + more if names else f"runs of {self.ref.source}"
        return IntegrityError(
            f"{self.ref.table} of {whose} cannot be read: {self.why}",
            code="store.corrupt-fragment",
            location=self.ref.key,
            hint="restore this object from a backup or a copy of the store (govtool store fsck names all that are"
            f" damaged), or: govtool store forget --source '{self.ref.source}', and run the program again",
        )


def decoded_beside_damage(
    store: Reader, refs: Sequence[FragmentRef], decode: Callable[[bytes], list[Any]]
) -> tuple[list[Any], list[DamagedFragment]]:
    """The rows of fragments, and the fragments that cannot be read.

    Raises:
        StoreError: The store cannot be read, or a fragment was removed on purpose.
    """
    try:
        return [row for data in store.read_many(refs) for row in decode(data)], []
    except (IntegrityError, FormatError):
        pass
    rows: list[Any] = []
    damaged: list[DamagedFragment] = []
    for ref in refs:
        try:
            rows += decode(store.read(ref))
        except (IntegrityError, FormatError) as error:
            damaged.append(DamagedFragment(ref, error.message))
    return rows, damaged
