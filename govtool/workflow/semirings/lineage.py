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
    LimitGuard,
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
    waiting = _Waiting(circuit)
    waiting.add(owners, roots)
    found: list[Pairs] = []
    shared = _SharedTerms()
    for number in range(len(circuit.blocks) - 1, ONE, -1):
        own = waiting.take(number)
        if own is None:
            continue
        block, start = circuit.blocks[number], circuit.starts[number]
        if isinstance(block, Sources):
            found.append(own)
        elif not shared.is_known(block, own[0], own[1] - start):
            for pairs in _step(block, counts, own[0], own[1] - start):
                waiting.add(*pairs)
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return _once(circuit, np.concatenate([one for one, _ in found]), np.concatenate([two for _, two in found]))


class _Waiting:
    """Pairs that are to be followed, by the block of the node."""

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._starts = np.array(circuit.starts, np.int64)
        self._pairs: dict[int, list[Pairs]] = {}

    def add(self, owners: Array, nodes: Array) -> None:
        """Take in pairs; constants and ``NONE`` are passed over."""
        if len(nodes) and int(nodes.min()) <= ONE:
            owners, nodes = _kept(owners, nodes)
        if not len(nodes):
            return
        first, last = (int(at) - 1 for at in np.searchsorted(self._starts, [nodes.min(), nodes.max()], "right"))
        if first == last:
            self._pairs.setdefault(first, []).append((owners, nodes))
            return
        blocks = np.searchsorted(self._starts, nodes, "right") - 1
        for number in np.unique(blocks).tolist():
            inside = blocks == number
            self._pairs.setdefault(number, []).append((owners[inside], nodes[inside]))

    def take(self, number: int) -> Pairs | None:
        """The pairs of a block, each once; None: there is none."""
        pairs = self._pairs.pop(number, None)
        if pairs is None:
            return None
        return _once(self._circuit, np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs]))


class _SharedTerms:
    """Aggregates over the same rows have the same terms: one of them is enough."""

    def __init__(self) -> None:
        self._known: list[tuple[Inputs, Array, Array]] = []

    def is_known(self, block: Block, owners: Array, own: Array) -> bool:
        """Return whether an aggregate with the same terms was followed for the same owners."""
        if not isinstance(block, Terms) or block.cells is not None:
            return False
        for inputs, before, places in self._known:
            if inputs is block.inputs and np.array_equal(before, owners) and np.array_equal(places, own):
                return True
        self._known.append((block.inputs, owners, own))
        return False


def _kept(owners: Array, nodes: Array) -> Pairs:
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
    if isinstance(block, Box) or (isinstance(block, LimitGuard) and block.is_opaque):
        return [_present(counts, owners, block.over[own])]
    return []


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
