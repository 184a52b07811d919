"""Columns whose cells are computed from other rows: aggregates, window functions, subqueries, and what reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

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
    Relation,
    Repartition,
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
    rule = _RULES.get(type(node))
    return _NONE if rule is None else rule(node, _NONE.union(*inputs))


def _of_project(node: Project, below: Columns) -> Columns:
    return frozenset(c.id for c in node.columns if reads([c.value]) & below or subqueries([c.value]))


def _of_aggregate(node: Aggregate, below: Columns) -> Columns:
    return frozenset(named.id for named in node.measures)


def _of_window(node: Window, below: Columns) -> Columns:
    return below | {named.id for named in node.columns}


def _of_generate(node: Generate, below: Columns) -> Columns:
    return below | {c.id for c in node.columns} if reads([node.generator]) & below else below


def _of_expand(node: Expand, below: Columns) -> Columns:
    pairs = [pair for line in node.projections for pair in zip(line, node.columns, strict=True)]
    return frozenset(column.id for value, column in pairs if reads([value]) & below)


def _of_union(node: Union, below: Columns) -> Columns:
    pairs = [pair for child in node.children for pair in zip(outputs(child), node.columns, strict=True)]
    return frozenset(new.id for old, new in pairs if old.id in below)


def _of_join(node: Join, below: Columns) -> Columns:
    return below if node.exists is None else below | {node.exists.id}


def _as_below(node: Node, below: Columns) -> Columns:
    return below


_RULES: dict[type, Callable[[Any, Columns], Columns]] = {
    Project: _of_project,
    Aggregate: _of_aggregate,
    Window: _of_window,
    Generate: _of_generate,
    Expand: _of_expand,
    Union: _of_union,
    Join: _of_join,
    Filter: _as_below,
    LateralJoin: _as_below,
    Sort: _as_below,
    Limit: _as_below,
    Repartition: _as_below,
}
"""Operators that may have such columns, with those that their inputs have; all others have none."""


def carrying(node: Node, columns: Columns) -> Columns:
    """The ids of a plan's columns that are computed, or that carry cells of some columns of its relations.

    Keys of groups, and columns of DISTINCT and of set operations, carry none: rows of another value are other rows.

    Args:
        node: The plan.
        columns: Ids of columns of its relations.
    """

    def rule(each: Node, inputs: tuple[Columns, ...]) -> Columns:
        if isinstance(each, Relation):
            return columns & {column.id for column in each.columns}
        return _columns(each, inputs)

    return fold_nodes(node, rule)


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
