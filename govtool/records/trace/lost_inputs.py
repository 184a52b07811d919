"""Plans over inputs of which files are gone: rows that these were joined with are traced by what else is known.

A join with rows that are gone has no rows, and so those on its other side would not be shown. Here such an input is an
operator that cannot be evaluated again: see ``loosen``.
"""

from __future__ import annotations

from collections.abc import Collection

from govtool.records.execute.inputs import relations
from govtool.records.plan.nodes import Break, Join, LateralJoin, Relation, SetOperation, outputs
from govtool.records.plan.subqueries import everywhere, with_subqueries
from govtool.records.plan.tree import Node, rewrite_nodes


def around_lost_inputs(root: Node, lost: Collection[str]) -> Node:
    """A plan in which inputs that lost files are breaks where others are joined with them; else the same plan.

    Args:
        root: The plan, over the files that are still there.
        lost: The datasets of which files are gone or have changed.
    """

    def is_lost(node: Node) -> bool:
        leaves = relations(node)
        return bool(leaves) and all(leaf.dataset in lost for leaf in leaves)

    def broken(node: Node) -> Node:
        if not (isinstance(node, Relation) and is_lost(node)):
            return node
        return Break(f"which rows were joined with those of {node.dataset} is not known", (), outputs(node))

    def change(node: Node) -> Node:
        node = with_subqueries(node, lambda plan: rewrite_nodes(plan, broken) if is_lost(plan) else plan)
        sides = node.nodes() if isinstance(node, (Join, LateralJoin, SetOperation)) else ()
        gone = [is_lost(side) for side in sides]
        if not any(gone) or all(gone):
            return node
        return node.replaced(
            nodes=tuple(
                rewrite_nodes(side, broken) if is_gone else side for side, is_gone in zip(sides, gone, strict=True)
            )
        )

    return everywhere(root, change)
