"""Semijoins pushed towards the inputs: through copied columns, join sides, group keys and window partitions.

Only rows that cannot match are left out, and of groups and partitions only whole ones, so that the semijoin may be
repeated above; engines do not push one below aggregates and windows themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from govtool.records.plan.expressions import Attribute, Call, Expression, WindowCall
from govtool.records.plan.nodes import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    Project,
    Relation,
    Repartition,
    SetOperation,
    Sort,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN
from govtool.records.trace.deep import Evaluated
from govtool.records.trace.segment import both, conjuncts

Pairs = dict[int, tuple[str, Attribute]]
"""For a column of a plan: the comparison, and the column of the values that it has to match."""


def semijoined(node: Node, values: Relation, condition: Expression | None, evaluated: Evaluated | None = None) -> Node:
    """The rows of a plan that match one of the values, with what can be known early left out early.

    Args:
        node: The plan.
        values: The values.
        condition: Over the columns of both; None: every row, if there is a value.
        evaluated: Parts of the plan that are read instead of being evaluated again.
    """
    pairs = matched_columns(node, values, condition)
    return Join(_pushed(node, values, pairs, evaluated or {}), values, "left_semi", condition)


def narrowed_part(path: tuple[Node, ...], values: Relation, condition: Expression | None, evaluated: Evaluated) -> Node:
    """The last operator of a path from a plan down, with the rows that ``semijoined`` needs of it."""
    pairs = matched_columns(path[0], values, condition)
    for node, child in pairwise(path):
        parts = _below(node, pairs)
        place = next(number for number, each in enumerate(node.nodes()) if each is child)
        pairs = {} if parts is None else parts[place]
    return _pushed(path[-1], values, pairs, evaluated)


def matched_columns(node: Node, values: Relation, condition: Expression | None) -> Pairs:
    """The columns that a condition compares with values for equality."""
    own = {column.id for column in outputs(node)}
    others = {column.id: column for column in outputs(values)}
    found: Pairs = {}
    for part in conjuncts(condition):
        if isinstance(part, Call) and part.name in ("=", "<=>"):
            for one, other in (part.arguments, part.arguments[::-1]):
                if isinstance(one, Attribute) and isinstance(other, Attribute) and one.id in own and other.id in others:
                    found.setdefault(one.id, (part.name, others[other.id]))
    return found


def _pushed(node: Node, values: Relation, pairs: Pairs, evaluated: Evaluated) -> Node:
    if id(node) in evaluated:
        return _met(evaluated[id(node)], values, pairs)
    if not pairs and not evaluated:
        return node
    parts = _below(node, pairs)
    inputs = node.nodes()
    made = node.replaced(
        nodes=tuple(
            _pushed(child, values, part, evaluated)
            for child, part in zip(inputs, [{}] * len(inputs) if parts is None else parts, strict=True)
        )
    )
    return _met(made, values, pairs) if parts is None else made


def _met(node: Node, values: Relation, pairs: Pairs) -> Node:
    if not pairs:
        return node
    columns = {column.id: column for column in outputs(node)}
    same = both(Call(name, (columns[number], other), BOOLEAN) for number, (name, other) in pairs.items())
    return Join(node, values, "left_semi", same)


def _below(node: Node, pairs: Pairs) -> list[Pairs] | None:
    """For each input of an operator the pairs that its rows have to meet, too; None where an operator is an end."""
    if isinstance(node, (Filter, Sort, Distinct, Generate, Repartition)):
        return [_kept(node.child, pairs)]
    if isinstance(node, (Union, SetOperation)):
        return [_through(_by_position(node.columns, child), pairs) for child in node.nodes()]
    if isinstance(node, Window):
        return [_of_partitions(node, pairs)]
    if isinstance(node, Join):
        return _of_join(node, pairs)
    copies = _copies(node)
    return None if copies is None else [_through(copies, pairs)]


def _copies(node: Node) -> dict[int, Expression] | None:
    """For the columns of an operator that may be copies of its input's: what they are computed from."""
    if isinstance(node, Project):
        return {named.id: named.value for named in node.columns}
    if isinstance(node, Aggregate) and node.keys:
        return {named.id: named.value for named in node.keys}
    if isinstance(node, Expand):  # a copy is one in every projection
        lines = [dict(zip((c.id for c in node.columns), line, strict=True)) for line in node.projections]
        return {number: value for number, value in lines[0].items() if all(line[number] == value for line in lines)}
    return None


def _through(values: dict[int, Expression], pairs: Pairs) -> Pairs:
    """Pairs in terms of the columns that others are copies of."""
    found: Pairs = {}
    for number, pair in pairs.items():
        value = values.get(number)
        if isinstance(value, Attribute):
            found[value.id] = pair
    return found


def _by_position(columns: Iterable[Attribute], child: Node) -> dict[int, Expression]:
    return {column.id: old for column, old in zip(columns, outputs(child), strict=True)}


def _kept(child: Node, pairs: Pairs) -> Pairs:
    own = {column.id for column in outputs(child)}
    return {number: pair for number, pair in pairs.items() if number in own}


def _of_partitions(node: Window, pairs: Pairs) -> Pairs:
    shared = _kept(node.child, pairs)
    for named in node.columns:
        partition = named.value.partition if isinstance(named.value, WindowCall) else ()
        ids = {value.id for value in partition if isinstance(value, Attribute)}
        shared = {number: pair for number, pair in shared.items() if number in ids}
    return shared


_PRESERVED = {
    "inner": (True, True), "cross": (True, True), "left": (True, False), "right": (False, True), "full": (False, False),
    "left_semi": (True, False), "left_anti": (True, False), "existence": (True, False),
}  # fmt: skip
"""For each kind of join: can rows of the left and of the right side be left out early without padding others?"""


def _of_join(node: Join, pairs: Pairs) -> list[Pairs]:
    left, right = _PRESERVED.get(node.kind, (False, False))
    return [_kept(node.left, pairs) if left else {}, _kept(node.right, pairs) if right else {}]
