"""Deletion propagation by grounded support: what is left without its sources, and what another source still feeds.

A dataset that nothing in the graph makes is grounded by itself. Any other is grounded if one of its derivations holds
(they are alternatives). A derivation holds if all that every alternative of it needs is grounded, and of each group of
alternatives (the arms of a UNION, the branches of a MERGE) one is: any-of within a group, all-of between groups
(``Edge.arm``). What a dataset takes from itself does not count, so that a loop that only feeds itself dies. A column is
grounded if a derivation of its dataset holds together with what the column is made of.

Support is the least fixpoint: whatever has a finite proof. After Green, Karvounarakis, Tannen, "Provenance semirings"
(Boolean), and Ives and others, "ORCHESTRA", on cyclic derivations.

The graph that decides it is that of ``govtool.arrays.support``: columns, goals, groups and arms are its nodes.

Rows need nothing of a dataset on the outer side of a join, in NOT EXISTS, or behind EXCEPT (``Index.is_optional``); of
a FULL JOIN alone one side will do. Whether a filter still lets rows through is unknown then, and so is what is left
of a column that is made of other datasets, too (``coalesce(right.x, left.x)``).

Limits, all on the careful side: a FULL JOIN beside other joins needs both sides, and so does INTERSECT; an arm of
constants alone leaves no trace in the graph. An edge knows its outermost arm only: a UNION inside an arm of another
needs all of its arms, unless the arm is nothing else (``govtool.capture.sql.walk.queries.set_operations``). ORDER BY
and the columns of UNION ALL are not needed by anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from govtool.arrays.graph import ArrayGraph, graph_of
from govtool.arrays.support import losses as deletion
from govtool.arrays.support import support
from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.query.changes.outer import ONE_OF_ALL, Outer, outer_of
from govtool.query.changes.region import Region

SMALL = 20_000
"""Edges of a graph that is proved as a whole: about as long as it takes to import numpy."""
_SMALL_PROOFS = 4 * SMALL
"""Edges of its and/or graph."""

_FIRST_SHARED = -1
"""Goals that stand for what the rows of a derivation need: this number less the derivation's."""

ARMS = 4096
"""Arms of a group; see ``govtool.capture.sql.walk.dependencies.arm_of``."""
_NOT_NEEDED = frozenset({EdgeKind.SORT, EdgeKind.UNION_ALL})
_OF_ROWS = frozenset({EdgeKind.READ, EdgeKind.JOIN, EdgeKind.GROUP_BY, EdgeKind.DISTINCT})
"""Kinds by which rows are still made where an outer side has none."""
_FILLS = frozenset({"replace", "append", "rename"})
"""Modes that make rows; the others change what is there."""


