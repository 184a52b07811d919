"""The datasets that a statement reads and needs nothing of: those on the outer side of a join, and their like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind

ONE_OF_ALL = -1
"""The group of alternatives that are the sides of FULL JOINs; those of arms are numbered from 0."""


@dataclass(frozen=True, slots=True)
class Outer:
    """The optional reads of one derivation."""

    starts: frozenset[int]
    """Datasets that are read as optional, in any arm."""
    reads: frozenset[tuple[int, int]]
    """Dataset and arm of each; arm 0 is all of them."""
    required: frozenset[tuple[int, int]]
    """Likewise of what is read and needed."""
    one_of_all: bool
    """Nothing else is read: there are rows as long as one of them has some."""

    def has(self, start: int, arm: int) -> bool:
        """Return whether a dataset is optional in an arm."""
        if (start, 0) in self.required or (start, arm) in self.required:
            return False
        return (start, 0) in self.reads or (start, arm) in self.reads


_NONE = Outer(frozenset(), frozenset(), frozenset(), one_of_all=False)


def outer_of(index: Index, edges: Iterable[int]) -> Outer:
    """Return the optional reads among the edges into the rows of what a derivation makes."""
    reads: set[tuple[int, int]] = set()
    required: set[tuple[int, int]] = set()
    for edge in edges:
        if index.kind(edge) is EdgeKind.READ:
            of = reads if index.is_optional(edge) else required
            of.add((index.node_dataset[index.edge_source[edge]], index.arm(edge)))
    if not reads:
        return _NONE
    alone = not required and all(arm == 0 for _, arm in reads)
    if not required and not alone:  # arms of FULL JOINs: which of their sides go together is not known
        return _NONE
    return Outer(frozenset(start for start, _ in reads), frozenset(reads), frozenset(required), one_of_all=alone)
