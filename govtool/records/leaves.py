"""Leaves of a plan, replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from govtool.records.plan.nodes import File, Relation
from govtool.records.plan.subqueries import everywhere
from govtool.records.plan.tree import Node


def with_relations(root: Node, change: Callable[[Relation], Node]) -> Node:
    """A plan with a change applied to every leaf that reads files, those of subqueries included."""
    return everywhere(root, lambda node: change(node) if isinstance(node, Relation) else node)


def with_files(root: Node, files: Mapping[int, Iterable[File]]) -> Node:
    """A plan whose leaves read other files, given by the number of the leaf; those that are not given read none."""
    return with_relations(root, lambda leaf: replace(leaf, files=tuple(files.get(leaf.leaf, ()))))
