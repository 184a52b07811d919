"""Where semirings without monus and guards fit."""

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


def supported(circuit: Circuit) -> Array:
    """Return per p-node whether it can be other than 0: bool[n]."""
    found = np.zeros(circuit.size, bool)
    found[ONE] = True
    for start, block in circuit:
        own = slice(start, start + block.count)
        if isinstance(block, (Sources, Guard, LimitGuard)):
            found[own] = True
        elif isinstance(block, (Sum, Delta)):
            found[own] = anywhere(block.inputs, found)
        elif isinstance(block, Product):
            found[own] = found[block.left] & found[block.right]
        elif isinstance(block, Monus):
            found[own] = found[block.left]
    return found


def obstacles(circuit: Circuit, support: Array) -> dict[str, Array]:
    """For each thing that a positive semiring cannot evaluate, the p-nodes that are made of it: bool[n] each."""
    found = {name: np.zeros(circuit.size, bool) for name in ("⊖", "padding", "guard", "limit", "opaque")}
    for start, block in circuit:
        own = slice(start, start + block.count)
        if isinstance(block, Guard):
            found["guard"][own] = True
        elif isinstance(block, LimitGuard):
            found["opaque" if block.is_opaque else "limit"][own] = True
        for marks in found.values():
            if isinstance(block, (Sum, Delta)):
                marks[own] = anywhere(block.inputs, marks & support)
            elif isinstance(block, (Product, Monus)):
                right = marks[block.right] if isinstance(block, Product) else False
                marks[own] = (marks[block.left] | right) & support[own]
        if isinstance(block, Monus):
            name = "padding" if block.is_padding else "⊖"
            found[name][own] |= support[block.right] & support[own]
    return found


def anywhere(inputs: Inputs, marks: Array) -> Array:
    """Return per list whether one of its nodes is marked."""
    found: Array = inputs.sums(marks[inputs.nodes]) > 0
    return found
