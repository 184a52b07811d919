"""Reads the text form of PostgreSQL's parse trees (``nodeToString``, src/backend/nodes/outfuncs.c).

    {QUERY :commandType 1 :targetList ({TARGETENTRY :expr {VAR :varno 1 …} :resno 1 …}) …}

Braces hold a node and its fields, parentheses a list (with ``i``, ``o`` or ``b`` first, one of numbers), ``<>`` is
nothing, and a backslash escapes the character after it.
"""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(r"[(){}]|(?:\\.|[^\s(){}\\])+", re.DOTALL)


class Node(dict[str, Any]):
    """A node: its fields by name. A field is a node, a list, a text, or None."""

    kind: str

    def number(self, field: str) -> int:
        """A field that is a number; 0 where this version of PostgreSQL does not have it."""
        return int(self.get(field) or 0)

    def nodes(self, field: str) -> list[Node]:
        """A field that is a list of nodes."""
        value = self.get(field)
        return [item for item in value if isinstance(item, Node)] if isinstance(value, list) else []


def read(text: str) -> Any:
    """The value that a text stands for."""
    tokens = _TOKEN.findall(text)
    value, end = _value(tokens, 0)
    if end != len(tokens):
        raise ValueError(f"{len(tokens) - end} tokens are left over")
    return value


def _value(tokens: list[str], at: int) -> tuple[Any, int]:
    token = tokens[at]
    if token == "{":
        return _node(tokens, at)
    if token == "(":
        items = []
        at += 1
        while tokens[at] != ")":
            item, at = _value(tokens, at)
            items.append(item)
        return items, at + 1
    return None if token == "<>" else _unescaped(token), at + 1


def _node(tokens: list[str], at: int) -> tuple[Node, int]:
    node = Node()
    node.kind = tokens[at + 1]
    at += 2
    while tokens[at] != "}":
        field = tokens[at][1:]
        at += 1
        values = []
        while tokens[at] != "}" and not tokens[at].startswith(":"):
            value, at = _value(tokens, at)
            values.append(value)
        # A constant is its length and its bytes: 4 [ 1 0 0 0 ]; lineage has no use for them.
        node[field] = values[0] if values else None
    return node, at + 1


def _unescaped(token: str) -> str:
    text = re.sub(r"\\(.)", r"\1", token, flags=re.DOTALL)
    return text[1:-1] if len(token) > 1 and token.startswith('"') and token.endswith('"') else text
