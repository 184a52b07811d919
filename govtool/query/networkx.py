"""The graph as a networkx MultiDiGraph: the public in-memory view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from govtool.graph.index import Index
from govtool.model.derivation import ROWS
from govtool.query.evidence import evidence

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(index: Index) -> nx.MultiDiGraph[Any]:
    """Build a ``MultiDiGraph`` of all nodes and edges.

    Nodes are ``(dataset number, path)`` with the attributes ``name`` (canonical text), ``dataset``, ``path``, ``rows``,
    ``elided``, ``container`` (the node that holds a field) and ``type``. A dataset's number tells apart the generations
    of a script's table, which share a name. Edges have ``kind``, ``functions``, ``star``, ``masking``, ``arm``,
    ``reason``, ``derivation`` and ``evidence``; their key is the edge's number.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()

    def key(node: int) -> tuple[int, str]:
        return index.node_dataset[node], index.path(node)

    for node in range(index.node_count):
        dataset = index.node_dataset[node]
        container = index.container(node)
        graph.add_node(
            key(node),
            name=index.name(node),
            dataset=index.dataset_name(dataset),
            path=index.path(node),
            rows=index.path(node) == ROWS and index.is_rows(node),
            elided=index.is_elided(dataset),
            container=None if container is None else key(container),
            type=index.type(node),
        )
    proofs = {d: evidence(index, d) for d in sorted(set(index.edge_derivation))}
    for edge in range(index.edge_count):
        graph.add_edge(
            key(index.edge_source[edge]),
            key(index.edge_target[edge]),
            key=edge,
            kind=index.kind(edge),
            functions=index.functions(edge),
            star=index.is_star(edge),
            masking=index.is_masking(edge),
            arm=index.arm(edge),
            reason=index.reason(edge),
            derivation=index.edge_derivation[edge],
            evidence=proofs[index.edge_derivation[edge]],
        )
    return graph
