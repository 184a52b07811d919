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


@dataclass(slots=True)
class _Handler:
    file: GraphFile
    parser: Any = field(default_factory=lambda: expat.ParserCreate(namespace_separator=" "))
    keys: dict[str, str] = field(default_factory=dict)
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

    def _refuse_doctype(self, *_: object) -> None:
        self._refuse("a document type is declared (<!DOCTYPE …>), which graphs do not need")

    def _refuse(self, reason: str) -> None:
        self.file.refuse(self.parser.CurrentLineNumber, reason)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if name == "key":
            self.keys[attributes.get("id", "")] = attributes.get("attr.name", "")
        elif name == "graph" and attributes.get("edgedefault", "directed") != "directed":
            self._refuse("the graph is not directed")
        elif name in ("node", "edge"):
            if self.body is not None:
                self._refuse("a graph within a node")
            self.body, self.line = dict(attributes), self.parser.CurrentLineNumber
        elif name == "data" and self.body is not None:
            self.key, self.text = self.keys.get(attributes.get("key", ""), ""), []
        elif name in ("hyperedge", "port"):
            self._refuse(f"a {name} is no node and no edge of two nodes")

    def _take_text(self, text: str) -> None:
        if self.key is not None:
            self.text.append(text)

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        if name == "data" and self.key is not None and self.body is not None:
            if self.key != "id":
                self.body[self.key] = self._typed(self.key, "".join(self.text))
            self.key = None
        elif name == "node" and self.body is not None:
            self.file.node(self._node(self.body), self.line)
            self.body = None
        elif name == "edge" and self.body is not None:
            ends = [self.body.get("source"), self.body.get("target")]
            side = self.body.get("side")
            self.file.edge([*ends, *([side] if side else [])], self.line)
            self.body = None

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
