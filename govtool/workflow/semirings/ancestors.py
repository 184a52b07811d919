"""The part of a circuit that some nodes are made of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.workflow.annotate.circuit import (
    NONE,
    ONE,
    Block,
    Box,
    Circuit,
    Delta,
    Guard,
    LimitGuard,
    Monus,
    Product,
    Sum,
    Terms,
    ValueFunction,
)


def ancestors(circuit: Circuit, roots: Array, stops: Array | None = None) -> Array:
    """The nodes that some nodes are made of, themselves included: int64, ascending, without the constants.

    Args:
        circuit: The annotations.
        roots: p- and v-nodes.
        stops: Nodes whose own inputs are not wanted.
    """
    needed = np.zeros(circuit.size, bool)
    needed[roots[roots != NONE]] = True
    for start, block in reversed(list(circuit)):
        own = np.flatnonzero(needed[start : start + block.count])
        if stops is not None and len(stops):
            own = own[~np.isin(own + start, stops)]
        if len(own):
            for nodes in inputs_of(block, own):
                needed[nodes[nodes != NONE]] = True
    needed[: ONE + 1] = False
    return np.flatnonzero(needed)


def inputs_of(block: Block, own: Array) -> Iterator[Array]:
    """The nodes that some nodes of a block read; gates are left out."""
    if isinstance(block, (Sum, Delta)):
        yield block.inputs.nodes[block.inputs.expanded(own)[1]]
    elif isinstance(block, (Product, Monus)):
        yield block.left[own]
        yield block.right[own]
    elif isinstance(block, LimitGuard):
        yield block.over[own]
    elif isinstance(block, (Guard, ValueFunction)):
        function = block.function if isinstance(block, Guard) else block
        for _, nodes in function.cells:
            yield nodes[own]
    elif isinstance(block, Terms):
        places = block.inputs.expanded(own)[1]
        yield block.inputs.nodes[places]
        if block.cells is not None:
            yield block.cells[places]
    elif isinstance(block, Box):
        yield block.over[own]
        if block.cells is not None:
            yield block.cells.nodes[block.cells.expanded(own)[1]]
