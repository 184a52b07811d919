"""The ways from one column or dataset to another, the shortest first, with the evidence of every hop."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from govtool.graph.codes import KIND_MASK
from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.query.changes.change import followed
from govtool.query.evidence import Evidence, WayStep, evidences, parallel, step
from govtool.query.selection.select import Subject, nothing_selected, select
from govtool.wording import few

EFFORT = 50_000
"""Partial ways that are looked at before the search stops and says that there may be more."""


@dataclass(frozen=True, slots=True)
class Hop:
    """From one node to the next, with every edge between them (kinds, arms and statements may differ)."""

    source: str
    target: str
    steps: tuple[WayStep, ...]
    """One a distinct edge, by kind and place."""
    evidence: tuple[Evidence, ...]
    elided: bool
    """The target is temporary, dropped or an ended version; not counted as a hop."""


@dataclass(frozen=True, slots=True)
class Way:
    """One simple way."""

    nodes: tuple[str, ...]
    """Canonical texts from start to end, temporary datasets left out."""
    hops: tuple[Hop, ...]
    length: int
    """Hops, those into temporary datasets not counted."""


@dataclass(frozen=True, slots=True)
class PathResult:
    """The answer."""

    source: str
    target: str
    ways: tuple[Way, ...]
    """By length, then by name."""
    more: bool
    """True if there are (or may be) more than ``limit`` asked for."""
    sources: tuple[str, ...] = ()
    """Each of what the ways may start from."""
    targets: tuple[str, ...] = ()
    """Each of what they may lead to."""


def paths(
    index: Index,
    a: str | Subject | Sequence[Subject],
    b: str | Subject | Sequence[Subject],
    limit: int = 5,
    *,
    kinds: Iterable[EdgeKind] | None = None,
    semantics: str = "precise",
) -> PathResult:
    """Find the shortest simple ways by which ``a`` reaches ``b``.

    A column reaches a dataset's rows by reaching its row set; reaching a row set is reaching each of its columns. Of
    several starts and ends, a way is told from any to any, and none that has a shorter one inside: no way enters a
    second start, and each ends where it first can. What is a start and an end at once is both.

    Raises:
        UnknownNameError: No such column or dataset.
        AmbiguousNameError: Several.
        UsageError: Of several, there are none (``usage.nothing-selected``).
    """
    starts, ends = _subjects(index, a), _subjects(index, b)
    search = _Search(index, followed(kinds, semantics), several=len(starts) > 1 or len(ends) > 1)
    ways: list[Way] = []
    more = False
    begin = {node for one in starts for node in _nodes(index, one)}
    goal = {node for one in ends for node in (*_nodes(index, one), index.rows(one.dataset))}
    called = _Called(starts)
    for way in search.run(begin, goal):
        if len(ways) == limit:
            more = True
            break
        ways.append(_to_way(index, way, called.start(index, way[0][0])))
    sources, targets = tuple(one.text for one in starts), tuple(one.text for one in ends)
    return PathResult(few(sources), few(targets), tuple(ways), more or search.exhausted, sources, targets)


def _subjects(index: Index, names: str | Subject | Sequence[Subject]) -> tuple[Subject, ...]:
    if isinstance(names, str):
        return (select(index, names),)
    found = (names,) if isinstance(names, Subject) else tuple(names)
    if not found:
        raise nothing_selected()
    return found


class _Called:
    """The name of a way's start: the column, or the dataset if it is the subject as a whole."""

    def __init__(self, starts: tuple[Subject, ...]) -> None:
        self.only = starts[0].text if len(starts) == 1 else None
        self.columns = {one.node: one.text for one in starts if one.node is not None}
        self.datasets = {one.dataset: one.text for one in starts if one.node is None}

    def start(self, index: Index, node: int) -> str:
        """By the way's first node."""
        if self.only is not None:
            return self.only
        return self.columns.get(node) or self.datasets[index.node_dataset[node]]


def _nodes(index: Index, subject: Subject) -> set[int]:
    if subject.node is not None:
        return {subject.node}
    return {index.rows(subject.dataset), *index.columns(subject.dataset)}


