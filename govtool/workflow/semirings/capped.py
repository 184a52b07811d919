"""Circuits with long sums and aggregates cut off, for annotations that people read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.workflow.annotate.circuit import Block, Circuit, Delta, Inputs, Sum, Terms


def capped(circuit: Circuit, most: int) -> tuple[Circuit, Mapping[int, Array]]:
    """A circuit whose sums have at most so many parts.

    Args:
        circuit: The annotations.
        most: Parts of a sum, terms of an aggregate.

    Returns:
        The circuit, and by the first node of each block that was cut how many parts each node lost.
    """
    made = Circuit()
    lost: dict[int, Array] = {}
    known: dict[int, _Cut] = {}
    for start, block in circuit:
        cut, left = _cut(block, most, known)
        made.add(cut)
        if left is not None:
            lost[start] = left
    return made, lost


@dataclass(frozen=True, slots=True)
class _Cut:
    """Lists cut off: what is left, where its entries were, and how many each list lost."""

    inputs: Inputs
    places: Array
    lost: Array

    @classmethod
    def of(cls, inputs: Inputs, most: int) -> _Cut:
        sizes = np.diff(inputs.offsets)
        kept = np.minimum(sizes, most)
        offsets = np.concatenate([[0], np.cumsum(kept)])
        places = np.arange(int(offsets[-1])) + np.repeat(inputs.offsets[:-1] - offsets[:-1], kept)
        return cls(Inputs(offsets, inputs.nodes[places]), places, sizes - kept)


def _cut(block: Block, most: int, known: dict[int, _Cut]) -> tuple[Block, Array | None]:
    if not isinstance(block, (Sum, Delta, Terms)) or not (np.diff(block.inputs.offsets) > most).any():
        return block, None
    if id(block.inputs) not in known:  # aggregates over the same rows share their lists
        known[id(block.inputs)] = _Cut.of(block.inputs, most)
    cut = known[id(block.inputs)]
    if isinstance(block, Terms):
        cells = None if block.cells is None else block.cells[cut.places]
        return replace(block, inputs=cut.inputs, rows=block.rows[cut.places], cells=cells), cut.lost
    return replace(block, inputs=cut.inputs), cut.lost
