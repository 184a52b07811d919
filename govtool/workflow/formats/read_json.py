"""The JSON form of a graph, read: ``{"nodes": [{…}], "edges": [[source, target]]}``.

Nodes and edges are taken one at a time, with the line that each begins in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from govtool.errors import UsageError
from govtool.workflow.formats.checks import GraphFile
from govtool.workflow.graph import ProvenanceGraph

MAX_BYTES = 4 << 30
"""The largest graph that is read."""
_SPACE = re.compile(r"[ \t\r\n]*")


def read_json(data: bytes, name: str) -> ProvenanceGraph:
    """Read a graph.

    Raises:
        UsageError: It is no JSON, or mistaken (``usage.graph``), with the line and the reason.
    """
    file = GraphFile(name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        file.refuse(data.count(b"\n", 0, error.start) + 1, "the file is not UTF-8")
    _Scanner(text, file).run()
    return file.graph()


class _Scanner:
    """Goes over the outer object and hands its nodes and edges on."""

    def __init__(self, text: str, file: GraphFile) -> None:
        self.text, self.file, self.at = text, file, 0
        self.decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
        self._line, self._counted = 1, 0

    def run(self) -> None:
        takes: dict[str, Callable[[object, int], None]] = {"nodes": self.file.node, "edges": self.file.edge}
        seen: set[str] = set()
        self._expect("{")
        more = self._peek() != "}"
        while more:
            key = self._value()
            if not isinstance(key, str) or key in seen:
                self._refuse("two parts have one name" if isinstance(key, str) else "the name of a part is no text")
            seen.add(key)
            self._expect(":")
            if key in takes:
                self._items(takes[key])
            else:
                self._value()
            more = self._peek() == ","
            if more:
                self._expect(",")
        self._expect("}")
        if self._peek():
            self._refuse("there is something behind the end of the graph")
        for key in takes:
            if key not in seen:
                self._refuse(f"the file has no {key}")

    def _items(self, take: Callable[[object, int], None]) -> None:
        self._expect("[")
        if self._peek() == "]":
            self._expect("]")
            return
        while True:
            self._skip()
            line = self.line
            take(self._value(), line)
            if self._peek() != ",":
                break
            self._expect(",")
        self._expect("]")

    @property
    def line(self) -> int:
        """The line of the place that was reached."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _peek(self) -> str:
        self._skip()
        return self.text[self.at : self.at + 1]

    def _expect(self, wanted: str) -> None:
        found = self._peek()
        if found != wanted:
            self._refuse(f"{wanted} is missing" + (f" before {found!r}" if found else ": the file ends"))
        self.at += 1

    def _value(self) -> Any:
        self._skip()
        try:
            value, self.at = self.decoder.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            self.at = max(self.at, min(error.pos, len(self.text)))
            self._refuse(f"no JSON: {error.msg.lower()}")
        except RecursionError:
            self._refuse("lists and objects are nested too deeply")
        except (ValueError, KeyError) as error:
            self._refuse(f"no JSON: {error.args[0]}")
        return value

    def _refuse(self, reason: str) -> None:
        self.file.refuse(self.line, reason)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise KeyError("an object has two values of one name")
    return found


def _no_constant(text: str) -> Any:
    raise KeyError(f"{text} is no number")


def refuse_large(size: int, name: str) -> None:
    """Refuse a graph that does not fit into memory.

    Raises:
        UsageError: It is too large (``usage.graph``).
    """
    if size > MAX_BYTES:
        raise UsageError(f"the graph is larger than {MAX_BYTES >> 30} GB", code="usage.graph", location=name)
