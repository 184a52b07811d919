"""``withField`` and ``dropFields``: which fields of a struct an expression sets and drops.

Catalyst's ``UpdateFields`` has them as objects that ``toJSON()`` writes as null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from govtool.spark.live.scala import safely, sequence

NAME = "UpdateFields"

Json = Any


def add_struct_updates(find: Callable[[], Any], trees: list[list[dict[str, Json]]], budget: list[int]) -> None:
    """Add ``updates`` to each `NAME` in the expressions of a plan's node: ``[name, is set]``, in order.

    Args:
        find: Returns the node behind py4j.
        trees: Its expressions as the JSON has them.
        budget: How many may be asked for.
    """
    behind = sequence(find().expressions())
    if len(behind) != len(trees):
        return
    for expression, tree in zip(behind, trees):
        for path, node in _paths(tree):
            if node["c"] == NAME and budget[0]:
                budget[0] -= 1
                found = safely(partial(_updates, expression, path))
                if found:
                    node["updates"] = found


def _updates(expression: Any, path: tuple[int, ...]) -> list[list[Json]]:
    for position in path:
        expression = expression.children().apply(position)
    operations = sequence(expression.fieldOps())
    return [[str(each.name()), each.getClass().getSimpleName() == "WithField"] for each in operations]


def _paths(nodes: list[dict[str, Json]]) -> Iterator[tuple[tuple[int, ...], dict[str, Json]]]:
    """The nodes of a tree in preorder, each with the positions of the children that lead to it."""
    open_: list[tuple[tuple[int, ...], int, list[int]]] = []  # path, children, position of the next child
    for node in nodes:
        while open_ and open_[-1][2][0] == open_[-1][1]:
            open_.pop()
        path: tuple[int, ...] = ()
        if open_:
            path = (*open_[-1][0], open_[-1][2][0])
            open_[-1][2][0] += 1
        yield path, node
        open_.append((path, node["n"], [0]))
