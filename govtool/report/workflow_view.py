"""The view of a workflow's provenance graph that a report draws: its invocations, and within a bound every node.

The page zooms by the definition that ``govtool.workflow.zoom`` follows (Amsterdamer and others, "Putting Lipstick on
Pig", PVLDB 5(4), 2011, Def. 4.1); a view is the fine graph and a set of modules in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from govtool.report.layout import place

MOST_NODES = 5_000
"""Nodes of a graph that a page holds one by one at most; of a larger one it shows the invocations."""


@dataclass(frozen=True, slots=True)
class WorkflowNodeView:
    """A node of a provenance graph."""

    type: str
    """One of ``wi st m i o s op val zoom``."""
    label: str
    module: int = -1
    """The number of its module; -1: none."""
    invocation: int = 0
    id: str | None = None
    """Its id in the graph; None: ids and values are not included."""
    value: str | None = None


@dataclass(frozen=True, slots=True)
class WorkflowGroupView:
    """The nodes of one invocation, or the records of one dataset."""

    kind: str
    """``invocation``, ``records`` or ``other``."""
    name: str
    module: int
    counts: Mapping[str, int]
    """Nodes by type."""

    def to_dict(self) -> dict[str, object]:
        """The JSON value."""
        return {"kind": self.kind, "name": self.name, "module": self.module, "counts": dict(self.counts)}


@dataclass(frozen=True, slots=True)
class WorkflowView:
    """A provenance graph: groups of nodes and how many edges lead between them, and the nodes themselves."""

    graph: str
    modules: tuple[str, ...]
    locked: tuple[str, ...]
    """Modules that are zoomed out in the graph itself."""
    node_count: int
    edge_count: int
    groups: tuple[WorkflowGroupView, ...]
    group_edges: Mapping[tuple[int, int], int]
    nodes: tuple[WorkflowNodeView, ...] = ()
    """None of a graph that is too large."""
    node_groups: tuple[int, ...] = ()
    edges: tuple[tuple[int, int], ...] = ()
    left_out: str | None = None
    """Why the nodes are left out."""
    zoomed: tuple[str, ...] | None = None
    """Modules that are zoomed out at first; None: only invocations are shown at first."""

    def body(self) -> dict[str, object]:
        """The JSON value, as docs/schemas/report-1.json has it."""
        placed = place(len(self.groups), self.group_edges)
        return {
            "graph": self.graph,
            "modules": list(self.modules),
            "locked": list(self.locked),
            "nodes": self.node_count,
            "edges": self.edge_count,
            "groups": [group.to_dict() for group in self.groups],
            "group_edges": [[a, b, count] for (a, b), count in sorted(self.group_edges.items())],
            "group_layer": list(placed.layers),
            "group_rank": list(placed.ranks),
            "fine": self._fine() if self.nodes else None,
            "left_out": self.left_out,
            "zoomed": None if self.zoomed is None else list(self.zoomed),
        }

    def _fine(self) -> dict[str, object]:
        """The nodes as columns, which take a tenth of the space of objects."""
        labels = list(dict.fromkeys(node.label for node in self.nodes))
        number = {label: at for at, label in enumerate(labels)}
        placed = place(len(self.nodes), self.edges)
        found: dict[str, object] = {
            "labels": labels,
            "type": [node.type for node in self.nodes],
            "label": [number[node.label] for node in self.nodes],
            "module": [node.module for node in self.nodes],
            "invocation": [node.invocation for node in self.nodes],
            "group": list(self.node_groups),
            "source": [source for source, _ in self.edges],
            "target": [target for _, target in self.edges],
            "layer": list(placed.layers),
            "rank": list(placed.ranks),
        }
        if any(node.id is not None for node in self.nodes):
            found["id"] = [node.id for node in self.nodes]
            found["value"] = [node.value for node in self.nodes]
        return found


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What nodes have in common that stand in one group."""

    kind: str
    name: str
    module: int = -1


def grouped(
    keys: Sequence[GroupKey], types: Sequence[str], edges: Iterator[tuple[int, int]]
) -> tuple[tuple[WorkflowGroupView, ...], tuple[int, ...], Counter[tuple[int, int]]]:
    """Group nodes: the groups, the group of each node, and how many edges lead from one group to another.

    Args:
        keys: The group of each node.
        types: The type of each node.
        edges: Pairs of nodes.
    """
    order = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    of_node = tuple(order[key] for key in keys)
    counts: list[Counter[str]] = [Counter() for _ in order]
    for group, type_ in zip(of_node, types, strict=True):
        counts[group][type_] += 1
    between = Counter((of_node[a], of_node[b]) for a, b in edges)
    views = tuple(
        WorkflowGroupView(key.kind, key.name, key.module, dict(sorted(count.items())))
        for key, count in zip(order, counts, strict=True)
    )
    return views, of_node, Counter({pair: count for pair, count in between.items() if pair[0] != pair[1]})


def workflow_words(view: WorkflowView) -> Iterator[tuple[str, str, str]]:
    """The rows of a table of a workflow: the kind of a group, its name, and its nodes by type."""
    for group in view.groups:
        yield group.kind, group.name, ", ".join(f"{count:,} {type_}" for type_, count in group.counts.items())
