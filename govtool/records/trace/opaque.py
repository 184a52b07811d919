"""Cells that cannot be evaluated again: NULL where they only show, so that the rows keep their traces.

A cell that steers rows (a condition, a key, an order, an argument of an aggregate) is left as it is: the executor then
refuses the plan, as a trace through it would be a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from govtool.records.plan.expressions import Literal, Named, Opaque
from govtool.records.plan.nodes import (
    Deduplicate,
    Distinct,
    Expand,
    LocalRows,
    Project,
    Relation,
    SetOperation,
    Union,
    Write,
    outputs,
)
from govtool.records.plan.tree import Node, rewrite_nodes, walk, walk_nodes
from govtool.records.trace.segment import free_columns, reads, subqueries

Columns = frozenset[int]


def blanked(root: Node) -> tuple[Node, Columns]:
    """A plan whose opaque cells that only show are NULL, and the ids of the columns that are blank for it."""
    if not any(isinstance(term, Opaque) for node in walk_nodes(root) for term in walk(node)):
        return root, frozenset()
    steering = _steering(root)
    blank: set[int] = set()

    def change(node: Node) -> Node:
        if isinstance(node, Project):
            return Project(node.child, tuple(_cell(named, steering, blank) for named in node.columns))
        if isinstance(node, Union):
            for child in node.children:
                pairs = zip(outputs(child), node.columns, strict=True)
                blank.update(new.id for old, new in pairs if old.id in blank)
        return node

    return rewrite_nodes(root, change), frozenset(blank)


def _cell(named: Named, steering: Columns, blank: set[int]) -> Named:
    opaque = any(isinstance(term, Opaque) for term in walk(named.value))
    if named.id in steering or not (opaque or reads([named.value]) & blank):
        return named
    blank.add(named.id)
    return replace(named, value=Literal(None, named.type)) if opaque else named


def _steering(root: Node) -> Columns:
    """The columns that decide which rows there are, and those that these are computed from."""
    found = {number for node in walk_nodes(root) for number in _deciding(node)}
    sources: dict[int, set[int]] = {}
    for node in walk_nodes(root):
        for target, used in _computed_from(node):
            sources.setdefault(target, set()).update(used)
    waiting = list(found)
    while waiting:
        more = sources.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return frozenset(found)


def _deciding(node: Node) -> Columns:
    if isinstance(node, Project):
        inner = subqueries(node.columns)
        outer = {column.id for each in inner for column in free_columns(each.plan)}
        return frozenset(outer | {column.id for each in inner for column in outputs(each.plan)})
    if isinstance(node, (Distinct, SetOperation, Deduplicate)):
        return frozenset(column.id for child in node.nodes() for column in outputs(child))
    if isinstance(node, Expand):
        return frozenset(number for line in node.projections for number in reads(line))
    if isinstance(node, (Relation, LocalRows, Union, Write)):
        return frozenset()  # their terms are their own columns
    return reads(node.terms())


def _computed_from(node: Node) -> Iterator[tuple[int, Columns]]:
    if isinstance(node, Project):
        for named in node.columns:
            yield named.id, reads([named.value])
    elif isinstance(node, Union):
        for child in node.children:
            for old, new in zip(outputs(child), node.columns, strict=True):
                yield new.id, frozenset({old.id})
