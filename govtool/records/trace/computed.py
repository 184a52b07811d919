"""Columns whose cells are computed from other rows: aggregates, window functions, subqueries, and what reads them."""

from __future__ import annotations

from typing import TypeGuard

from govtool.records.plan.expressions import Exists, InSubquery
from govtool.records.plan.nodes import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    LateralJoin,
    Limit,
    Project,
    SetOperation,
    Sort,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.tree import Node, Term, fold_nodes, walk_nodes
from govtool.records.trace.segment import conjuncts, reads, subqueries

Columns = frozenset[int]
_NONE: Columns = frozenset()


def computed(node: Node) -> Columns:
    """The ids of a plan's columns whose cells have terms of their own.

    Keys of groups and columns of DISTINCT and of set operations have none: rows that were put together by a computed
    value are guarded by it, so that its terms are in the row's annotation.
    """
    known = _KNOWN.get(id(node))
    if known is not None:
        return known[1]
    if len(_KNOWN) > _REMEMBERED:
        _KNOWN.clear()
    return fold_nodes(node, _computed, lambda each: () if id(each) in _KNOWN else each.nodes())


_KNOWN: dict[int, tuple[Node, Columns]] = {}
"""Results by identity. A node is kept with its result, so that its identity is not given to another one."""
_REMEMBERED = 20_000


def _computed(node: Node, inputs: tuple[Columns, ...]) -> Columns:
    known = _KNOWN.get(id(node))
    if known is None:
        if len(inputs) < len(node.nodes()):  # forgotten since, by another thread
            inputs = tuple(computed(child) for child in node.nodes())
        known = _KNOWN[id(node)] = (node, _columns(node, inputs))
    return known[1]


def _columns(node: Node, inputs: tuple[Columns, ...]) -> Columns:
    below = frozenset().union(*inputs)
    if isinstance(node, Project):
        return frozenset(c.id for c in node.columns if reads([c.value]) & below or subqueries([c.value]))
    if isinstance(node, Aggregate):
        return frozenset(named.id for named in node.measures)
    if isinstance(node, Window):
        return below | {named.id for named in node.columns}
    if isinstance(node, Generate):
        return below | ({c.id for c in node.columns} if reads([node.generator]) & below else _NONE)
    if isinstance(node, Expand):
        lines = [zip(line, node.columns, strict=True) for line in node.projections]
        return frozenset(column.id for line in lines for value, column in line if reads([value]) & below)
    if isinstance(node, Union):
        sides = [zip(outputs(child), node.columns, strict=True) for child in node.children]
        return frozenset(new.id for side in sides for old, new in side if old.id in below)
    if isinstance(node, Join) and node.exists is not None:
        return below | {node.exists.id}
    return below if isinstance(node, (Filter, Join, LateralJoin, Sort, Limit)) else _NONE


def guards(node: Node) -> bool:
    """Return True if an operator takes rows off by more than a plain condition, so that they stay candidates."""
    if isinstance(node, Join):
        padded = node.kind in ("left_anti", "left", "right", "full")
        return padded or (node.condition is not None and _guarded(node, node.condition))
    if isinstance(node, SetOperation):
        return node.kind == "except" or node.all
    return isinstance(node, Filter) and any(_guarded(node, part) for part in conjuncts(node.condition))


def _guarded(node: Node, condition: Term) -> bool:
    return not is_plain(condition, frozenset().union(*(computed(child) for child in node.nodes())))


def is_plain(condition: Term, computed_columns: Columns) -> bool:
    """Return True if rows that fail a condition are gone for good: it reads a row's own cells only.

    So does EXISTS or IN over rows that are there for good.
    """
    if reads([condition]) & computed_columns:
        return False
    if is_semijoin(condition):
        return not has_candidates(condition.plan)
    return not subqueries([condition])


def is_semijoin(condition: Term) -> TypeGuard[Exists | InSubquery]:
    """Return True for EXISTS, and for IN over values that are not computed: conditions that keep rows with a match."""
    return isinstance(condition, Exists) or (isinstance(condition, InSubquery) and not computed(condition.plan))


def has_candidates(node: Node) -> bool:
    """Return True if rows of a plan may be candidates: there only if others were not."""
    return any(guards(each) for each in walk_nodes(node))
