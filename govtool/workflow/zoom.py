"""ZoomOut and ZoomIn (Def. 4.1): modules shown whole instead of by what happens within them.

A view is a fine graph and the set of modules that are zoomed out; the fine graph is never changed. So zooming in is
zooming out of fewer modules, and two modules that share a state record never disagree about who had cut it out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.neighbours import entering, leaving
from govtool.arrays.sets import Array, distinct
from govtool.arrays.walks_large import marked
from govtool.errors import UnknownNameError, UsageError
from govtool.workflow import vocabulary as terms
from govtool.workflow.graph import ProvenanceGraph

_SHOWN = 8
"""Modules that a hint names."""


@dataclass(frozen=True, slots=True)
class ZoomNode:
    """One invocation of a module that is zoomed out."""

    module: str
    invocation: int

    @property
    def id(self) -> str:
        """``zoom:M_dealer1#2``."""
        return f"zoom:{self.module}#{self.invocation}"


@dataclass(frozen=True)
class GraphView:
    """A fine graph with some modules zoomed out.

    Attributes:
        graph: The fine graph.
        zoomed: Names of the modules.
    """

    graph: ProvenanceGraph
    zoomed: frozenset[str] = frozenset()

    @cached_property
    def hidden(self) -> Array:
        """Per node of the fine graph whether the view leaves it out: bool[n]."""
        return _hidden(self.graph, _chosen(self.graph, self.zoomed))

    @cached_property
    def zoom_nodes(self) -> tuple[ZoomNode, ...]:
        """A node for each invocation of the zoomed modules, by module and invocation."""
        graph, chosen = self.graph, _chosen(self.graph, self.zoomed)
        mine = np.flatnonzero(chosen[graph.module] & (graph.module >= 0) & (graph.invocation > 0))
        pairs = distinct((graph.module[mine].astype(np.int64) << 32) | graph.invocation[mine])
        return tuple(ZoomNode(graph.modules[int(pair >> 32)], int(pair & 0xFFFFFFFF)) for pair in pairs)

    @cached_property
    def zoom_edges(self) -> tuple[Array, Array, Array, Array]:
        """Edges of the zoom nodes: ``i`` nodes with the zoom node of each, then ``o`` nodes with theirs."""
        graph, chosen = self.graph, _chosen(self.graph, self.zoomed)
        mine = chosen[graph.module] & (graph.module >= 0)
        numbers = {(node.module, node.invocation): n for n, node in enumerate(self.zoom_nodes)}
        found = []
        for type_ in (terms.MODULE_INPUT, terms.MODULE_OUTPUT):
            nodes = np.flatnonzero(mine & (graph.type == type_))
            found += [nodes, _owners(graph, nodes, numbers)]
        return found[0], found[1], found[2], found[3]

    @property
    def node_count(self) -> int:
        """The number of nodes that the view shows."""
        return self.graph.node_count - int(self.hidden.sum()) + len(self.zoom_nodes)

    @property
    def edge_count(self) -> int:
        """The number of edges that the view shows."""
        inputs, _, outputs, _ = self.zoom_edges
        return len(self.shown_edges) + len(inputs) + len(outputs)

    @cached_property
    def shown_edges(self) -> Array:
        """The edges of the fine graph between nodes that the view shows: int64, ascending."""
        edges = self.graph.edges
        found: Array = np.flatnonzero(~(self.hidden[edges.source] | self.hidden[edges.target]))
        return found

    def zoom_out(self, *modules: str) -> GraphView:
        """Return the view with further modules zoomed out.

        Raises:
            UnknownNameError: There is no such module (``usage.unknown-module``).
            UsageError: An invocation is named instead of a module (``usage.module-invocation``).
        """
        return GraphView(self.graph, self.zoomed | checked_modules(self.graph, modules))

    def zoom_in(self, *modules: str) -> GraphView:
        """Return the view with the inside of modules shown again.

        Raises:
            UnknownNameError: There is no such module (``usage.unknown-module``).
            UsageError: An invocation is named, or a module that is not zoomed out (``usage.not-zoomed``).
        """
        wanted = checked_modules(self.graph, modules)
        for module in sorted(wanted - self.zoomed):
            raise UsageError(
                f"the module {module} is not zoomed out",
                code="usage.not-zoomed",
                hint=f"zoomed out are {', '.join(sorted(self.zoomed))}" if self.zoomed else f"--zoomed {module}",
            )
        return GraphView(self.graph, self.zoomed - wanted)


def checked_modules(graph: ProvenanceGraph, modules: Iterable[str]) -> frozenset[str]:
    """Return the names of modules; all invocations of a module are zoomed together.

    Raises:
        UnknownNameError: There is no such module (``usage.unknown-module``).
        UsageError: An invocation is named (``usage.module-invocation``), or the module is zoomed out in the graph
            itself (``usage.zoomed-graph``).
    """
    wanted = frozenset(modules)
    for module in sorted(wanted - frozenset(graph.modules)):
        name, mark, _ = module.rpartition("#")
        if mark and name in graph.modules:
            raise UsageError(
                f"{module} is an invocation: all invocations of a module are zoomed together",
                code="usage.module-invocation",
                nearest=(name,),
                hint=f"-m {name}",
            )
        raise UnknownNameError(
            f"no module is called {module!r}",
            code="usage.unknown-module",
            nearest=tuple(difflib.get_close_matches(module, graph.modules, 3, 0.4)),
            hint=_modules_hint(graph),
        )
    _refuse_zoomed(graph, wanted)
    return wanted


