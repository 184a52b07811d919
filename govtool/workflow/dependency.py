"""Dependency: the records without which a node would not be there, beside those that it comes from.

A node depends on a set of records if it falls with them (Amsterdamer and others, section 4.3). That is necessity: of
two alternatives neither is needed, both together are. Lineage is all records that the node comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.sets import Array
from govtool.arrays.walks_large import marked
from govtool.workflow import vocabulary as terms
from govtool.workflow.deletion import delete, refuse_zoomed, removed_by
from govtool.workflow.graph import ProvenanceGraph
from govtool.workflow.rules import is_joint

_MOST = 20_000
"""Nodes that are looked at for a smallest set, over all sets that are tried."""


@dataclass(frozen=True, slots=True)
class NodeDependency:
    """The records that a node depends on.

    Attributes:
        depends: Whether it falls with the records in question; ``unknown`` where only a new run can decide.
        necessary: Records each of which it cannot do without: nodes, ascending.
        lineage: All records that it comes from: nodes, ascending.
        together: If none is necessary, a smallest set of records with which it falls: nodes, ascending. Empty where
            there is none, or too many sets would have to be tried.
        reached: Whether it comes from any of those in question at all.
        in_cells: Whether it does, or one of its computed values.
    """

    depends: bool | Literal["unknown"]
    necessary: Array
    lineage: Array
    together: Array
    reached: bool
    in_cells: bool


def dependency(
    graph: ProvenanceGraph, node: int, on: Iterable[int] | Array, cells: Sequence[int] = ()
) -> NodeDependency:
    """Return whether a node depends on a set of nodes, and on which records at all.

    Args:
        graph: The graph.
        node: The node.
        on: The nodes in question.
        cells: Of a tuple, the nodes of its computed values: lineage has what these come from, too.

    Raises:
        IndexError: There is no such node.
        UsageError: Modules are zoomed out in the graph (``usage.zoomed-graph``).
    """
    refuse_zoomed(graph)
    above = marked(graph.edges, np.array([node]), backward=True)
    tokens = np.flatnonzero(above & (graph.type <= terms.STATE))
    wanted = np.asarray(on if isinstance(on, np.ndarray) else list(on), np.int64)
    found = delete(graph, wanted, within=above)
    at = int(np.searchsorted(found.removed, node))
    depends: bool | Literal["unknown"] = at < len(found.removed) and int(found.removed[at]) == node
    if not depends and node in found.unknown:
        depends = "unknown"
    necessary = _necessary(graph, node, above, tokens)
    together = necessary[:0] if len(necessary) else _together(graph, node, above, tokens)
    above_cells = marked(graph.edges, np.array([node, *cells]), backward=True) if cells else above
    lineage = np.flatnonzero(above_cells & (graph.type <= terms.STATE))
    return NodeDependency(
        depends, necessary, lineage, together, bool(above[wanted].any()), bool(above_cells[wanted].any())
    )


def _necessary(graph: ProvenanceGraph, node: int, above: Array, tokens: Array) -> Array:
    """Records with which the node falls. Only those of one derivation can be, whichever it is."""
    candidates = np.intersect1d(_one_derivation(graph, node), tokens)
    found: list[Array] = []
    for label in np.unique(graph.label[candidates]).tolist():
        record = tokens[graph.label[tokens] == label]
        if node in removed_by(graph, record, above):
            found.append(record)
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def _together(graph: ProvenanceGraph, node: int, above: Array, tokens: Array) -> Array:
    """A smallest set of several records with which the node falls; empty where a few tries find none."""
    labels = np.unique(graph.label[tokens])
    tries = 0
    for size in range(2, len(labels) + 1):
        tries += comb(len(labels), size)
        if tries * int(above.sum()) > _MOST:
            break
        for some in combinations(labels.tolist(), size):
            records = tokens[np.isin(graph.label[tokens], some)]
            if node in removed_by(graph, records, above):
                return records
    return tokens[:0]


def _one_derivation(graph: ProvenanceGraph, node: int) -> Array:
    """The nodes of one derivation of a node: of a tuple with alternatives, the first."""
    joint, monus = is_joint(graph), graph.labelled(terms.MONUS)
    edges = graph.edges.in_python()
    seen, pending = {node}, [node]
    while pending:
        at = pending.pop()
        inputs = [edge for edge in edges.in_edges(at) if not (monus[at] and graph.side[edge] == terms.RIGHT)]
        for edge in inputs if joint[at] else inputs[:1]:
            if edges.source[edge] not in seen:
                seen.add(edges.source[edge])
                pending.append(edges.source[edge])
    return np.array(sorted(seen), np.int64)
