"""How much of a value gets through: what a baseline, a waiver and a base accept, and no more.

The order, the weakest first: ``influence``, ``hidden`` (hashed, masked or encrypted in a way that the rule does not
accept), ``aggregate``, ``part`` (``substr``, ``right`` …), ``whole``. Of a way the weakest step counts, of parallel
edges of one step the strongest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from govtool.functions.facts import HASH, KEYED, MASK, PARTIAL
from govtool.functions.names import spellings, squashed
from govtool.graph.index import Index
from govtool.model.kinds import VALUE_FLOW, EdgeKind
from govtool.policy.masking import is_inverse, keeps_a_value

STRENGTHS: Final = ("influence", "hidden", "aggregate", "part", "whole")
"""The weakest first."""

_HIDDEN: Final = frozenset(map(squashed, KEYED | HASH | MASK))
_PARTS: Final = frozenset(map(squashed, PARTIAL))


def strength_of(index: Index, edges: Sequence[int]) -> str:
    """Return how much of a value gets through a way.

    Args:
        index: The graph.
        edges: The way; none is the column itself.
    """
    return min((_of_step(index, edge) for edge in edges), key=STRENGTHS.index, default="whole")


def is_worse(now: str, before: str | None) -> bool:
    """Return whether more gets through than before; False where either is not known.

    >>> is_worse("whole", "part"), is_worse("part", "whole"), is_worse("whole", None)
    (True, False, False)
    """
    return now in STRENGTHS and before in STRENGTHS and STRENGTHS.index(now) > STRENGTHS.index(before)


def _of_step(index: Index, edge: int) -> str:
    source, target = index.edge_source[edge], index.edge_target[edge]
    beside = (e for e in index.in_edges(target) if index.edge_source[e] == source)
    return max((_of_edge(index, e) for e in beside), key=STRENGTHS.index)


def _of_edge(index: Index, edge: int) -> str:
    if index.kind(edge) not in VALUE_FLOW:
        return "influence" if index.kind(edge) is not EdgeKind.OPAQUE else "whole"
    functions = index.functions(edge)
    hidden = False
    for function in functions:
        hidden = not is_inverse(function) and (hidden or bool(spellings(function) & _HIDDEN))
    if hidden:
        return "hidden"
    if index.kind(edge) is EdgeKind.AGGREGATION and not any(map(keeps_a_value, functions)):
        return "aggregate"
    return "part" if any(spellings(function) & _PARTS for function in functions) else "whole"
