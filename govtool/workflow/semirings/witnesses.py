"""``why`` and ``why-minimal``: sets of tokens each of which is enough for a row."""

from __future__ import annotations

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.workflow.annotate.circuit import ONE, ZERO, Block, Circuit, Delta, Monus, Product, Sources, Sum
from govtool.workflow.semirings.ancestors import ancestors

Witnesses = frozenset[frozenset[int]]
"""Sets of source nodes."""
MAX_WITNESSES = 1_000_000
"""The most witnesses of one row."""


def minimal(witnesses: Witnesses) -> Witnesses:
    """Witnesses without those that hold another one."""
    kept: list[frozenset[int]] = []
    for each in sorted(witnesses, key=len):
        if not any(other <= each for other in kept):
            kept.append(each)
    return frozenset(kept)


def witnesses(circuit: Circuit, roots: Array) -> dict[int, Witnesses]:
    """The witnesses of p-nodes without guards, by node.

    Raises:
        UsageError: There are too many (``usage.why-size``).
    """
    found: dict[int, Witnesses] = {ZERO: frozenset(), ONE: frozenset([frozenset()])}
    needed = ancestors(circuit, roots)
    for start, block in circuit:
        low, high = np.searchsorted(needed, [start, start + block.count])
        for node in needed[low:high].tolist():
            found[node] = _of(block, node - start, node, found)
    return found


def _of(block: Block, at: int, node: int, known: dict[int, Witnesses]) -> Witnesses:
    if isinstance(block, Sources):
        return frozenset([frozenset([node])])
    if isinstance(block, (Sum, Delta)):
        offsets = block.inputs.offsets
        return united(known[each] for each in block.inputs.nodes[offsets[at] : offsets[at + 1]].tolist())
    if isinstance(block, Product):
        left, right = known[int(block.left[at])], known[int(block.right[at])]
        _bounded(len(left) * len(right))
        return frozenset(one | two for one in left for two in right)
    if isinstance(block, Monus):
        return known[int(block.left[at])]
    return frozenset()


def united(parts: object) -> Witnesses:
    """The witnesses of any of several."""
    made: set[frozenset[int]] = set()
    for part in parts:  # type: ignore[attr-defined]
        made |= part
    _bounded(len(made))
    return frozenset(made)


def _bounded(size: int) -> None:
    if size > MAX_WITNESSES:
        raise UsageError(
            f"a row with more than {MAX_WITNESSES:,} witnesses",
            code="usage.why-size",
            hint="request which: the tokens of all witnesses together",
        )
