"""Erasure plans: datasets that hold or derive from a data subject's data, what to do with each, and in which order.

The plan is of whole datasets: which rows are the subject's is said only by the columns that hold its key. Everything in
a dataset with a key of the subject's may be about the subject (``govtool.policy.erasure.subject``), and so may every
value that is made of it. Masks lower its classes, and it stays about the subject (GDPR, recital 26); only what a
declassifier ``to: none`` ends may stay, and what the data only decided over: which rows there are, how many, in which
order.

    delete     its rows are kept until someone deletes them: by its keys
    search     the same, and no column holds the key
    rebuild    its statement makes it anew from its sources
    follows    nothing is stored: a view, a query
    expires    the rest of these, where its retention ends in time
    unknown    whether it holds anything could not be told
    stays      nothing of the subject is in it
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from govtool.graph.index import Index
from govtool.policy.classes.governed import Governed
from govtool.policy.classes.propagate import Propagation, propagate
from govtool.policy.classes.provenance_paths import TaintState, leading_to, ways
from govtool.policy.classes.taints import Mode, Seeds, Taint
from govtool.policy.classes.transfer import transfers
from govtool.policy.erasure.subject import Keys, keys_of
from govtool.policy.files.policy_set import Lattice
from govtool.policy.files.terms import NONE, days
from govtool.query.evidence import WayStep, evidence, step

ACTIONS = ("delete", "search", "rebuild", "follows", "expires", "unknown", "stays")
"""In the order of the summary."""
_NO_CLASS = ""
"""The class of what no policy classifies."""
_STORED_NOWHERE = frozenset({"view", "query", "function"})


class SubjectColumn(NamedTuple):
    """A column with the subject's data."""

    column: str
    mode: str
    """``value`` or ``unknown``."""
    classes: tuple[str, ...]
    """The classes of its data now; empty if the policies do not give any."""
    passed: tuple[str, ...]
    """The declassifiers that all of it has passed."""


@dataclass(frozen=True, slots=True)
class Task:
    """A dataset of the plan."""

    order: int
    """Its place: everything it is made of has a lower one, or the same in a circle; 0 where there is nothing to do."""
    dataset: str
    dataset_kind: str
    action: str
    """One of ``ACTIONS``."""
    keys: tuple[str, ...]
    """Columns that hold the subject's identifier as it is."""
    columns: tuple[SubjectColumn, ...]
    source: str
    """The origin of the subject's data: itself, or the first column of the way."""
    steps: tuple[WayStep, ...]
    """A shortest way."""
    why: str
    owner: str | None
    retention: str | None
    lacks: tuple[str, ...]
    """Rules that want a retention for such data, where none is known or it is too long."""
    files: tuple[str, ...]
    """The statements that make it, ``file:line``."""

    @property
    def classes(self) -> tuple[str, ...]:
        """All classes of its columns, sorted."""
        return tuple(sorted({c for held in self.columns for c in held.classes}))


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """An erasure plan; tasks by order and name, then what is unknown, then what may stay."""

    subjects: tuple[str, ...]
    """The columns that identify the subject. What they hold for it is never part of a plan."""
    keys: tuple[tuple[str, str], ...]
    """All columns with the key, and how each is known."""
    tasks: tuple[Task, ...]
    within: str
    """The limit within which a retention must end for ``expires``."""

    def count(self, action: str) -> int:
        """Return the number of datasets that have an action."""
        return sum(task.action == action for task in self.tasks)


def erasure_plan(
    governed: Governed, named: Sequence[int], today: date, *, also: Iterable[int] = (), within: str = "30d"
) -> ErasurePlan:
    """Make the plan for one subject.

    Args:
        governed: The graph, and what policies say of it.
        named: Columns that identify the subject.
        today: For declarations that expire.
        also: Further columns that hold the same identifier.
        within: The time there is: data of a shorter retention is left to expire (GDPR Art. 12(3): a month).
    """
    index = governed.spread.index
    keys = keys_of(index, named, also)
    planner = _Planner(governed, keys, today, within)
    return ErasurePlan(
        subjects=tuple(sorted(index.name(n) for n in keys.named)),
        keys=tuple(sorted((index.name(n), why) for n, why in keys.exact.items() if not _elided(index, n))),
        tasks=planner.tasks(),
        within=within,
    )


def _elided(index: Index, node: int) -> bool:
    return index.is_elided(index.node_dataset[node])


