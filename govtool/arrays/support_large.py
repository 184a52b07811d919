"""Grounded support in numpy: worked out once, kept in a file, and propagated only along what a deletion changes.

The support of a graph is a rank and a slack per node. A node has support because enough of its inputs have a lower
rank; the slack counts how many of those it can lose. Both are facts of the graph: they are computed once, written
beside its arrays and mapped with them.

A deletion goes in two steps (after Gupta, Mumick, Subrahmanian, "Maintaining views incrementally", SIGMOD 1993):

1. Take away. A node that loses more inputs of lower rank than its slack is taken. As ranks only rise along such
   inputs, circles cannot hold anything up, and what is left has a derivation without anything that was taken.
2. Give back. A taken node with enough inputs left, of whatever rank, has another derivation; and so on from there.
   Only inputs of a higher rank can do this, and only circles have those: other graphs are done after step 1.

Both look at the edges of what was taken and at nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from govtool.arrays.graph import ArrayGraph, check_nodes
from govtool.arrays.neighbours import entering, in_degree, leaving
from govtool.arrays.numpy_threads import np
from govtool.arrays.results import Loss
from govtool.arrays.sets import Array, distinct, stable_order, zero_bytes
from govtool.errors import IntegrityError

NEVER = (1 << 32) - 1
"""The rank of a node without support."""
NAMES = ("support_rank", "support_slack", "support_needs")
"""The arrays of a support, as a file has them."""

_TAKEN, _DELETED = 254, 255
"""States of nodes that are gone. That of a node that stands is the number of its lost inputs of lower rank."""
_MANY = _TAKEN
"""A slack from which on such a number does not fit into the state, and is kept apart."""
_NO_LIMIT = (1 << 31) - 1
"""The slack of nodes that nothing can be taken from: those that never had support."""
_THIN = 48
"""Nodes of a frontier up to which plain Python is faster than a round of numpy."""


@dataclass(frozen=True, slots=True)
class Support:
    """The support of nodes in a graph, as counts.

    Attributes:
        graph: With numpy arrays.
        rank: uint32[n]: a supported node has at least ``needs`` supported inputs of lower rank; ``NEVER`` without
            support.
        slack: int32[n]: how many inputs of lower rank it has over what it needs.
        needs: int32[n].
        has_later: Whether some supported node has supported inputs of a rank not below its own: circles.
        idle: bool[m]: edges that support nothing.
    """

    graph: ArrayGraph
    rank: Array
    slack: Array
    needs: Array
    has_later: bool
    idle: Array | None = None

    @classmethod
    def of(cls, graph: ArrayGraph, needs: Sequence[int] | Array, idle: Sequence[int] | Array | None = None) -> Support:
        """Work out the support of a graph: linear in its edges."""
        arrays = graph.in_numpy()
        unused = None if idle is None else np.asarray(idle, bool)
        return _Derivation(arrays, np.asarray(needs, np.int32), unused).run()

    @classmethod
    def of_arrays(cls, graph: ArrayGraph, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> Support:
        """Return the support that a file holds beside its graph.

        Raises:
            IntegrityError: An array is missing, or of another graph.
        """
        try:
            rank, slack, needs = (np.asarray(arrays[name]) for name in NAMES)
            idle = np.asarray(arrays["support_idle"]).view(bool) if "support_idle" in arrays else None
            later = bool(meta["support_later"])
        except KeyError as error:
            raise IntegrityError(f"The support lacks {error}", code="store.corrupt-index") from error
        if {len(rank), len(slack), len(needs)} != {graph.nodes} or (idle is not None and len(idle) != graph.edges):
            raise IntegrityError("The support is of another graph", code="store.corrupt-index")
        return cls(graph.in_numpy(), rank, slack.view(np.int32), needs.view(np.int32), later, idle)

    def arrays(self) -> dict[str, Array]:
        """The arrays by name, for a file; unsigned as files have them."""
        values = (self.rank, self.slack.view(np.uint32), self.needs.view(np.uint32))
        found = dict(zip(NAMES, values, strict=True))
        return found if self.idle is None else {**found, "support_idle": self.idle.view(np.uint8)}

    def meta(self) -> dict[str, Any]:
        """Return the metadata of a file."""
        return {"support_later": self.has_later}

    def has(self, nodes: Array) -> Array:
        """Return whether nodes have support: bool."""
        found: Array = self.rank[nodes] != NEVER
        return found

    def delete(self, nodes: Iterable[int], *, within: Sequence[int] | Array | None = None) -> Loss:
        """Return what the deletion of nodes takes.

        Args:
            nodes: Nodes; those without support are left out of the outcome.
            within: Per node, whether it can be lost; all others keep their support. Without it, all can.

        Raises:
            IndexError: There is no such node.
        """
        gone = nodes if isinstance(nodes, np.ndarray) else np.fromiter(nodes, np.int64)
        check_nodes(gone, self.graph.nodes)
        region = None if within is None else np.asarray(within, bool)
        return _Deletion(self, region).run(distinct(gone.astype(np.int64)))


class _Derivation:
    """The support of a graph, round by round; a node's rank is the round in which it is derived.

    A round takes the nodes whose inputs are all decided. Where circles leave none of these, it takes those that have
    what they need already. So only nodes on circles, or behind them, have inputs of a higher rank than their own.
    """

    def __init__(self, graph: ArrayGraph, needs: Array, idle: Array | None) -> None:
        self.graph, self.needs, self.idle = graph, needs, idle
        self.waiting = in_degree(graph, idle).astype(np.int32)
        self.have = np.zeros(graph.nodes, np.int32)
        self.rank = np.full(graph.nodes, NEVER, np.uint32)
        self.slack = np.full(graph.nodes, _NO_LIMIT, np.int32)
        self.is_decided = np.zeros(graph.nodes, bool)
        self.has_later = False

    def run(self) -> Support:
        """Derive to the end."""
        ready = np.flatnonzero(self.waiting == 0)
        early = [np.flatnonzero((self.needs <= 0) & (self.waiting > 0))]
        level = 0
        while len(ready) or early:
            if not len(ready):  # circles: go on from what has support already, decided or not
                ready, early = distinct(np.concatenate(early)), []
                ready = ready[~self.is_decided[ready]]
            ready, satisfied = self._round(ready, level)
            if len(satisfied):
                early.append(satisfied)
            level += 1
        return Support(self.graph, self.rank, self.slack, self.needs, self.has_later, self.idle)

    def _round(self, ready: Array, level: int) -> tuple[Array, Array]:
        """Decide nodes; return those whose inputs are now all decided, and those that now have what they need."""
        self.is_decided[ready] = True
        left = self.have[ready] - self.needs[ready]
        supported = ready[left >= 0]
        self.rank[supported] = level
        self.slack[supported] = left[left >= 0]
        edge, owner = leaving(self.graph, ready)
        if self.idle is not None:
            used = ~self.idle[edge]
            edge, owner = edge[used], owner[used]
        target = self.graph.target[edge].astype(np.int64)
        np.subtract.at(self.waiting, target, 1)
        into = target[left[owner] >= 0]
        np.add.at(self.have, into, 1)
        self.has_later = self.has_later or bool(self.is_decided[into].any())
        into = into[(self.have[into] >= self.needs[into]) & ~self.is_decided[into] & (self.waiting[into] > 0)]
        return distinct(target[(self.waiting[target] == 0) & ~self.is_decided[target]]), into


class _Deletion:
    """One deletion. A byte a node is all that is as long as the graph: fresh memory costs more than looking at it."""

    def __init__(self, support: Support, within: Array | None) -> None:
        self.support, self.graph, self.within = support, support.graph, within
        self.state = zero_bytes(self.graph.nodes)
        self.lost: dict[int, int] = {}
        """Lost inputs of lower rank of standing nodes with a slack of ``_MANY`` or more."""
        arrays = (self.graph.forward, self.graph.target, self.state, support.slack)
        self.views = tuple(values.data for values in arrays)

    def run(self, deleted: Array) -> Loss:
        """Take away, and give back what has another derivation."""
        front = deleted[self.support.rank[deleted] != NEVER]
        if self.within is not None:
            front = front[self.within[front]]
        self.state[front] = _DELETED
        parts = [(front, np.full(len(front), -1))]
        while len(front):
            front, edge = self._take(front) if len(front) > _THIN else self._take_few(front.tolist())
            parts.append((front, edge))
        taken, edges = (np.concatenate([part[at] for part in parts]) for at in range(2))
        given = self.support.has_later and self._give_back(taken[len(parts[0][0]) :])
        if given:
            left = self.state[taken] >= _TAKEN
            taken, edges = taken[left], edges[left]
            order = np.argsort(self.support.rank[taken], kind="stable")
            taken, edges = taken[order], edges[order]
            self._mend_reasons(taken, edges)
        return Loss(taken.data, edges.data)

    def _take(self, front: Array) -> tuple[Array, Array]:
        """Take what loses too many inputs of lower rank with these nodes; return it, with the edges that it fell by."""
        edge, target = self._hit(front)
        order = stable_order(target)
        ordered = target[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-1))
        nodes, edge = ordered[first], edge[order[first]]
        slack = self.support.slack[nodes]
        is_taken = slack == 0
        some = np.flatnonzero(~is_taken)
        if len(some):
            hits = np.diff(first, append=len(ordered))
            is_taken[some] = self._lose(nodes[some], hits[some], slack[some])
        taken = nodes[is_taken]
        self.state[taken] = _TAKEN
        return taken, edge[is_taken]

    def _lose(self, nodes: Array, hits: Array, slack: Array) -> Array:
        """Count lost inputs of lower rank; return which nodes have lost more than their slack."""
        total = self.state[nodes] + hits
        wide = np.flatnonzero(slack >= _MANY)
        if len(wide):
            total[wide] += [self.lost.get(node, 0) for node in nodes[wide].tolist()]
            self.lost.update(zip(nodes[wide].tolist(), total[wide].tolist(), strict=True))
        is_gone: Array = total > slack
        stays = ~is_gone & (slack < _MANY)
        self.state[nodes[stays]] = total[stays]
        return is_gone

    def _take_few(self, front: list[int]) -> tuple[Array, Array]:
        """The same for a thin frontier, as of long chains, where a round of numpy costs more than its nodes."""
        found, edges = [], []
        forward, targets, state, slack = self.views
        for node in front:
            for edge in range(forward[node], forward[node + 1]):
                target = targets[edge]
                if state[target] >= _TAKEN or not self._can_lose(node, edge, target):
                    continue
                limit = slack[target]
                lost = (state[target] if limit < _MANY else self.lost.get(target, 0)) + 1
                if lost > limit:
                    state[target] = _TAKEN
                    found.append(target)
                    edges.append(edge)
                elif limit < _MANY:
                    state[target] = lost
                else:
                    self.lost[target] = lost
        return np.array(found, np.int64), np.array(edges, np.int64)

    def _can_lose(self, node: int, edge: int, target: int) -> bool:
        """Return whether a node gives support by an edge, and can be missed there."""
        support = self.support
        return (
            (support.idle is None or not support.idle[edge])
            and (not support.has_later or bool(support.rank[node] < support.rank[target]))
            and (self.within is None or bool(self.within[target]))
        )

    def _hit(self, front: Array) -> tuple[Array, Array]:
        """The edges from nodes to standing nodes of a higher rank that can be lost, and those nodes."""
        edge, owner = leaving(self.graph, front)
        target = self.graph.target[edge]
        keep = self.state[target] < _TAKEN
        if self.support.idle is not None:
            keep &= ~self.support.idle[edge]
        if self.support.has_later:
            keep &= self.support.rank[front][owner] < self.support.rank[target]
        if self.within is not None:
            keep &= self.within[target]
        return edge[keep], target[keep].astype(np.int64)

    def _give_back(self, taken: Array) -> bool:
        """Give back the taken nodes that have another derivation; return whether there were any."""
        have = np.zeros(self.graph.nodes, np.int32)
        needs = self.support.needs
        edge, owner = entering(self.graph, taken)
        standing = self._stands(self.graph.source[edge], edge)
        have[taken] = np.bincount(owner[standing], minlength=len(taken))
        front = taken[have[taken] >= needs[taken]]
        found = bool(len(front))
        while len(front):
            self.state[front] = 0
            edge, _ = leaving(self.graph, front)
            target = self.graph.target[edge].astype(np.int64)
            keep = self.state[target] == _TAKEN
            if self.support.idle is not None:
                keep &= ~self.support.idle[edge]
            target = target[keep]
            np.add.at(have, target, 1)
            front = distinct(target[have[target] >= needs[target]])
        return found

    def _stands(self, nodes: Array, edge: Array) -> Array:
        """Return whether edges bring support from nodes that stand."""
        found: Array = (self.state[nodes] < _TAKEN) & (self.support.rank[nodes] != NEVER)
        return found if self.support.idle is None else found & ~self.support.idle[edge]

    def _mend_reasons(self, taken: Array, edges: Array) -> None:
        """For a node that was taken through one that was given back, find a lost input of lower rank."""
        by_edge = np.flatnonzero(edges >= 0)
        stale = by_edge[self.state[self.graph.source[edges[by_edge]]] < _TAKEN]
        nodes = taken[stale]
        edge, owner = entering(self.graph, nodes)
        source = self.graph.source[edge]
        fits = (self.state[source] >= _TAKEN) & (self.support.rank[source] < self.support.rank[nodes[owner]])
        if self.support.idle is not None:
            fits &= ~self.support.idle[edge]
        edge, owner = edge[fits], owner[fits]
        edges[stale[owner[::-1]]] = edge[::-1]
