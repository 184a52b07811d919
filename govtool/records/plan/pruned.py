"""Plans without columns that nothing reads, so that readers of files and engines skip them.

Ids are unique over a plan, subqueries included: a column is read if any operator names its id, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Exists,
    InSubquery,
    Literal,
    Named,
    Outer,
    ScalarSubquery,
)
from govtool.records.plan.nodes import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Limit,
    LocalRows,
    Project,
    Range,
    Relation,
    Sort,
    Window,
    outputs,
)
from govtool.records.plan.subqueries import with_subqueries
from govtool.records.plan.tree import Node, Term, rewrite_nodes, walk, walk_nodes
from govtool.records.plan.types import INTEGER, LONG

_COUNT = AggregateCall("count", (Literal(1, INTEGER),), LONG)
_PASSING = (Filter, Generate, Join, Limit, Sort, Window)
"""Operators that pass columns on under their ids, and read none but those that their terms name."""


def pruned(root: Node) -> Node:
    """The same rows: projections, aggregates and relations keep only columns that are read, or those of the root."""
    return _swept(root, _read_columns(root))


def _read_columns(root: Node) -> frozenset[int]:
    """The ids of columns that the root's rows depend on, and those that it has."""
    made: dict[int, set[int]] = {}
    waiting = [column.id for column in outputs(root)]
    for node in walk_nodes(root):
        for named in _dispensable(node):
            made.setdefault(named.id, set()).update(_named_in(named))
        waiting += _always_read(node)
    read: set[int] = set()
    while waiting:
        number = waiting.pop()
        if number not in read:
            read.add(number)
            waiting += made.get(number, ())
    return frozenset(read)


def _dispensable(node: Node) -> tuple[Named, ...]:
    """The columns of an operator that it may do without."""
    if isinstance(node, Project):
        return node.columns
    return node.measures if isinstance(node, Aggregate) else ()


def _always_read(node: Node) -> Iterator[int]:
    """The columns that an operator reads, whichever of its own are read."""
    for term in walk(node):
        if isinstance(term, (ScalarSubquery, Exists, InSubquery)):
            yield from (column.id for column in outputs(term.plan))
    if isinstance(node, (Project, Relation, LocalRows, Range)):
        return
    terms = node.keys if isinstance(node, Aggregate) else node.terms()
    for term in terms:
        yield from _named_in(term)
    if not isinstance(node, (Aggregate, *_PASSING)):
        yield from (column.id for child in node.nodes() for column in outputs(child))


def _named_in(root: Term) -> Iterator[int]:
    """The ids that a term names, those that its subqueries read of the rows around them included."""
    for term in walk(root):
        if isinstance(term, Attribute):
            yield term.id
        elif isinstance(term, Outer):
            yield term.attribute.id
        elif isinstance(term, (ScalarSubquery, Exists, InSubquery)):
            inner = (each for node in walk_nodes(term.plan) for each in walk(node))
            yield from (each.attribute.id for each in inner if isinstance(each, Outer))


def _swept(root: Node, read: frozenset[int]) -> Node:
    def change(node: Node) -> Node:
        node = with_subqueries(node, lambda plan: _swept(plan, read))
        if isinstance(node, Project):
            return replace(node, columns=_kept(node.columns, read))
        if isinstance(node, Aggregate):
            kept = tuple(named for named in node.measures if named.id in read)
            one = () if node.keys or kept else (replace(node.measures[0], value=_COUNT),) if node.measures else ()
            return replace(node, measures=kept or one)
        if isinstance(node, Relation):
            return replace(node, columns=tuple(c for c in node.columns if c.id in read) or node.columns[:1])
        return node

    return rewrite_nodes(root, change)


def _kept(columns: tuple[Named, ...], read: frozenset[int]) -> tuple[Named, ...]:
    """The columns that are read; of none, one of NULLs, as an operator has columns."""
    kept = tuple(named for named in columns if named.id in read)
    return kept or tuple(replace(named, value=Literal(None, named.type)) for named in columns[:1])