class _Search:
    """Best-first search with the true distance to the end as its estimate: it expands little but what it returns."""

    def __init__(self, index: Index, follow: frozenset[int], *, several: bool = False) -> None:
        self.index = index
        self.follow = follow
        self.several = several
        """True if what is a start and an end is both; else it is an end alone."""
        self.exhausted = False
        self.struct = len(index.nested) > 0

    def run(self, starts: set[int], ends: set[int]) -> Iterator[list[tuple[int, int]]]:
        """Yield ways as lists of (node reached from, edge)."""
        left = self._distances(ends)
        heap: list[tuple[int, int, tuple[int, ...], tuple[int, ...], int]] = []
        barred = starts - ends if self.several else starts
        for node in sorted(starts if self.several else starts - ends):
            if node in left:
                heap.append((left[node], 0, (node,), (), 0))
        heapq.heapify(heap)
        effort = 0
        while heap:
            _, _, nodes, edges, cost = heapq.heappop(heap)
            node = nodes[-1]
            if node in ends and edges:
                yield list(zip(nodes, edges, strict=False))
                continue
            effort += 1
            if effort > EFFORT:
                self.exhausted = True
                return
            taken: set[int] = set()
            for edge in self._out(node):
                goal = self.index.edge_target[edge]
                if goal in left and goal not in nodes and goal not in barred and goal not in taken:
                    taken.add(goal)
                    price = cost + self._price(goal)
                    # Ties: fewer edges, then smaller nodes, which are in the order of their names.
                    heapq.heappush(heap, (price + left[goal], len(edges) + 1, (*nodes, goal), (*edges, edge), price))

    def _price(self, node: int) -> int:
        return 0 if self.index.is_elided(self.index.node_dataset[node]) else 1

    def _out(self, node: int) -> Iterator[int]:
        """The edges that a reached node follows; see ``govtool.graph.walks.rules.Relation``."""
        index = self.index
        for one in (node, *index.fields(node), *index.containers(node)) if self.struct else (node,):
            yield from (e for e in index.out_edges(one) if index.edge_tag[e] & KIND_MASK in self.follow)
        if not index.is_rows(node):
            for edge in index.row_edges(index.node_dataset[node]):
                if index.edge_tag[edge] & KIND_MASK in self.follow:
                    yield edge

    def _into(self, node: int) -> Iterator[int]:
        """The nodes that reach a node in one step."""
        index = self.index
        for edge in index.in_edges(node):
            tag = index.edge_tag[edge]
            if tag & KIND_MASK not in self.follow:
                continue
            source = index.edge_source[edge]
            yield source
            if index.is_rows(source):
                if tag & KIND_MASK != EdgeKind.READ:
                    yield from index.columns(index.node_dataset[source])
            elif self.struct:
                yield from index.containers(source)
                yield from index.fields(source)

    def _distances(self, ends: set[int]) -> dict[int, int]:
        """Hops from each node to the nearest end, for the nodes that reach one."""
        left = dict.fromkeys(ends, 0)
        heap = [(0, node) for node in sorted(ends)]
        while heap:
            distance, node = heapq.heappop(heap)
            if left[node] < distance:
                continue
            for source in self._into(node):
                price = distance + self._price(node)
                if price < left.get(source, price + 1):
                    left[source] = price
                    heapq.heappush(heap, (price, source))
        return left


def _to_way(index: Index, way: list[tuple[int, int]], start: str) -> Way:
    hops = tuple(_hop(index, edge) for _, edge in way)
    shown = [hop.target for hop in hops if not hop.elided]
    return Way((start, *shown) if len(way) else (start,), hops, len(shown))


def _hop(index: Index, edge: int) -> Hop:
    node = index.edge_target[edge]
    kinds = {
        index.kind(e): e for e in reversed(index.out_edges(index.edge_source[edge])) if index.edge_target[e] == node
    }
    edges = [e for one in kinds.values() for e in parallel(index, one)]
    steps = sorted(
        dict.fromkeys(step(index, e) for e in edges),
        key=lambda s: (s.kind, s.evidence.file, s.evidence.line, s.functions, s.reason or ""),
    )
    return Hop(
        source=index.name(index.edge_source[edge]),
        target=index.name(node),
        steps=tuple(steps),
        evidence=evidences(index, edges),
        elided=index.is_elided(index.node_dataset[node]),
    )
