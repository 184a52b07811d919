"""``which``: the tokens that are behind rows as things stand. It is the trace of ``govtool trace back``."""

from __future__ import annotations

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
    Inputs,
    Monus,
    Product,
    Sources,
    Sum,
    Terms,
    ValueFunction,
)

Pairs = tuple[Array, Array]
"""Owners and nodes."""


def lineage(circuit: Circuit, counts: Array, owners: Array, roots: Array) -> Pairs:
    """The source nodes behind the roots of each owner, each pair once, sorted by owner and node.

    Alternatives that are not there are left out, and so are the right operands of ``⊖``: they stand against a row.

    Args:
        circuit: The annotations.
        counts: The count of each p-node as things stand.
        owners: The owner of each root; a number from 0.
        roots: p- and v-nodes; those that are not there and ``NONE`` are passed over.
    """
    waiting = _kept(circuit, owners, roots)
    found: list[Pairs] = []
    for start, block in reversed(list(circuit)):
        here = waiting[1] >= start
        if not here.any():
            continue
        own = _once(circuit, waiting[0][here], waiting[1][here])
        rest = (waiting[0][~here], waiting[1][~here])
        if isinstance(block, Sources):
            found.append(own)
            waiting = rest
            continue
        made = [_kept(circuit, *pairs) for pairs in _step(block, counts, own[0], own[1] - start)]
        waiting = (
            np.concatenate([rest[0], *(pairs[0] for pairs in made)]),
            np.concatenate([rest[1], *(pairs[1] for pairs in made)]),
        )
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return _once(circuit, np.concatenate([one for one, _ in found]), np.concatenate([two for _, two in found]))


def _kept(circuit: Circuit, owners: Array, nodes: Array) -> Pairs:
    is_node = nodes > ONE
    return owners[is_node], nodes[is_node]


def _once(circuit: Circuit, owners: Array, nodes: Array) -> Pairs:
    """Pairs, each once, sorted; where they are dense, marked in a bitmap rather than sorted."""
    if not len(owners):
        return owners, nodes
    low = int(nodes.min())
    span = int(nodes.max()) - low + 1
    cells = (int(owners.max()) + 1) * span
    if cells <= 4 * len(owners) + (1 << 20):
        marks = np.zeros(cells, bool)
        marks[owners * span + (nodes - low)] = True
        places = np.flatnonzero(marks)
        return places // span, places % span + low
    if len(owners) and int(owners.max()) < (1 << 62) // max(circuit.size, 1):
        keys = np.unique(owners * circuit.size + nodes)
        return keys // circuit.size, keys % circuit.size
    pairs = np.unique(np.stack([owners, nodes], 1), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _step(block: Block, counts: Array, owners: Array, own: Array) -> list[Pairs]:
    """What nodes of a block are made of as things stand."""
    if isinstance(block, (Sum, Delta)):
        return [_present(counts, *_listed(block.inputs, owners, own))]
    if isinstance(block, Product):
        both = [(owners, block.left[own]), (owners, block.right[own])]
        there = (counts[block.left[own]] > 0) & (counts[block.right[own]] > 0)
        return [(one[there], two[there]) for one, two in both]
    if isinstance(block, Monus):
        return [_present(counts, owners, block.left[own])]
    if isinstance(block, Guard):
        return [(owners[block.truth[own]], nodes[own[block.truth[own]]]) for _, nodes in block.function.cells]
    if isinstance(block, ValueFunction):
        return [(owners, nodes[own]) for _, nodes in block.cells]
    if isinstance(block, Terms):
        return _terms(block, counts, owners, own)
    return [_present(counts, owners, block.over[own])] if isinstance(block, Box) else []


def _listed(inputs: Inputs, owners: Array, own: Array) -> Pairs:
    positions, places = inputs.expanded(own)
    return owners[positions], inputs.nodes[places]


def _present(counts: Array, owners: Array, nodes: Array) -> Pairs:
    there = counts[nodes] > 0
    return owners[there], nodes[there]


def _terms(block: Terms, counts: Array, owners: Array, own: Array) -> list[Pairs]:
    positions, places = block.inputs.expanded(own)
    there = counts[block.inputs.nodes[places]] > 0
    if block.cells is not None:
        there &= ~_is_null(block, places)
    owners, places = owners[positions[there]], places[there]
    found = [(owners, block.inputs.nodes[places])]
    if block.cells is not None:
        has_cell = block.cells[places] != NONE
        found.append((owners[has_cell], block.cells[places][has_cell]))
    return found


def _is_null(block: Terms, places: Array) -> Array:
    if block.argument is None:
        return np.zeros(len(places), bool)
    (column,) = block.table.read(block.argument)
    nulls: Array = column.is_null().to_numpy(zero_copy_only=False)[block.rows[places]]
    return nulls
