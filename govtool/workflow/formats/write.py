"""Views of graphs as files: JSON, DOT, GraphML, and PROV-JSON, each line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.workflow.formats.prov import prov_lines
from govtool.workflow.formats.rows import NodeRow, edge_rows, node_rows
from govtool.workflow.values import ABSENT
from govtool.workflow.zoom import GraphView

_STEERING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that could steer a terminal; files have them as escapes."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML does not have, not even as escapes."""
_LAST_PLANE = "\uffff".encode()
_SHAPES = {"v": "box", "p": "ellipse"}
_ATTRIBUTES = ("kind", "type", "label", "module", "inv", "bb", "value", "side")


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def json_lines(view: GraphView) -> Iterator[str]:
    """The JSON form, a node or an edge a line."""
    yield '{"nodes":['
    yield from _with_commas(_json(row.body()) for row in node_rows(view))
    yield '],"edges":['
    yield from _with_commas(_json(row.body()) for row in edge_rows(view))
    yield "]}"


def _with_commas(lines: Iterator[str]) -> Iterator[str]:
    last = next(lines, None)
    for line in lines:
        yield f"{last},"
        last = line
    if last is not None:
        yield last


def dot_lines(view: GraphView) -> Iterator[str]:
    """Graphviz: tuples are ellipses, values boxes, modules zoomed out have a double border."""
    yield "digraph provenance {"
    yield "  rankdir=LR;"
    for node in node_rows(view):
        shape = "doubleoctagon" if node.type == "zoom" else _SHAPES[node.kind]
        yield f"  {_quoted(node.id)} [shape={shape}, label={_quoted(_caption(node))}];"
    for edge in edge_rows(view):
        side = "" if edge.side is None else f" [label={edge.side}]"
        yield f"  {_quoted(edge.source)} -> {_quoted(edge.target)}{side};"
    yield "}"


def _caption(node: NodeRow) -> str:
    where = f" {node.module}#{node.invocation}" if node.type in ("i", "o", "s", "m", "zoom") else ""
    name = node.type if node.type in ("m", "zoom") else f"{node.type} {node.label}"
    value = "" if node.value is ABSENT else f" = {node.value}"
    return f"{name}{where}{value}"


def _quoted(value: object) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return '"' + _STEERING.sub(_visible, _NOT_XML.sub(_visible, text)) + '"'


def _visible(found: re.Match[str]) -> str:
    """A character that is not shown as its number, so that names which differ in it stay apart."""
    return f"\\\\u{ord(found.group()):04x}"


def graphml_lines(view: GraphView) -> Iterator[str]:
    """GraphML, with the keys of the JSON form as attributes; values are JSON texts.

    Raises:
        UsageError: An id or a label has a character that XML cannot hold (``usage.graphml``).
    """
    _require_xml(view)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for name in _ATTRIBUTES:
        kind = {"inv": "int", "bb": "boolean"}.get(name, "string")
        place = "edge" if name == "side" else "node"
        yield f'  <key id="{name}" for="{place}" attr.name="{name}" attr.type="{kind}"/>'
    yield '  <graph edgedefault="directed">'
    for node in node_rows(view):
        yield f'    <node id="{_xml(node.id)}">{"".join(_data(node))}</node>'
    for edge in edge_rows(view):
        side = "" if edge.side is None else f'<data key="side">{edge.side}</data>'
        yield f'    <edge source="{_xml(edge.source)}" target="{_xml(edge.target)}">{side}</edge>'
    yield "  </graph>"
    yield "</graphml>"


def _data(node: NodeRow) -> Iterator[str]:
    body = node.body()
    if node.value is not ABSENT:
        typed = {name: body[name] for name in ("value", "value_type") if name in body}
        text = _json(typed if "value_type" in typed else typed["value"])
        body["value"] = _NOT_XML.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
    if "bb" in body:
        body["bb"] = "true"
    for name in _ATTRIBUTES:
        if name in body:
            yield f'<data key="{name}">{_xml(body[name])}</data>'


def _require_xml(view: GraphView) -> None:
    """Refuse names that XML cannot hold: with another character they might be those of other nodes.

    Raises:
        UsageError: There is one.
    """
    graph = view.graph
    texts = [graph.labels.data, *([] if graph.ids is None else [graph.ids.texts.data])]
    if not any(_may_not_be_xml(np.asarray(each)) for each in texts) and not _NOT_XML.search("".join(graph.modules)):
        return
    for node in node_rows(view):
        for what, text in (("id", str(node.id)), ("label", node.label), ("module", node.module or "")):
            found = _NOT_XML.search(text)
            if found is not None:
                raise UsageError(
                    f"GraphML cannot hold the character U+{ord(found.group()):04X} in the {what} of node {node.id!r}",
                    code="usage.graphml",
                    hint="export it as json",
                )


def _may_not_be_xml(data: Array) -> bool:
    """Return whether UTF-8 has control characters, or the first byte of U+FFFE and U+FFFF."""
    control = (data < ord(" ")) & (data != ord("\t")) & (data != ord("\n")) & (data != ord("\r"))
    return bool((control | (data == _LAST_PLANE[0])).any())


def _xml(value: object) -> str:
    text = str(value)
    for character, escape in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\n", "&#10;")):
        text = text.replace(character, escape)
    text = text.replace("\r", "&#13;").replace("\t", "&#9;")
    return _STEERING.sub(lambda found: f"&#{ord(found.group())};", text)


WRITERS: Mapping[str, Callable[[GraphView], Iterator[str]]] = {
    "json": json_lines,
    "dot": dot_lines,
    "graphml": graphml_lines,
    "prov-json": prov_lines,
}
"""How a view is written, by format."""
FORMATS = tuple(WRITERS)
