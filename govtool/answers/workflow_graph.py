"""Answers about provenance graphs of workflows: zoom, subgraph, dependency, deletion, and the graphs themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from govtool.answers.answer import Answer, Cell

if TYPE_CHECKING:
    from govtool.workflow.modules.run_rows import OutputDeletion
    from govtool.workflow.queries.statuses import RowStatus

NodeKey = int | str
"""The id of a node."""


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node in a list."""

    id: NodeKey
    type: str
    label: str
    module: str | None = None
    invocation: int = 0

    def row(self) -> tuple[Cell, ...]:
        """Id, type, label, module, invocation."""
        return (str(self.id), self.type, self.label, self.module, self.invocation or None)


_NODE_FIELDS = ("id", "type", "label", "module", "invocation")
_INTEGERS = {"invocation": "integer"}


@dataclass(frozen=True, slots=True)
class ZoomAnswer(Answer):
    """A view of a graph after zooming, and the difference to the view before."""

    schema: ClassVar[str] = "zoom/1"
    fields: ClassVar[tuple[str, ...]] = ("part", "id")

    graph: str
    zoomed: tuple[str, ...]
    """Modules that are zoomed out now."""
    nodes: int
    edges: int
    removed_nodes: tuple[NodeKey, ...]
    added_nodes: tuple[NodeKey, ...]
    added_edges: tuple[tuple[Any, ...], ...]

    def body(self) -> Mapping[str, object]:
        """Counts of nodes and edges; ids of what is gone and what is new."""
        return {
            "graph": self.graph,
            "zoomed": list(self.zoomed),
            "nodes": self.nodes,
            "edges": self.edges,
            "removed_nodes": list(self.removed_nodes),
            "added_nodes": list(self.added_nodes),
            "added_edges": [list(edge) for edge in self.added_edges],
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a node that is gone or new."""
        yield from (("removed", str(node)) for node in self.removed_nodes)
        yield from (("added", str(node)) for node in self.added_nodes)


@dataclass(frozen=True, slots=True)
class SubgraphAnswer(Answer):
    """A node, what it comes from, what comes of it, and what else that needs."""

    schema: ClassVar[str] = "subgraph/1"
    fields: ClassVar[tuple[str, ...]] = ("part", *_NODE_FIELDS)
    types: ClassVar[Mapping[str, str]] = _INTEGERS

    graph: str
    node: NodeKey
    nodes: int
    edges: int
    ancestors: tuple[NodeSummary, ...]
    descendants: tuple[NodeSummary, ...]
    siblings: tuple[NodeSummary, ...]
    address: str = ""
    """What the question called the node, such as the address of a row."""

    def body(self) -> Mapping[str, object]:
        """Counts of nodes and edges; ids of the three parts."""
        parts = {name: [node.id for node in nodes] for name, nodes in self.parts()}
        return {"graph": self.graph, "node": self.node, "nodes": self.nodes, "edges": self.edges, **parts}

    def parts(self) -> Iterator[tuple[str, tuple[NodeSummary, ...]]]:
        """The three parts by name."""
        yield "ancestors", self.ancestors
        yield "descendants", self.descendants
        yield "siblings", self.siblings

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a node."""
        for name, nodes in self.parts():
            yield from ((name, *node.row()) for node in nodes)


@dataclass(frozen=True, slots=True)
class DependsAnswer(Answer):
    """True if a node depends on records, and on which at all."""

    schema: ClassVar[str] = "depends/1"
    fields: ClassVar[tuple[str, ...]] = ("part", *_NODE_FIELDS)
    types: ClassVar[Mapping[str, str]] = _INTEGERS

    graph: str
    node: NodeKey
    on: tuple[str, ...]
    depends: bool | Literal["unknown"]
    necessary: tuple[NodeSummary, ...]
    """Records each of which the node cannot do without."""
    lineage: tuple[NodeSummary, ...]
    """All records that it comes from."""
    together: tuple[NodeSummary, ...] = ()
    """If none is necessary, a smallest set of records without which it falls; empty: not found by a few tries."""
    reached: bool = True
    """Whether it comes from any of those in question at all."""
    in_cells: bool = False
    """Whether it does, or a computed value of it: of a row of a run."""
    by_values: bool = False
    """Whether the graph leaves it open, and the values that a run computed decide it."""
    address: str = ""
    """What the question called the node, such as the address of a row."""

    def body(self) -> Mapping[str, object]:
        """The verdict; ids of necessary records and of all."""
        return {
            "graph": self.graph,
            "node": self.node,
            "on": list(self.on),
            "depends": self.depends,
            "necessary": [node.id for node in self.necessary],
            "lineage": [node.id for node in self.lineage],
            "together": [node.id for node in self.together],
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a record; a necessary one once."""
        necessary = {node.id for node in self.necessary}
        for node in self.lineage:
            yield ("necessary" if node.id in necessary else "lineage", *node.row())


@dataclass(frozen=True, slots=True)
class GraphDeletionAnswer(Answer):
    """The consequences of a deletion in a graph."""

    schema: ClassVar[str] = "whatif-graph/1"
    fields: ClassVar[tuple[str, ...]] = ("status", *_NODE_FIELDS, "value")
    types: ClassVar[Mapping[str, str]] = _INTEGERS

    graph: str
    deleted: tuple[str, ...]
    removed: tuple[NodeSummary, ...]
    left_nodes: int
    left_edges: int
    recomputed: tuple[tuple[NodeSummary, Any, Any], ...]
    """Nodes with their values before (None: not recorded) and after."""
    unknown: tuple[NodeSummary, ...]
    gains_possible: bool
    relations: Mapping[str, OutputDeletion] = field(default_factory=dict)
    """Of a workflow run: the rows of each output relation."""
    notes: tuple[str, ...] = ()
    """What the rows are not sure of."""

    def body(self) -> Mapping[str, object]:
        """Ids of what is removed, new values, and what only a new run can decide."""
        return {
            "graph": self.graph,
            "deleted": list(self.deleted),
            "removed": [node.id for node in self.removed],
            "left_nodes": self.left_nodes,
            "left_edges": self.left_edges,
            "recomputed": {str(node.id): _plain(value) for node, _, value in self.recomputed},
            "unknown": [node.id for node in self.unknown],
            "gains_possible": self.gains_possible,
            **({"relations": {name: _rows(each) for name, each in self.relations.items()}} if self.relations else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a node that is removed, has another value, or is unknown."""
        yield from (("deleted", *node.row(), None) for node in self.removed)
        for node, before, after in self.recomputed:
            yield ("recomputed", *node.row(), f"{_text(before)} → {_text(after)}")
        yield from (("unknown", *node.row(), None) for node in self.unknown)


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """A graph in a store, or that of a workflow run: ``run:ID``, whose size is not known before it is built."""

    name: str
    nodes: int | None
    edges: int | None
    modules: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Name, counts, modules."""
        sizes = {} if self.nodes is None else {"nodes": self.nodes, "edges": self.edges}
        return {"name": self.name, **sizes, "modules": list(self.modules)}


@dataclass(frozen=True, slots=True)
class UnlistedGraphs:
    """A graph that is not listed, because it or the record of its run cannot be read.

    Attributes:
        name: Its name; empty: these are the graphs of all recorded programs.
        reason: What is wrong, in a sentence.
        object: The key of the damaged object in the store.
        hint: What to do about it.
    """

    name: str
    reason: str
    object: str
    hint: str

    def to_dict(self) -> dict[str, str]:
        """The keys of its JSON object; those that are not known are left out."""
        values = {"name": self.name, "reason": self.reason, "object": self.object, "hint": self.hint}
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class GraphListAnswer(Answer):
    """The provenance graphs of a version of a store."""

    schema: ClassVar[str] = "graphs/1"
    fields: ClassVar[tuple[str, ...]] = ("name", "nodes", "edges", "modules")
    types: ClassVar[Mapping[str, str]] = {"nodes": "integer", "edges": "integer", "modules": "texts"}

    graphs: tuple[GraphEntry, ...] = field(default=())
    damaged: tuple[UnlistedGraphs, ...] = ()
    """What is not listed because it cannot be read."""

    @property
    def is_complete(self) -> bool:
        """Whether all graphs and records of runs could be read."""
        return not self.damaged

    def body(self) -> Mapping[str, object]:
        """The graphs by name."""
        damaged = {"damaged": [each.to_dict() for each in self.damaged]} if self.damaged else {}
        return {"graphs": [entry.to_dict() for entry in self.graphs], **damaged}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """A row a graph."""
        yield from ((entry.name, entry.nodes, entry.edges, entry.modules) for entry in self.graphs)


@dataclass(frozen=True, slots=True)
class GraphImportAnswer(Answer):
    """A graph that was read into a store."""

    schema: ClassVar[str] = "graph-import/1"
    fields: ClassVar[tuple[str, ...]] = ("name", "nodes", "edges", "modules", "commit", "created")
    types: ClassVar[Mapping[str, str]] = {
        "nodes": "integer",
        "edges": "integer",
        "modules": "texts",
        "commit": "integer",
        "created": "boolean",
    }

    entry: GraphEntry
    commit: int
    created: bool
    """True if there is a new commit; the store may have had just this graph."""

    def body(self) -> Mapping[str, object]:
        """The graph and its commit."""
        return {**self.entry.to_dict(), "commit": self.commit, "created": self.created}

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """One row."""
        entry = self.entry
        yield (entry.name, entry.nodes, entry.edges, entry.modules, self.commit, self.created)


def _rows(found: OutputDeletion) -> dict[str, object]:
    return {
        "columns": list(found.columns),
        "tuples": [_row(execution, row) for execution, row in found.rows],
        "gains": [[_plain(value) for value in row] for row in found.gains],
        "gains_possible": found.gains_possible,
    }


def _row(execution: int, row: RowStatus) -> dict[str, object]:
    values = {"before": row.before} if row.after is None else {"before": row.before, "after": row.after}
    shown = {name: [_plain(value) for value in own] for name, own in values.items()}
    return {"execution": execution, "status": row.status, **shown}


def _plain(value: Any) -> Any:
    """A value as JSON has it; decimals and floats that JSON has no number for as texts."""
    from decimal import Decimal

    if isinstance(value, Decimal) or (isinstance(value, float) and value - value != 0):
        return str(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def _text(value: Any) -> str:
    return "NULL" if value is None else str(value)
