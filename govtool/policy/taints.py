"""Taints: a class on its way, how a node has it, what an edge makes of it, and how taints fit into bits.

edge kind                                    value becomes            influence becomes   unknown becomes
identity, transformation, aggregation        value, declassified      influence           unknown
conditional, window                          influence                influence           unknown
join, filter, group_by, sort, distinct …     influence (of the rows)  influence           unknown
read (rows to rows)                          –                        influence           unknown
opaque; out of a row set: any of its columns unknown                  unknown             unknown
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from govtool.errors import UsageError
from govtool.model.kinds import VALUE_FLOW, EdgeKind
from govtool.policy.lattice import Lattice
from govtool.policy.seeds import Seeds
from govtool.policy.transfer import Transfer, Transfers

BITS = 64
"""Taints of a word."""
ALL = (1 << BITS) - 1
"""A word with every bit."""


class Mode(IntEnum):
    """The mode in which a node has a taint."""

    VALUE = 0
    INFLUENCE = 1
    UNKNOWN = 2


class Taint(NamedTuple):
    """A class on its way."""

    name: str
    """The class at the source."""
    group: int
    """The set of sources that it came from; 0 is any. Negative: see ``possible_group``."""
    passed: frozenset[str]
    """Declassifiers passed on the way."""
    unsure: frozenset[str] = frozenset()
    """Declassifiers of which it is not known whether they were passed: aggregates over groups of unknown size."""

    @property
    def is_possible(self) -> bool:
        """True if it came from columns that are not known and may be of the class."""
        return self.group < 0

    def stopped_by(self, names: Collection[str]) -> bool:
        """Return whether an edge that leaves out all columns which may give some classes stops it."""
        return self.group < 0 and self.name in names


def possible_group(group: int) -> int:
    """The group of what columns that are not known may give, beside a group of known sources; its own inverse."""
    return -1 - group


def becomes(mode: Mode, kind: EdgeKind, *, any_column: bool = False, union_all: bool = False) -> Mode | None:
    """Return the mode of a taint behind an edge of a kind; None if the edge does not carry it.

    Args:
        mode: How it is had before.
        kind: The edge's kind.
        any_column: The edge leaves the row set of the column's dataset and stands for any column.
        union_all: Whether the columns of UNION ALL arms count (LineageX's reading).
    """
    if kind is EdgeKind.UNION_ALL and not union_all:
        return None
    if kind is EdgeKind.OPAQUE or any_column:
        return None if kind is EdgeKind.READ and any_column else Mode.UNKNOWN
    if mode is Mode.VALUE:
        return Mode.VALUE if kind in VALUE_FLOW else None if kind is EdgeKind.READ else Mode.INFLUENCE
    return mode


def families(
    lattice: Lattice, transfers: Transfers, every: Sequence[Seeds], possible: Sequence[Seeds] = ()
) -> list[list[Taint]]:
    """For each class and group the taints that its data may become; what is unknown stays as it is."""
    families = []
    passable: dict[str, list[Taint]] = {}
    for group, one in enumerate(every):
        for name in one.names():
            if name not in passable:
                passable[name] = _passable(lattice, transfers, name)
            families.append([taint._replace(group=group) for taint in passable[name]])
    for group, one in enumerate(possible):
        families += ([Taint(name, possible_group(group), frozenset())] for name in one.names())
    return families


def behind(lattice: Lattice, transfers: Transfers, taint: Taint, transfer: Transfer) -> Taint | None:
    """Return the taint of a value behind an edge with a transfer; None if the edge ends it."""
    passed = transfers.passed(lattice, taint.name, taint.passed, transfer)
    if passed is None:
        return None
    unsure = transfers.unsure(lattice, taint.name, taint.passed, transfer)
    return taint._replace(passed=passed, unsure=taint.unsure | unsure)


def _passable(lattice: Lattice, transfers: Transfers, name: str) -> list[Taint]:
    """All taints that data of a class may become, the one that has passed nothing first."""
    first = Taint(name, 0, frozenset())
    found: dict[Taint, None] = {first: None}
    stack = [first]
    while stack:
        before = stack.pop()
        for transfer in transfers.kinds:
            after = behind(lattice, transfers, before, transfer)
            if after is not None and after not in found:
                found[after] = None
                stack.append(after)
        if len(found) > BITS:
            raise UsageError(
                f"data of the class {name} can pass too many combinations of declassifiers",
                code="policy.too-many-declassifiers",
                hint="make one declassifier of several that lower to the same class",
            )
    return list(found)


def packed(families: Iterable[list[Taint]]) -> list[list[Taint]]:
    """Families in words of at most 64 taints; a family is never torn, so that words do not depend on each other."""
    words: list[list[Taint]] = []
    for family in families:
        for word in words:
            if len(word) + len(family) <= BITS:
                word.extend(family)
                break
        else:
            words.append(list(family))
    return words


def mapping(
    taints: Sequence[Taint], transfers: Transfers, lattice: Lattice, number: int
) -> tuple[int, list[tuple[int, int]]]:
    """Return the effect of a transfer on a word: the bits that stay, and those that become others; the rest ends.

    Only values are declassified: what columns that are not known may give stays.
    """
    bit_of = {taint: bit for bit, taint in enumerate(taints)}
    kept, moves = ALL, []
    for taint, bit in bit_of.items():
        if taint.is_possible:
            continue
        after = behind(lattice, transfers, taint, transfers.kinds[number])
        if after == taint:
            continue
        kept &= ~(1 << bit)
        if after is not None:
            moves.append((bit, bit_of[after]))
    return kept, moves
