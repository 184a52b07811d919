"""The and/or rules of provenance graphs, and their support: what a deletion takes (Def. 4.2).

A node falls when it had inputs and has lost all of them; ``·`` and ``⊗`` fall with the first. A difference needs its
left operand only: losing a right one can but make it appear. Nodes without inputs fall only if they are deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.graph import SMALL
from govtool.arrays.needs import ALTERNATIVE, BASE, JOINT, needs_of
from govtool.arrays.neighbours import in_degree
from govtool.arrays.ranks import ranks
from govtool.arrays.sets import Array
from govtool.arrays.support_large import Support
from govtool.workflow import vocabulary as terms

if TYPE_CHECKING:
    from govtool.workflow.graph import ProvenanceGraph


def is_joint(graph: ProvenanceGraph) -> Array:
    """Return per node whether it needs all of its inputs: bool[n]. Tuples at the border of a module do."""
    return graph.labelled(terms.TIMES, terms.TENSOR)


def support_of(graph: ProvenanceGraph) -> Support:
    """Return the support of a graph: linear in its edges, worked out once."""
    return graph.support if graph.support is not None else graph.once("support", _worked_out)


def order_of(graph: ProvenanceGraph) -> Array:
    """Return per node a number that is larger than those of all its inputs: int[n]."""
    support = support_of(graph)
    return support.rank if support.idle is None else graph.once("order", _ranks)


def _ranks(graph: ProvenanceGraph) -> Array:
    source, target = (np.asarray(ends, np.int64) for ends in (graph.edges.source, graph.edges.target))
    return ranks(source, target, graph.node_count)


def _worked_out(graph: ProvenanceGraph) -> Support:
    is_right = (graph.side == terms.RIGHT) & graph.labelled(terms.MONUS)[graph.edges.target]
    idle = is_right if is_right.any() else None
    rules: Any = np.where(is_joint(graph), JOINT, ALTERNATIVE)
    rules[in_degree(graph.edges, idle) == 0] = BASE
    return Support.of(graph.edges, needs_of(graph.edges, rules.tolist() if len(rules) < SMALL else rules, idle), idle)
