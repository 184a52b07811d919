"""Parts of OpenLineage events that are written the same everywhere: references, transformations, schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from govtool.capture.openlineage.edges import EXTRA
from govtool.capture.openlineage.facets import SPEC, facet
from govtool.capture.openlineage.identity import DatasetName, field_name
from govtool.model import HIDDEN, ROWS, VALUE_FLOW, Edge
from govtool.names import quote, split_name, unquote
from govtool.release import __version__

PRODUCER = f"urn:govtool:{__version__}"


def reference(name: DatasetName) -> dict[str, Any]:
    """Return the reference of a dataset."""
    return {"namespace": name.namespace, "name": name.name}


def exact_path(path: str) -> dict[str, Any]:
    """Return the path itself, where the name of its field does not tell a field of a field from a name with a dot."""
    return {} if quote(field_name(path)) == path or path in (ROWS, HIDDEN) else {EXTRA: {"path": path}}


def lineage_facet(body: Mapping[str, Any], definition: str) -> dict[str, Any]:
    """Return a ``lineage`` facet of one of the forms that its schema defines."""
    made = facet(PRODUCER, "1-0-0/LineageFacet", body)
    return {**made, "_schemaURL": f"{SPEC}/facets/1-0-0/LineageFacet.json#/$defs/{definition}"}


def transformations(edges: Iterable[Edge]) -> list[dict[str, Any]]:
    """Return the transformations that edges between the same columns mean, each once."""
    found: dict[str, dict[str, Any]] = {}
    for edge in edges:
        direct = edge.kind in VALUE_FLOW
        transformation: dict[str, Any] = {
            "type": "DIRECT" if direct else "INDIRECT",
            "subtype": edge.kind.name,
            "description": " → ".join(f"{name}()" for name in edge.functions),
            "masking": edge.masking,
        }
        extra: dict[str, Any] = {}
        if edge.star:
            extra["star"] = True
        if edge.arm:
            extra["arm"] = edge.arm
        if edge.reason:
            extra["reason"] = edge.reason
        if extra:
            transformation[EXTRA] = extra
        found[json.dumps(transformation, sort_keys=True)] = transformation
    return [found[key] for key in sorted(found)]


def schema_facet(columns: Mapping[str, str | None]) -> dict[str, Any]:
    """Return a schema facet; fields of structs and elements of arrays are nested."""
    top: list[dict[str, Any]] = []
    nodes: dict[str, dict[str, Any]] = {}
    for path, kind in columns.items():
        if path in (ROWS, HIDDEN):
            continue
        above: list[dict[str, Any]] = top
        whole = ""
        node: dict[str, Any] = {}
        for name in _steps(path):
            whole = f"{whole}\x1f{name}"
            if whole not in nodes:
                nodes[whole] = {"name": name}
                above.append(nodes[whole])
            node = nodes[whole]
            above = node.setdefault("fields", [])
        node["type"] = kind
    return facet(PRODUCER, "1-2-0/SchemaDatasetFacet", {"fields": [_trimmed(node) for node in top]})


def _steps(path: str) -> list[str]:
    steps: list[str] = []
    for part in split_name(path):
        stem, elements = part, 0
        while stem.endswith("[]"):
            stem, elements = stem[:-2], elements + 1
        steps += [unquote(stem), *["_element"] * elements]
    return steps


def _trimmed(node: Mapping[str, Any]) -> dict[str, Any]:
    below = [_trimmed(child) for child in node.get("fields", ())]
    found: dict[str, Any] = {"name": node["name"]}
    if node.get("type"):
        found["type"] = node["type"]
    if below:
        found["fields"] = below
    return found
