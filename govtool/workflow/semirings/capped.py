"""Circuits with long sums and aggregates cut off, for annotations that people read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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
    for start, block in circuit:
        cut, left = _cut(block, most)
        made.add(cut)
        if left is not None:
            lost[start] = left
    return made, lost


def _cut(block: Block, most: int) -> tuple[Block, Array | None]:
    if not isinstance(block, (Sum, Delta, Terms)):
        return block, None
    offsets = block.inputs.offsets
    sizes = np.diff(offsets)
    if not (sizes > most).any():
        return block, None
    kept = np.minimum(sizes, most)
    _, places = Inputs(np.concatenate([offsets[:-1], offsets[-1:]]), block.inputs.nodes).expanded(np.arange(len(sizes)))
    within = places - offsets[:-1][np.repeat(np.arange(len(sizes)), sizes)]
    places = places[within < most]
    inputs = Inputs(np.concatenate([[0], np.cumsum(kept)]), block.inputs.nodes[places])
    if isinstance(block, Terms):
        cells = None if block.cells is None else block.cells[places]
        return replace(block, inputs=inputs, rows=block.rows[places], cells=cells), sizes - kept
    return replace(block, inputs=inputs), sizes - kept
