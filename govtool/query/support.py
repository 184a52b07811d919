"""Deletion propagation by grounded support: what is left without its sources, and what another source still feeds.

A dataset that nothing in the graph makes is grounded by itself. Any other is grounded if one of its derivations holds
(they are alternatives). A derivation holds if all that every alternative of it needs is grounded, and of each group of
alternatives (the arms of a UNION, the branches of a MERGE) one is: any-of within a group, all-of between groups
(``Edge.arm``). What a dataset takes from itself does not count, so that a loop that only feeds itself dies. A column is
grounded if a derivation of its dataset holds together with what the column is made of.

Support is the least fixpoint: whatever has a finite proof. After Green, Karvounarakis, Tannen, "Provenance semirings"
(Boolean), and Ives and others, "ORCHESTRA", on cyclic derivations.

Limits, all on the careful side: inner and outer joins need both sides, and so does EXCEPT; an arm of constants alone
leaves no trace in the graph. ORDER BY and the columns of UNION ALL are not needed by anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.query.region import Region

SMALL = 20_000
"""Edges of a graph that is proved as a whole: about as long as it takes to import numpy."""

ARMS = 4096
"""Arms of a group; see ``govtool.capture.sql.walk.dependencies.arm_of``."""
_NOT_NEEDED = frozenset({EdgeKind.SORT, EdgeKind.UNION_ALL})
_FILLS = frozenset({"replace", "append", "rename"})
"""Modes that make rows; the others change what is there."""


@dataclass(slots=True)
class Conditions:
    """What a goal needs: everything of ``always``, and of every group one arm."""

    always: set[int] = field(default_factory=set)
    groups: dict[int, dict[int, set[int]]] = field(default_factory=dict)

    def add(self, arm: int, *nodes: int) -> None:
        """Add an arm and what it needs; of arm 0 it is everyone's."""
        if arm:
            self.groups.setdefault(arm // ARMS, {}).setdefault(arm, set()).update(nodes)
        else:
            self.always.update(nodes)

    def hold(self, grounded: Collection[int]) -> bool:
        """Whether the grounded nodes suffice."""
        return all(n in grounded for n in self.always) and all(
            any(all(n in grounded for n in needs) for needs in arms.values()) for arms in self.groups.values()
        )

    def nodes(self) -> set[int]:
        """All nodes that matter."""
        return self.always.union(*(needs for arms in self.groups.values() for needs in arms.values()))


@dataclass(frozen=True, slots=True)
class Goal:
    """One way for a node to be grounded."""

    node: int
    needs: Conditions


def settle(all_goals: Iterable[Goal], gone: Collection[int]) -> set[int]:
    """The least fixpoint of goals."""
    waiting: dict[int, list[Goal]] = defaultdict(list)
    found: set[int] = set()
    stack: list[int] = []

    def prove(goal: Goal) -> None:
        if goal.node not in found and goal.node not in gone and goal.needs.hold(found):
            found.add(goal.node)
            stack.append(goal.node)

    listed = list(all_goals)
    for goal in listed:
        for node in goal.needs.nodes():
            waiting[node].append(goal)
    for goal in listed:
        prove(goal)
    while stack:
        for goal in waiting.get(stack.pop(), ()):
            prove(goal)
    return found


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
    """Whether a derivation takes everything from its own dataset."""
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
    arms = _arms(index, edges)

    def conditions(column: int | None) -> Conditions:
        found = Conditions()
        for into in (rows, *([] if column is None else [column])):
            for edge in edges.get(into, ()):
                source, kind = index.edge_source[edge], index.kind(edge)
                start = index.node_dataset[source]
                if start == dataset or kind in _NOT_NEEDED or (kind is EdgeKind.OPAQUE and not opaque):
                    continue
                needed = (source,) if datasets is None or start in datasets else ()
                if kind is EdgeKind.READ and not index.arm(edge):  # everyone's, or from a version that did not tell
                    for arm in arms.get(start, {0}):
                        found.add(arm, *needed)
                else:
                    found.add(index.arm(edge), *needed)
        # An arm that a column takes nothing from is an alternative all the same.
        for arm in {a for one in arms.values() for a in one if a}:
            found.add(arm)
        return found

    if fills:
        yield Goal(rows, conditions(None))
    outputs = set(index.outputs(derivation)) | (edges.keys() - {rows})
    for column in sorted(outputs):
        needs = conditions(column)
        if not fills:
            needs.always.add(rows)
        yield Goal(column, needs)


def _arms(index: Index, edges: dict[int, list[int]]) -> dict[int, set[int]]:
    """The arms that a source dataset takes part in, by the edges out of its columns; 0 if any of them is everyone's."""
    found: dict[int, set[int]] = {}
    for into in edges.values():
        for edge in into:
            if index.kind(edge) is not EdgeKind.READ:
                found.setdefault(index.node_dataset[index.edge_source[edge]], set()).add(index.arm(edge))
    return {dataset: {0} if 0 in arms else arms for dataset, arms in found.items()}


@dataclass(frozen=True, slots=True)
class Loss:
    """What a deletion takes the last source from, sorted nodes."""

    lost: tuple[int, ...]
    """Columns and row sets that were grounded and are no longer."""
    unknown: tuple[int, ...]
    """Whether they are depends on steps that could not be understood."""


def losses(index: Index, deleted: Collection[int]) -> Loss:
    """What loses its last source when columns or datasets (their row sets) are deleted; these themselves left out."""
    gone = set(deleted)
    for node in deleted:
        inside = index.columns(index.node_dataset[node]) if index.is_rows(node) else index.fields(node)
        gone.update(inside)
    datasets = Region(index, _NOT_NEEDED, _FILLS).around(gone) if index.edge_count > SMALL else None
    lost = {}
    for opaque in (True, False):
        ways = list(goals(index, opaque=opaque, datasets=datasets))
        lost[opaque] = settle(ways, ()) - settle(ways, gone) - gone
    certain = lost[True] & lost[False]
    return Loss(tuple(sorted(certain)), tuple(sorted(lost[True] - certain)))
