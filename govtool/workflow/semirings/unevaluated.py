"""Values that were not evaluated: those of candidates, where the function may fail on a value."""

from __future__ import annotations

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.workflow.annotate.circuit import NONE, Circuit, ValueFunction


def unevaluated(circuit: Circuit) -> Array | None:
    """The v-nodes that were not evaluated, and those of functions that read one: bool; None: there are none."""
    blocks = [(start, block) for start, block in circuit if isinstance(block, ValueFunction)]
    if all(block.failing is None for _, block in blocks):
        return None
    found = np.zeros(circuit.size, bool)
    for start, block in blocks:
        own = np.zeros(block.count, bool) if block.failing is None else block.failing.absent.copy()
        for _, nodes in block.cells:
            own |= (nodes != NONE) & found[nodes]
        found[start : start + block.count] = own
    return found
