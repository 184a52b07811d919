"""Changes of a plan that reach the plans of its subqueries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from govtool.records.plan.expressions import Exists, InSubquery, ScalarSubquery
from govtool.records.plan.tree import Node, Term, rewrite, rewrite_nodes, subquery_plans


def everywhere(root: Node, change: Callable[[Node], Node]) -> Node:
    """Apply a change to every operator bottom-up, those of subqueries included."""
    return rewrite_nodes(root, lambda node: change(with_subqueries(node, lambda plan: everywhere(plan, change))))


def with_subqueries(node: Node, change: Callable[[Node], Node]) -> Node:
    """An operator with other plans in the subqueries of its own expressions."""
    if not subquery_plans(node):
        return node

    def within(term: Term) -> Term:
        if isinstance(term, (ScalarSubquery, Exists, InSubquery)):
            return replace(term, plan=change(term.plan))
        return term

    return node.replaced(terms=tuple(rewrite(term, within) for term in node.terms()))
