"""Classes along the edges of the graph: one monotone fixpoint over bit sets.

A *token* is a class, where its data came from, and which declassifiers it has passed. Each node holds three sets of
tokens, a bit a token:

    value       data of the class is in the column
    influence   data of the class decides over the column, or over which rows there are
    unknown     whether it is in the column could not be told: an opaque step lies between

A token moves along an edge by itself, whatever other tokens do, and nothing ever takes one away: the outcome is the
least fixpoint, the same in any order (Knaster, Tarski), and cycles need no care. Whole frontiers move at once.

    edge kind                                    value becomes            influence becomes   unknown becomes
    identity, transformation, aggregation        value, declassified      influence           unknown
    conditional, window                          influence                influence           unknown
    join, filter, group_by, sort, distinct …     influence (of the rows)  influence           unknown
    read (rows to rows)                          –                        influence           unknown
    opaque; out of a row set: any of its columns unknown                  unknown             unknown

A column with data carries it in its fields too, and data in a field is data in the column; siblings do not share.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from govtool.errors import UsageError
from govtool.graph.codes import KIND_MASK, TAGS
from govtool.graph.index import Index
from govtool.graph.walk_large import spread
from govtool.model.kinds import VALUE_FLOW, EdgeKind
from govtool.policy.lattice import Lattice
from govtool.policy.transfer import Transfers

Array = np.ndarray[Any, np.dtype[Any]]
BITS = 64
"""Tokens of a word."""
_NONE = np.empty(0, np.int64)


class Mode(IntEnum):
    """How a node has a token."""

    VALUE = 0
    INFLUENCE = 1
    UNKNOWN = 2


class Token(NamedTuple):
    """A class on its way."""

    name: str
    """The class at the source."""
    group: int
    """Which of several sets of sources it came from; 0 is any."""
    passed: frozenset[str]
    """Declassifiers passed on the way."""


def becomes(mode: Mode, kind: EdgeKind, *, any_column: bool = False, union_all: bool = False) -> Mode | None:
    """How a token is had behind an edge of a kind; None if the edge does not carry it.

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


@dataclass(slots=True)
class Propagation:
    """Which nodes have which tokens."""

    index: Index
    lattice: Lattice
    transfers: Transfers
    tokens: tuple[Token, ...]
    place: dict[Token, tuple[int, int]]
    """Word and bit of each token."""
    seeds: dict[int, tuple[str, ...]]
    """Columns that the policies classify, and their classes."""
    sets: list[list[Array]]
    """``sets[word][mode]``: uint64[nodes]."""

    def masks(self, tokens: Iterable[Token]) -> list[int]:
        """The bits of some tokens, word by word."""
        found = [0] * len(self.sets)
        for token in tokens:
            word, bit = self.place[token]
            found[word] |= 1 << bit
        return found

    def having(self, mode: Mode, tokens: Iterable[Token]) -> Array:
        """The nodes that have any of some tokens, sorted."""
        some = np.zeros(self.index.node_count, bool)
        for word, mask in enumerate(self.masks(tokens)):
            if mask:
                some |= (self.sets[word][mode] & np.uint64(mask)) != 0
        return np.flatnonzero(some)

    def at(self, node: int, mode: Mode) -> list[Token]:
        """The tokens of a node."""
        return [t for t in self.tokens if self.has(node, mode, t)]

    def has(self, node: int, mode: Mode, token: Token) -> bool:
        """Whether a node has a token."""
        word, bit = self.place[token]
        return bool(int(self.sets[word][mode][node]) >> bit & 1)

    def after(self, token: Token, edge: int) -> Token | None:
        """A value's token behind a value-flow edge; None if the edge ends it."""
        passed = self.transfers.passed(self.lattice, token.name, token.passed, self.transfers.of(edge))
        return None if passed is None else Token(token.name, token.group, passed)

    def lowered(self, token: Token) -> frozenset[str]:
        """The classes that a token's data has now: its own, or what declassifiers made of it."""
        if not token.passed:
            return frozenset((token.name,))
        return frozenset(d.to for d in self.transfers.declassify if d.name in token.passed)


def propagate(
    index: Index,
    lattice: Lattice,
    transfers: Transfers,
    seeds: Mapping[int, Iterable[str]],
    groups: Sequence[Mapping[int, Iterable[str]]] = (),
    *,
    union_all: bool = False,
    blocked: Collection[int] = (),
) -> Propagation:
    """Propagate classes from the columns that have them to the fixpoint.

    Args:
        index: The graph.
        lattice: The classes.
        transfers: What edges do.
        seeds: Columns and their classes.
        groups: Further sets of seeds, each propagated by itself as group 1, 2 …
        union_all: See ``becomes``.
        blocked: Nodes that nothing reaches or leaves, as if they were gone.

    Raises:
        UsageError: ``policy.too-many-declassifiers``: one class can pass too many different sets of them.
    """
    stopped = frozenset(blocked)
    every = [{n: tuple(c) for n, c in one.items() if n not in stopped} for one in (seeds, *groups)]
    families = _families(lattice, transfers, every)
    words = _packed(families)
    place = {token: (w, b) for w, word in enumerate(words) for b, token in enumerate(word)}
    steps = _Steps(index, union_all)
    sets = [
        _Word(index, steps, word, transfers, lattice, stopped).run(_seed_bits(every, place, w))
        for w, word in enumerate(words)
    ]
    tokens = tuple(token for word in words for token in word)
    return Propagation(index, lattice, transfers, tokens, place, every[0], sets)


