"""Leaves of a plan, replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from govtool.records.plan.expressions import Exists, InSubquery, ScalarSubquery
from govtool.records.plan.nodes import File, Relation
from govtool.records.plan.tree import Node, Term, rewrite, rewrite_nodes, subquery_plans


def with_relations(root: Node, change: Callable[[Relation], Node]) -> Node:
    """A plan with a change applied to every leaf that reads files, those of subqueries included."""

    def within(term: Term) -> Term:
        if isinstance(term, (ScalarSubquery, Exists, InSubquery)):
            return replace(term, plan=with_relations(term.plan, change))
        return term

    def each(node: Node) -> Node:
        if isinstance(node, Relation):
            return change(node)
        if not subquery_plans(node):
            return node
        return node.replaced(terms=tuple(rewrite(term, within) for term in node.terms()))

    return rewrite_nodes(root, each)


def with_files(root: Node, files: Mapping[int, Iterable[File]]) -> Node:
    """A plan whose leaves read other files, given by the number of the leaf; those that are not given read none."""
    return with_relations(root, lambda leaf: replace(leaf, files=tuple(files.get(leaf.leaf, ()))))