class _Planner:
    """The steps of one plan."""

    def __init__(self, governed: Governed, keys: Keys, today: date, within: str) -> None:
        self.governed, self.keys, self.within = governed, keys, within
        self.index = index = governed.spread.index
        self.certain = _seeds(governed, keys.holders)
        self.maybe = _seeds(governed, keys.possible.keys())
        declassify = [d.value for d in governed.policies.declassify]
        lattice: Lattice = governed.policies.lattice

        def spread(masks_only: bool) -> Propagation:
            chosen = [d for d in declassify if not masks_only or d.to != NONE]
            places = governed.places
            moved = transfers(index, chosen, today, places.paths, masked=places.masking_policies)
            return propagate(index, lattice, moved, self.certain, [self.maybe])

        self.spread = spread(masks_only=False)
        ends = [d for d in declassify if d.to == NONE]
        self.whole = spread(masks_only=True) if ends else self.spread
        self.ends = ", ".join(d.name for d in ends)

    def tasks(self) -> tuple[Task, ...]:
        """All tasks in order."""
        value = self._datasets(self.spread, Mode.VALUE, 0)
        unknown = self._datasets(self.spread, Mode.UNKNOWN, 0)
        maybe = self._datasets(self.spread, Mode.VALUE, 1) | self._datasets(self.spread, Mode.UNKNOWN, 1)
        ended = self._datasets(self.whole, Mode.VALUE, 0) - value
        decided = self._datasets(self.spread, Mode.INFLUENCE, 0) | self._reading(value)
        reasons: dict[int, tuple[str, str]] = {}
        for dataset in decided:
            reasons[dataset] = ("stays", "the data decides over its rows or values and is not in it")
        for dataset in ended:
            reasons[dataset] = ("stays", f"declassified: {self.ends}")
        for dataset in maybe | self.keys.possible.keys():
            reasons[dataset] = ("unknown", self.keys.possible.get(dataset, "made of what may be about the subject"))
        for dataset in unknown:
            reasons[dataset] = ("unknown", "")
        for dataset in value:
            reasons[dataset] = (self._action(dataset), "")
        shown = {d: r for d, r in reasons.items() if not self.index.is_elided(d)}
        order = self._order({d for d, (action, _) in shown.items() if action != "stays"})
        paths = self._ways({d for d, (action, why) in shown.items() if not why})
        made = [self._task(d, action, why, order.get(d, 0), paths.get(d)) for d, (action, why) in shown.items()]
        late = {"unknown": 1, "stays": 2}
        return tuple(sorted(made, key=lambda t: (late.get(t.action, 0), t.order, t.dataset)))

    def _datasets(self, spread: Propagation, mode: Mode, group: int) -> set[int]:
        taints = [t for t in spread.taints if t.group == group]
        return {self.index.node_dataset[n] for n in spread.having(mode, taints).tolist()}

    def _reading(self, datasets: Iterable[int]) -> set[int]:
        """The datasets derived from the rows of some datasets, and so on: by edges of any kind between row sets."""
        index = self.index
        found, stack = set[int](), list(datasets)
        while stack:
            for edge in index.out_edges(index.rows(stack.pop())):
                dataset = index.node_dataset[index.edge_target[edge]]
                if dataset not in found:
                    found.add(dataset)
                    stack.append(dataset)
        return found

    def _action(self, dataset: int) -> str:
        """Return the action for a dataset that holds the subject's data."""
        index = self.index
        if index.dataset_kind(dataset) in _STORED_NOWHERE:
            return "follows"
        modes = {index.mode(d) for d in index.makers(dataset)} - {"declare"}
        if modes == {"replace"}:
            return "rebuild"
        action = "delete" if self._keys(dataset) else "search"
        retention = self.governed.places.about(dataset).retention
        subject = {index.node_dataset[n] for n in self.keys.named}
        if retention and dataset not in subject and days(retention) <= days(self.within):
            return "expires"
        return action

    def _keys(self, dataset: int) -> tuple[str, ...]:
        return tuple(sorted(self.index.path(n) for n in self.keys.exact if self.index.node_dataset[n] == dataset))

    def _order(self, datasets: set[int]) -> dict[int, int]:
        """Places in the order of work: generations of the datasets, a circle counting as one."""
        import networkx as nx

        index = self.index
        graph: nx.DiGraph[int] = nx.DiGraph()
        seen, stack = set(datasets), list(datasets)
        graph.add_nodes_from(datasets)
        while stack:
            dataset = stack.pop()
            for node in range(index.rows(dataset), index.dataset_base[dataset + 1]):
                for edge in index.out_edges(node):
                    other = index.node_dataset[index.edge_target[edge]]
                    if other != dataset:
                        graph.add_edge(dataset, other)
                    if other not in seen:
                        seen.add(other)
                        stack.append(other)
        circles = nx.condensation(graph)
        members = circles.nodes(data="members")
        place, found = 0, dict[int, int]()
        for generation in nx.topological_generations(circles):
            here = datasets.intersection(d for number in generation for d in members[number])
            place += bool(here)
            found.update(dict.fromkeys(here, place))
        return found

    def _ways(self, datasets: set[int]) -> dict[int, tuple[str, tuple[int, ...]]]:
        """For each dataset the first column of a shortest way to it, and the edges."""
        index, spread = self.index, self.spread
        wanted: set[int] = set()
        taints = [t for t in spread.taints if t.group == 0]
        for mode in (Mode.UNKNOWN, Mode.VALUE):
            for node in spread.having(mode, taints).tolist():
                if index.node_dataset[node] in datasets - self.keys.holders:
                    wanted.add(node)
        if not wanted:
            return {}
        useful = leading_to(index, wanted)
        starts = [
            TaintState(node, Mode.VALUE, Taint(name, 0, frozenset()))
            for node in self.certain.nodes[useful[self.certain.nodes]].tolist()
            for name in self.certain[node]
        ]
        best: dict[int, tuple[tuple[int, bool, int, int], tuple[str, tuple[int, ...]]]] = {}
        for state, edges in ways(spread, starts, wanted, lambda s: s.mode is not Mode.INFLUENCE, useful):
            dataset = index.node_dataset[state.node]
            rank = (int(state.mode), state.node not in self.keys.exact, len(edges), state.node)
            if edges and (dataset not in best or rank < best[dataset][0]):
                best[dataset] = (rank, (index.name(index.edge_source[edges[0]]), edges))
        return {dataset: way for dataset, (_, way) in best.items()}

    def _task(self, dataset: int, action: str, why: str, order: int, way: tuple[str, tuple[int, ...]] | None) -> Task:
        index = self.index
        about = self.governed.places.about(dataset)
        source, edges = way or ("", ())
        steps = tuple(step(index, e) for e in edges)
        keys = self._keys(dataset)
        named = [n for n in self.keys.exact if index.node_dataset[n] == dataset and dataset in self.keys.holders]
        if named:
            why = "; ".join(dict.fromkeys(self.keys.exact[n] for n in sorted(named)))
        elif not why:
            opaque = [s.reason for s in steps if s.reason]
            why = f"could not be understood: {opaque[0]}" if opaque else f"made of {source}" if source else ""
        task = Task(
            order=order,
            dataset=index.dataset_name(dataset),
            dataset_kind=index.dataset_kind(dataset),
            action=action,
            keys=keys,
            columns=self._held(dataset),
            source=source,
            steps=steps,
            why=why,
            owner=about.owner,
            retention=about.retention,
            lacks=(),
            files=tuple(sorted({evidence(index, d).place for d in index.makers(dataset)})),
        )
        return replace(task, lacks=self._lacks(task)) if action != "stays" else task

    def _held(self, dataset: int) -> tuple[SubjectColumn, ...]:
        """The columns of a dataset that hold the subject's data, or may."""
        index, spread = self.index, self.spread
        found = []
        for node in index.columns(dataset):
            for mode in (Mode.VALUE, Mode.UNKNOWN):
                taints = [t for t in spread.at(node, mode) if t.group == 0 or mode is Mode.UNKNOWN]
                if not taints:
                    continue
                passed = frozenset.intersection(*(t.passed for t in taints))
                classes = {c for t in taints for c in spread.lowered(t)} - {_NO_CLASS}
                found.append(
                    SubjectColumn(index.name(node), mode.name.lower(), tuple(sorted(classes)), tuple(sorted(passed)))
                )
                break
        return tuple(found)

    def _lacks(self, task: Task) -> tuple[str, ...]:
        """Rules of the form metadata that this dataset's retention does not satisfy."""
        lattice = self.governed.policies.lattice
        found = []
        for rule in self.governed.policies.rules:
            body = rule.value.body
            if rule.value.form != "metadata" or not any(lattice.is_a(c, body.class_) for c in task.classes):
                continue
            wanted = "retention" in body.keys or body.retention_max
            too_long = body.retention_max and task.retention and days(task.retention) > days(body.retention_max)
            if (wanted and not task.retention) or too_long:
                found.append(rule.value.id)
        return tuple(found)


def _seeds(governed: Governed, datasets: Iterable[int]) -> Seeds:
    """Every column of some datasets, by the classes that the policies give it."""
    index, spread = governed.spread.index, governed.spread
    found: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for dataset in datasets:
        for node in index.columns(dataset):
            own = {t.name for t in spread.at(node, Mode.VALUE) if t.group == 0}
            found[node] = tuple(sorted(own)) or (_NO_CLASS,)
    return Seeds.of(found)
