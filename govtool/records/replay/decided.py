"""Certainty of a plan that is evaluated again: does anything but its inputs decide its rows.

A limit is certain where no rows tie across it, ``dropDuplicates`` by some columns where the rows of a key are equal,
windows that count rows where no rows tie in their order, collected lists where nothing depends on theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from govtool.records.plan.expressions import AggregateCall, Call, Expression, Frame, Literal, Named, Udf, WindowCall
from govtool.records.plan.nodes import (
    Break,
    Deduplicate,
    Distinct,
    Filter,
    Limit,
    Project,
    Repartition,
    Sample,
    Sort,
    Tail,
    Window,
    outputs,
)
from govtool.records.plan.tree import Node, Term, walk, walk_nodes
from govtool.records.plan.types import BOOLEAN, INTEGER, LONG
from govtool.records.replay.compare import ties
from govtool.records.trace.back import count_rows
from govtool.records.trace.list_order import collected_lists, depends_on_lists, unordered_lists
from govtool.records.trace.segment import everything, free_columns

if TYPE_CHECKING:
    from govtool.records.trace.traced_plan import TracedPlan

_COUNT = AggregateCall("count", (Literal(1, INTEGER),), LONG)
_PEERS = Frame("range", "current row", "current row")
_UP_TO = Frame("range", "unbounded preceding", "current row")
_ALL = Frame("range", "unbounded preceding", "unbounded following")


def undecided(lineage: TracedPlan, node: Node) -> tuple[str, ...]:
    """Why a run may give other rows than an evaluation of a plan does; empty: it cannot."""
    lists = _lists_in_any_order(node)
    found = dict.fromkeys(reason for each in walk_nodes(node) for reason in _reasons(lineage, each, lists))
    if ties(lineage, node):
        found["rows tie in the order of a window that counts rows"] = None
    return tuple(found)


def _lists_in_any_order(node: Node) -> frozenset[Term]:
    """The aggregates that collect lists whose order decides nothing: no value depends on it, and no row holds one."""
    held = unordered_lists(node)
    is_seen = depends_on_lists(node) or any(column.id in held for column in outputs(node))
    return frozenset() if is_seen else collected_lists(node)


def _reasons(lineage: TracedPlan, node: Node, lists: frozenset[Term]) -> Iterator[str]:
    if isinstance(node, Limit) and _limit_is_open(lineage, node):
        yield "rows tie at a limit"
    elif isinstance(node, Tail):
        yield "the last rows depend on the order in which they come"
    elif isinstance(node, Sample):
        yield "a sample may be another one"
    elif isinstance(node, Deduplicate) and _keeps_one_of_several(lineage, node):
        yield "dropDuplicates by some columns keeps one row of each, not determined which"
    elif isinstance(node, Break):
        yield node.reason
    for term in walk(node):
        if getattr(term, "deterministic", True) is False and term not in lists:
            name = term.reference.qualname if isinstance(term, Udf) else getattr(term, "name", "an expression")
            yield f"{name} is not deterministic"


def _limit_is_open(lineage: TracedPlan, node: Limit) -> bool:
    ends = [end for end in (node.offset, None if node.count is None else node.offset + node.count) if end]
    if node.count == 0 or not ends:
        return False
    if free_columns(node):
        return True  # within a correlated subquery: not known
    layers, below = [], node.child
    while isinstance(below, (Project, Repartition)):
        layers.append(below)
        below = below.child
    if not isinstance(below, Sort):
        total = count_rows(lineage.executor, node.child)
        return node.offset > 0 or total > ends[-1]
    rows = _across(lineage, below, ends)
    for layer in reversed(layers):
        rows = Project(rows, layer.columns) if isinstance(layer, Project) else rows
    return count_rows(lineage.executor, Limit(Distinct(rows), 2)) > 1


def _across(lineage: TracedPlan, node: Sort, ends: list[int]) -> Node:
    """The rows that tie across a limit: some of them are within, others are not."""
    up_to = lineage.ids.named("up_to", WindowCall(_COUNT, (), node.order, _UP_TO, LONG))
    peers = lineage.ids.named("peers", WindowCall(_COUNT, (), node.order, _PEERS, LONG))
    condition: Expression | None = None
    for end in ends:
        last = Literal(end, LONG)
        before = Call("-", (up_to.attribute, peers.attribute), LONG)
        here = Call("and", (_less(last, up_to.attribute), _less(before, last)), BOOLEAN)
        condition = here if condition is None else Call("or", (condition, here), BOOLEAN)
    assert condition is not None
    numbered = Window(node.child, (up_to, peers))
    return Project(Filter(numbered, condition), everything(node.child))


def _less(one: Expression, other: Expression) -> Expression:
    return Call("<", (one, other), BOOLEAN)


def _keeps_one_of_several(lineage: TracedPlan, node: Deduplicate) -> bool:
    if free_columns(node):
        return True
    rows = Distinct(Project(node.child, everything(node.child)))
    number = lineage.ids.named("rows", WindowCall(_COUNT, tuple(node.keys), (), _ALL, LONG))
    several = Filter(Window(rows, (number,)), _less(Literal(1, LONG), number.attribute))
    one = Named(Literal(True, BOOLEAN), next(lineage.ids.numbers), "one")
    return bool(lineage.executor.fetch(Limit(Project(several, (one,)), 1))) if outputs(rows) else False
