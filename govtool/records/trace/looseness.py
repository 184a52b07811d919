"""The distance of a plan's rows from those of its run: see ``govtool.records.trace.loosen``."""

from __future__ import annotations

from dataclasses import dataclass

from govtool.records.plan.expressions import Opaque
from govtool.records.plan.nodes import Break
from govtool.records.plan.tree import Node, walk, walk_nodes


def has_breaks(root: Node) -> bool:
    """Return whether a plan has parts that cannot be evaluated again."""
    return any(
        isinstance(node, Break) or any(isinstance(term, Opaque) for term in walk(node)) for node in walk_nodes(root)
    )


@dataclass(frozen=True, slots=True)
class Looseness:
    """The distance of a loosened plan's rows from those that the run had.

    Attributes:
        why: What cannot be evaluated again.
        unsure: Equal rows are no proof: their traces may hold too many rows, or several rows are one.
        missing: Why inputs of the run are not known at all.
    """

    why: str
    unsure: bool = False
    missing: str = ""


@dataclass(frozen=True, slots=True)
class LoosenedPlan:
    """A plan that can be evaluated.

    Attributes:
        node: The plan.
        blank: Ids of columns whose values are not known, and are NULL.
        looseness: How far its rows are from the run's; None where they are the run's.
        why: What cannot be evaluated again.
    """

    node: Node
    blank: frozenset[int] = frozenset()
    looseness: Looseness | None = None
    why: str = ""
