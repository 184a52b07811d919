"""What an edited program may take in of rows that it was not given: those that the recorded one had no use for.

Both plans are compared by what decides rows: conditions, joins, groups, limits, set operations. A condition that only
the recorded plan has keeps out rows of its inputs, which no traced row stands for; so do an inner join that became an
outer one, or a group of other keys. Values are compared by how they are computed, not by their names.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from govtool.records.plan.expressions import (
    Attribute,
    Call,
    Cast,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Named,
    ScalarSubquery,
)
from govtool.records.plan.nodes import (
    Aggregate,
    Break,
    Filter,
    Generate,
    Join,
    LateralJoin,
    Limit,
    Project,
    Sample,
    SetOperation,
    Tail,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.tree import Node, Term, rewrite, walk, walk_nodes
from govtool.records.plan.types import STRING
from govtool.records.trace.computed import computed
from govtool.records.trace.normal import normalized, spare_ids
from govtool.records.trace.segment import conjuncts, subqueries

_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.ge, ">=": operator.ge, "<": operator.le, "<=": operator.le,
}  # fmt: skip
"""Comparisons with a constant: one with a constant for which this holds of the other's keeps no more rows."""
_INNER = ("inner", "cross")
_SUBQUERIES = (ScalarSubquery, Exists, InSubquery)


@dataclass(frozen=True, slots=True)
class _Condition:
    """A part of a conjunction.

    Attributes:
        text: It, by how its values are computed.
        bound: A column, a comparison and a constant, where it is one.
        over: Whether it is over values that an aggregate or a window computed.
    """

    text: str
    bound: tuple[str, str, object] | None
    over: bool


@dataclass(slots=True)
class _Deciding:
    """What decides the rows of a plan.

    Attributes:
        conditions: Of filters and inner joins.
        joins: Other joins, by kind and condition.
        inner: How many inner joins there are.
        groups: The keys of groups.
        windows: The partitions of windows.
        others: Limits, samples, subqueries, set operations and generators.
        unions: How many branches unions have.
    """

    conditions: list[_Condition] = field(default_factory=list)
    joins: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    inner: int = 0
    groups: list[tuple[str, ...]] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    unions: int = 0


def gains(recorded: Node, edited: Node, *, of_some: bool, by_computed: bool = False) -> tuple[str, ...]:
    """Why an edited plan may read more of the inputs than what the recorded one made results of; empty: it does not.

    Args:
        recorded: The plan of the run.
        edited: That of the edited script.
        of_some: Only some results were chosen; what others are made of is not there either.
        by_computed: They were chosen by computed values.
    """
    old, new = _deciding(recorded), _deciding(edited)
    matters = not of_some or by_computed
    found = [
        "a condition of the run is gone or another one"
        for each in old.conditions
        if (matters or not each.over) and not _is_kept(each, new.conditions)
    ]
    found += _of_joins(old, new)
    if of_some and any(keys not in old.groups for keys in new.groups):
        found.append("it groups by other columns")
    if of_some and any(window not in old.windows for window in new.windows):
        found.append("it has another window")
    if any(old.others.count(each) != new.others.count(each) for each in {*old.others, *new.others}):
        found.append("a limit, a sample, a subquery, a set operation or an explode is another one")
    if new.unions > old.unions:
        found.append("it unites more rows")
    return tuple(dict.fromkeys(found))


def _is_kept(condition: _Condition, among: list[_Condition]) -> bool:
    """Return whether a condition is still there, or one that keeps no more rows."""
    if any(each.text == condition.text for each in among):
        return True
    if condition.bound is None:
        return False
    column, comparison, limit = condition.bound
    bounds = [each.bound for each in among if each.bound is not None]
    return any(
        one == column and other == comparison and _holds(comparison, value, limit) for one, other, value in bounds
    )


def _holds(comparison: str, value: object, limit: object) -> bool:
    try:
        return _BOUNDS[comparison](value, limit)
    except TypeError:
        return False


def _of_joins(old: _Deciding, new: _Deciding) -> Iterator[str]:
    waiting = list(new.joins)
    stricter = 0
    for join in old.joins:
        if join in waiting:
            waiting.remove(join)
            continue
        kind, condition = join
        now = [each.text for each in new.conditions]
        if kind in ("left", "right", "full") and condition and all(part in now for part in condition):
            stricter += 1  # an inner join now
        else:
            yield f"a {kind.replace('_', ' ')} join of the run is gone or another one"
    for kind, _ in waiting:
        yield f"a {kind.replace('_', ' ')} join is new"
    if new.inner > old.inner + stricter:
        yield "a join is new"


