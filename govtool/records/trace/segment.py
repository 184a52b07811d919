"""Segments, sources and links: a plan rewritten so that each row carries where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from govtool.records.plan.expressions import (
    Attribute,
    Call,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Named,
    Outer,
    ScalarSubquery,
    passed,
)
from govtool.records.plan.nodes import LocalRows, Project, Range, Relation, outputs
from govtool.records.plan.tree import Node, Term, walk, walk_nodes
from govtool.records.plan.types import BOOLEAN

Exactness = OneOf["exact", "superset", "coarse", "incomplete"]
"""``exact``: the trace as defined. ``superset``: contains it. ``coarse``: a whole input. ``incomplete``: rows may be
missing, and others may be there."""
Leaf = Relation | LocalRows | Range


@dataclass(frozen=True, slots=True)
class Grade:
    """The exactness of a step, and why it is not exact."""

    exactness: Exactness = "exact"
    why: str = ""

    def worst(self, other: Grade) -> Grade:
        """The less exact of two; the first where they are alike."""
        return max(self, other, key=lambda grade: _ORDER[grade.exactness])


_ORDER: dict[Exactness, int] = {"exact": 0, "superset": 1, "coarse": 2, "incomplete": 3}
EXACT = Grade()


@dataclass(frozen=True, slots=True)
class LeafSource:
    """Rows of an input: their ids are in a column of the segment; NULL where a row has none there."""

    leaf: Leaf
    record: Attribute
    against: bool = False
    doubts: tuple[tuple[Attribute, str], ...] = ()
    """Booleans of the segment: where one is true, the trace is a superset, for the reason beside it."""

    def columns(self) -> tuple[Attribute, ...]:
        """The columns that the segment carries for it."""
        return (self.record, *(doubt for doubt, _ in self.doubts))


@dataclass(frozen=True, slots=True)
class LinkSource:
    """Rows below a boundary: those that match values in columns of the segment, where ``present`` is true."""

    link: Link
    pairs: tuple[tuple[Attribute, Attribute], ...]
    """A parameter of the link, and the segment's column that has its value."""
    present: Attribute
    against: bool = False
    doubts: tuple[tuple[Attribute, str], ...] = ()

    def columns(self) -> tuple[Attribute, ...]:
        """The columns that the segment carries for it."""
        return (self.present, *(column for _, column in self.pairs), *(doubt for doubt, _ in self.doubts))


Source = LeafSource | LinkSource


@dataclass(frozen=True, slots=True)
class Segment:
    """A plan whose rows carry what identifies the rows they come from.

    Attributes:
        node: The rewritten plan: the columns of the original one, and those of the sources.
        visible: The columns of the original plan.
        sources: Where rows come from.
    """

    node: Node
    visible: tuple[Attribute, ...]
    sources: tuple[Source, ...]

    def carried(self) -> tuple[Attribute, ...]:
        """The columns of the sources, each once."""
        return unique(column for source in self.sources for column in source.columns())

    def extra(self) -> tuple[Attribute, ...]:
        """Those of them that are not visible anyway."""
        seen = {column.id for column in self.visible}
        return tuple(column for column in self.carried() if column.id not in seen)


@dataclass(eq=False, slots=True)
class Link:
    """The rows of the plan below a boundary that belong to a row above it.

    Attributes:
        operator: The boundary, for people.
        make: Builds the segment below; on first use, as a trace need not go that far.
        condition: Over the segment's columns and the link's parameters; None: every row.
        grade: How exact the match is.
        free: Columns of enclosing queries that the plan below reads; the match is then evaluated for each of their
            values.
        plan: The plan below, as it is; None where rows are followed by positions that a run kept.
    """

    operator: str
    make: Callable[[], Segment]
    condition: Expression | None
    grade: Grade = EXACT
    free: tuple[Attribute, ...] = ()
    plan: Node | None = None
    _made: Segment | None = field(default=None, init=False)

    @property
    def child(self) -> Segment:
        """The segment below."""
        if self._made is None:
            self._made = self.make()
        return self._made


def unique(columns: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """Columns, each id once."""
    return tuple({column.id: column for column in columns}.values())


def both(conditions: Iterable[Expression | None]) -> Expression | None:
    """The conjunction of conditions; None for none."""
    made: Expression | None = None
    for condition in conditions:
        if condition is not None:
            made = condition if made is None else Call("and", (made, condition), BOOLEAN)
    return made


def either(conditions: Iterable[Expression]) -> Expression:
    """The disjunction of conditions; false for none."""
    made: Expression | None = None
    for condition in conditions:
        made = condition if made is None else Call("or", (made, condition), BOOLEAN)
    return Literal(False, BOOLEAN) if made is None else made


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The parts of a conjunction."""
    waiting = [] if condition is None else [condition]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call) and each.name == "and":
            waiting.extend(reversed(each.arguments))
        else:
            yield each


def alike(left: Expression, right: Expression) -> Expression:
    """``left <=> right``."""
    return Call("<=>", (left, right), BOOLEAN)


def reads(terms: Iterable[Term]) -> frozenset[int]:
    """The ids of the columns that expressions read, those that their subqueries read of the same row included."""
    found = set()
    for root in terms:
        for term in walk(root):
            if isinstance(term, Attribute):
                found.add(term.id)
            elif isinstance(term, (ScalarSubquery, Exists, InSubquery)):
                found.update(each.id for each in free_columns(term.plan))
    return frozenset(found)


def subqueries(terms: Iterable[Term]) -> list[ScalarSubquery | Exists | InSubquery]:
    """The subqueries in expressions; those within them are theirs."""
    return [
        term for root in terms for term in walk(root) if isinstance(term, (ScalarSubquery, Exists, InSubquery))
    ]  # fmt: skip


def free_columns(node: Node) -> tuple[Attribute, ...]:
    """The columns of enclosing queries that a plan reads."""
    found: dict[int, Attribute] = {}
    made: set[int] = set()
    for each in walk_nodes(node):
        made.update(column.id for column in _made_by(each))
        for term in walk(each):
            if isinstance(term, Outer):
                found[term.attribute.id] = term.attribute
    return tuple(column for number, column in found.items() if number not in made)


def _made_by(node: Node) -> Iterator[Attribute]:
    for name in ("columns", "keys", "measures"):
        for each in getattr(node, name, ()):
            if isinstance(each, Attribute):
                yield each
            elif isinstance(each, Named):
                yield each.attribute
    if isinstance(node, Range):
        yield node.column


def projected(node: Node, columns: Iterable[Attribute]) -> Project:
    """A node's columns, some of them, each once."""
    return Project(node, tuple(passed(column) for column in unique(columns)))


def everything(node: Node) -> tuple[Named, ...]:
    """A node's columns as a projection passes them on, each once."""
    return tuple(passed(column) for column in unique(outputs(node)))


def doubted(source: Source, doubt: Attribute, why: str) -> Source:
    """A source that is a superset where a column is true."""
    return replace(source, doubts=(*source.doubts, (doubt, why)))
