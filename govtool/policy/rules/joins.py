"""Rules about joins: data of two classes comes together in one statement, from different datasets.

Columns of different alternatives of one UNION or MERGE do not come together; those of one alternative do, whether they
are selected, joined on, or filtered by. An UPDATE brings what it sets together with what the dataset holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

from govtool.arrays.numpy_threads import np
from govtool.arrays.sets import distinct
from govtool.graph.codes import KIND_MASK, UPDATE
from govtool.model.kinds import EdgeKind
from govtool.policy.classes.propagate import Propagation
from govtool.policy.classes.provenance_paths import TaintState, leading_to, ways
from govtool.policy.classes.taints import Mode, Taint, possible_group
from govtool.policy.files.model import JoinRule, Rule
from govtool.policy.files.policy_set import PlacedPart
from govtool.policy.rules.finding import Finding, RuleVerdict
from govtool.policy.rules.judge import Approvals, taints_of
from govtool.query.changes.positions import ARMS
from govtool.query.evidence import WayStep, step
from govtool.query.selection.patterns import Patterns

Array = np.ndarray[Any, np.dtype[Any]]


class Side(NamedTuple):
    """Data of one class enters a statement."""

    dataset: int
    node: int
    edge: int
    """-1 where the updated dataset holds it already."""
    certain: bool


def judge_joins(spread: Propagation, rule: PlacedPart[Rule], today: date) -> list[Finding]:
    """Find the statements that join two classes; one finding for each pair of source datasets and each target."""
    body: JoinRule = rule.value.body
    names = Patterns(body.in_, spread.index.paths_root)
    approved = Approvals(rule.value, today, spread.index.paths_root)
    search = _Joins(spread, rule.value, body)
    found: dict[tuple[str, str], Finding] = {}
    for derivation in search.candidates():
        pairs = search.pairs(derivation)
        if not pairs:
            continue
        for dataset in search.shown(derivation):
            name = spread.index.dataset_name(dataset)
            if not names.match(name) or approved.cover(f"{name}.*"):
                continue
            for one, other in pairs:
                finding = search.finding(rule, one, other, derivation, name)
                key = (finding.source, finding.column)
                if key not in found or finding.verdict < found[key].verdict:
                    found[key] = finding
    return list(found.values())


class _Joins:
    """Looks for pairs in statements."""

    def __init__(self, spread: Propagation, rule: Rule, body: JoinRule) -> None:
        self.spread, self.index, self.body = spread, spread.index, body
        self.taints = [frozenset(taints_of(spread, rule, [name], (0,))) for name in body.classes]
        a = self.index.arrays
        self.source, self.derivation = np.asarray(a["edge_source"]), np.asarray(a["edge_derivation"])
        self.kind = np.asarray(a["edge_tag"]) & KIND_MASK
        self.nodes = [self._holding(t) for t in self.taints]
        self._arrivals: dict[tuple[int, int, bool], tuple[int, ...]] = {}

    def _holding(self, taints: frozenset[Taint]) -> tuple[Array, Array]:
        """bool[nodes] twice: has the data for certain; or maybe."""
        marks = []
        for mode in (Mode.VALUE, Mode.UNKNOWN):
            mark = np.zeros(self.index.node_count, bool)
            nodes = self.spread.having(mode, taints)
            mark[nodes] = True
            if len(self.index.nested):
                for node in nodes.tolist():
                    mark[[*self.index.containers(node), *self.index.fields(node)]] = True
            marks.append(mark)
        return marks[0], marks[1]

    def candidates(self) -> list[int]:
        """Derivations that data of both classes enters."""
        both: Array | None = None
        for certain, maybe in self.nodes:
            held = certain | maybe
            usable = held[self.source] & (self.kind != EdgeKind.UNION_ALL)
            mark = np.zeros(len(self.index.arrays["derivation_target"]), bool)
            mark[self.derivation[usable]] = True
            for dataset in distinct(np.asarray(self.index.node_dataset)[held]).tolist():
                for maker in self.index.makers(dataset):
                    mark[maker] |= self.index.arrays["derivation_mode"][maker] == UPDATE
            both = mark if both is None else both & mark
        return np.flatnonzero(both).tolist() if both is not None else []

    def shown(self, derivation: int) -> list[int]:
        """The datasets that answers name: the target, or for a temporary one those that read it."""
        index = self.index
        start = index.target(derivation)
        if not index.is_elided(start):
            return [start]
        seen, stack, found = {start}, [start], set()
        while stack:
            for edge in index.out_edges(index.rows(stack.pop())):
                dataset = index.node_dataset[index.edge_target[edge]]
                if dataset in seen:
                    continue
                seen.add(dataset)
                if index.is_elided(dataset):
                    stack.append(dataset)
                else:
                    found.add(dataset)
        return sorted(found) or [start]

    def pairs(self, derivation: int) -> list[tuple[Side, Side]]:
        """Sides of the two classes from different datasets, one pair for each pair of datasets."""
        ones, others = self._sides(derivation, 0), self._sides(derivation, 1)
        found: dict[tuple[int, int], tuple[Side, Side]] = {}
        for one in ones:
            for other in others:
                if one.dataset == other.dataset or self._apart(one.edge, other.edge):
                    continue
                key = (one.dataset, other.dataset)
                best = found.get(key)
                if best is None or _rank(one, other) < _rank(*best):
                    found[key] = (one, other)
        return [found[key] for key in sorted(found)]

    def _sides(self, derivation: int, number: int) -> list[Side]:
        index = self.index
        certain, maybe = self.nodes[number]
        found = []
        for edge in self._edges(derivation):
            node = index.edge_source[edge]
            if index.kind(edge) is EdgeKind.UNION_ALL or not (certain[node] or maybe[node]):
                continue
            sure = bool(certain[node]) and index.kind(edge) is not EdgeKind.OPAQUE
            found.append(Side(index.node_dataset[node], node, edge, sure))
        target = index.target(derivation)
        if index.mode(derivation) == "update":
            held = [n for n in index.columns(target) if certain[n]]
            found += [Side(target, n, -1, True) for n in held if not self._only_from(n, derivation)]
        return found

    def _edges(self, derivation: int) -> Iterator[int]:
        index = self.index
        target = index.target(derivation)
        for node in range(index.rows(target), index.dataset_base[target + 1]):
            yield from (e for e in index.in_edges(node) if index.edge_derivation[e] == derivation)

    def _only_from(self, node: int, derivation: int) -> bool:
        """Return whether a column of the target has its values from this very statement."""
        edges = self.index.in_edges(node)
        return bool(edges) and all(self.index.edge_derivation[e] == derivation for e in edges)

    def _apart(self, one: int, other: int) -> bool:
        """Return whether two edges belong to different alternatives."""
        if one < 0 or other < 0:
            return False
        a, b = self.index.arm(one), self.index.arm(other)
        return bool(a and b and a != b and a // ARMS == b // ARMS)

    def finding(self, rule: PlacedPart[Rule], one: Side, other: Side, derivation: int, name: str) -> Finding:
        """The finding of a pair."""
        index, value = self.index, rule.value
        certain = one.certain and other.certain
        steps: list[WayStep] = []
        starts = []
        for number, side in enumerate((one, other)):
            way = self._way(number, side)
            starts.append((way[0].source if way else index.name(side.node), len(steps)))
            steps += way
        named = sorted(index.dataset_name(side.dataset) for side in (one, other))
        return Finding(
            rule=value.id,
            title=value.title,
            severity=value.severity,
            verdict=RuleVerdict.VIOLATED if certain else RuleVerdict.UNKNOWN,
            source=f"{named[0]}.* + {named[1]}.*",
            column=f"{name}.*",
            classes=self.body.classes,
            state="value" if certain else "unknown",
            steps=tuple(steps),
            starts=tuple(starts),
            why=" meets ".join(
                f"{index.name(side.node)} ({name})" for side, name in zip((one, other), self.body.classes, strict=True)
            ),
            fix=value.fix,
            place=rule.place,
        )

    def _way(self, number: int, side: Side) -> list[WayStep]:
        """From where the data comes to the statement, the statement included."""
        key = (number, side.node, side.certain)
        if key not in self._arrivals:  # one side may meet many others
            self._arrivals[key] = self._arrival(number, side)
        last = (side.edge,) if side.edge >= 0 else ()
        return [step(self.index, edge) for edge in (*self._arrivals[key], *last)]

    def _arrival(self, number: int, side: Side) -> tuple[int, ...]:
        """The edges from where the data comes to the node of a side."""
        index, taints = self.index, self.taints[number]
        around = {side.node, *index.containers(side.node), *index.fields(side.node)}
        useful, seeds = leading_to(index, around), self.spread.seeds
        starts = [
            TaintState(node, Mode.VALUE, Taint(name, 0, frozenset()))
            for node in seeds.nodes[useful[seeds.nodes]].tolist()
            for name in seeds[node]
        ]
        hidden = self.spread.possible.seeds
        starts += [
            TaintState(node, Mode.UNKNOWN, Taint(name, possible_group(0), frozenset()))
            for node in hidden.nodes[useful[hidden.nodes]].tolist()
            for name in hidden[node]
        ]
        mode = Mode.VALUE if side.certain else Mode.UNKNOWN
        found = ways(self.spread, starts, around, lambda s: s.taint in taints and s.mode in (mode, Mode.VALUE), useful)
        return min(found, key=lambda f: len(f.edges)).edges if found else ()


def _rank(one: Side, other: Side) -> tuple[bool, int, int, int, int]:
    """Certain pairs first, then by name."""
    return not (one.certain and other.certain), one.node, other.node, one.edge, other.edge
