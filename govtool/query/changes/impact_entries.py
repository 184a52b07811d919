"""Entries of the answer to ``impact``: what is reached, the way to it, and the statements that show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from govtool.graph.index import Index
from govtool.graph.walks.rules import Reach, Reached, Rules
from govtool.model.diagnostic import Diagnostic
from govtool.model.kinds import EdgeKind
from govtool.query.changes.change import ChangeVerdict
from govtool.query.evidence import Evidence, WayStep, evidences, parallel, step
from govtool.query.selection.select import Subject


@dataclass(frozen=True, slots=True)
class Impacted:
    """A column that is reached, or the rows of a dataset."""

    column: str
    """Canonical text; ``dataset.*`` for the rows, which imply every column."""
    dataset: str
    dataset_kind: str
    verdict: ChangeVerdict | None
    """``None`` upstream."""
    kinds: tuple[EdgeKind, ...]
    """The kinds of the edges by which the reach enters the column, sorted."""
    hops: int
    """Datasets that the shortest way with this verdict enters, temporary ones not counted."""
    path: tuple[str, ...]
    """That way: canonical texts from the subject to this column, temporary datasets left out."""
    via: tuple[str, ...]
    """The label of each of its hops: ``copy``, ``lower()``, ``join key``."""
    evidence: tuple[Evidence, ...]
    """The statements behind the last hop: that of the column first, then those of temporary datasets before it."""
    steps: tuple[WayStep, ...]
    """The way edge by edge, temporary datasets included."""
    is_rows: bool = False
    columns: int = 1
    """For rows: how many top-level columns the dataset has."""
    implied: int = 0
    """For rows: how many of them have no entry of their own; 0 if ``rows_only``."""
    rows_only: bool = False
    """For rows, upstream: what matters is which rows there are, and the columns are not implied."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """The diagnostics of the statements of ``evidence``."""
    classes: tuple[str, ...] = ()
    """The classes of its values, sorted. Queries have no policies: the callers that have them set this."""
    possible_classes: tuple[str, ...] = ()
    """Classes that it may have besides: whether it does could not be decided. Filled in like ``classes``."""
    owner: str | None = None
    """The owner of the dataset. Filled in like ``classes``."""
    node: int = field(default=-1, compare=False, repr=False)
    """Its number in the queried index."""


class ImpactLine(NamedTuple):
    """A line of a table: an entry, but for columns whose relation has their verdict as a whole."""

    entry: Impacted
    columns: tuple[str, ...] = ()
    """Of a relation: the columns that it stands for and that are reached by themselves, by name, the nearest first."""


class EntryWriter:
    """Turns what was reached into entries."""

    def __init__(
        self,
        index: Index,
        rules: Rules,
        direction: str,
        follow: frozenset[int],
        subjects: tuple[Subject, ...],
        reach: Reach,
    ) -> None:
        self.index = index
        self.reach = reach
        self.states = rules.states
        self.implies = rules.implies
        self.down = direction == "down"
        self.follow = follow
        self.subjects = subjects
        self._diagnostics: dict[int, tuple[Diagnostic, ...]] = {}

    def entry_of(self, found: Reached) -> Impacted:
        """The entry of a node that was reached, with the way to it and the evidence of its last hop."""
        index, node = self.index, found.node
        dataset = index.node_dataset[node]
        way = self._way(found.key)
        steps = tuple(self._step(*hop) for hop in way)
        is_rows = index.is_rows(node)
        last = self._last(way)
        return Impacted(
            column=index.name(node),
            dataset=index.dataset_name(dataset),
            dataset_kind=index.dataset_kind(dataset),
            verdict=ChangeVerdict(found.rank) if self.down else None,
            kinds=self._kinds(node, way),
            hops=found.hops,
            path=self._path(way, self._start(found.key)),
            via=self._via(steps),
            evidence=tuple(dict.fromkeys(e for edges in last for e in self._evidence(edges))),
            steps=steps,
            is_rows=is_rows,
            columns=index.column_count(dataset) if is_rows else 1,
            implied=found.implied,
            rows_only=is_rows and not self.implies(found.key // index.node_count),
            diagnostics=self._remarks(last),
            node=node,
        )

    def _evidence(self, edges: list[int]) -> Iterator[Evidence]:
        """The statements behind a hop: first the one of the way, with the expression whose functions are named."""
        own = evidences(self.index, edges[:1])
        yield from own
        if len(edges) > 1:
            known = {replace(one, expression=None) for one in own}
            yield from (one for one in evidences(self.index, edges) if replace(one, expression=None) not in known)

    def _remarks(self, hop: list[list[int]]) -> tuple[Diagnostic, ...]:
        """The diagnostics of the statements behind a hop; most have none, and many hops share a statement."""
        index, known = self.index, self._diagnostics
        found: list[Diagnostic] = []
        for derivation in {index.derivation_of(edge) for edges in hop for edge in edges}:
            if derivation not in known:
                known[derivation] = index.diagnostics(derivation)
            found += known[derivation]
        return tuple(sorted(dict.fromkeys(found), key=Diagnostic.sort_key)) if found else ()

    def _way(self, key: int) -> list[tuple[int, int]]:
        """Edges in their own direction, each with the node that it reached (that it came from, upstream)."""
        way: list[tuple[int, int]] = []
        while (before := self.reach.step(key)) is not None:
            way.append((before[1], key % self.index.node_count))
            key = before[0]
        if self.down:
            way.reverse()
        return way

    def _step(self, edge: int, node: int) -> WayStep:
        return step(self.index, edge, node if self.down else None)

    def _start(self, key: int) -> str:
        """Return the subjects that a way comes from, or leads to."""
        if len(self.subjects) == 1:
            return self.subjects[0].text
        while (before := self.reach.step(key)) is not None:
            key = before[0]
        node = key % self.index.node_count
        exact = [one.text for one in self.subjects if one.node == node]
        return exact[0] if exact else next(s.text for s in self.subjects if s.dataset == self.index.node_dataset[node])

    def _path(self, way: list[tuple[int, int]], start: str) -> tuple[str, ...]:
        index = self.index
        nodes = [index.name(node) for _, node in way if not index.is_elided(index.node_dataset[node])]
        return (start, *nodes) if self.down else (*nodes, start)

    def _via(self, steps: tuple[WayStep, ...]) -> tuple[str, ...]:
        """Labels hop by hop; the steps through a temporary dataset are one hop, and its copies have no label."""
        found: list[str] = []
        passing: list[str] = []
        for i, one in enumerate(steps):
            passing.append(one.label)
            if one.elided and i + 1 < len(steps):
                continue
            labels = [label for label in passing if label != "copy"] or ["copy"]
            found.append(" → ".join(dict.fromkeys(labels)))
            passing = []
        return tuple(found)

    def _last(self, way: list[tuple[int, int]]) -> list[list[int]]:
        """The edges of the last hop with those parallel to them, from its end back through temporary datasets."""
        index = self.index
        hop: list[list[int]] = []
        for edge, _ in reversed(way) if self.down else way:
            start, end = index.ends(edge)
            from_node = start if self.down else end
            # The edge of the way first: the first place is that of the functions that are named.
            hop.append([edge, *(other for other in parallel(index, edge) if other != edge)])
            if not index.is_elided(index.node_dataset[from_node]):
                break
        return hop

    def _kinds(self, node: int, way: list[tuple[int, int]]) -> tuple[EdgeKind, ...]:
        index = self.index
        last = way[-1 if self.down else 0][0] if way else None
        found = set() if last is None or index.is_reference(last) else {index.kind(last)}
        edges: Iterable[int] = index.in_edges(node) if self.down else index.out_edges(node)
        for edge in edges:
            kind = index.kind(edge)
            if kind in self.follow and kind not in found:
                end = index.edge_source[edge] if self.down else index.edge_target[edge]
                if self._reached(end) or (self.down and kind is not EdgeKind.READ and self._any(end)):
                    found.add(kind)
        return tuple(sorted(found))

    def _reached(self, node: int) -> bool:
        index = self.index
        around = (node, *index.containers(node), *index.fields(node)) if len(index.nested) else (node,)
        return any(state * index.node_count + one in self.reach for one in around for state in range(self.states))

    def _any(self, node: int) -> bool:
        """Return whether any column is reached of the dataset whose row set this is."""
        index = self.index
        if not index.is_rows(node):
            return False
        return any(self._reached(column) for column in index.columns(index.node_dataset[node]))
