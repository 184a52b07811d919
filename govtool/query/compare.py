"""Lineage from text against lineage from runs: the edges that only one of two kinds of evidence has, and why.

Both sides are reduced to the datasets that both know and that hold data: a way through a view, a temporary table or a
name that the other side does not speak of counts as one edge from where it begins to where it ends. An edge that only
the text has is dead code, a branch that did not run, or a mistake of the reader; one that only a run has is dynamic
code, or a statement that the text reader did not see or understand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from govtool.graph.index import Index
from govtool.model.kinds import EdgeKind
from govtool.query.alias import is_alias, other_names
from govtool.query.evidence import evidence

SIDES = ("static", "runtime")

_VIEWS = frozenset({"view", "materialized_view", "temporary", "query"})


class EvidenceEdge(NamedTuple):
    """An edge between datasets that both sides know."""

    target: str
    """Canonical text of a column, or of a row set."""
    source: str
    kind: str
    """``value`` (of a column, or steering it), ``rows`` (a column decides which rows) or ``read`` (rows to rows)."""


@dataclass(frozen=True, slots=True)
class Only:
    """An edge that one side has."""

    side: str
    flow: EvidenceEdge
    reason: str
    """``differs``; ``partial: CODE`` where the other side says that it does not know all of the target; ``rows not
    told`` where it never says which columns decide on the rows of the target."""
    place: str
    """The place of the evidence on the side that has it."""


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A dataset that only one side says how to make."""

    side: str
    dataset: str
    edges: int
    reason: str
    """``never ran``: no run wrote it; ``no text``: no statement does."""
    place: str


@dataclass(frozen=True, slots=True)
class EvidenceComparison:
    """Two kinds of evidence compared; lists are sorted."""

    datasets: int
    """Datasets that both sides say how to make."""
    both: int
    """Edges that both have."""
    only: tuple[Only, ...]
    unmatched: tuple[Unmatched, ...]

    @property
    def differs(self) -> bool:
        """True if anything is said by one side only."""
        return bool(self.only or self.unmatched)


def compare(static: Index, runtime: Index) -> EvidenceComparison:
    """Compare two graphs of one version, of different evidence."""
    names = _Names(static, runtime)
    sides = _Side("static", static, names), _Side("runtime", runtime, names)
    shared = (sides[0].known & sides[1].known) - sides[0].passed - sides[1].passed
    made = [{name for name in side.made if name not in side.passed} for side in sides]
    flows = [side.flows(made[0] & made[1], shared) for side in sides]
    row_targets = [{flow.target for flow in found if flow.kind == "rows"} for found in flows]
    only: list[Only] = []
    unmatched: list[Unmatched] = []
    for side, other in ((0, 1), (1, 0)):
        for flow in flows[side].keys() - flows[other].keys():
            dataset, place = flows[side][flow]
            reason = sides[other].partial(dataset, flow.target)
            silent = flow.kind == "rows" and flow.target not in row_targets[other]
            reason_text = f"partial: {reason}" if reason else "rows not known" if silent else "differs"
            only.append(Only(SIDES[side], flow, reason_text, place))
        for name in made[side] - made[other]:
            edges, place = sides[side].size(name)
            if edges:
                unmatched.append(Unmatched(SIDES[side], name, edges, ("never ran", "no text")[side], place))
    return EvidenceComparison(
        len(made[0] & made[1]),
        len(flows[0].keys() & flows[1].keys()),
        tuple(sorted(only, key=lambda one: (one.flow, one.side))),
        tuple(sorted(unmatched, key=lambda one: (one.dataset, one.side))),
    )


class _Names:
    """One name for all names of a dataset that the graph says are the same; the text's own where it has one."""

    def __init__(self, static: Index, runtime: Index) -> None:
        above: dict[str, str] = {}

        def root(name: str) -> str:
            while above.get(name, name) != name:
                name = above[name]
            return name

        for index in (static, runtime):
            for one, other in _aliases(index):
                above[root(one)] = root(other)
        static_names = {static.dataset_name(d) for d in static.datasets()}
        classes: dict[str, list[str]] = {}
        for name in above:
            classes.setdefault(root(name), []).append(name)
        self._name = {
            member: min(members, key=lambda name: (name not in static_names, name))
            for members in ([*found, first] for first, found in classes.items())
            for member in members
        }

    def of(self, name: str) -> str:
        return self._name.get(name, name)