def _modules_hint(graph: ProvenanceGraph) -> str:
    """The modules of a graph as a hint names them."""
    names = sorted(graph.modules)
    if not names:
        return "the graph has no modules"
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"its modules are {', '.join(names[:_SHOWN])}{more}"


def _refuse_zoomed(graph: ProvenanceGraph, wanted: frozenset[str]) -> None:
    zoomed = np.unique(graph.module[graph.type == terms.ZOOM])
    for module in sorted(wanted & {graph.modules[number] for number in zoomed.tolist() if number >= 0}):
        raise UsageError(
            f"the module {module} is zoomed out in this graph already",
            code="usage.zoomed-graph",
            hint="zoom in the fine graph",
        )


def _chosen(graph: ProvenanceGraph, modules: frozenset[str]) -> Array:
    """Per number of a module whether it is zoomed; the last is for nodes of none (-1): bool[modules + 1]."""
    return np.array([*(name in modules for name in graph.modules), False], bool)


def _owners(graph: ProvenanceGraph, nodes: Array, numbers: dict[tuple[str, int], int]) -> Array:
    """The number of the zoom node that each node is an input or output of."""
    pairs = (graph.module[nodes].astype(np.int64) << 32) | graph.invocation[nodes]
    known, where = np.unique(pairs, return_inverse=True)
    owners = [numbers[graph.modules[int(pair >> 32)], int(pair & 0xFFFFFFFF)] for pair in known]
    found: Array = np.array(owners, np.int64)[where] if len(owners) else np.empty(0, np.int64)
    return found


def _hidden(graph: ProvenanceGraph, chosen: Array) -> Array:
    if not chosen.any():
        return np.zeros(graph.node_count, bool)
    inside = _inside(graph, chosen)
    is_mine = chosen[graph.module]
    hidden: Array = inside | (is_mine & (graph.type == terms.MODULE_STATE))
    states = np.flatnonzero(graph.type == terms.STATE)
    hidden[_only_for(graph, states, hidden)] = True
    return hidden


def _inside(graph: ProvenanceGraph, chosen: Array) -> Array:
    """What happens within some modules: nodes behind their inputs and states, up to their outputs; and constants."""
    is_mine = chosen[graph.module]
    enters = (graph.type == terms.MODULE_INPUT) | (graph.type == terms.MODULE_STATE)
    # A state record that one module makes may enter another that shares the state: that one's inside is its own.
    closed = (graph.type == terms.MODULE_OUTPUT) | (enters & ~is_mine)
    inside = marked(graph.edges, np.flatnonzero(enters & is_mine), closed=closed)
    inside &= ~(enters | (graph.type == terms.INVOCATION))
    _add_constants(graph, inside, is_mine)
    return inside


def _add_constants(graph: ProvenanceGraph, inside: Array, is_mine: Array) -> None:
    """Take in what comes from constants only and is used within only; the paper's definition misses it.

    So are conditions over a relation without tuples, which hang on the invocation alone, and may be used by nothing.
    """
    candidates = _from_constants(graph) & ~inside
    unused = candidates & is_mine & (np.diff(np.asarray(graph.edges.forward).astype(np.int64)) == 0)
    inside |= unused
    while True:
        found = _only_for(graph, np.flatnonzero(candidates & ~inside), inside)
        if not len(found):
            return
        inside[found] = True


def _from_constants(graph: ProvenanceGraph) -> Array:
    """Operators and values that no tuple leads to: constants, and what is made of them and of invocations only."""
    is_inner = (graph.type == terms.OPERATOR) | (graph.type == terms.VALUE)
    bound = np.diff(np.asarray(graph.edges.backward).astype(np.int64))
    edge, _ = leaving(graph.edges, np.flatnonzero(graph.type == terms.INVOCATION))
    into = graph.edges.target[edge].astype(np.int64)
    np.subtract.at(bound, into[is_inner[into]], 1)
    free: Array = is_inner & (bound == 0)
    front = np.flatnonzero(free)
    while len(front):
        edge, _ = leaving(graph.edges, front)
        into = distinct(graph.edges.target[edge].astype(np.int64))
        into = into[is_inner[into] & ~free[into]]
        back, owner = entering(graph.edges, into)
        sources = graph.edges.source[back]
        by_tuples = ~free[sources] & (graph.type[sources] != terms.INVOCATION)
        front = into[np.bincount(owner, by_tuples, minlength=len(into)) == 0]
        free[front] = True
    return free


def _only_for(graph: ProvenanceGraph, nodes: Array, consumers: Array) -> Array:
    """Those of some nodes that are used, and by some consumers (bool[n]) only."""
    edge, owner = leaving(graph.edges, nodes)
    used = np.bincount(owner, minlength=len(nodes))
    elsewhere = np.bincount(owner, ~consumers[graph.edges.target[edge]], minlength=len(nodes))
    found: Array = nodes[(used > 0) & (elsewhere == 0)]
    return found
