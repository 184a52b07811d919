"""Questions about one provenance graph, and their answers."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.answers.workflow import (
    DependsAnswer,
    GraphDeletionAnswer,
    NodeSummary,
    SubgraphAnswer,
    ZoomAnswer,
)
from govtool.app.records.token_lists import near_tokens, require_tokens
from govtool.errors import AmbiguousNameError, UnknownNameError, UsageError
from govtool.workflow import vocabulary as terms

if TYPE_CHECKING:
    from govtool.arrays.sets import Array
    from govtool.workflow.graph import ProvenanceGraph
    from govtool.workflow.modules.run_tuples import OutputTuples
    from govtool.workflow.zoom import GraphView

_NAMES_COMPARED = 100_000
"""Names that are looked through for one like a name that there is not."""


def node_called(graph: ProvenanceGraph, text: str) -> int:
    """Return the node with an id, the one record of this token, or that of an invocation: ``M#2``.

    Raises:
        UnknownNameError: There is none (``usage.unknown-node``).
        AmbiguousNameError: Several records have this token (``usage.ambiguous-node``).
    """
    found = graph.with_id(text)
    if found is not None:
        return found
    records = graph.with_tokens([text]).get(text)
    if records is None:
        invocation = _invocation(graph, text)
        if invocation is None:
            raise _unknown(graph, text, "node")
        return invocation
    if len(records) > 1:
        raise AmbiguousNameError(
            f"{len(records)} nodes are of the record {text!r}",
            code="usage.ambiguous-node",
            nearest=tuple(map(str, graph.ids_of(records[:5]))),
        )
    return int(records[0])


def records_called(graph: ProvenanceGraph, tokens: Sequence[str]) -> Array:
    """Return the nodes of records: all of each token; where none has it, the node with this id, or the invocation.

    Raises:
        UnknownNameError: There is no such record or node (``usage.unknown-token``).
        UsageError: There are no tokens (``usage.arguments``).
    """
    return np.unique(np.concatenate(_records_of_each(graph, tokens)))


def _records_of_each(graph: ProvenanceGraph, tokens: Sequence[str]) -> list[Array]:
    if not tokens:
        raise UsageError("no record is named", code="usage.arguments")
    known = graph.with_tokens(tokens)
    found = []
    for token in dict.fromkeys(tokens):
        nodes = known.get(token)
        if nodes is None:
            node = graph.with_id(token)
            node = _invocation(graph, token) if node is None else node
            if node is None:
                raise _unknown(graph, token, "token")
            nodes = np.array([node], np.int64)
        found.append(nodes)
    return found


def _distinct_records(graph: ProvenanceGraph, tokens: Sequence[str]) -> Array:
    """Return the nodes of records, each named once: a token and the id of its node are two names of one."""
    each = _records_of_each(graph, tokens)
    every = np.concatenate(each)
    found, counts = np.unique(every, return_counts=True)
    if len(found) < len(every):
        twice = found[counts > 1][0]
        name = [token for token, nodes in zip(tokens, each, strict=True) if twice in nodes][-1]
        raise UsageError(f"token '{name}' is deleted twice: it is gone already", code="usage.token-gone")
    return found


def _invocation(graph: ProvenanceGraph, text: str) -> int | None:
    """The node of an invocation, ``MODULE#NUMBER``; None if the text is no such thing.

    Raises:
        UnknownNameError: The module was not invoked so often (``usage.unknown-invocation``).
    """
    module, mark, number = text.rpartition("#")
    if not mark or not (number.isascii() and number.isdigit()) or module not in graph.modules:
        return None
    own = (graph.type == terms.INVOCATION) & (graph.module == list(graph.modules).index(module))
    found = np.flatnonzero(own & (graph.invocation == min(int(number), 2**31 - 1)))
    if len(found):
        return int(found[0])
    known = [f"{module}#{each}" for each in sorted(graph.invocation[own].tolist())]
    raise UnknownNameError(
        f"there is no invocation {text}",
        code="usage.unknown-invocation",
        nearest=tuple(difflib.get_close_matches(text, known, 3, 0.3)),
    )


def _unknown(graph: ProvenanceGraph, text: str, noun: str) -> UnknownNameError:
    if noun == "token" or graph.ids is None:
        nodes = graph.tokens()[:_NAMES_COMPARED]
        names = graph.labels.take(graph.label[nodes].astype(np.int64))
    else:
        names = [str(each) for each in graph.ids_of(np.arange(min(graph.node_count, _NAMES_COMPARED)))]
    what = "no record or node of the graph is called" if noun == "token" else "no node of the graph is called"
    return UnknownNameError(
        f"{what} {text!r}", code=f"usage.unknown-{noun}", nearest=near_tokens(text, list(dict.fromkeys(names)))
    )


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


def subgraph_answer(name: str, graph: ProvenanceGraph, node: str) -> SubgraphAnswer:
    """The subgraph of a node."""
    from govtool.workflow.subgraph import subgraph

    number = node_called(graph, node)
    found = subgraph(graph, number)
    parts = (found.ancestors, found.descendants, found.siblings)
    return SubgraphAnswer(
        name, graph.id_of(number), len(found.nodes), len(found.edges), *(summaries(graph, part) for part in parts)
    )


def depends_answer(name: str, graph: ProvenanceGraph, node: str, on: Sequence[str]) -> DependsAnswer:
    """Return whether a node depends on records."""
    from govtool.workflow.dependency import dependency

    number = node_called(graph, node)
    found = dependency(graph, number, records_called(graph, on))
    parts = (found.necessary, found.lineage)
    return DependsAnswer(
        name,
        graph.id_of(number),
        tuple(dict.fromkeys(on)),
        found.depends,
        *(summaries(graph, part) for part in parts),
    )


def deletion_answer(
    name: str, graph: ProvenanceGraph, tokens: Sequence[str], outputs: Sequence[OutputTuples] = ()
) -> GraphDeletionAnswer:
    """The consequences of deleting records; of a run, for the rows of its outputs, too.

    Raises:
        UnknownNameError: A token is of no record (``usage.unknown-token``).
        UsageError: One record is deleted twice (``usage.token-gone``), or none (``usage.arguments``).
    """
    from govtool.workflow.deletion import delete
    from govtool.workflow.evaluation import UNDECIDED, World
    from govtool.workflow.modules.run_rows import output_deletions

    require_tokens(tokens)
    found = delete(graph, _distinct_records(graph, tokens))
    before = World(graph)
    changed = np.array(sorted(found.recomputed), np.int64)
    values = [before.value(node) for node in changed.tolist()]
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
        output_deletions(graph, outputs, found),
    )