@dataclass(slots=True)
class Conditions:
    """The needs of a goal: everything of ``always``, and of every group one arm."""

    always: set[int] = field(default_factory=set)
    groups: dict[int, dict[int, set[int]]] = field(default_factory=dict)

    def add(self, arm: int, *nodes: int) -> None:
        """Add an arm and what it needs; of arm 0 it is everyone's."""
        if arm:
            self.groups.setdefault(arm // ARMS, {}).setdefault(arm, set()).update(nodes)
        else:
            self.always.update(nodes)


@dataclass(frozen=True, slots=True)
class Goal:
    """One way for a node to be grounded."""

    node: int
    needs: Conditions


class _Proofs:
    """Goals as an and/or graph: a node is any of its goals, a goal all that it needs, a group any of its arms."""

    def __init__(self, goals: Iterable[Goal]) -> None:
        self.number: dict[int, int] = {}
        """The node of the and/or graph for each node of the index."""
        self.source: list[int] = []
        self.target: list[int] = []
        self.needs: list[int] = []
        for goal in goals:
            self._add(goal)

    def _add(self, goal: Goal) -> None:
        node, needs = self._node(goal.node), goal.needs
        way = self._joint(needs.always, len(needs.groups))
        for arms in needs.groups.values():
            group = self._new(1)
            for arm in arms.values():
                self._link(self._joint(arm), group)
            self._link(group, way)
        self._link(way, node)

    def _node(self, node: int) -> int:
        """The number of a node of the index, which needs one goal."""
        if node not in self.number:
            self.number[node] = self._new(1)
        return self.number[node]

    def _joint(self, nodes: Collection[int], more: int = 0) -> int:
        """A new node that needs all of these, and as many more inputs."""
        made = self._new(len(nodes) + more)
        for node in nodes:
            self._link(self._node(node), made)
        return made

    def _new(self, needs: int) -> int:
        self.needs.append(needs)
        return len(self.needs) - 1

    def _link(self, source: int, target: int) -> None:
        self.source.append(source)
        self.target.append(target)

    def graph(self) -> ArrayGraph:
        """The graph."""
        return graph_of(self.source, self.target, len(self.needs), _SMALL_PROOFS)[0]

    def known(self, nodes: Iterable[int]) -> list[int]:
        """The numbers of those nodes that goals mention."""
        return [self.number[node] for node in nodes if node in self.number]

    def named(self, numbers: Collection[int]) -> set[int]:
        """The nodes of the index among numbers."""
        return {node for node, number in self.number.items() if node >= 0 and number in numbers}


def settle(all_goals: Iterable[Goal], gone: Collection[int]) -> set[int]:
    """The nodes that have support by some goal when others are gone: the least fixpoint."""
    proofs = _Proofs(all_goals)
    rank = support(proofs.graph(), proofs.needs, proofs.known(gone))
    return {node for node, number in proofs.number.items() if rank[number] >= 0}


def goals(index: Index, *, opaque: bool = True, datasets: Collection[int] | None = None) -> Iterable[Goal]:
    """Every way for every node of a graph to be grounded.

    Args:
        index: The graph.
        opaque: Whether opaque edges count as needs; without them the answer is the most hopeful one.
        datasets: Only these; all others are grounded. All by default.
    """
    for dataset in sorted(datasets) if datasets is not None else range(index.dataset_count):
        rows = index.rows(dataset)
        makers = index.makers(dataset)
        by_derivation = _edges(index, dataset)
        fills = [
            d for d in makers if index.mode(d) in _FILLS and not _only_itself(index, dataset, by_derivation.get(d))
        ]
        if not fills:
            yield Goal(rows, Conditions())
            for node in index.columns(dataset):
                yield Goal(node, Conditions({rows}))
        for derivation in makers:
            mode = index.mode(derivation)
            if mode not in _FILLS and mode != "update":
                continue
            if mode in _FILLS and derivation not in fills:
                continue
            edges = by_derivation.get(derivation, {})
            yield from _of(index, dataset, derivation, edges, mode in _FILLS, opaque, datasets)


def _edges(index: Index, dataset: int) -> dict[int, dict[int, list[int]]]:
    """The edges into a dataset, by derivation and target node."""
    found: dict[int, dict[int, list[int]]] = {}
    for node in range(index.rows(dataset), index.dataset_base[dataset + 1]):
        for edge in index.in_edges(node):
            found.setdefault(index.edge_derivation[edge], {}).setdefault(node, []).append(edge)
    return found


def _only_itself(index: Index, dataset: int, edges: dict[int, list[int]] | None) -> bool:
    """Return whether a derivation takes everything from its own dataset."""
    return bool(edges) and all(
        index.node_dataset[index.edge_source[e]] == dataset for into in (edges or {}).values() for e in into
    )


def _of(
    index: Index,
    dataset: int,
    derivation: int,
    edges: dict[int, list[int]],
    fills: bool,
    opaque: bool,
    datasets: Collection[int] | None,
) -> Iterable[Goal]:
    """The goals that one derivation serves."""
    rows = index.rows(dataset)
    has_arms = any(index.arm(edge) for into in edges.values() for edge in into)
    shared = _FIRST_SHARED - derivation
    outer = outer_of(index, edges.get(rows, ()))
    conditions = partial(_conditions, index, dataset, edges, _arms(index, edges), outer, opaque, datasets)

    # What the rows need, every column needs: a goal of its own, so that columns do not repeat it. Arms do not let
    # themselves be split: what the rows and a column take in one arm is needed together.
    rows_needs = conditions(rows)
    if not has_arms:
        yield Goal(shared, rows_needs)
    if fills:
        yield Goal(rows, rows_needs if has_arms else Conditions({shared}))
    outputs = set(index.outputs(derivation)) | (edges.keys() - {rows})
    for column in sorted(outputs):
        needs = conditions(rows, column) if has_arms else conditions(column)
        if not has_arms:
            needs.always.add(shared)
        if not fills:
            needs.always.add(rows)
        yield Goal(column, needs)


def _conditions(
    index: Index,
    dataset: int,
    edges: dict[int, list[int]],
    arms: dict[int, set[int]],
    outer: Outer,
    opaque: bool,
    datasets: Collection[int] | None,
    *targets: int,
) -> Conditions:
    """What some nodes of a dataset need, arm by arm: the sources of the edges into them."""
    found = Conditions()
    for target in targets:
        into = edges.get(target, ())
        several = len(outer.starts) > 0 and len({index.node_dataset[index.edge_source[e]] for e in into}) > 1
        spared = (several or index.is_rows(target)) and not opaque
        for edge in _needed(index, dataset, into, opaque=opaque):
            source, kind = index.edge_source[edge], index.kind(edge)
            start, arm = index.node_dataset[source], index.arm(edge)
            needed = (source,) if datasets is None or start in datasets else ()
            if start in outer.starts and outer.has(start, arm):
                if kind is EdgeKind.READ and outer.one_of_all:
                    found.groups.setdefault(ONE_OF_ALL, {}).setdefault(start, set()).update(needed)
                    continue
                if spared or kind in _OF_ROWS:
                    continue
            # An arm of 0 is everyone's, or from a version that did not tell.
            for each in arms.get(start, {0}) if kind is EdgeKind.READ and not arm else (arm,):
                found.add(each, *needed)
    # An arm that a column takes nothing from is an alternative all the same.
    for arm in set().union(*arms.values()) - {0}:
        found.add(arm)
    return found


def _needed(index: Index, dataset: int, into: Iterable[int], *, opaque: bool) -> Iterator[int]:
    """The edges of which a node of a dataset needs the sources; opaque ones only where these count."""
    for edge in into:
        kind = index.kind(edge)
        if index.node_dataset[index.edge_source[edge]] == dataset or kind in _NOT_NEEDED:
            continue
        if opaque or kind is not EdgeKind.OPAQUE:
            yield edge


def _arms(index: Index, edges: dict[int, list[int]]) -> dict[int, set[int]]:
    """The arms that a source dataset takes part in, by the edges out of its columns; 0 if any of them is everyone's."""
    found: dict[int, set[int]] = {}
    for into in edges.values():
        for edge in into:
            if index.kind(edge) is not EdgeKind.READ:
                found.setdefault(index.node_dataset[index.edge_source[edge]], set()).add(index.arm(edge))
    return {dataset: {0} if 0 in arms else arms for dataset, arms in found.items()}


@dataclass(frozen=True, slots=True)
class ColumnLoss:
    """The nodes that lose their last source by a deletion, sorted."""

    lost: tuple[int, ...]
    """Columns and row sets that were grounded and are no longer."""
    unknown: tuple[int, ...]
    """True if they are depends on steps that could not be understood."""


def losses(index: Index, deleted: Collection[int]) -> ColumnLoss:
    """What loses its last source when columns or datasets (their row sets) are deleted; these themselves left out."""
    gone = set(deleted)
    for node in deleted:
        inside = index.columns(index.node_dataset[node]) if index.is_rows(node) else index.fields(node)
        gone.update(inside)
    datasets = Region(index, _NOT_NEEDED, _FILLS).around(gone) if index.edge_count > SMALL else None
    lost = {}
    for opaque in (True, False):
        proofs = _Proofs(goals(index, opaque=opaque, datasets=datasets))
        found = deletion(proofs.graph(), proofs.needs, proofs.known(gone), small=_SMALL_PROOFS)
        lost[opaque] = proofs.named(frozenset(found.nodes)) - gone
    certain = lost[True] & lost[False]
    return ColumnLoss(tuple(sorted(certain)), tuple(sorted(lost[True] - certain)))
