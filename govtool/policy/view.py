"""Inputs and outputs of a rule in Python: names and values of a checked version, nothing that it could change.

Columns and datasets are canonical names (``crm.users.email``, ``crm.users``), rows ``crm.users.*``. See "Rules in
Python" in docs/policies.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Literal, NamedTuple

from govtool.names import join_name, split_name
from govtool.policy.classes.governed import Governed
from govtool.policy.classes.taints import Mode, possible_group
from govtool.query.evidence import WayStep, step
from govtool.query.selection.patterns import Patterns


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that a rule has found."""

    column: str
    """Where: a column, rows (``dataset.*``), or a dataset."""
    why: str = ""
    source: str = ""
    """The column that the data comes from, if it is about that; the way from there is looked up."""
    state: str = "value"
    """The mark that tells this finding from others at the same column; part of its fingerprint."""
    classes: tuple[str, ...] = ()
    verdict: Literal["violated", "unknown"] = "violated"
    fix: str = ""


class Held(NamedTuple):
    """A class that a column has."""

    class_: str
    """The class at its source."""
    mode: str
    """``value``, ``influence``, ``unknown``."""
    passed: frozenset[str]
    """The declassifiers that it went through."""


class Edge(NamedTuple):
    """One edge of the column graph."""

    source: str
    target: str
    kind: str
    """``identity``, ``transformation``, ``aggregation``, ``join``, ``filter`` …"""
    functions: tuple[str, ...]
    reason: str | None
    """The reason why it is opaque."""


class Facts(NamedTuple):
    """The facts of a dataset."""

    zones: frozenset[str]
    regions: frozenset[str]
    purposes: frozenset[str]
    tags: frozenset[str]
    owner: str | None
    retention: str | None
    description: str | None


@dataclass(frozen=True, slots=True)
class View:
    """One version of the graph with what the policies say of it."""

    _governed: Governed
    today: date
    base: View | None = None
    """The version before the change, with ``--base``."""

    def datasets(self, pattern: str = "**") -> list[str]:
        """Datasets by a pattern, sorted."""
        index = self._governed.places.index
        return sorted(
            index.dataset_name(d)
            for d in Patterns((pattern,), index.paths_root).datasets(index)
            if not index.is_hidden(d)
        )

    def columns(self, pattern: str = "**") -> list[str]:
        """Columns by a pattern, sorted."""
        index = self._governed.places.index
        nodes = Patterns((pattern,), index.paths_root).columns(index, self._governed.places.paths)
        return self._names(nodes)

    def columns_of(self, class_: str) -> list[str]:
        """Columns with values of a class, or of one below it, by themselves or along the graph; sorted.

        Raises:
            ValueError: There is no such class.
        """
        spread = self._governed.spread
        if class_ not in spread.lattice.names:
            raise ValueError(f"no class {class_}")
        taints = [
            t
            for t in spread.taints
            if t.group == 0 and any(spread.lattice.is_a(c, (class_,)) for c in {t.name, *spread.lowered(t)})
        ]
        return self._names(spread.having(Mode.VALUE, taints).tolist())

    def classes(self, column: str) -> frozenset[Held]:
        """The classes of a column, by themselves or along the graph.

        Raises:
            KeyError: There is no such column.
        """
        spread, node = self._governed.spread, self._node(column)
        return frozenset(
            Held(t.name, mode.name.lower(), t.passed)
            for mode in Mode
            for t in spread.at(node, mode)
            if t.group in (0, possible_group(0))
        )

    def tags(self, column: str) -> frozenset[str]:
        """The tags of a column itself; those of its dataset are in ``facts``.

        Raises:
            KeyError: There is no such column.
        """
        return frozenset(self._governed.places.column_tags.get(self._node(column), ()))

    def type(self, column: str) -> str | None:
        """The type of a column, where it is known.

        Raises:
            KeyError: There is no such column.
        """
        return self._governed.places.index.type(self._node(column))

    def facts(self, dataset: str) -> Facts:
        """Return the facts of a dataset from policies, dbt and others.

        Raises:
            KeyError: There is no such dataset.
        """
        number = self._governed.places.index.find_dataset(dataset)
        if number is None:
            raise KeyError(f"no dataset {dataset}")
        about = self._governed.places.about(number)
        return Facts(
            frozenset(about.zones),
            frozenset(about.regions),
            frozenset(about.purposes),
            frozenset(about.tags),
            about.owner,
            about.retention,
            about.description,
        )

    def into(self, column: str) -> list[Edge]:
        """The edges that make a column.

        Raises:
            KeyError: There is no such column.
        """
        return [self._edge(e) for e in self._governed.places.index.in_edges(self._node(column))]

    def out_of(self, column: str) -> list[Edge]:
        """The edges that read a column.

        Raises:
            KeyError: There is no such column.
        """
        return [self._edge(e) for e in self._governed.places.index.out_edges(self._node(column))]

    def path(self, source: str, target: str) -> list[Edge]:
        """A shortest way between two columns; empty if there is none or they are the same.

        Raises:
            KeyError: There is no such column.
        """
        return [self._edge(e) for e in self._way(source, target)]

    def has(self, name: str) -> bool:
        """Return whether there is such a column, rows or dataset."""
        return self._find(name) is not None or self._governed.places.index.find_dataset(name) is not None

    def steps(self, source: str, target: str) -> tuple[WayStep, ...]:
        """The way with its statements; without a source the first edge that makes the target.

        Empty where there is none, and where one of them is a dataset.

        Raises:
            KeyError: One of them is not in the graph.
        """
        for name in (target, *([source] if source else [])):
            if self._find(name) is None:
                if not self.has(name):
                    raise KeyError(f"no column {name}")
                return ()
        index = self._governed.places.index
        edges = self._way(source, target) if source else list(index.in_edges(self._node(target))[:1])
        return tuple(step(index, e) for e in edges)

    def _way(self, source: str, target: str) -> list[int]:
        index = self._governed.places.index
        start, end = self._node(source), self._node(target)
        came: dict[int, int | None] = {end: None}
        pending = deque([end])
        while pending and start not in came:
            node = pending.popleft()
            for edge in index.in_edges(node):
                if index.edge_source[edge] not in came:
                    came[index.edge_source[edge]] = edge
                    pending.append(index.edge_source[edge])
        way: list[int] = []
        edge_ = came.get(start)
        while edge_ is not None:
            way.append(edge_)
            edge_ = came[index.edge_target[edge_]]
        return way

    def _edge(self, edge: int) -> Edge:
        index = self._governed.places.index
        return Edge(
            index.name(index.edge_source[edge]),
            index.name(index.edge_target[edge]),
            index.kind(edge).name.lower(),
            index.functions(edge),
            index.reason(edge),
        )

    def _names(self, nodes: Iterable[int]) -> list[str]:
        index = self._governed.places.index
        return sorted(
            index.name(n)
            for n in nodes
            if not index.is_unknown(n) and not index.is_rows(n) and not index.is_hidden(index.node_dataset[n])
        )

    def _find(self, name: str) -> int | None:
        index, parts = self._governed.places.index, split_name(name)
        for cut in range(len(parts) - 1, 0, -1):
            dataset = index.find_dataset(join_name(parts[:cut]))
            if dataset is not None:
                rest = join_name(parts[cut:])
                node = index.rows(dataset) if rest == "*" else index.find_column(dataset, rest)
                if node is not None:
                    return node
        return None

    def _node(self, name: str) -> int:
        node = self._find(name)
        if node is None:
            raise KeyError(f"no column {name}")
        return node
