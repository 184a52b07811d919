"""A lineage graph as W3C PROV-JSON (https://www.w3.org/submissions/prov-json/).

Columns and datasets are entities, a dataset a ``prov:Collection`` of its columns, a statement an activity. Each edge is
a ``wasDerivedFrom`` with its kind, and what a statement reads and makes is ``used`` and ``wasGeneratedBy``. What PROV
has no term for is an attribute in the namespace ``gt``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from govtool.report.model import ROWS, LineageView, ViewNode
from govtool.wording import printable

PREFIX = "urn:govtool:"
"""The namespace of names and attributes."""


def prov_json(view: LineageView) -> Iterator[str]:
    """The document, an element a line."""
    sections: dict[str, Mapping[str, Any]] = {
        "prefix": {"gt": PREFIX},
        "entity": dict(_entities(view)),
        "activity": dict(_activities(view)),
        **_relations(view),
    }
    yield "{"
    for number, (name, section) in enumerate(sections.items(), 1):
        yield f'"{name}":{{'
        last = len(section)
        for at, (key, value) in enumerate(section.items(), 1):
            yield f"{json.dumps(key)}:{json.dumps(value)}{',' if at < last else ''}"
        yield "}," if number < len(sections) else "}"
    yield "}"


def _entities(view: LineageView) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, dataset in enumerate(view.datasets):
        about = {"prov:label": printable(dataset.name), "gt:kind": dataset.kind}
        yield _dataset(view, number), {**about, "prov:type": {"$": "prov:Collection", "type": "xsd:QName"}}
        yield _node(view, ViewNode(number, ROWS)), {"prov:label": printable(f"{dataset.name}.*"), "gt:kind": "rows"}
        for at, column in enumerate(dataset.columns):
            typed = {"gt:type": printable(column.type)} if column.type else {}
            label = printable(f"{dataset.name}.{column.path}")
            yield _node(view, ViewNode(number, at)), {"prov:label": label, "gt:kind": "column", **typed}


def _activities(view: LineageView) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, statement in enumerate(view.statements):
        place = printable(f"{statement.file}:{statement.line}")
        about = {"prov:label": place, "gt:kind": statement.kind, "gt:fingerprint": statement.fingerprint}
        yield _statement(number), about | ({"gt:run": statement.run} if statement.run else {})


def _relations(view: LineageView) -> dict[str, dict[str, Any]]:
    members: list[dict[str, Any]] = []
    for number, dataset in enumerate(view.datasets):
        whole = _dataset(view, number)
        nodes = [ViewNode(number, at) for at in range(ROWS, len(dataset.columns))]
        members += [{"prov:collection": whole, "prov:entity": _node(view, node)} for node in nodes]
    uses = dict.fromkeys((edge.statement, edge.source) for edge in view.edges)
    makes = dict.fromkeys((edge.statement, edge.target) for edge in view.edges)
    derived = [
        {
            "prov:generatedEntity": _node(view, edge.target),
            "prov:usedEntity": _node(view, edge.source),
            "prov:activity": _statement(edge.statement),
            "gt:kind": edge.kind,
            "prov:label": printable(edge.label),
            **({"gt:star": True} if edge.is_star else {}),
            **({"gt:masking": True} if edge.is_masking else {}),
        }
        for edge in view.edges
    ]
    found = {
        "hadMember": members,
        "used": [{"prov:activity": _statement(by), "prov:entity": _node(view, node)} for by, node in uses],
        "wasGeneratedBy": [{"prov:entity": _node(view, node), "prov:activity": _statement(by)} for by, node in makes],
        "wasDerivedFrom": derived,
    }
    return {kind: {f"_:{kind}{n}": body for n, body in enumerate(bodies)} for kind, bodies in found.items()}


def _dataset(view: LineageView, number: int) -> str:
    return f"gt:dataset/{number}/{_local(view.datasets[number].name)}"


def _node(view: LineageView, node: ViewNode) -> str:
    """The name of a column; the number of its dataset tells apart tables of scripts that share a name."""
    dataset = view.datasets[node.dataset]
    path = "*" if node.column == ROWS else dataset.columns[node.column].path
    return f"gt:column/{node.dataset}/{_local(f'{dataset.name}.{path}')}"


def _statement(number: int) -> str:
    return f"gt:statement/{number}"


def _local(name: str) -> str:
    return quote(printable(name), safe="._*")
