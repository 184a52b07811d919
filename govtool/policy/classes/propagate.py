"""Classes along the edges of the graph: one monotone fixpoint over bit sets.

A *taint* is a class, where its data came from, and which declassifiers it has passed. Each node holds three sets of
taints, a bit a taint:

    value       data of the class is in the column
    influence   data of the class decides over the column, or over which rows there are
    unknown     whether it is in the column could not be decided: an opaque step lies between

A taint moves along an edge by itself, whatever other taints do, and nothing ever takes one away: the outcome is the
least fixpoint, the same in any order (Knaster, Tarski), and cycles need no care. Whole frontiers move at once.

What an edge makes of a taint is in ``govtool.policy.classes.taints``.

A column with data carries it in its fields too, and data in a field is data in the column; siblings do not share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.arrays.numpy_threads import np
from govtool.graph.index import Index
from govtool.policy.classes.fixpoint import Steps, Word
from govtool.policy.classes.taints import Mode, Seeds, Taint, behind, families, packed, possible_group
from govtool.policy.classes.transfer import Transfers
from govtool.policy.classes.unknown_columns import PossibleClasses
from govtool.policy.files.policy_set import Lattice

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True)
class Propagation:
    """The taints of nodes."""

    index: Index
    lattice: Lattice
    transfers: Transfers
    taints: tuple[Taint, ...]
    place: dict[Taint, tuple[int, int]]
    """Word and bit of each taint."""
    seeds: Seeds
    """Columns that the policies classify, and their classes."""
    sets: list[list[Array]]
    """``sets[word][mode]``: uint64[nodes]."""
    possible: PossibleClasses
    """Columns that are not known, and the classes that may be among them."""

    def masks(self, taints: Iterable[Taint]) -> list[int]:
        """The bits of some taints, word by word."""
        found = [0] * len(self.sets)
        for taint in taints:
            word, bit = self.place[taint]
            found[word] |= 1 << bit
        return found

    def having(self, mode: Mode, taints: Iterable[Taint]) -> Array:
        """The nodes that have any of some taints, sorted."""
        some = np.zeros(self.index.node_count, bool)
        for word, mask in enumerate(self.masks(taints)):
            if mask:
                some |= (self.sets[word][mode] & np.uint64(mask)) != 0
        return np.flatnonzero(some)

    def at(self, node: int, mode: Mode) -> list[Taint]:
        """The taints of a node."""
        return [t for t in self.taints if self.has(node, mode, t)]

    def has(self, node: int, mode: Mode, taint: Taint) -> bool:
        """Return whether a node has a taint."""
        word, bit = self.place[taint]
        return bool(int(self.sets[word][mode][node]) >> bit & 1)

    def after(self, taint: Taint, edge: int) -> Taint | None:
        """A value's taint behind a value-flow edge; None if the edge ends it."""
        return behind(self.lattice, self.transfers, taint, self.transfers.of(edge))

    def lowered(self, taint: Taint) -> frozenset[str]:
        """The classes that a taint's data has now: its own, or those that declassifiers gave it."""
        if not taint.passed:
            return frozenset((taint.name,))
        return frozenset(d.to for d in self.transfers.declassify if d.name in taint.passed)


def propagate(
    index: Index,
    lattice: Lattice,
    transfers: Transfers,
    seeds: Mapping[int, tuple[str, ...]],
    groups: Sequence[Mapping[int, tuple[str, ...]]] = (),
    *,
    blocked: Collection[int] = (),
    possible: PossibleClasses | None = None,
    possible_groups: Sequence[Seeds] = (),
) -> Propagation:
    """Propagate classes from the columns that have them to the fixpoint.

    Args:
        index: The graph.
        lattice: The classes.
        transfers: What edges do.
        seeds: Columns and their classes.
        groups: Further sets of seeds, each propagated by itself as group 1, 2 …
        blocked: Nodes that nothing reaches or leaves, as if they were gone.
        possible: Columns that are not known and the classes that may be among them: group ``possible_group(0)``.
        possible_groups: The same for each of ``groups``.

    Raises:
        UsageError: ``policy.too-many-declassifiers``: one class can pass too many different sets of them.
    """
    stopped = frozenset(blocked)
    every = [Seeds.of(one) for one in (seeds, *groups)]
    if stopped:
        gone = np.array(sorted(stopped), np.int64)
        every = [one.chosen(~np.isin(one.nodes, gone)) for one in every]
    hidden = possible or PossibleClasses()
    open_ = [hidden.seeds, *possible_groups]
    if stopped:
        open_ = [one.chosen(~np.isin(one.nodes, gone)) for one in open_]
    words = packed(families(lattice, transfers, every, open_))
    place = {taint: (w, b) for w, word in enumerate(words) for b, taint in enumerate(word)}
    steps = Steps(index, len(words))
    sets = [
        Word(index, steps, word, transfers, lattice, stopped, hidden.stops).run(
            _seed_bits(every, place, w, range(len(every))),
            _seed_bits(open_, place, w, [possible_group(group) for group in range(len(open_))]),
        )
        for w, word in enumerate(words)
    ]
    taints = tuple(taint for word in words for taint in word)
    return Propagation(index, lattice, transfers, taints, place, every[0], sets, hidden)


def _seed_bits(
    every: Sequence[Seeds], place: Mapping[Taint, tuple[int, int]], word: int, groups: Sequence[int]
) -> tuple[Array, Array]:
    """The nodes with taints of a word, and their bits."""
    nodes, bits = [], []
    for group, one in zip(groups, every, strict=True):
        known = frozenset(one.names())
        table = np.zeros(max(1, len(one.combinations)), np.uint64)
        for number, classes in enumerate(one.combinations):
            if known.issuperset(classes):
                places = {place[Taint(name, group, frozenset())] for name in classes}
                table[number] = sum(1 << bit for w, bit in places if w == word)
        own = table.take(one.combination)
        some = slice(None) if own.all() else own != 0
        nodes.append(one.nodes[some])
        bits.append(own[some])
    if len(nodes) == 1:
        return nodes[0], bits[0]
    all_nodes, owner = np.unique(np.concatenate(nodes), return_inverse=True)
    found = np.zeros(len(all_nodes), np.uint64)
    np.bitwise_or.at(found, owner, np.concatenate(bits))
    return all_nodes, found
