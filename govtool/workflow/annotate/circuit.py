"""Annotations as a circuit: nodes in blocks of one kind, each block after all that it reads.

Node ids count through the blocks, so that the order of blocks is a topological order and a block is evaluated by a few
operations on arrays. Terms ``t⊗v`` of aggregates are edges beside a reference to the column that holds the values:
they become nodes of their own only where a graph is written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import AggregateCall, Expression
from govtool.workflow.annotate.fetched import NONE as NONE
from govtool.workflow.annotate.fetched import arrays_of as arrays_of
from govtool.workflow.annotate.tables import KeptTable

ZERO, ONE = 0, 1
"""The first two nodes of every circuit: 0 and 1."""
FIRST_BLOCK = 2
"""The position of the first block after those of the two constants."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Lists of nodes: those of list ``i`` are ``nodes[offsets[i]:offsets[i + 1]]``."""

    offsets: Array
    nodes: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def sums(self, values: Array) -> Array:
        """Return for each list the sum of one number an entry."""
        totals = np.zeros(len(values) + 1, np.int64)
        np.cumsum(values, out=totals[1:])
        found: Array = totals[self.offsets[1:]] - totals[self.offsets[:-1]]
        return found

    def owners(self) -> Array:
        """The list of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def expanded(self, lists: Array) -> tuple[Array, Array]:
        """Return the entries of some lists: the position within ``lists`` and the place in ``nodes`` of each."""
        starts, sizes = self.offsets[lists], self.offsets[lists + 1] - self.offsets[lists]
        owners = np.repeat(np.arange(len(lists)), sizes)
        before = np.cumsum(sizes) - sizes
        return owners, np.arange(int(sizes.sum())) - before[owners] + starts[owners]

    @classmethod
    def grouped(cls, owners: Array, nodes: Array, count: int) -> tuple[Inputs, Array]:
        """Lists by owner, and the order into which the entries came."""
        if len(owners) and (owners[1:] < owners[:-1]).any():
            order = np.argsort(owners, kind="stable")
        else:
            order = np.arange(len(owners))
        offsets = np.searchsorted(owners[order], np.arange(count + 1))
        return cls(offsets, nodes[order]), order


@dataclass(frozen=True, slots=True)
class Sources:
    """Nodes without inputs: source records, or nodes that were made elsewhere."""

    count: int
    dataset: str


@dataclass(frozen=True, slots=True)
class _OverLists:
    """One node a list.

    Attributes:
        inputs: The summands of each node.
        gate: A ``Gate`` that makes every node uncertain, or ``NONE``.
    """

    inputs: Inputs
    gate: int = NONE

    @property
    def count(self) -> int:
        """Nodes."""
        return len(self.inputs)


class Sum(_OverLists):
    """``+`` over any number of p-nodes; over none it is 0."""

    __slots__ = ()


class Decided(Sum):
    """``+`` over lists of rows that were chosen outside of the plan: with the gate open, a row may also be gone."""

    __slots__ = ()


class Delta(_OverLists):
    """``δ`` of a sum."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _OverPairs:
    """One node for each pair of p-nodes."""

    left: Array
    right: Array

    @property
    def count(self) -> int:
        """Nodes."""
        return len(self.left)


