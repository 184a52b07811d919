"""Rules of a walk over the column graph, and its outcome. See ``govtool.graph.walks.walk``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

STATE = 15
"""Bits of an action with 1 + the state of the target; 0 stops the walk."""
STATEMENT = 16
"""Action bit: the state holds for every output of the edge's statement, not for the target alone."""
CHECK = 32
"""Action bit: ask ``Rules.check`` about this edge."""
OTHERS = 64
"""Action bit: the other outputs of the edge's statement are reached too, in ``Rules.others_state``."""

MOVED = 128
"""Action bit: ask ``Rules.moved`` for more outputs of the edge's statement that are reached, each in its own state."""


BY_POSITION = 3
"""Of ``Rules.references``: the place of the action of an INSERT without a list."""


class SourceRelation(IntEnum):
    """The relation of an edge's source to the node that was reached."""

    SELF = 0
    PART = 1
    """The source is a field of it."""
    WHOLE = 2
    """The source contains it."""
    ANY_COLUMN = 3
    """The source is the row set of its dataset, and the edge stands for any column."""
    ROWS = 4
    """It is a row set, and the source is itself."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The effect of an edge on a state."""

    actions: tuple[tuple[bytes, ...], ...]
    """``actions[state][relation][tag]``: an action (see ``STATE``, ``STATEMENT``, ``CHECK``)."""
    rank: tuple[int, ...]
    """Per state: its verdict, 0 the worst."""
    rows_state: int = 0
    """The state of a row set when a statement breaks that makes only some of its rows."""
    rows_only_state: int = 0
    """The same, where the statement has no outputs (a DELETE), or breaks by a column of the dataset that it fills."""
    check: Callable[[int], int] | None = None
    """For actions with ``CHECK``: the action for an edge."""
    others_state: int = 0
    """For actions with ``OTHERS``."""
    moved: Callable[[int], Sequence[tuple[int, int]]] | None = None
    """For actions with ``MOVED``: nodes and states, for an edge."""
    references: tuple[tuple[int, ...], ...] = ()
    """``references[state][relation]``: the action of a reference, for ``SELF``, ``PART`` and ``WHOLE``, and last
    (``BY_POSITION``) that of an INSERT without a list into the column's dataset; none: they are not followed."""
    by_name: bool = False
    """True if references count for their names alone: not where a statement takes the dataset's columns by position."""
    inherited: tuple[int, ...] = ()
    """Per state: that of the columns of partitions, and of tables that inherit a column; -1: it has nothing to do with
    them."""
    any_column: int = -1
    """Backwards: the state of a row set that stands for all of its columns. Only in this state does a row set imply
    them; in another one it is reached as the rows that there are, whatever their values. -1: it always implies them."""

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.rank)

    @property
    def folds(self) -> bool:
        """True if a row set stands in a table for the columns of its rank: not backwards, where the ways differ."""
        return self.any_column == -1

    def implies(self, state: int) -> bool:
        """Return whether a row set in a state stands for its columns."""
        return self.any_column in (-1, state)


@dataclass(frozen=True, slots=True)
class Reached:
    """A node as an answer shows it: with the worst state it is reached in."""

    node: int
    key: int
    """The end of the way to it: its own key, or that of its row set if that is reached in a worse state."""
    rank: int
    hops: int
    implied: int = 0
    """For a row set: its top-level columns that are not reached by themselves; 0 if it does not imply them."""
    folded: bool = False
    """For a column: its row set is listed with the same rank, and stands for it in a table."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The reached nodes, best evidence of harm first: by rank, hops, name."""

    shown: Sequence[Reached]
    total: int
    """Total number; ``shown`` may be fewer."""
    lines: Sequence[Reached]
    """Those that a table lists: without the columns that their row sets stand for. As many as ``shown`` at most."""
    folded: Sequence[Reached]
    """The columns that the row sets of ``lines`` stand for."""
    line_total: int
    """Total number; ``lines`` may be fewer."""
    columns: tuple[int, ...]
    """Columns per rank, those that a row set implies included; unknown ones (``?``) cannot be counted."""
    bare: tuple[int, ...]
    """Datasets per rank that are reached as a whole, and of which no column is known."""
    datasets: int
    """Visible datasets with anything reached."""
    affected: int
    """Visible top-level columns reached, implied or holding a reached field; subjects not counted."""


class Reach(Protocol):
    """The outcome of a walk."""

    def __contains__(self, key: int) -> bool:
        """Return whether a key was reached."""

    def __len__(self) -> int:
        """The number of keys reached, seeds included."""

    def hops(self, key: int) -> int:
        """The length of the shortest way to a key."""

    def step(self, key: int) -> tuple[int, int] | None:
        """The key before it and the edge between; ``None`` at a seed."""

    def ranking(self, subjects: Collection[int], limit: int | None = None) -> Ranking:
        """Return the reached nodes, without the subject's and without those that answers pass through.

        Args:
            subjects: Their nodes.
            limit: Nodes of ``shown``, and of ``lines``, at most.
        """
