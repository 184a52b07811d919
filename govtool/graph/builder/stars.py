"""Possible columns of an unresolved ``*``.

``SELECT * FROM s`` over a table whose columns are not all known is an opaque edge from ``s.?`` to the target's ``?``.
Other statements, of this ingest or another, may name columns of either side: a column of the source that the derivation
does not mention may pass through the star, to the column of that name or into the unknown; and a column of the target
that the derivation does not put out may come from it. These edges are spelled out, opaque like the star itself, so that
no column that might be reached is left out and none is claimed for certain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Shape:
    """The nodes: their path ids and datasets, each dataset's first node, the nested nodes, the ``?`` nodes."""

    path: Any
    dataset: Any
    base: Any
    nested: Any
    unknown: Any


def spell_out(
    shape: Shape, derivation: Any, source: Any, target: Any, mentions: Iterable[tuple[Any, Any]]
) -> tuple[Any, Any, Any]:
    """Return the edges that unresolved stars stand for besides their own.

    Args:
        shape: The nodes.
        derivation: int64[edges].
        source: int64[edges], nodes.
        target: int64[edges], nodes.
        mentions: Pairs of arrays, derivations and the nodes that they mention.

    Returns:
        For each new edge: the edge that it is like, its source, its target.
    """
    import numpy as np

    none = np.empty(0, np.int64)
    if not len(shape.unknown):
        return none, none, none
    unknown = np.zeros(len(shape.path), bool)
    unknown[shape.unknown] = True
    stars = np.flatnonzero(unknown[source] & unknown[target])
    if not len(stars):
        return none, none, none
    derivations = np.unique(derivation[stars])
    mentioned: dict[int, set[int]] = {d: set() for d in derivations.tolist()}
    for owner, nodes in mentions:
        some = np.flatnonzero(np.isin(owner, derivations))
        for d, node in zip(owner[some].tolist(), nodes[some].tolist(), strict=True):
            mentioned[d].add(node)
    fields = set(shape.nested.tolist())

    def columns(node: int, mentioned_nodes: set[int]) -> dict[int, int]:
        dataset = int(shape.dataset[node])
        span = range(int(shape.base[dataset]) + 1, int(shape.base[dataset + 1]))
        return {int(shape.path[n]): n for n in span if n != node and n not in fields and n not in mentioned_nodes}

    found: list[tuple[int, int, int]] = []
    for star in stars.tolist():
        start, end = int(source[star]), int(target[star])
        mentioned_nodes = mentioned[int(derivation[star])]
        carried, received = columns(start, mentioned_nodes), columns(end, mentioned_nodes)
        found += [(star, node, received.get(path, end)) for path, node in carried.items()]
        found += [(star, start, node) for path, node in received.items() if path not in carried]
    if not found:
        return none, none, none
    like, starts, ends = (np.array(column, np.int64) for column in zip(*found, strict=True))
    return like, starts, ends