class Product(_OverPairs):
    """``·`` of two p-nodes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Monus(_OverPairs):
    """``left ⊖ right``.

    Attributes:
        is_padding: It is that of a row of an outer join without a partner, not of a difference in the query.
    """

    is_padding: bool = False


@dataclass(frozen=True, slots=True)
class FailingRows:
    """The rows of a function that may fail on a value.

    Attributes:
        nodes: The p-node of each row: a function is not evaluated for a row that is gone.
        absent: bool per row: it was not evaluated as things stand, as the row is not there.
    """

    nodes: Array
    absent: Array


@dataclass(frozen=True, slots=True)
class Guard:
    """``[condition]``: 1 where a condition that reads values is true.

    Attributes:
        function: The condition.
        truth: bool per node: whether it is true as things stand.
    """

    function: ValueFunction
    truth: Array

    @property
    def count(self) -> int:
        """Nodes."""
        return self.function.count


@dataclass(frozen=True, slots=True)
class LimitGuard:
    """A guard whose inside is not known, such as a limit: 1 for the rows that it let through.

    Attributes:
        label: ``LIMIT 3``.
        over: The p-node of all that it looked at, one a node.
        gate: What makes it uncertain beside a change of ``over``.
        steady: The rows that it let through come before all others: they stay whatever else goes.
        is_opaque: It stands for all that made its rows, which may be any row of ``over``.
    """

    label: str
    over: Array
    gate: int = NONE
    steady: bool = False
    is_opaque: bool = False

    @property
    def count(self) -> int:
        """Nodes."""
        return len(self.over)


@dataclass(frozen=True, slots=True)
class Gate:
    """One node that opens when something happens that the nodes after it were not made for.

    Attributes:
        watched: p-nodes of rows that a window or a limit read as often as they were there, candidates included, or of
            rows that were put where they are by a computed value (guards of keys); v-nodes and gates for ``same``.
        what: ``grown``: it opens when one of them may be there more often. ``present``: when one of them may be gone.
            ``moved``: when one may be there another number of times. ``same``: when the value of one may change, or a
            gate is open.
        alive: For ``present`` the p-node of the row that each guard is of: one that is gone opens nothing.
        placed: For ``present`` the p-node of that row under its guard; ``NONE`` without one.
    """

    watched: Array
    what: str
    alive: Array | None = None
    placed: Array | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Terms:
    """Values of aggregates.

    Attributes:
        call: The function; its argument is the column ``values`` reads.
        inputs: For each value the p-nodes of its terms.
        rows: For each term its row in ``table``.
        cells: For each term the v-node of its cell, or ``NONE``; None: there are no such cells.
        table: The rows.
        argument: The column of values; None: every term counts 1.
        result: Where the values as they stand are: a table whose row ``i`` is value ``i``, and its column.
        around: For values over a frame of positions the p-node of the whole partition: any change of it makes the
            value uncertain.
        gate: What makes all of them uncertain.
    """

    call: AggregateCall
    inputs: Inputs
    rows: Array
    cells: Array | None
    table: KeptTable
    argument: Expression | None
    result: tuple[KeptTable, Expression]
    around: Array | None = None
    gate: int = NONE

    @property
    def count(self) -> int:
        """Nodes."""
        return len(self.inputs)


@dataclass(frozen=True, slots=True)
class ValueFunction:
    """Values computed from values.

    Attributes:
        expression: Over the columns of ``table``.
        table: One row a node.
        cells: For each column of the expression that has v-nodes: its id and the v-node in each row, or ``NONE``.
        result: The column of ``table`` that holds the values as they stand.
        failing: Its rows where it may fail on a value, and a careful annotator made it; else None.
        unsettled: bool per node: it depends on the order of a list of several elements, and is not known for other
            arguments; None: none does.
    """

    expression: Expression
    table: KeptTable
    cells: tuple[tuple[int, Array], ...]
    result: Expression
    failing: FailingRows | None = None
    unsettled: Array | None = None

    @property
    def count(self) -> int:
        """Nodes."""
        return self.table.count


@dataclass(frozen=True, slots=True)
class Box:
    """Values of functions whose inside is not known: ranks, ``lag``, ``first``.

    Attributes:
        label: The function.
        over: The p-node of the partition, one a node.
        cells: v-nodes that it read, one list a node; None: none.
        gate: What makes it uncertain beside a change of ``over``.
    """

    label: str
    over: Array
    cells: Inputs | None
    result: tuple[KeptTable, Expression]
    gate: int = NONE

    @property
    def count(self) -> int:
        """Nodes."""
        return len(self.over)


Block = Sources | Sum | Delta | Product | Monus | Guard | LimitGuard | Gate | Terms | ValueFunction | Box


class Circuit:
    """Blocks in topological order."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.starts: list[int] = []
        self.size = 0
        none = np.empty(0, np.int64)
        self.add(Sum(Inputs(np.zeros(2, np.int64), none)))
        self.add(Delta(Inputs(np.array([0, 1]), np.array([ONE]))))  # 1: read as a constant, never evaluated

    def add(self, block: Block) -> int:
        """Add a block; return its first node."""
        start = self.size
        self.blocks.append(block)
        self.starts.append(start)
        self.size += block.count
        return start

    def __iter__(self) -> Iterator[tuple[int, Block]]:
        """Blocks with their first nodes, inputs first; those of the two constants are left out."""
        return iter(list(zip(self.starts, self.blocks, strict=True))[FIRST_BLOCK:])

    def place(self, node: int) -> tuple[Block, int]:
        """The block of a node, and its place there."""
        at = bisect_right(self.starts, node) - 1
        while self.blocks[at].count == 0:  # an empty block starts where the next one does
            at -= 1
        return self.blocks[at], node - self.starts[at]
