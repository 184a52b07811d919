"""Taints: a class on its way through the graph, the mode in which a node has it, and how edges change it.

edge kind                                    value becomes            influence becomes   unknown becomes
identity, transformation, aggregation        value, declassified      influence           unknown
conditional, window                          influence                influence           unknown
join, filter, group_by, sort, distinct …     influence (of the rows)  influence           unknown
read (rows to rows)                          –                        influence           unknown
opaque; out of a row set: any of its columns unknown                  unknown             unknown
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import distinct
from govtool.errors import UsageError
from govtool.model.kinds import VALUE_FLOW, EdgeKind
from govtool.policy.classes.transfer import Transfer, Transfers
from govtool.policy.files.policy_set import Lattice

Array = np.ndarray[Any, np.dtype[Any]]
Classes = tuple[str, ...]
_KEY = np.int64


class Seeds(Mapping[int, Classes]):
    """From columns to sorted classes, in the order of the columns. Columns are many, combinations of classes few.

    Args:
        nodes: The columns, sorted.
        combination: For each the number of its combination.
        combinations: Sorted classes.
    """

    __slots__ = ("combination", "combinations", "nodes")

    def __init__(self, nodes: Array, combination: Array, combinations: tuple[Classes, ...]) -> None:
        self.nodes, self.combination, self.combinations = nodes, combination, combinations

    @classmethod
    def of(cls, classes: Mapping[int, Iterable[str]]) -> Seeds:
        """Seeds of any mapping."""
        if isinstance(classes, Seeds):
            return classes
        number: dict[Classes, int] = {}
        nodes = np.array(sorted(classes), _KEY)
        every = [number.setdefault(tuple(sorted(set(classes[n]))), len(number)) for n in nodes.tolist()]
        return cls(nodes, np.array(every, np.int32), tuple(number))

    @classmethod
    def gathered(cls, parts: Iterable[tuple[str, Array]]) -> Seeds:
        """Seeds of classes and the columns of each; a class may occur several times."""
        names: dict[str, list[Array]] = {}
        for name, nodes in parts:
            names.setdefault(name, []).append(nodes)
        order = sorted(names)
        each = [distinct(np.concatenate(names[name])) for name in order]
        if not each:
            return cls(np.empty(0, _KEY), np.empty(0, np.int32), ())
        nodes, owner = np.unique(np.concatenate(each), return_inverse=True)
        # Class by class, what a column has so far and the class make a new combination.
        combination = np.zeros(len(nodes), np.int32)
        combinations: list[Classes] = [()]
        start = 0
        for name, own in zip(order, each, strict=True):
            at = owner[start : start + len(own)]
            start += len(own)
            before = distinct(combination[at])
            table = np.zeros(len(combinations) + 1, np.int32)
            for old in before.tolist():
                table[old] = len(combinations)
                combinations.append((*combinations[old], name))
            combination[at] = table[combination[at]]
        return cls(nodes, combination, tuple(combinations))

    def chosen(self, which: Array) -> Seeds:
        """Those for which ``which`` is true."""
        return Seeds(self.nodes[which], self.combination[which], self.combinations)

    def having(self, name: str) -> Array:
        """The columns that have a class by themselves."""
        some = np.array([name in classes for classes in self.combinations], bool)
        return self.nodes[some[self.combination]] if len(self.nodes) else self.nodes

    def names(self) -> list[str]:
        """The classes of any column, sorted."""
        used = np.flatnonzero(np.bincount(self.combination)).tolist()
        return sorted({name for number in used for name in self.combinations[number]})

    def __getitem__(self, node: int) -> Classes:
        """The classes of a column."""
        at = int(np.searchsorted(self.nodes, node))
        if at == len(self.nodes) or self.nodes[at] != node:
            raise KeyError(node)
        return self.combinations[self.combination[at]]

    def __iter__(self) -> Iterator[int]:
        """The columns, sorted."""
        return iter(self.nodes.tolist())

    def __len__(self) -> int:
        """The number of columns."""
        return len(self.nodes)


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


def becomes(mode: Mode, kind: EdgeKind, *, any_column: bool = False) -> Mode | None:
    """Return the mode of a taint behind an edge of a kind; None if the edge does not carry it.

    Args:
        mode: How it is had before.
        kind: The edge's kind.
        any_column: The edge leaves the row set of the column's dataset and stands for any column.
    """
    if kind is EdgeKind.UNION_ALL:
        return None  # an arm decides no rows: only LineageX counts its columns
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