def _aliases(index: Index) -> Iterator[tuple[str, str]]:
    for dataset in index.datasets():
        for other in other_names(index, dataset):
            yield index.dataset_name(dataset), index.dataset_name(other)


class _Side:
    def __init__(self, label: str, index: Index, names: _Names) -> None:
        self.label, self.index, self._names = label, index, names
        self.datasets: dict[str, list[int]] = {}
        for dataset in range(index.dataset_count):
            if not index.is_elided(dataset) and not index.is_hidden(dataset):
                self.datasets.setdefault(names.of(index.dataset_name(dataset)), []).append(dataset)
        self.known = frozenset(self.datasets)
        self.passed = {n for n, ds in self.datasets.items() if any(index.dataset_kind(d) in _VIEWS for d in ds)}
        self.made = {name for name, ds in self.datasets.items() if any(self._makes(d) for d in ds)}

    def _makes(self, dataset: int) -> bool:
        """Return whether something fills a dataset, not only declares it or gives it another name."""
        return any(
            self.index.mode(derivation) not in ("declare", "drop") and not is_alias(self.index, derivation)
            for derivation in self.index.makers(dataset)
        )

    def _name(self, node: int) -> str:
        index = self.index
        return f"{self._names.of(index.dataset_name(index.node_dataset[node]))}.{index.path(node)}"

    def flows(self, targets: Iterable[str], ends: Iterable[str]) -> dict[EvidenceEdge, tuple[str, str]]:
        """The edges into some datasets from others that end a way: with the dataset, and the place that says so."""
        found: dict[EvidenceEdge, tuple[str, str]] = {}
        ending = frozenset(ends)
        for name in targets:
            for dataset in self.datasets[name]:
                for node in (self.index.rows(dataset), *self.index.columns(dataset)):
                    if not self.index.is_unknown(node):
                        self._into(node, name, ending, found)
        return found

    def _into(self, node: int, own: str, ending: frozenset[str], found: dict[EvidenceEdge, tuple[str, str]]) -> None:
        index = self.index
        target, to_rows = self._name(node), index.is_rows(node)
        seen, stack = {node}, [(node, "")]
        while stack:
            at, statement_place = stack.pop()
            for edge in index.in_edges(at):
                if index.kind(edge) is EdgeKind.OPAQUE:
                    continue
                source = index.edge_source[edge]
                place = statement_place or self._place(index.edge_derivation[edge])
                name = self._names.of(index.dataset_name(index.node_dataset[source]))
                ends = name in ending or not index.in_edges(source)
                if ends and not (name == own and self._is_alias(edge)):
                    if not index.is_unknown(source):
                        kind = "read" if index.is_rows(source) else "rows" if to_rows else "value"
                        found.setdefault(EvidenceEdge(target, self._name(source), kind), (own, place))
                elif source not in seen:
                    seen.add(source)
                    stack.append((source, statement_place if self._is_alias(edge) else place))

    def _is_alias(self, edge: int) -> bool:
        return is_alias(self.index, self.index.edge_derivation[edge])

    def _place(self, derivation: int) -> str:
        return evidence(self.index, derivation).place

    def size(self, name: str) -> tuple[int, str]:
        """Return the number of edges into a dataset, and the place of the first."""
        edges = [
            edge
            for dataset in self.datasets[name]
            for node in (self.index.rows(dataset), *self.index.columns(dataset))
            for edge in self.index.in_edges(node)
            if not self._is_alias(edge)
        ]
        places = sorted(self._place(self.index.edge_derivation[edge]) for edge in edges)
        return len(edges), places[0] if places else ""

    def partial(self, name: str, target: str) -> str:
        """Return why this side may miss edges into a column or row set of a dataset; empty if it should not."""
        index = self.index
        for dataset in self.datasets[name]:
            nodes = {index.rows(dataset), *(n for n in index.columns(dataset) if index.is_unknown(n))}
            node = index.find_column(dataset, target[len(name) + 1 :])
            nodes |= {node} if node is not None else set()
            edges = [edge for one in nodes for edge in index.in_edges(one)]
            reasons = [index.reason(edge) or "opaque" for edge in edges if index.kind(edge) is EdgeKind.OPAQUE]
            codes = [
                note.code
                for derivation in index.makers(dataset)
                if index.field(derivation, "status") != "understood"
                for note in index.diagnostics(derivation)
            ]
            if reasons or codes:
                return min(reasons or codes)
        return ""