def _seed_bits(
    every: Sequence[Mapping[int, tuple[str, ...]]], place: Mapping[Token, tuple[int, int]], word: int
) -> dict[int, int]:
    found: dict[int, int] = {}
    for group, one in enumerate(every):
        # Columns are many and their combinations of classes few.
        bits_of: dict[tuple[str, ...], int] = {}
        for node, classes in one.items():
            bits = bits_of.get(classes)
            if bits is None:
                places = [place[Token(name, group, frozenset())] for name in classes]
                bits = bits_of[classes] = sum(1 << bit for w, bit in set(places) if w == word)
            if bits:
                found[node] = found.get(node, 0) | bits
    return found


def _families(
    lattice: Lattice, transfers: Transfers, every: Sequence[Mapping[int, tuple[str, ...]]]
) -> list[list[Token]]:
    """For each class and group the tokens that its data may become."""
    families = []
    passable: dict[str, list[frozenset[str]]] = {}
    for group, one in enumerate(every):
        for name in sorted({c for classes in one.values() for c in classes}):
            if name not in passable:
                passable[name] = _passable(lattice, transfers, name)
            families.append([Token(name, group, passed) for passed in passable[name]])
    return families


def _passable(lattice: Lattice, transfers: Transfers, name: str) -> list[frozenset[str]]:
    """All sets of declassifiers that data of a class may have passed, the empty one first."""
    found: dict[frozenset[str], None] = {frozenset(): None}
    stack = [frozenset[str]()]
    while stack:
        before = stack.pop()
        for transfer in transfers.kinds:
            after = transfers.passed(lattice, name, before, transfer)
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


def _packed(families: Iterable[list[Token]]) -> list[list[Token]]:
    """Families in words of at most 64 tokens; a family is never torn, so that words do not depend on each other."""
    words: list[list[Token]] = []
    for family in families:
        for word in words:
            if len(word) + len(family) <= BITS:
                word.extend(family)
                break
        else:
            words.append(list(family))
    return words


class _Steps:
    """What is the same for every word: how tags turn modes, and which nodes lie within each other."""

    def __init__(self, index: Index, union_all: bool) -> None:
        self.turns = _turns(union_all=union_all, any_column=False)
        self.opens = _turns(union_all=union_all, any_column=True)
        child, above = np.asarray(index.nested, np.int64), np.asarray(index.arrays["nested_parent"], np.int64)
        pairs_from, pairs_to = [child], [above]
        of = above
        owner = child
        while len(child):
            at = np.minimum(np.searchsorted(child, of), len(child) - 1)
            more = child[at] == of
            if not more.any():
                break
            owner, of = owner[more], above[at[more]]
            pairs_from.append(owner)
            pairs_to.append(of)
        start = np.concatenate([*pairs_from, *pairs_to])
        end = np.concatenate([*pairs_to, *pairs_from])
        order = np.argsort(start, kind="stable")
        self.start, self.end = start[order], end[order]

    def related(self, nodes: Array) -> tuple[Array, Array]:
        """The columns that contain, or are fields of, some nodes; and for each the position of its node."""
        if not len(self.start):
            return _NONE, _NONE
        low, high = np.searchsorted(self.start, nodes), np.searchsorted(self.start, nodes, side="right")
        at, owner = spread(low, high)
        return self.end[at], owner


def _turns(*, union_all: bool, any_column: bool) -> Array:
    """uint64[3 modes before, 3 modes behind, tags]: all ones where a tag turns the one into the other."""
    table = np.zeros((3, 3, TAGS), np.uint64)
    for tag in range(TAGS):
        if tag & KIND_MASK > EdgeKind.OPAQUE:
            continue
        for mode in Mode:
            behind = becomes(mode, EdgeKind(tag & KIND_MASK), any_column=any_column, union_all=union_all)
            if behind is not None:
                table[mode, behind, tag] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
    return table


