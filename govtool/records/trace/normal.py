"""Plans in the form that tracing reads: definitions inlined, what no result depends on dropped, ids to spare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from govtool.errors import UsageError
from govtool.records.plan.expressions import Attribute, Exists, Expression, InSubquery, Named, Outer, ScalarSubquery
from govtool.records.plan.nodes import (
    Aggregate,
    Filter,
    Limit,
    Project,
    Reference,
    Relation,
    Repartition,
    Sort,
    Tail,
    Window,
    With,
    Write,
    outputs,
)
from govtool.records.plan.size import refuse_large
from govtool.records.plan.subqueries import everywhere, with_subqueries
from govtool.records.plan.tree import Node, Term, fold_nodes, rewrite, rewrite_nodes, walk, walk_nodes
from govtool.records.plan.types import Type
from govtool.records.trace.segment import everything, subqueries

MAX_NODES = 20_000
"""The most operators of a plan whose definitions are inlined."""


@dataclass(frozen=True, slots=True)
class Ids:
    """Attribute ids that a plan does not use yet."""

    numbers: Iterator[int]

    def attribute(self, name: str, kind: Type) -> Attribute:
        """A new column."""
        return Attribute(next(self.numbers), name, kind)

    def named(self, name: str, value: Expression) -> Named:
        """A new column with a value."""
        return Named(value, next(self.numbers), name)


def spare_ids(node: Node) -> Ids:
    """The ids after the largest one of a plan."""
    used = [term.id for each in walk_nodes(node) for term in walk(each) if isinstance(term, (Attribute, Named))]
    return Ids(count(max(used, default=0) + 1))


def normalized(node: Node, ids: Ids) -> Node:
    """The same rows by fewer kinds of operators.

    Raises:
        UsageError: The plan has more operators than can be traced.
    """
    refuse_large(node)
    inlined = _inlined(node, ids)
    if inlined is not node:
        refuse_large(inlined)
    return everywhere(everywhere(inlined, _at_its_order), lambda each: _simpler(each, ids))


def _inlined(node: Node, ids: Ids) -> Node:
    definitions: dict[int, Node] = {}
    sizes: dict[int, int] = {}

    def change(one: Node) -> Node:
        if not isinstance(one, Reference) or one.id not in definitions:  # the latter: of a query further out
            return one
        copy = refreshed(definitions[one.id], ids)
        pairs = zip(outputs(copy), one.columns, strict=True)
        return Project(copy, tuple(Named(old, new.id, new.name) for old, new in pairs))

    def opened(one: Node) -> Node:
        if not isinstance(one, With):
            _size(one, sizes)
            return everywhere(one, change)
        for definition in one.definitions:
            sizes[definition.id] = _size(definition.child, sizes)
        _size(one.child, sizes)
        for definition in one.definitions:
            definitions[definition.id] = opened(definition.child)
        return opened(one.child)

    def within(one: Node) -> Node:
        return _without_with(rewrite_nodes(one, lambda each: with_subqueries(each, within)), opened)

    return within(node)


def _size(node: Node, sizes: dict[int, int]) -> int:
    """Return the number of operators that a plan has when the definitions that it refers to are written out.

    Raises:
        UsageError: More than can be traced.
    """
    size = sum(sizes.get(each.id, 1) if isinstance(each, Reference) else 1 for each in walk_nodes(node))
    if size > MAX_NODES:
        raise UsageError(f"a plan of more than {MAX_NODES:,} operators cannot be traced", code="usage.trace-size")
    return size


def _without_with(root: Node, opened: Callable[[Node], Node]) -> Node:
    """Open the outermost definitions, wherever they stand."""
    holding: set[int] = set()

    def holds(node: Node, below: tuple[bool, ...]) -> bool:
        found = isinstance(node, With) or any(below)
        if found:
            holding.add(id(node))
        return found

    def without(node: Node) -> Node:
        if isinstance(node, With):
            return opened(node)
        if id(node) not in holding:
            return node
        return node.replaced(nodes=tuple(map(without, node.nodes())))

    fold_nodes(root, holds, lambda node: () if isinstance(node, With) else node.nodes())
    return without(root)


def refreshed(node: Node, ids: Ids) -> Node:
    """A copy of a plan with ids of its own, so that both may stand in one plan."""
    made: dict[int, int] = {}
    for each in walk_nodes(node):
        for name in ("columns", "keys", "measures", "column", "exists"):
            value = getattr(each, name, None)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, (Attribute, Named)) and item.id not in made:
                    made[item.id] = next(ids.numbers)

    def rename(term: Term) -> Term:
        if isinstance(term, (Attribute, Named)) and term.id in made:
            return replace(term, id=made[term.id])
        if isinstance(term, Outer) and term.attribute.id in made:  # a leaf: no rewriting enters it
            return Outer(replace(term.attribute, id=made[term.attribute.id]))
        return term

    def change(one: Node) -> Node:
        one = one.replaced(terms=tuple(rewrite(term, rename) for term in one.terms()))
        if isinstance(one, Relation) and one.metadata:
            return replace(one, metadata=tuple((made.get(number, number), kind) for number, kind in one.metadata))
        return one

    return everywhere(node, change)


def _at_its_order(node: Node) -> Node:
    """A limit directly above the order that it reads: projections and filters between them keep the order.

    ``SELECT a FROM t ORDER BY b LIMIT 1`` has a projection there, which drops ``b``.
    """
    if not isinstance(node, (Limit, Tail)):
        return node
    above: list[Project] = []
    filters: list[Filter] = []
    child = node.child
    while isinstance(child, Project):
        above.append(child)
        child = child.child
    while isinstance(child, Filter):
        filters.append(child)
        child = child.child
    if not isinstance(child, Sort) or not child.total:
        return node
    rows = child.child
    for each in reversed(filters):
        rows = replace(each, child=rows)
    made: Node = replace(node, child=replace(child, child=rows))
    for project in reversed(above):
        made = replace(project, child=made)
    return made


def _simpler(node: Node, ids: Ids) -> Node:
    if isinstance(node, (Repartition, Write)):
        return node.child
    if isinstance(node, (Limit, Tail)):
        return node
    if isinstance(node, Aggregate):
        node = _computed_below(node, ids)
    if isinstance(node, Window):
        node = _window_inputs_below(node, ids)
    return _unsorted(node)


def _unsorted(node: Node) -> Node:
    """A node without sorts directly below it: only a limit reads an order."""
    return node.replaced(nodes=tuple(n.child if isinstance(n, Sort) else n for n in node.nodes()))


def _computed_below(node: Aggregate, ids: Ids) -> Aggregate:
    """Aggregates whose keys and arguments hold no subqueries: these are columns below."""
    moved = _moved(node.keys + node.measures, ids, node.child)
    if moved is None:
        return node
    child, change = moved
    keys, measures = (tuple(replace(n, value=change(n.value)) for n in part) for part in (node.keys, node.measures))
    return Aggregate(child, keys, measures)


def _moved(columns: tuple[Named, ...], ids: Ids, child: Node) -> tuple[Node, Callable[[Expression], Expression]] | None:
    found = {term: ids.named("value", term) for term in subqueries(columns)}
    if not found:
        return None

    def swap(term: Term) -> Term:
        return found[term].attribute if isinstance(term, (ScalarSubquery, Exists, InSubquery)) else term

    def change(value: Expression) -> Expression:
        return rewrite(value, swap)  # type: ignore[return-value]

    return Project(child, (*everything(child), *found.values())), change


def _window_inputs_below(node: Window, ids: Ids) -> Window:
    moved = _moved(node.columns, ids, node.child)
    if moved is None:
        return node
    child, change = moved
    return Window(child, tuple(replace(named, value=change(named.value)) for named in node.columns))
