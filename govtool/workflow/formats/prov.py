"""A graph as W3C PROV-JSON, which is lossy: it has no values of cells, no sides, and no ``·`` apart from ``+``.

Tuples and what operators make are entities, invocations activities. An ``i`` or ``s`` node says that its invocation
used the tuple it was made of, an ``o`` node that its invocation generated it. An operator was derived from its inputs,
with its label. Nodes of values, and those of modules that are zoomed out, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from govtool.workflow.formats.rows import NodeRow, edge_rows, node_rows
from govtool.workflow.graph import NodeId
from govtool.workflow.values import ABSENT
from govtool.workflow.zoom import GraphView

PREFIX = "urn:govtool:graph:"
"""The namespace of the ids of nodes."""
_ENTITIES = frozenset({"wi", "st", "o", "op"})


def prov_lines(view: GraphView) -> Iterator[str]:
    """The document as one JSON object, a part a line."""
    document = _document(view)
    yield "{"
    parts = [f"{json.dumps(name)}:{json.dumps(part, ensure_ascii=True)}" for name, part in document.items()]
    yield ",\n".join(parts)
    yield "}"


def _document(view: GraphView) -> dict[str, Any]:
    nodes = {row.id: row for row in node_rows(view) if row.kind == "p" and row.type != "zoom"}
    inputs: dict[NodeId, list[NodeId]] = {}
    for edge in edge_rows(view):
        if edge.source in nodes and edge.target in nodes:
            inputs.setdefault(edge.target, []).append(edge.source)
    calls = {(row.module, row.invocation): row.id for row in nodes.values() if row.type == "m"}
    relations = _relations(nodes, inputs, calls)
    return {
        "prefix": {"gt": PREFIX},
        "entity": {_name(row.id): _attributes(row) for row in nodes.values() if row.type in _ENTITIES},
        "activity": {_name(row.id): _attributes(row) for row in nodes.values() if row.type == "m"},
        **{kind: {f"_:{kind}{n}": body for n, body in enumerate(bodies)} for kind, bodies in relations.items()},
    }


def _relations(
    nodes: dict[NodeId, NodeRow], inputs: dict[NodeId, list[NodeId]], calls: dict[tuple[str | None, int], NodeId]
) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {"used": [], "wasGeneratedBy": [], "wasDerivedFrom": []}
    for row in nodes.values():
        sources = [_entity(nodes, inputs, each) for each in inputs.get(row.id, ()) if nodes[each].type != "m"]
        call = calls.get((row.module, row.invocation))
        if row.type in ("i", "s") and call is not None:
            found["used"] += [{"prov:activity": _name(call), "prov:entity": _name(each)} for each in sources]
        elif row.type == "o" and call is not None:
            found["wasGeneratedBy"].append({"prov:entity": _name(row.id), "prov:activity": _name(call)})
        if row.type in ("op", "o"):
            label = {"prov:label": row.label} if row.type == "op" else {}
            found["wasDerivedFrom"] += [
                {"prov:generatedEntity": _name(row.id), "prov:usedEntity": _name(each), **label} for each in sources
            ]
    return found


def _entity(nodes: dict[NodeId, NodeRow], inputs: dict[NodeId, list[NodeId]], id_: NodeId) -> NodeId:
    """The tuple that an ``i`` or ``s`` node stands for."""
    while nodes[id_].type in ("i", "s"):
        sources = [each for each in inputs.get(id_, ()) if nodes[each].type != "m"]
        if not sources:
            break
        id_ = sources[0]
    return id_


def _name(id_: NodeId) -> str:
    return f"gt:{quote(str(id_), safe='')}"


def _attributes(row: NodeRow) -> dict[str, Any]:
    found: dict[str, Any] = {"prov:label": row.label, "gt:type": row.type}
    if row.module is not None:
        found |= {"gt:module": row.module, "gt:inv": row.invocation}
    return found if row.value is ABSENT else {**found, "prov:value": str(row.value)}