class _Word:
    """The fixpoint of up to 64 tokens."""

    def __init__(
        self,
        index: Index,
        steps: _Steps,
        tokens: Sequence[Token],
        transfers: Transfers,
        lattice: Lattice,
        blocked: Collection[int],
    ) -> None:
        self.steps = steps
        self.blocked = np.fromiter(sorted(blocked), np.int64, len(blocked))
        a = index.arrays
        self.forward, self.target, self.tag = (np.asarray(a[n]) for n in ("forward", "edge_target", "edge_tag"))
        self.dataset, self.base = np.asarray(a["node_dataset"]), np.asarray(a["dataset_base"])
        self.open = np.asarray(a["dataset_opaque"]) if index.meta["opaque_rows"] else None
        self.n = index.node_count
        self.edge_transfer = transfers.edge
        self.maps = [_mapping(tokens, transfers, lattice, i) for i in range(len(transfers.kinds))]
        self.have = [np.zeros(self.n, np.uint64) for _ in Mode]
        self.fresh = [np.zeros(self.n, np.uint64) for _ in Mode]

    def run(self, seeds: Mapping[int, int]) -> list[Array]:
        """Run to the fixpoint."""
        frontier = np.fromiter(seeds.keys(), np.int64, len(seeds))
        values = np.fromiter(seeds.values(), np.uint64, len(seeds))
        self.have[Mode.VALUE][frontier] = values
        self.fresh[Mode.VALUE][frontier] = values
        while len(frontier):
            bits = [fresh[frontier] for fresh in self.fresh]
            for fresh in self.fresh:
                fresh[frontier] = 0
            touched = [self._along(frontier, bits)]
            around, owner = self.steps.related(frontier)
            if len(around):
                touched.append(self._along(around, [b[owner] for b in bits]))
            touched.append(self._out_of_rows(frontier, bits))
            frontier = self._united(touched)
        return self.have

    def _united(self, touched: list[Array]) -> Array:
        if sum(map(len, touched)) * 100 > self.n:
            some = np.zeros(self.n, bool)
            for nodes in touched:
                some[nodes] = True
            return np.flatnonzero(some)
        return np.unique(np.concatenate(touched))

    def _along(self, nodes: Array, bits: list[Array]) -> Array:
        """Follow the edges out of nodes."""
        start, stop = self.forward[nodes].astype(np.int64), self.forward[nodes + 1].astype(np.int64)
        return self._follow(start, stop, bits, self.steps.turns)

    def _out_of_rows(self, nodes: Array, bits: list[Array]) -> Array:
        """Follow the edges that stand for any column of the nodes' datasets."""
        if self.open is None:
            return _NONE
        dataset = self.dataset[nodes]
        rows = self.base[dataset].astype(np.int64)
        some = np.flatnonzero((self.open[dataset] > 0) & (rows != nodes))
        if not len(some):
            return _NONE
        start = self.forward[rows[some]].astype(np.int64)
        return self._follow(start, start + self.open[dataset[some]], [b[some] for b in bits], self.steps.opens)

    def _follow(self, start: Array, stop: Array, bits: list[Array], turns: Array) -> Array:
        """Carry bits over ranges of edges; return the nodes that have something new."""
        edge, owner = spread(start, stop)
        if not len(edge):
            return _NONE
        tag, target = self.tag[edge], self.target[edge]
        found = []
        for behind in Mode:
            carried: Array | None = None
            for before in Mode:
                table = turns[before, behind]
                if not table.any() or not bits[before].any():
                    continue
                moved = bits[before][owner] & table[tag]
                if before is Mode.VALUE and behind is Mode.VALUE and len(self.edge_transfer):
                    moved = self._lowered(moved, self.edge_transfer[edge])
                carried = moved if carried is None else carried | moved
            if carried is None:
                continue
            carried &= ~self.have[behind][target]
            if len(self.blocked):
                carried[np.isin(target, self.blocked)] = 0
            new = np.flatnonzero(carried)
            if len(new):
                nodes, values = target[new], carried[new]
                np.bitwise_or.at(self.have[behind], nodes, values)
                np.bitwise_or.at(self.fresh[behind], nodes, values)
                found.append(nodes.astype(np.int64))
        return np.concatenate(found) if found else _NONE

    def _lowered(self, bits: Array, transfer: Array) -> Array:
        for number, (kept, moves) in enumerate(self.maps):
            if not number or (not moves and kept == _ALL):
                continue
            some = np.flatnonzero(transfer == number)
            if not len(some):
                continue
            before = bits[some]
            after = before & np.uint64(kept)
            for bit, to in moves:
                after |= ((before >> np.uint64(bit)) & np.uint64(1)) << np.uint64(to)
            bits[some] = after
        return bits


_ALL = (1 << BITS) - 1


def _mapping(
    tokens: Sequence[Token], transfers: Transfers, lattice: Lattice, number: int
) -> tuple[int, list[tuple[int, int]]]:
    """What a transfer does to a word: the bits that stay, and those that become others; the rest ends."""
    bit_of = {token: bit for bit, token in enumerate(tokens)}
    kept, moves = _ALL, []
    for token, bit in bit_of.items():
        passed = transfers.passed(lattice, token.name, token.passed, transfers.kinds[number])
        if passed == token.passed:
            continue
        kept &= ~(1 << bit)
        if passed is not None:
            moves.append((bit, bit_of[Token(token.name, token.group, passed)]))
    return kept, moves
