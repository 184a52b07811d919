"""A tree of Catalyst as the spool has it: nodes in preorder, taken apart.

Each node has its class ``c``, the number of its children ``n``, and its fields; fields that are expressions are such
lists themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from govtool.capture.spark import plan as p

Json = Mapping[str, Any]
T = TypeVar("T")


@dataclass(slots=True)
class CatalystTree:
    """A node of Catalyst's tree with its children."""

    name: str
    fields: Json
    children: list[CatalystTree]


def tree_of(nodes: Sequence[Json]) -> CatalystTree:
    """Return a tree from its nodes in preorder; ten thousand levels need no Python frames.

    Raises:
        ValueError: There are too few nodes or too many.
    """
    root: CatalystTree | None = None
    open_: list[tuple[CatalystTree, int]] = []
    for node in nodes:
        tree = CatalystTree(str(node.get("c", "")), node, [])
        while open_ and len(open_[-1][0].children) == open_[-1][1]:
            open_.pop()
        if open_:
            open_[-1][0].children.append(tree)
        elif root is None:
            root = tree
        else:
            raise ValueError("a plan has more nodes than its root has")
        open_.append((tree, int(node.get("n", 0))))
    if root is None or any(len(tree.children) < count for tree, count in open_):
        raise ValueError("a plan lacks nodes")
    return root


def nodes_of(root: CatalystTree) -> list[Json]:
    """The nodes of a tree in preorder; the inverse of `tree_of`."""
    found: list[Json] = []
    stack = [root]
    while stack:
        tree = stack.pop()
        found.append(tree.fields)
        stack.extend(reversed(tree.children))
    return found


def folded(root: CatalystTree, make: Callable[[CatalystTree, list[T]], T]) -> T:
    """Fold a tree by ``make``, which takes a node and the results of its children; on a stack of its own."""
    done: list[T] = []
    stack: list[tuple[CatalystTree, bool]] = [(root, False)]
    while stack:
        tree, seen = stack.pop()
        if seen or not tree.children:
            count = len(tree.children)
            children = done[len(done) - count :] if count else []
            del done[len(done) - count :]
            done.append(make(tree, children))
        else:
            stack.append((tree, True))
            stack.extend((child, False) for child in reversed(tree.children))
    return done[0]


def is_tree(value: object) -> bool:
    """Return whether a field holds a tree."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "c" in value[0]


def trees(value: object) -> Iterator[CatalystTree]:
    """The expressions of a field: one, a list of them, a list of lists."""
    if is_tree(value):
        yield tree_of(value)  # type: ignore[arg-type]
    elif isinstance(value, list):
        for item in value:
            yield from trees(item)


def held(tree: CatalystTree, key: str) -> CatalystTree | None:
    """Return the content of a field: a plan or an expression, itself or as a place among the children."""
    value = tree.fields.get(key)
    if is_tree(value):
        return tree_of(value)  # type: ignore[arg-type]
    if isinstance(value, int) and not isinstance(value, bool) and value < len(tree.children):
        return tree.children[value]
    return None


def named(value: object) -> tuple[p.Named, ...]:
    """The attributes of a field."""
    return tuple(
        p.Named(id_of(tree), str(tree.fields.get("name", "")))
        for tree in trees(value)
        if tree.fields.get("exprId") is not None
    )


def id_of(tree: CatalystTree) -> int:
    """The id of an attribute, or of what is computed.

    Raises:
        ValueError: It has none.
    """
    number = tree.fields.get("exprId")
    if not isinstance(number, int):
        raise ValueError(f"{tree.name} has no id")
    return number


def number(value: object, default: int = 0) -> int:
    """A number of a field, or the default."""
    try:
        return int(value)  # type: ignore[call-overload,no-any-return]
    except (TypeError, ValueError):
        return default
