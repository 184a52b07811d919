"""Rows that may come from given inputs alone: if nothing is known of the inputs, these rows are unknown, too."""

from __future__ import annotations

from collections.abc import Callable

from govtool.records.plan.nodes import (
    Definition,
    Join,
    LateralJoin,
    LocalRows,
    Range,
    Reference,
    Relation,
    SetOperation,
    With,
)
from govtool.records.plan.tree import Node, fold_nodes


def may_come_alone(root: Node, is_given: Callable[[Relation], bool]) -> bool:
    """Return whether a plan may have rows that no row of any other input takes part in.

    A row of an inner join has a row of each side in it. A union has rows of one side alone, and so has an outer join.

    Args:
        root: The plan.
        is_given: Tells the inputs in question.
    """
    definitions: dict[int, bool] = {}

    def combined(node: Node, inputs: tuple[bool, ...]) -> bool:
        if isinstance(node, Relation):
            return is_given(node)
        if isinstance(node, (LocalRows, Range)):
            return False
        if isinstance(node, Reference):
            return definitions.get(node.id, True)
        if isinstance(node, Definition):
            definitions[node.id] = inputs[0]
        if isinstance(node, (Join, LateralJoin)):
            return _of_join(node.kind, *inputs)
        if isinstance(node, SetOperation):
            return inputs[0] and (node.kind == "except" or inputs[1])
        # Definitions count where they are referred to; the last input of a WITH is its rows.
        return inputs[-1] if isinstance(node, With) else any(inputs)

    return fold_nodes(root, combined)


def _of_join(kind: str, left: bool, right: bool) -> bool:
    """The same of a join, whose padded rows have a row of one side alone."""
    if kind in ("left", "left_single", "left_anti", "existence"):
        return left
    if kind == "right":
        return right
    return left or right if kind == "full" else left and right
