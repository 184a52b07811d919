"""The tree of a plan that Spark's analyzer made.

It comes as JSON (``TreeNode.toJSON``): every node a list of itself and all below it in preorder. What that leaves out,
the projections of ``Expand``, is asked for over py4j.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


class Tree:
    """A node of a plan or of an expression: its class without the package, its fields, its children."""

    __slots__ = ("children", "fields", "kind")

    def __init__(self, fields: dict[str, Any], children: list[Tree]) -> None:
        self.kind = (
            fields["class"].rpartition(".")[2].rpartition("$")[2] or fields["class"].rstrip("$").rpartition(".")[2]
        )
        self.fields = fields
        self.children = children

    def tree(self, name: str) -> Tree:
        """A field that is a tree: a child by its number, or one of its own."""
        value = self.fields[name]
        return self.children[value] if isinstance(value, int) else read(value)

    def trees(self, name: str) -> list[Tree]:
        """A field that is a list of trees."""
        return [self.children[item] if isinstance(item, int) else read(item) for item in self.fields.get(name) or ()]

    @property
    def id(self) -> int:
        """The expression id."""
        return int(self.fields["exprId"]["id"])


def read(nodes: list[dict[str, Any]]) -> Tree:
    """The tree that a list in preorder is."""
    items = iter(nodes)

    def node() -> Tree:
        fields = next(items)
        return Tree(fields, [node() for _ in range(fields["num-children"])])

    return node()


def holds(node: Tree, kind: str) -> bool:
    """Whether a tree has a node of a kind."""
    return node.kind == kind or any(holds(child, kind) for child in node.children)


def projections_of(plan: Any) -> dict[tuple[int, ...], list[list[Tree]]]:
    """The projections of each Expand, by the ids of its output."""
    found: dict[tuple[int, ...], list[list[Tree]]] = {}
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if node.nodeName() == "Expand":
            ids = tuple(attribute.exprId().id() for attribute in items_of(node.output()))
            rows = [[read(json.loads(item.toJSON())) for item in items_of(row)] for row in items_of(node.projections())]
            found[ids] = rows
        waiting.extend(items_of(node.children()))
        waiting.extend(items_of(node.subqueries()))
        waiting.extend(child for child in items_of(node.innerChildren()) if hasattr(child, "output"))
    return found


def items_of(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala Seq."""
    for position in range(sequence.size()):
        yield sequence.apply(position)
