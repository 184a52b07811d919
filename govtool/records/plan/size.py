"""How deep and how large a plan may be whose rows are asked for.

Rules, engines and SQL look at an operator within the ones around it, and engines end at some hundreds of operators
within each other. A plan may come with another's store, so it is measured before anything else is done with it.
"""

from __future__ import annotations

from govtool.errors import UsageError
from govtool.records.plan.tree import Node, Tree

MAX_DEPTH = 400
"""Operators within each other, those in subqueries included."""
MAX_PARTS = 500_000
"""Operators and expressions, shared ones counted as often as they are used."""


def refuse_large(root: Node) -> None:
    """Refuse a plan that is deeper or larger than any whose rows are traced; each object is looked at once.

    Raises:
        UsageError: ``usage.trace-size``.
    """
    depths: dict[int, int] = {}
    sizes: dict[int, int] = {}
    waiting: list[tuple[Tree, tuple[Tree, ...] | None]] = [(root, None)]
    while waiting:
        tree, below = waiting.pop()
        if id(tree) in depths:
            continue
        if below is None:
            terms, nodes = tree.parts()
            below = (*terms, *nodes)
            waiting.append((tree, below))
            waiting.extend((part, None) for part in below)
        else:
            depths[id(tree)] = isinstance(tree, Node) + max((depths[id(part)] for part in below), default=0)
            sizes[id(tree)] = 1 + sum(sizes[id(part)] for part in below)
    for found, most, what in (
        (depths[id(root)], MAX_DEPTH, "operators within each other"),
        (sizes[id(root)], MAX_PARTS, "operators and expressions"),
    ):
        if found > most:
            raise UsageError(
                f"a plan of {found:,} {what} cannot be traced; at most {most:,} can",
                code="usage.trace-size",
                hint="write an intermediate result to files, so that the program has two writes with a plan each",
            )
