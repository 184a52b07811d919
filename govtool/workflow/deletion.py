"""Deletion (Def. 4.2), and the certainty of what survives it.

``removed_by`` is the deletion of the paper. It says which nodes lose their derivation, and nothing about those that
keep one: an aggregate has another value, a difference may let a row appear, a function may give something else. So the
survivors that the deletion touches are judged: ``recomputed`` where the graph holds all that is needed, ``unknown``
where only a new run can decide. What is neither is as it was.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.neighbours import entering, leaving
from govtool.arrays.sets import Array, distinct
from govtool.errors import UsageError
from govtool.workflow import vocabulary as terms
from govtool.workflow.evaluation import UNDECIDED, World, counted, maybe_absent
from govtool.workflow.graph import ProvenanceGraph
from govtool.workflow.rules import order_of, support_of
from govtool.workflow.values import Value, same


@dataclass(frozen=True, slots=True)
class Deletion:
    """The consequences of a deletion.

    Attributes:
        removed: The nodes of Def. 4.2: int64, ascending; deleted ones included.
        recomputed: Surviving v-nodes with another value, and the value.
        unknown: Surviving nodes that only a new run can decide: ascending.
        gains_possible: Whether tuples may appear that were not there.
        left_nodes: How many nodes survive.
        left_edges: How many edges do.
        hollow: Removed tuples that a new run might have: a comparison fell with an aggregate, which over nothing is 0
            or NULL there, and not gone.
        absent: Those of ``unknown`` that are gone for certain, although they keep a derivation by Def. 4.2: none of it
            counts any more.
    """

    removed: Array
    recomputed: dict[int, Value]
    unknown: tuple[int, ...]
    gains_possible: bool
    left_nodes: int
    left_edges: int
    hollow: frozenset[int] = frozenset()
    absent: frozenset[int] = frozenset()


def removed_by(graph: ProvenanceGraph, nodes: Iterable[int] | Array, within: Array | None = None) -> Array:
    """Return the nodes that the deletion of some takes, themselves included: int64, ascending (Def. 4.2).

    Args:
        graph: The graph.
        nodes: Nodes; sources are taken only if they are among them.
        within: bool[n]: a part with all of its inputs, outside of which nothing is looked at; None: all.

    Raises:
        IndexError: There is no such node.
        UsageError: Modules are zoomed out in the graph (``usage.zoomed-graph``).
    """
    refuse_zoomed(graph)
    return np.sort(np.asarray(support_of(graph).delete(nodes, within=within).nodes, np.int64))


def refuse_zoomed(graph: ProvenanceGraph) -> None:
    """Refuse a graph with zoomed modules: their nodes need any of their inputs, so that coarse answers would be wrong.

    Raises:
        UsageError: There are some (``usage.zoomed-graph``).
    """
    if graph.is_zoomed:
        raise UsageError(
            "modules are zoomed out in this graph: what a deletion takes cannot be known",
            code="usage.zoomed-graph",
            hint="delete in the fine graph, then zoom out",
        )


def delete(graph: ProvenanceGraph, nodes: Iterable[int] | Array, within: Array | None = None) -> Deletion:
    """Delete nodes, and judge what survives.

    Args:
        graph: The graph.
        nodes: Nodes.
        within: As for ``removed_by``.

    Raises:
        IndexError: There is no such node.
        UsageError: Modules are zoomed out in the graph (``usage.zoomed-graph``).
    """
    gone = removed_by(graph, nodes, within)
    is_removed = np.zeros(graph.node_count, bool)
    is_removed[gone] = True
    hollow = _hollow(graph, gone, is_removed, nodes)
    sure = is_removed.copy() if hollow else is_removed
    sure[list(hollow)] = False
    skipped = sure if within is None else sure | ~within
    judged = _Judgement(graph, sure, skipped, hollow)
    judged.run(np.union1d(_touched(graph, gone, skipped), np.array(sorted(hollow), np.int64)))
    return Deletion(
        gone,
        judged.values,
        tuple(sorted((judged.unknown - hollow) | judged.absent)),
        judged.gains,
        graph.node_count - len(gone),
        graph.edge_count - _edges_around(graph, gone, is_removed),
        hollow,
        frozenset(judged.absent),
    )


def _reads_value(graph: ProvenanceGraph) -> Array:
    """Return per node whether it is a tuple that reads a value, as comparisons do: bool[n]."""
    source, target = (np.asarray(ends, np.int64) for ends in (graph.edges.source, graph.edges.target))
    found = np.zeros(graph.node_count, bool)
    found[target[graph.kind[source] == terms.V]] = True
    found[graph.kind != terms.P] = False
    return found


def _hollow(graph: ProvenanceGraph, gone: Array, is_removed: Array, deleted: Iterable[int] | Array) -> frozenset[int]:
    """The removed tuples that fell with a value alone: comparisons, and what fell with them and nothing else."""
    reads = graph.once("reads value", _reads_value)
    seeds = gone[reads[gone]]
    if not len(seeds):
        return frozenset()
    rank, edges = order_of(graph), graph.edges.in_python()
    guards = set(seeds.tolist()) - set(np.asarray(list(deleted), np.int64).tolist())
    found = set(guards)
    queue = [(int(rank[node]), node) for node in _not_certain(graph, seeds, is_removed, reads)]
    heapq.heapify(queue)
    seen = {node for _, node in queue}
    while queue:
        _, node = heapq.heappop(queue)
        if node not in found:
            if _fell_with_tuples(graph, node, is_removed, found):
                continue
            found.add(node)
        for edge in edges.out_edges(node):
            target = edges.target[edge]
            if target not in seen and is_removed[target]:
                seen.add(target)
                heapq.heappush(queue, (int(rank[target]), target))
    found -= {guard for guard in guards if _went_with_rows(graph, guard, is_removed, found)}
    return frozenset(node for node in found if graph.kind[node] == terms.P)


def _fell_with_tuples(graph: ProvenanceGraph, node: int, is_removed: Array, hollow: set[int]) -> bool:
    """Return whether a removed node fell with tuples that are removed for certain."""
    edges = graph.edges.in_python()
    inputs = [edges.source[edge] for edge in edges.in_edges(node) if graph.side[edge] != terms.RIGHT]
    tuples = [each for each in inputs if graph.kind[each] == terms.P]
    is_joint = graph.label_of(node) in (terms.TIMES, terms.TENSOR)
    return (any if is_joint else all)(is_removed[each] and each not in hollow for each in tuples)


def _went_with_rows(graph: ProvenanceGraph, guard: int, is_removed: Array, hollow: set[int]) -> bool:
    """Return whether a comparison that a gate watches fell with the rows that it is of: then it opens nothing."""
    edges = graph.edges.in_python()
    read = [edges.target[edge] for edge in edges.out_edges(guard)]
    rows = [each for each in read if graph.label_of(each) not in terms.ENTRIES]
    return 0 < len(rows) < len(read) and all(is_removed[each] and each not in hollow for each in rows)


def _not_certain(graph: ProvenanceGraph, seeds: Array, is_removed: Array, reads: Array) -> list[int]:
    """Comparisons with an output that no other removed tuple takes away."""
    edge, owner = leaving(graph.edges, seeds)
    target = graph.edges.target[edge].astype(np.int64)
    targets = distinct(target)
    into, at = entering(graph.edges, targets)
    source = graph.edges.source[into].astype(np.int64)
    certain = is_removed[source] & ~reads[source] & (graph.kind[source] == terms.P)
    falls = np.zeros(len(targets), bool)
    falls[at[certain]] = True
    falls &= graph.labelled(terms.TIMES, terms.TENSOR)[targets]
    open_ = np.zeros(graph.node_count, bool)
    open_[targets[~falls]] = True
    return [int(node) for node in distinct(seeds[owner[open_[target]]])]


def _touched(graph: ProvenanceGraph, gone: Array, skipped: Array) -> Array:
    """Survivors that have lost an input."""
    edge, _ = leaving(graph.edges, gone)
    target = graph.edges.target[edge].astype(np.int64)
    return distinct(target[~skipped[target]])


def _edges_around(graph: ProvenanceGraph, gone: Array, is_removed: Array) -> int:
    out, _ = leaving(graph.edges, gone)
    into, _ = entering(graph.edges, gone)
    return len(out) + int((~is_removed[graph.edges.source[into]]).sum())


@dataclass(slots=True)
class _Judgement:
    """Spreads what is not certain over the survivors, inputs before what is made of them.

    A p-node is unknown (it may be gone), *vague* (it is there, how often is not known) or *altered* (how often it is
    there has to be counted again: *absent* if that is not at all); a v-node is unknown or has a new value.
    """

    graph: ProvenanceGraph
    certainly_removed: Array
    skipped: Array
    hollow: frozenset[int] = frozenset()
    values: dict[int, Value] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)
    vague: set[int] = field(default_factory=set)
    altered: set[int] = field(default_factory=set)
    absent: set[int] = field(default_factory=set)
    gains: bool = False
    before: World = field(init=False)
    after: World = field(init=False)

    def __post_init__(self) -> None:
        self.before = World(self.graph)
        self.after = World(self.graph, self.certainly_removed, self.values)

    def run(self, touched: Array) -> None:
        """Judge the nodes that lost an input, and all that what is found spreads to."""
        rank = order_of(self.graph)
        edges = self.graph.edges.in_python()
        queue = [(int(rank[node]), node) for node in touched.tolist()]
        heapq.heapify(queue)
        seen = set(touched.tolist())
        while queue:
            _, node = heapq.heappop(queue)
            if not self._judge(node):
                continue
            for edge in edges.out_edges(node):
                target = edges.target[edge]
                if target not in seen and not self.skipped[target]:
                    seen.add(target)
                    heapq.heappush(queue, (int(rank[target]), target))

    def _judge(self, node: int) -> bool:
        """Judge a survivor; return whether what reads it has to be judged, too."""
        if self.graph.is_opaque[node] and self.graph.label_of(node) in terms.ENTRIES:
            if not self._may_grow(node):
                return False
            self._spread_unknown(node)
            return True
        if node in self.hollow or (self.graph.is_opaque[node] and self._has_changed_input(node)):
            self._spread_unknown(node)
            return True
        if self.graph.kind[node] == terms.V:
            return self._judge_value(node)
        return self._judge_tuple(node)

    def _spread_unknown(self, node: int) -> None:
        self.unknown.add(node)
        # A comparison or a function that was fed otherwise may let through what it had not let through.
        self.gains = self.gains or bool(self.graph.kind[node] == terms.P)

    def _inputs(self, node: int) -> list[tuple[int, int]]:
        """The inputs that a node had, each with the side of its edge."""
        edges = self.after.edges
        return [(edges.source[edge], int(self.graph.side[edge])) for edge in edges.in_edges(node)]

    def _has_changed_input(self, node: int) -> bool:
        return any(
            self.certainly_removed[each]
            or each in self.unknown
            or each in self.values
            or each in self.vague
            or each in self.altered
            for each, _ in self._inputs(node)
        )

    def _may_grow(self, gate: int) -> bool:
        """Return whether something that a gate watches may be there more often than it was, or in another place."""
        standing = [each for each, _ in self._inputs(gate) if not self.certainly_removed[each]]
        if any(each in self.unknown or each in self.vague for each in standing):
            return True
        return any(
            (self.after.times(each) or 0) > (self.before.times(each) or 0) for each in self.altered & {*standing}
        )

    # tuples ----------------------------------------------------------------------------------------------------------

    def _judge_tuple(self, node: int) -> bool:
        inputs = self._inputs(node)
        label = self.graph.label_of(node)
        if self._is_tuple_unknown(node, label, inputs):
            self.gains = self.gains or label == terms.MONUS  # what it takes off may be less now
            self.unknown.add(node)
            return True
        if label == terms.DELTA and not maybe_absent(self.graph)[node]:
            return False
        if any(each in self.vague or each in self.unknown for each, _ in inputs):
            if label != terms.DELTA:
                self.vague.add(node)
            return label != terms.DELTA
        return self._count_again(node)

    def _is_tuple_unknown(self, node: int, label: str, inputs: list[tuple[int, int]]) -> bool:
        if any(each in self.values for each, _ in inputs):
            return True  # a tuple that reads a value is a comparison, whatever its label
        standing = [each for each, _ in inputs if not self.certainly_removed[each]]
        unsure = [each for each in standing if each in self.unknown]
        if label == terms.TIMES:
            return bool(unsure)
        if label == terms.MONUS:
            return bool(unsure) or any(each in self.vague for each in standing)
        return bool(unsure) and not any(self._is_live(each) for each in standing)

    def _is_live(self, node: int) -> bool:
        """Return whether a standing tuple is there for certain."""
        if node in self.unknown:
            return False
        return node in self.vague or not maybe_absent(self.graph)[node] or bool(self.after.times(node))

    def _count_again(self, node: int) -> bool:
        """Count a tuple that is certain; return whether it is there another number of times."""
        if not counted(self.graph)[node]:
            return False
        before, after = self.before.times(node), self.after.times(node)
        if before is not None and before == after:
            return False
        if before is None or after is None:
            self.gains = self.gains or self.graph.label_of(node) == terms.MONUS
            self.unknown.add(node)
            return True
        self.gains = self.gains or before == 0
        self.altered.add(node)
        if not after:
            self.absent.add(node)
        return True

    # values ----------------------------------------------------------------------------------------------------------

    def _judge_value(self, node: int) -> bool:
        inputs = [each for each, _ in self._inputs(node)]
        standing = [each for each in inputs if not self.certainly_removed[each]]
        if any(each in self.unknown or each in self.vague for each in standing):
            self.unknown.add(node)
            return True
        label = self.graph.label_of(node)
        if label in terms.AGGREGATES:
            return self._aggregate_again(node)
        if label == terms.TENSOR:
            # It has no value of its own: its aggregate reads its inputs.
            self.altered.add(node)
            return True
        self._copy(node, standing)
        return True

    def _copy(self, node: int, standing: list[int]) -> None:
        """A cell has the value of the one node that it was copied from."""
        if len(standing) == 1 and standing[0] in self.values:
            self.values[node] = self.values[standing[0]]
        else:
            self.unknown.add(node)

    def _aggregate_again(self, node: int) -> bool:
        if self._has_emptied_term(node):
            self.unknown.add(node)
            return True
        recorded = self.before.value(node)
        if recorded is None:  # some files have null where they know no value; NULL is what the terms give then
            recorded = UNDECIDED
        computed = self.before.aggregate(node, recorded)
        after = self.after.aggregate(node, computed if recorded is UNDECIDED else recorded)
        differs = recorded is not UNDECIDED and not same(recorded, computed)
        if after is UNDECIDED or computed is UNDECIDED or differs:
            self.unknown.add(node)  # the graph does not hold what the value was made of
            return True
        if same(computed, after):
            return False
        self.values[node] = after
        return True

    def _has_emptied_term(self, node: int) -> bool:
        """Return whether a term fell with its value while its tuple stands.

        An aggregate over nothing is removed, and a new run has 0 or NULL in its place where its row does not hang on
        a group.
        """
        tensors = [each for each, _ in self._inputs(node) if self.certainly_removed[each]]
        return any(
            not self.certainly_removed[each]
            for tensor in tensors
            for each, _ in self._inputs(tensor)
            if self.graph.kind[each] == terms.P
        )
