"""``cost`` (min, +) and ``trust`` (max, min): semirings of numbers in which a sum is the best alternative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.workflow.annotate.circuit import ONE, Circuit, Delta, Inputs, Monus, Product, Sources, Sum


@dataclass(frozen=True, slots=True)
class OrderedSemiring:
    """A semiring of numbers.

    Attributes:
        best: The ufunc that adds.
        both: The ufunc that multiplies.
        zero: What no alternative is worth.
        one: What is there whatever else is.
    """

    best: Any
    both: Callable[[Array, Array], Array]
    zero: float
    one: float


COST = OrderedSemiring(np.minimum, np.add, np.inf, 0.0)
TRUST = OrderedSemiring(np.maximum, np.minimum, -np.inf, np.inf)


def evaluate(circuit: Circuit, semiring: OrderedSemiring, values: Array) -> Array:
    """The value of every p-node without guards; float64[n].

    Args:
        circuit: The annotations.
        semiring: Where to evaluate them.
        values: The value of each source node, by node.
    """
    found = np.full(circuit.size, semiring.zero)
    found[ONE] = semiring.one
    for start, block in circuit:
        own = slice(start, start + block.count)
        if isinstance(block, Sources):
            found[own] = values[own]
        elif isinstance(block, (Sum, Delta)):
            found[own] = best_of(block.inputs, found, semiring)
        elif isinstance(block, Product):
            found[own] = semiring.both(found[block.left], found[block.right])
        elif isinstance(block, Monus):
            found[own] = found[block.left]
    return found


def best_of(inputs: Inputs, values: Array, semiring: OrderedSemiring) -> Array:
    """The best value of each list."""
    made = np.full(len(inputs), semiring.zero)
    is_list = np.diff(inputs.offsets) > 0
    if is_list.any():
        made[is_list] = semiring.best.reduceat(values[inputs.nodes], inputs.offsets[:-1][is_list])
    return made
