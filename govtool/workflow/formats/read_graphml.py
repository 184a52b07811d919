"""GraphML, read with the names of the JSON form as attributes; declarations of a document type are refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from govtool.workflow.formats.checks import GraphFile
from govtool.workflow.graph import ProvenanceGraph


def read_graphml(data: bytes, name: str) -> ProvenanceGraph:
    """Read a graph.

    Raises:
        UsageError: It is no GraphML, or mistaken (``usage.graph``), with the line and the reason.
    """
    file = GraphFile(name)
    _Handler(file).run(data)
    return file.graph()


_NOT_ONE_WAY = "and edges of a provenance graph lead from what is read to what is made of it"


@dataclass(slots=True)
class _Key:
    """A declared attribute: its name, whether nodes or edges have it, and what those without it have."""

    name: str
    place: str
    default: str | None = None

    def is_of(self, element: str) -> bool:
        return self.place in (element, "all")


@dataclass(slots=True)
class _Handler:
    file: GraphFile
    parser: Any = field(default_factory=lambda: expat.ParserCreate(namespace_separator=" "))
    keys: dict[str, _Key] = field(default_factory=dict)
    declared: _Key | None = None
    """The key whose default may follow."""
    graphs: int = 0
    depth: int = 0
    body: dict[str, Any] | None = None
    line: int = 0
    key: str | None = None
    text: list[str] = field(default_factory=list)

    def run(self, data: bytes) -> None:
        parser = self.parser
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._take_text
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.buffer_text = True
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            self.file.refuse(error.lineno, f"no XML: {expat.errors.messages[error.code]}")
        except (LookupError, ValueError) as error:  # of the codec that the declaration names, or that expat cannot use
            self.file.refuse(1, f"no XML: {error}")
        if not self.graphs:
            self.file.refuse(parser.CurrentLineNumber, "the file has no <graph>")

    def _refuse_doctype(self, *_: object) -> None:
        self._refuse("a document type is declared (<!DOCTYPE …>), which graphs do not need")

    def _refuse(self, reason: str) -> None:
        self.file.refuse(self.parser.CurrentLineNumber, reason)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if not self.depth and name != "graphml":
            self._refuse(f"no GraphML: the file begins with <{name}>")
        self.depth += 1
        if name in ("node", "edge"):
            self._begin(name, attributes)
        elif name == "data" and self.body is not None:
            key = self.keys.get(attributes.get("key", ""))
            self.key, self.text = key.name if key is not None else "", []
        elif name in ("hyperedge", "port"):
            self._refuse(f"a {name} is no node and no edge of two nodes")
        else:
            self._declare(name, attributes)

    def _declare(self, name: str, attributes: dict[str, str]) -> None:
        if name == "graph":
            self.graphs += 1
            if attributes.get("edgedefault", "directed") != "directed":
                self._refuse(f"the graph is not directed, {_NOT_ONE_WAY}")
        elif name == "key":
            self.declared = _Key(attributes.get("attr.name", ""), attributes.get("for", "all"))
            self.keys[attributes.get("id", "")] = self.declared
        elif name == "default" and self.declared is not None:
            self.key, self.text = self.declared.name, []

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if self.body is not None:
            self._refuse("a graph within a node")
        if attributes.get("directed", "true") not in ("true", "1"):
            self._refuse(f"an edge is not directed, {_NOT_ONE_WAY}")
        self.body, self.line = dict(attributes), self.parser.CurrentLineNumber

    def _take_text(self, text: str) -> None:
        if self.key is not None:
            self.text.append(text)

    def _end(self, tag: str) -> None:
        self.depth -= 1
        name = tag.rpartition(" ")[2]
        if name == "default" and self.declared is not None:
            self.declared.default, self.key = "".join(self.text), None
        elif name == "key":
            self.declared = None
        elif name == "data" and self.key is not None and self.body is not None:
            self._take_data(self.key, self.body)
            self.key = None
        elif name in ("node", "edge") and self.body is not None:
            self._take(name, self._with_defaults(name, self.body))
            self.body = None

    def _take_data(self, key: str, body: dict[str, Any]) -> None:
        if key == "id":
            return
        if key and key in body:
            self._refuse(f"the attribute {key} is there twice")
        body[key] = self._typed(key, "".join(self.text))

    def _with_defaults(self, element: str, body: dict[str, Any]) -> dict[str, Any]:
        for key in self.keys.values():
            if key.default is not None and key.is_of(element) and key.name not in body:
                body[key.name] = self._typed(key.name, key.default)
        return body

    def _take(self, name: str, body: dict[str, Any]) -> None:
        if name == "node":
            self.file.node(self._node(body), self.line)
            return
        side = body.get("side")
        self.file.edge([body.get("source"), body.get("target"), *([side] if side else [])], self.line)

    def _typed(self, key: str, text: str) -> Any:
        try:
            if key == "inv":
                return int(text)
            if key == "bb":
                return {"true": True, "1": True, "false": False, "0": False}[text.strip().lower()]
            return json.loads(text) if key == "value" else text
        except (ValueError, KeyError, RecursionError):
            self._refuse(f"the attribute {key} is not what it has to be: {text[:60]}")

    def _node(self, body: dict[str, Any]) -> dict[str, Any]:
        value = body.get("value")
        if isinstance(value, dict) and "value_type" in value:
            body = {**body, **value}
        return body
