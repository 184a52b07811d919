"""Changes of a plan that reach the plans of its subqueries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from govtool.records.plan.expressions import Exists, InSubquery, ScalarSubquery
from govtool.records.plan.tree import Node, Term, rewrite, rewrite_nodes, subquery_plans


def everywhere(root: Node, change: Callable[[Node], Node]) -> Node:
    """Apply a change to every operator bottom-up, those of subqueries included."""
    return everywhere_within(root, lambda node, _: change(node))


def everywhere_within(root: Node, change: Callable[[Node, Node | None], Node], around: Node | None = None) -> Node:
    """Apply a change to every operator bottom-up, those of subqueries included.

    Args:
        root: The plan.
        change: Of an operator, and the rows that the subquery is asked for which it is in; None: in none, or in one of
            an operator of several inputs.
        around: Those of the plan.
    """

    def each(node: Node) -> Node:
        inputs = node.nodes()
        rows = inputs[0] if len(inputs) == 1 else None
        return change(with_subqueries(node, lambda plan: everywhere_within(plan, change, rows)), around)

    return rewrite_nodes(root, each)


def with_subqueries(node: Node, change: Callable[[Node], Node]) -> Node:
    """An operator with other plans in the subqueries of its own expressions."""
    if not subquery_plans(node):
        return node

    def within(term: Term) -> Term:
        if isinstance(term, (ScalarSubquery, Exists, InSubquery)):
            return replace(term, plan=change(term.plan))
        return term

    return node.replaced(terms=tuple(rewrite(term, within) for term in node.terms()))
