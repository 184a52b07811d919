"""Annotated rows: a plan whose hidden columns are the nodes of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from govtool.records.plan.expressions import Attribute, Call, Case, Expression, Literal, Named, Outer, passed
from govtool.records.plan.nodes import Filter, Join, Project
from govtool.records.plan.tree import Node, Term, rewrite
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.normal import Ids
from govtool.records.trace.segment import alike, reads, unique
from govtool.workflow.annotate.circuit import NONE

LONG_ZERO, LONG_ONE = Literal(0, LONG), Literal(1, LONG)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with their annotations. A column of nodes is NULL where there is none.

    Attributes:
        node: The rows, candidates included.
        columns: What the query sees.
        annotation: The p-node.
        times: How often the row is there as things stand; 0: a candidate.
        cells: Columns of v-nodes, by the id of the column that holds the values.
        origins: Columns of where-nodes, by the id of the column; empty where that is not wanted.
        context: The number of the row of the query around it, for which it was evaluated.
        outer: Columns of that row, by the id that the subquery refers to.
        candidates: Whether ``times`` may be 0.
        bag: Whether ``times`` may be more than 1.
        gate: A ``Gate`` that opens when rows may come that are not even candidates; or ``NONE``.
    """

    node: Node
    columns: tuple[Attribute, ...]
    annotation: Attribute
    times: Expression
    cells: Mapping[int, Attribute] = field(default_factory=dict)
    origins: Mapping[int, Attribute] = field(default_factory=dict)
    context: Attribute | None = None
    outer: Mapping[int, Attribute] = field(default_factory=dict)
    candidates: bool = False
    bag: bool = False
    gate: int = NONE

    @property
    def hidden(self) -> tuple[Attribute, ...]:
        """Columns that go along with every row."""
        found = [self.annotation, *self.cells.values(), *self.origins.values(), *self.outer.values()]
        found += [self.times] if isinstance(self.times, Attribute) else []
        return unique([*found, *([self.context] if self.context is not None else [])])

    @property
    def everything(self) -> tuple[Attribute, ...]:
        """All columns, each once."""
        return unique([*self.columns, *self.hidden])

    def present(self) -> Node:
        """The rows that are there."""
        return Filter(self.node, there(self.times)) if self.candidates else self.node


def there(times: Expression) -> Expression:
    """The condition that a row is there."""
    return Call(">", (times, LONG_ZERO), BOOLEAN)


def times_of(left: Expression, right: Expression) -> Expression:
    """The product of two counts."""
    if left == LONG_ONE:
        return right
    return left if right == LONG_ONE else Call("*", (left, right), LONG, "ansi")


def is_there(column: Expression) -> Expression:
    """``column IS NOT NULL``."""
    return Call("is not null", (column,), BOOLEAN)


def truth(condition: Expression) -> Expression:
    """A condition with NULL as false."""
    return alike(condition, Literal(True, BOOLEAN))


def chosen(condition: Expression, value: Expression, other: Expression | None = None) -> Expression:
    """``CASE WHEN condition THEN value ELSE other END``."""
    return Case(((condition, value),), other, value.type)


def shifted(number: Expression, start: int) -> Expression:
    """A number of a row as the node of a block that starts there."""
    return Call("+", (number, Literal(start, LONG)), LONG, "ansi")


def rewritten(value: Expression, change: Callable[[Term], Term]) -> Expression:
    """An expression with a change applied to each of its parts."""
    return rewrite(value, change)  # type: ignore[return-value]


def localized(value: Expression, outer: Mapping[int, Attribute]) -> Expression:
    """An expression of a subquery over columns that were brought to its rows."""

    def local(term: Term) -> Term:
        return outer.get(term.attribute.id, term) if isinstance(term, Outer) else term

    return rewritten(value, local)


def extended(rows: Rows, added: Iterable[Named]) -> Node:
    """The rows with more columns."""
    return Project(rows.node, (*map(passed, rows.everything), *added))


def copied(rows: Rows, ids: Ids) -> Rows:
    """The same rows with columns of their own, so that both may stand in one join."""
    pairs = {column.id: ids.named(column.name, column) for column in rows.everything}

    def new(column: Attribute) -> Attribute:
        return pairs[column.id].attribute

    return Rows(
        Project(rows.node, tuple(pairs.values())),
        tuple(map(new, rows.columns)),
        new(rows.annotation),
        new(rows.times) if isinstance(rows.times, Attribute) else rows.times,
        {pairs[key].id: new(value) for key, value in rows.cells.items() if key in pairs},
        {pairs[key].id: new(value) for key, value in rows.origins.items() if key in pairs},
        None if rows.context is None else new(rows.context),
        {key: new(value) for key, value in rows.outer.items()},
        rows.candidates,
        rows.bag,
        rows.gate,
    )


def pruned(rows: Rows, columns: Iterable[Attribute]) -> Rows:
    """Rows of which the query sees these columns."""
    kept = tuple(columns)
    known = {column.id for column in kept} | {column.id for column in rows.outer.values()}
    cells = {number: node for number, node in rows.cells.items() if number in known}
    origins = {number: node for number, node in rows.origins.items() if number in known}
    return replace(rows, columns=kept, cells=cells, origins=origins)


def reads_cells(value: Expression, rows: Rows) -> list[int]:
    """The ids of the columns with v-nodes that an expression reads."""
    return sorted(number for number in reads([value]) if number in rows.cells)


def joined(left: Node, right: Node, condition: Expression | None, kind: str = "inner") -> Join:
    """A join of helper tables."""
    return Join(left, right, "cross" if condition is None and kind == "inner" else kind, condition)  # type: ignore[arg-type]
