"""Trees on a terminal: one line a node, its children below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from govtool.render.layout.text import printable


@dataclass(slots=True)
class TreeNode:
    """A node and its children, in order."""

    text: str
    below: list[TreeNode] = field(default_factory=list)


def tree_lines(nodes: Sequence[TreeNode]) -> Iterator[str]:
    """The lines of several trees; a cycle must not be among them."""
    waiting = [(node, "", number == len(nodes) - 1) for number, node in reversed(list(enumerate(nodes)))]
    while waiting:
        node, indent, is_last = waiting.pop()
        yield f"{indent}{'└─' if is_last else '├─'} {printable(node.text)}"
        inner = indent + ("   " if is_last else "│  ")
        last = len(node.below) - 1
        waiting += [(child, inner, number == last) for number, child in reversed(list(enumerate(node.below)))]
