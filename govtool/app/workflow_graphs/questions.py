"""Questions about one provenance graph, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.answers.workflow_graph import (
    DependsAnswer,
    GraphDeletionAnswer,
    NodeSummary,
    SubgraphAnswer,
    ZoomAnswer,
)
from govtool.app.records.token_lists import require_tokens
from govtool.app.workflow_graphs.names import distinct_records, nodes_called, records_called
from govtool.workflow import vocabulary as terms

if TYPE_CHECKING:
    from govtool.app.workflow_runs.programs.replaced import PartitionHistory
    from govtool.arrays.sets import Array
    from govtool.workflow.graph import ProvenanceGraph
    from govtool.workflow.modules.run_tuples import OutputTuples
    from govtool.workflow.zoom import GraphView

DecideRow = Callable[[str, Sequence[str]], bool | Literal["unknown"]]
"""Whether the row of an address falls with records, by their tokens."""


def summaries(graph: ProvenanceGraph, nodes: Array) -> tuple[NodeSummary, ...]:
    """Nodes as lists show them."""
    labels = graph.labels.take(graph.label[nodes].astype(np.int64))
    columns = (graph.type[nodes].tolist(), labels, graph.module[nodes].tolist(), graph.invocation[nodes].tolist())
    return tuple(
        NodeSummary(id_, terms.TYPES[type_], label, None if module < 0 else graph.modules[module], invocation)
        for id_, type_, label, module, invocation in zip(graph.ids_of(nodes), *columns, strict=True)
    )


def zoom_answer(name: str, before: GraphView, after: GraphView) -> ZoomAnswer:
    """A view, and the difference to the view before."""
    from govtool.workflow.formats.rows import zoom_edge_rows

    graph = after.graph
    old, new = ({node.id for node in view.zoom_nodes} for view in (before, after))
    hidden = graph.ids_of(np.flatnonzero(after.hidden & ~before.hidden))
    shown = graph.ids_of(np.flatnonzero(before.hidden & ~after.hidden))
    known = {tuple(edge.body()) for edge in zoom_edge_rows(before)}
    edges = [tuple(edge.body()) for edge in zoom_edge_rows(after)]
    return ZoomAnswer(
        name,
        tuple(sorted(after.zoomed)),
        after.node_count,
        after.edge_count,
        (*hidden, *sorted(old - new)),
        (*shown, *sorted(new - old)),
        (*_edges_again(before, after), *(edge for edge in edges if edge not in known)),
    )


def _edges_again(before: GraphView, after: GraphView) -> Iterator[tuple[Any, ...]]:
    """Edges of the fine graph that the view before did not show."""
    graph = after.graph
    fresh = np.setdiff1d(after.shown_edges, before.shown_edges, assume_unique=True)
    ends = (graph.ids_of(np.asarray(each)[fresh].astype(np.int64)) for each in (graph.edges.source, graph.edges.target))
    return zip(*ends, strict=True)


def subgraph_answer(
    name: str, graph: ProvenanceGraph, node: str, outputs: Callable[[], Sequence[OutputTuples]] = tuple
) -> SubgraphAnswer:
    """The subgraph of a node."""
    from govtool.workflow.subgraph import subgraph

    number, *cells = nodes_called(graph, node, name, outputs)
    found = subgraph(graph, number, cells)
    return SubgraphAnswer(
        name,
        graph.id_of(number),
        len(found.nodes),
        len(found.edges),
        summaries(graph, found.ancestors),
        summaries(graph, found.descendants),
        summaries(graph, found.siblings),
        node,
    )


def depends_answer(
    name: str,
    graph: ProvenanceGraph,
    node: str,
    on: Sequence[str],
    outputs: Callable[[], Sequence[OutputTuples]] = tuple,
    decide: DecideRow = lambda row, tokens: "unknown",
) -> DependsAnswer:
    """Return whether a node depends on records.

    Args:
        name: What the graph is called.
        graph: The graph.
        node: The name of the node.
        on: Tokens of records, or ids of nodes.
        outputs: Gives the outputs of a run with their rows.
        decide: Of a run: whether a row falls with records, where the graph leaves that open.
    """
    from govtool.workflow.deletion import refuse_zoomed
    from govtool.workflow.dependency import dependency

    refuse_zoomed(graph)
    number, *cells = nodes_called(graph, node, name, outputs)
    records = records_called(graph, on, name)
    found = dependency(graph, number, records, cells)
    depends, necessary = found.depends, found.necessary
    if depends == "unknown" and node.endswith("]") and bool((graph.type[records] <= terms.STATE).all()):
        tokens = sorted({str(each.label) for each in summaries(graph, records)})
        depends = decide(node, tokens)
        if depends is True and len(tokens) == 1:
            necessary = np.union1d(necessary, records)
    return DependsAnswer(
        name,
        graph.id_of(number),
        tuple(dict.fromkeys(on)),
        depends,
        summaries(graph, necessary),
        summaries(graph, found.lineage),
        summaries(graph, found.together) if depends == found.depends else (),  # smaller ones may fell it by its values
        found.reached,
        found.in_cells,
        by_values=depends != found.depends,
        address=node,
    )


def deletion_answer(
    name: str,
    graph: ProvenanceGraph,
    tokens: Sequence[str],
    outputs: Sequence[OutputTuples] = (),
    histories: Sequence[PartitionHistory] = (),
) -> GraphDeletionAnswer:
    """The consequences of deleting records; of a run, for the rows of its outputs at its end, too.

    Raises:
        UnknownNameError: A token is of no record (``usage.unknown-token``).
        UsageError: One record is deleted twice (``usage.token-gone``), or none (``usage.arguments``), or modules are
            zoomed out in the graph (``usage.zoomed-graph``).
    """
    from govtool.workflow.deletion import delete, refuse_zoomed
    from govtool.workflow.evaluation import UNDECIDED, World
    from govtool.workflow.modules.run_rows import output_deletions

    refuse_zoomed(graph)
    require_tokens(tokens)
    notes: tuple[str, ...] = ()
    found = delete(graph, distinct_records(graph, tokens, name))
    before = World(graph)
    changed = np.array(sorted(found.recomputed), np.int64)
    values = [before.value(node) for node in changed.tolist()]
    relations = output_deletions(graph, outputs, found)
    if histories:
        from govtool.app.workflow_runs.programs.replaced import without_replaced

        relations, notes = without_replaced(relations, histories)
    return GraphDeletionAnswer(
        name,
        tuple(tokens),
        summaries(graph, found.removed),
        found.left_nodes,
        found.left_edges,
        tuple(
            (node, None if value is UNDECIDED else value, found.recomputed[number])
            for node, value, number in zip(summaries(graph, changed), values, changed.tolist(), strict=True)
        ),
        summaries(graph, np.array(found.unknown, np.int64)),
        found.gains_possible,
        relations,
        notes,
    )
