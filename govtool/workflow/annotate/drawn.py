"""Rules that give operators the nodes that the paper's figures draw: FOREACH has a ``+`` for each distinct result.

Elsewhere a projection leaves annotations as they are. These rules add a sum over the rows that become equal, which
changes no polynomial: a value that is there several times becomes one row that is there as often. Source: Lipstick
(PVLDB 5(4), 2012), section 3; the statements of Pig are distinguished as follows.

* A projection is a FOREACH, unless it keeps all columns, or leaves out the second column of a join's equality.
* A projection over a FLATTEN is of one statement with it.
* A grouping is a GROUP or COGROUP, ``δ``; if it has aggregates other than bags, a FOREACH over it, ``+``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.records.plan.expressions import AggregateCall, Attribute, Call
from govtool.records.plan.nodes import Aggregate, Generate, Join, Project, Union, outputs
from govtool.records.plan.tree import Node
from govtool.records.trace.segment import conjuncts
from govtool.workflow.annotate.annotator import Annotator, Context, Rules
from govtool.workflow.annotate.circuit import Inputs, Sum
from govtool.workflow.annotate.group_rows import summed
from govtool.workflow.annotate.groups import aggregate, grouped
from govtool.workflow.annotate.operators import RULES, project
from govtool.workflow.annotate.rows import Rows

BAGS = frozenset({"collect_list", "collect_set"})
"""Aggregates that make nested relations of Pig."""


class Tagging(Project):
    """A projection within COGROUP, which tells the rows of its relations apart; it is no statement."""

    __slots__ = ()


def foreach(a: Annotator, node: Project, context: Context | None) -> Rows:
    """A ``+`` for each distinct result; rows with computed cells are distinct."""
    rows = project(a, node, context)
    if rows.context is not None or not _is_statement(node):
        return rows
    if any(column.id in rows.cells for column in rows.columns):
        return _each(a, rows)
    return summed(a, grouped(a, rows, rows.columns), rows.columns)


def group(a: Annotator, node: Aggregate, context: Context | None) -> Rows:
    """``δ`` of GROUP and COGROUP; with aggregates, a ``+`` over it."""
    if not _makes_bags(node):
        rows = aggregate(a, node, context)
        return _each(a, rows) if node.keys and node.measures and rows.context is None else rows
    child = node.child
    if isinstance(child, Union) and all(isinstance(each, Project) for each in child.children):
        tagged = tuple(Tagging(each.child, each.columns) for each in child.children if isinstance(each, Project))
        node = replace(node, child=replace(child, children=tagged))
    return aggregate(a, node, context)


def _makes_bags(node: Aggregate) -> bool:
    calls = [each.value for each in node.measures]
    return bool(calls) and all(isinstance(each, AggregateCall) and each.name in BAGS for each in calls)


def _each(a: Annotator, rows: Rows) -> Rows:
    """A ``+`` for every row."""
    rows, table = a.keep(rows)
    (nodes,) = table.ids(rows.annotation)
    return a.annotated(rows, table, a.add(Sum(Inputs(np.arange(len(nodes) + 1), nodes))))


def _is_statement(node: Project) -> bool:
    kept = {each.value.id for each in node.columns if isinstance(each.value, Attribute)}
    computes = len(kept) < len({each.id for each in node.columns})
    dropped = {column.id for column in outputs(node.child)} - kept
    if not computes and dropped <= _repeated(node.child, kept):
        return False
    below: Node = node.child
    while isinstance(below, Project):
        below = below.child
    return not isinstance(below, Generate)


def _repeated(child: Node, kept: set[int]) -> set[int]:
    """Columns of a join that are equal to one that is kept."""
    if not isinstance(child, Join) or child.condition is None:
        return set()
    found = set()
    for part in conjuncts(child.condition):
        sides = part.arguments if isinstance(part, Call) and part.name == "=" else ()
        numbers = {each.id for each in sides if isinstance(each, Attribute)}
        if len(numbers) == 2 and numbers & kept:
            found |= numbers
    return found


DRAWN: Rules = {**RULES, Project: foreach, Tagging: project, Aggregate: group}
"""The rule of every operator, with the nodes of the paper's figures."""
