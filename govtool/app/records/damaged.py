"""Records of runs beside damage: each fragment is read for itself, so that one stops only the runs that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from govtool.errors import FormatError, IntegrityError
from govtool.wording import few

if TYPE_CHECKING:
    from govtool.store import FragmentRef, Reader


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
        whose = few(names) if names else f"runs of {self.ref.source}"
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
    damaged: list[DamagedFragment] = []
    return list(rows_beside_damage(store, refs, decode, damaged)), damaged


def rows_beside_damage(
    store: Reader, refs: Sequence[FragmentRef], decode: Callable[[bytes], list[Any]], damaged: list[DamagedFragment]
) -> Iterator[Any]:
    """Yield the rows of fragments, each decoded when its rows are wanted; what cannot be read comes into ``damaged``.

    Raises:
        StoreError: The store cannot be read, or a fragment was removed on purpose.
    """
    for _, rows in fragments_beside_damage(store, refs, decode, damaged):
        yield from rows


def fragments_beside_damage(
    store: Reader, refs: Sequence[FragmentRef], decode: Callable[[bytes], list[Any]], damaged: list[DamagedFragment]
) -> Iterator[tuple[FragmentRef, list[Any]]]:
    """As ``rows_beside_damage``, with the rows of each fragment beside it."""
    whole = 0
    try:
        for ref, data in zip(refs, store.read_many(refs), strict=True):
            yield ref, decode(data)
            whole += 1
    except (IntegrityError, FormatError):
        pass
    for ref in refs[whole:]:
        try:
            rows = decode(store.read(ref))
        except (IntegrityError, FormatError) as error:
            damaged.append(DamagedFragment(ref, error.message))
        else:
            yield ref, rows
