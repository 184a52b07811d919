"""Annotations in N with monus: how often each row is there."""

from __future__ import annotations

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.workflow.annotate.circuit import (
    ONE,
    Circuit,
    Delta,
    Guard,
    Inputs,
    LimitGuard,
    Monus,
    Product,
    Sources,
    Sum,
)


def standing_counts(circuit: Circuit) -> Array:
    """The value of every p-node as things stand, every token being there once: int64[n]; 0 for v-nodes."""
    counts = np.zeros(circuit.size, np.int64)
    counts[ONE] = 1
    for start, block in circuit:
        end = start + block.count
        if isinstance(block, (Sources, LimitGuard)):
            counts[start:end] = 1
        elif isinstance(block, Guard):
            counts[start:end] = block.truth
        elif isinstance(block, Sum):
            counts[start:end] = summed(block.inputs, counts)
        elif isinstance(block, Delta):
            counts[start:end] = summed(block.inputs, counts) > 0
        elif isinstance(block, Product):
            counts[start:end] = counts[block.left] * counts[block.right]
        elif isinstance(block, Monus):
            counts[start:end] = np.maximum(counts[block.left] - counts[block.right], 0)
    return counts


def summed(inputs: Inputs, counts: Array) -> Array:
    """The sum of the counts of each list."""
    return inputs.sums(counts[inputs.nodes])
