"""Numbers of inputs that the nodes of an and/or graph need, by their rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from govtool.arrays.graph import SMALL, ArrayGraph

BASE, JOINT, ALTERNATIVE = range(3)
"""Rules: a node that needs no input, all of its inputs, or one of them."""


def needs_of(graph: ArrayGraph, rules: Sequence[int], idle: Sequence[int] | None = None) -> Any:
    """Return how many inputs each node needs; a list for a small graph, int32[n] for a large one.

    A joint node without inputs needs none. An alternative without inputs needs one, and so has no support: a record
    that stands by itself is a base.

    Args:
        graph: The graph.
        rules: ``BASE``, ``JOINT`` or ``ALTERNATIVE`` per node.
        idle: Per edge, whether it supports nothing: an input that a node reads but does not need, such as the right
            operand of a difference.
    """
    if graph.edges > SMALL:
        return _needs_large(graph, rules, idle)
    found = []
    for node, rule in enumerate(rules):
        if rule == JOINT:
            found.append(sum(1 for edge in graph.in_edges(node) if idle is None or not idle[edge]))
        else:
            found.append(int(rule == ALTERNATIVE))
    return found


def _needs_large(graph: ArrayGraph, rules: Sequence[int], idle: Sequence[int] | None) -> Any:
    import numpy as np

    from govtool.arrays.neighbours import in_degree

    rule = np.asarray(rules)
    degree = in_degree(graph.in_numpy(), None if idle is None else np.asarray(idle, bool))
    return np.where(rule == JOINT, degree, rule == ALTERNATIVE).astype(np.int32)
