"""Edges into and out of temporary tables, continued to the permanent ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.query.evidence import WayStep, step

Chain = tuple[int, ...]
"""Edges one after the other, in the direction of the data."""

_VALUES = (EdgeKind.IDENTITY, EdgeKind.TRANSFORMATION, EdgeKind.AGGREGATION)
_PASSED = (*_VALUES, EdgeKind.READ)


def chains(index: Index, edges: Iterable[int], *, backward: bool = False) -> Iterator[Chain]:
    """Carry edges on until no end of theirs is in a temporary table.

    An edge stays as it is where it cannot be carried on: nothing is known behind the table, or something there is not
    understood. For an edge, each place within temporary tables is passed once by chains of a kind, masked or not.
    """
    for edge in edges:
        found, whole = _behind(index, edge, backward)
        if not whole or not found:
            yield (edge,)
        yield from found


def _behind(index: Index, edge: int, backward: bool) -> tuple[list[Chain], bool]:
    """The chains that begin with an edge (end with it, backward), and whether these are all."""
    found: list[Chain] = []
    whole = True
    seen: set[tuple[int, EdgeKind, bool]] = set()
    stack: list[Chain] = [(edge,)]
    while stack:
        chain = stack.pop()
        node = index.edge_source[chain[0]] if backward else index.edge_target[chain[-1]]
        if not index.is_elided(index.node_dataset[node]):
            found.append(chain)
            continue
        passed = (node, chain_kind(index, chain), any(map(index.is_masking, chain)))
        if passed not in seen:
            seen.add(passed)
            further = index.in_edges(node) if backward else index.out_edges(node)
            whole = whole and bool(further) and not index.fields(node) and index.container(node) is None
            whole = whole and all(index.kind(one) is not EdgeKind.OPAQUE for one in further)
            known = [one for one in further if index.kind(one) is not EdgeKind.OPAQUE]
            stack += [(one, *chain) if backward else (*chain, one) for one in known]
    return found, whole


def chain_kind(index: Index, chain: Sequence[int]) -> EdgeKind:
    """The kind of a chain: the first influence on it, else the last change of the value, else a copy or mere rows."""
    kinds = [index.kind(edge) for edge in chain]
    influences = [kind for kind in kinds if kind not in _PASSED]
    changes = [kind for kind in kinds if kind in _VALUES[1:]]
    values = [kind for kind in kinds if kind in _VALUES]
    return (*influences[:1], *changes[-1:], *values[:1], EdgeKind.READ)[0]


def chain_step(index: Index, chain: Chain) -> WayStep:
    """A chain as one step; its evidence is that of the statement next to the end, then of those before it."""
    steps = [step(index, edge) for edge in chain]
    if len(steps) == 1:
        return steps[0]
    kind = chain_kind(index, chain)
    return replace(
        steps[-1],
        source=steps[0].source,
        kind=kind,
        functions=tuple(name for one in steps for name in one.functions) if kind in _VALUES else (),
        star=any(one.star for one in steps),
        masking=any(one.masking for one in steps),
        more=tuple(one.evidence for one in reversed(steps[:-1])),
    )
