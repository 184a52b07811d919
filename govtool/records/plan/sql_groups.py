"""GROUP BY: keys, grouping sets, and expressions in terms of the keys."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from govtool.records.plan.expressions import Attribute, Call, Case, Expression, Literal, Named, passed
from govtool.records.plan.nodes import Aggregate, Expand, Project, outputs
from govtool.records.plan.sql_context import Context
from govtool.records.plan.sql_scope import Scope
from govtool.records.plan.sql_terms import GROUPING, GROUPING_ID, Terms
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, INTEGER


class Groups:
    """GROUP BY: its keys, and expressions in terms of them."""

    def __init__(self, context: Context, at: exp.Select, scope: Scope, items: list[Expression]) -> None:
        self._context = context
        self._at = at
        self._terms = Terms(context, scope)
        self._items = items
        self._selected = [each.alias.lower() for each in at.expressions]
        self._keys: list[Expression] = []
        self._sets: list[list[Expression]] = [[]]
        clause = at.args.get("group")
        if clause is not None:
            self._read(clause)
        self._columns: dict[Expression, Named] = {}
        self._number: Attribute | None = None

    def _read(self, clause: exp.Group) -> None:
        if clause.args.get("all"):
            raise self._context.refused("GROUP BY ALL", at=clause)
        for name in ("totals", "cube", "rollup", "grouping_sets"):
            for part in _listed(clause.args.get(name)):
                self._combine(part)
        for each in clause.expressions:
            self._combine(each)

    def _combine(self, at: Any) -> None:
        """Cross the sets so far with those of one item of GROUP BY."""
        if isinstance(at, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            sets = self._sets_of(at)
        else:
            sets = [[self._key(at)]]
        self._sets = [[*one, *other] for one in self._sets for other in sets]
        if len(self._sets) > 4096:
            raise self._context.refused("more than 4,096 grouping sets", at=self._at)

    def _sets_of(self, at: exp.Expr) -> list[list[Expression]]:
        parts = [self._part(each) for each in at.expressions]
        if isinstance(at, exp.GroupingSets):
            return parts
        if isinstance(at, exp.Rollup):
            return [[key for part in parts[:end] for key in part] for end in range(len(parts), -1, -1)]
        if len(parts) > 12:
            raise self._context.refused("more than 4,096 grouping sets", at=at)
        chosen = range(2 ** len(parts) - 1, -1, -1)
        return [[k for n, part in enumerate(parts) if mask >> n & 1 for k in part] for mask in chosen]

    def _part(self, at: exp.Expr) -> list[Expression]:
        if isinstance(at, exp.Tuple):
            return [self._key(each) for each in at.expressions]
        if isinstance(at, (exp.Rollup, exp.Cube)):
            raise self._context.refused("grouping sets in grouping sets", at=at)
        return [self._key(at.this if isinstance(at, exp.Paren) else at)]

    def _key(self, at: exp.Expr) -> Expression:
        if isinstance(at, exp.Literal) and not at.is_string:
            key = self._items[position(self._context, at, len(self._items))]
        elif isinstance(at, exp.Column) and self._aliased(at):
            key = self._items[self._selected.index(at.name.lower())]
        else:
            key = self._terms.bound(at)
        if key not in self._keys:
            self._keys.append(key)
        return key

    def _aliased(self, at: exp.Column) -> bool:
        here = self._terms.scope.found(at.name.lower(), at.table.lower())
        return not at.table and not here and at.name.lower() in self._selected

    def aggregate(self, node: Node, measures: tuple[Named, ...]) -> Node:
        """The operators of the groups: an Aggregate, over an Expand for grouping sets."""
        if len(self._sets) == 1 and len(self._sets[0]) == len(self._keys):
            self._columns = {key: self._context.named(key, _name(key)) for key in self._keys}
            return Aggregate(node, tuple(self._columns.values()), measures)
        below = [self._context.named(key, _name(key)) for key in self._keys]
        child = outputs(node)
        extra = [each for each in below if each.attribute not in child]
        if extra:
            node = Project(node, (*map(passed, child), *extra))
        return self._expanded(node, below, measures)

    def _expanded(self, node: Node, below: list[Named], measures: tuple[Named, ...]) -> Node:
        child = outputs(node)
        keys = [self._context.attribute(each.name, each.type) for each in below]
        number = self._context.attribute("grouping set", INTEGER)
        lines = []
        for position, chosen in enumerate(self._sets):
            values = [
                b.attribute if k in chosen else Literal(None, b.type) for b, k in zip(below, self._keys, strict=True)
            ]
            lines.append((*child, *values, Literal(position, INTEGER)))
        node = Expand(node, tuple(lines), (*child, *keys, number))
        self._number = number
        self._columns = {k: passed(column) for k, column in zip(self._keys, keys, strict=True)}
        return Aggregate(node, (*map(passed, keys), passed(number)), measures)

    def over(self, term: Any) -> Any:
        """An expression in terms of the groups' keys."""
        if term in self._columns:
            return self._columns[term].attribute
        if isinstance(term, Call) and term.name in (GROUPING, GROUPING_ID):
            return self._grouping(term)
        return term.replaced(terms=tuple(self.over(part) for part in term.terms()))

    def _grouping(self, call: Call) -> Expression:
        """A bit for each key, the first one highest: 1 where a row's grouping set does not have it."""
        keys = list(call.arguments) or self._keys
        if self._number is None:
            raise self._context.wrong(f"{call.name} reads grouping sets: ROLLUP, CUBE or GROUPING SETS", self._at)
        if any(key not in self._keys for key in keys) or (call.name == GROUPING_ID and keys != self._keys):
            raise self._context.wrong(f"{call.name} reads the columns of GROUP BY", self._at)
        branches = []
        for number, chosen in enumerate(self._sets):
            value = int("".join("0" if key in chosen else "1" for key in keys), 2)
            same = Call("=", (self._number, Literal(number, INTEGER)), BOOLEAN)
            branches.append((same, Literal(value, call.type)))
        return Case(tuple(branches), None, call.type)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _name(key: Expression) -> str:
    return key.name if isinstance(key, (Attribute, Call)) else "key"


def position(context: Context, at: exp.Literal, columns: int) -> int:
    """The index of a column that a number names, counted from 1.

    Raises:
        UsageError: There is none.
    """
    number = int(at.name) if at.name.isdigit() else 0
    if not 1 <= number <= columns:
        raise context.wrong(f"position {at.name} of {columns} columns", at)
    return number - 1