def _deciding(plan: Node) -> _Deciding:
    root = normalized(plan, spare_ids(plan))
    found, values = _Deciding(), _Values(root)
    for node in walk_nodes(root):
        _note(node, found, values)
        found.others += [type(term).__name__ for term in subqueries(node.terms())]
    return found


def _note(node: Node, found: _Deciding, values: _Values) -> None:
    if isinstance(node, Filter):
        found.conditions += values.conditions(node.condition, node)
    elif isinstance(node, (Join, LateralJoin)):
        parts = values.conditions(node.condition, node)
        if node.kind in _INNER:
            found.inner += 1
            found.conditions += parts
        else:
            found.joins.append((node.kind, tuple(sorted(each.text for each in parts))))
    elif isinstance(node, Aggregate):
        found.groups.append(tuple(sorted(values.text(key.value) for key in node.keys)))
    elif isinstance(node, Window):
        found.windows += [values.text(named.value) for named in node.columns]
    elif isinstance(node, Union):
        found.unions += len(node.children)
    elif isinstance(node, Limit):
        found.others.append(f"limit {node.count} {node.offset}")
    elif isinstance(node, Tail):
        found.others.append(f"tail {node.count}")
    elif isinstance(node, Sample):
        found.others.append(f"sample {node.lower} {node.upper}")
    elif isinstance(node, SetOperation):
        found.others.append(f"{node.kind} {node.all}")
    elif isinstance(node, Generate):
        found.others.append(f"generate {node.outer} {values.text(node.generator)}")
    elif isinstance(node, Break):
        found.others.append(node.reason)


class _Values:
    """How the values of a plan are computed.

    Args:
        root: The plan.
    """

    def __init__(self, root: Node) -> None:
        self._made: dict[int, Expression] = {}
        self._known: dict[int, str] = {}
        nodes = list(walk_nodes(root))
        for node in nodes:
            for each in _definitions(node):
                if not each.is_passed:
                    self._made[each.id] = each.value
            if isinstance(node, Union):
                for place, column in enumerate(node.columns):
                    self._made.setdefault(column.id, outputs(node.children[0])[place])
        for node in reversed(nodes):  # those below first: a column of five hundred steps is not followed at once
            for column in outputs(node):
                self._column(column)

    def conditions(self, condition: Expression | None, node: Node) -> list[_Condition]:
        """The parts of a condition of an operator."""
        over: frozenset[int] = frozenset().union(*(computed(child) for child in node.nodes()))
        return [_Condition(self.text(part), self._bound(part), _reads(part, over)) for part in conjuncts(condition)]

    def text(self, term: Term) -> str:
        """A term as text that is the same for the same computation, in whatever plan."""
        return repr(rewrite(term, self._changed))

    def _changed(self, term: Term) -> Term:
        if isinstance(term, Attribute):
            return Literal(self._column(term), STRING)
        if isinstance(term, _SUBQUERIES):  # its operators are compared by themselves
            return Literal(f"{type(term).__name__} {getattr(term, 'values', ())}", STRING)
        return replace(term, zone="") if isinstance(term, (Call, Cast)) else term

    def _column(self, column: Attribute) -> str:
        if column.id not in self._known:
            self._known[column.id] = column.name.lower()  # a definition that comes to itself ends here
            made = self._made.get(column.id)
            if made is not None:
                named = self._column(made) if isinstance(made, Attribute) else _digest(self.text(made))
                self._known[column.id] = named
        return self._known[column.id]

    def _bound(self, part: Expression) -> tuple[str, str, object] | None:
        """A column that is compared with a constant."""
        if not isinstance(part, Call) or part.name not in _BOUNDS or len(part.arguments) != 2:
            return None
        column, constant = part.arguments
        while isinstance(constant, Cast):
            constant = constant.value
        return (self.text(column), part.name, constant.value) if isinstance(constant, Literal) else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _definitions(node: Node) -> tuple[Named, ...]:
    if isinstance(node, Aggregate):
        return (*node.keys, *node.measures)
    return node.columns if isinstance(node, (Project, Window)) else ()


def _reads(term: Term, columns: frozenset[int]) -> bool:
    return any(isinstance(each, Attribute) and each.id in columns for each in walk(term))
