"""Catalyst's Aggregate taken apart: keys, measures, and what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from govtool.records.plan.expressions import AggregateCall, Attribute, Expression, Named, Opaque, Udf, passed
from govtool.records.plan.nodes import Aggregate, Project
from govtool.records.plan.tree import Node, Term, field_names, fold, walk


class Numbering:
    """Gives equal expressions equal numbers; an attribute is its id, whatever its name or nullability."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, term: Term) -> int:
        """The number of an expression."""
        return fold(term, self._number)

    def _number(self, term: Term, parts: tuple[int, ...]) -> int:
        if isinstance(term, Attribute):
            key: Hashable = ("attribute", term.id)
        else:
            plain = tuple(_plain(getattr(term, name)) for name in field_names(type(term)))
            key = (type(term).__name__, plain, parts)
        return self._numbers.setdefault(key, len(self._numbers))


def _plain(value: object) -> Hashable:
    if isinstance(value, Term):
        return None
    if isinstance(value, Node):
        return id(value)
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return (type(value).__name__, repr(value))


def aggregate(
    child: Node, grouping: tuple[Expression, ...], results: tuple[Named, ...], fresh: Callable[[], int]
) -> Node:
    """Build an Aggregate, with a Project above it where results are more than its keys and measures.

    Args:
        child: The input.
        grouping: The expressions of GROUP BY.
        results: The output columns, over grouping expressions and aggregates of the input.
        fresh: Gives ids that nothing else has.

    Raises:
        ValueError: A result reads a column that is neither grouped by nor aggregated.
    """
    numbering = Numbering()
    builder = _Builder(numbering, _named_keys(numbering, grouping, results, fresh), fresh)
    columns = tuple(Named(builder.over(each), each.id, each.name) for each in results)
    made = Aggregate(child, tuple(builder.keys.values()), tuple(builder.measures.values()))
    own = [each.id for each in made.keys + made.measures]
    _require_known(columns, frozenset(own))
    is_same = [each.id for each in columns] == own and all(each.is_passed for each in columns)
    return made if is_same else Project(made, columns)


def _named_keys(
    numbering: Numbering, grouping: tuple[Expression, ...], results: tuple[Named, ...], fresh: Callable[[], int]
) -> dict[int, Named]:
    """The keys by their numbers, each once; a result that is a key lends it its name and id."""
    keys: dict[int, Named] = {}
    for each in grouping:
        number = numbering.number(each)
        if number not in keys:
            keys[number] = passed(each) if isinstance(each, Attribute) else Named(each, 0, f"key_{len(keys)}")
    for column in results:
        number = numbering.number(column.value)
        if number in keys and keys[number].id == 0 and isinstance(keys[number].value, type(column.value)):
            keys[number] = Named(keys[number].value, column.id, column.name)
    return {
        number: each if each.id or isinstance(each.value, Attribute) else Named(each.value, fresh(), each.name)
        for number, each in keys.items()
    }


def _require_known(columns: tuple[Named, ...], known: frozenset[int]) -> None:
    """Refuse a result that reads what the aggregate does not have.

    Raises:
        ValueError: It does.
    """
    for column in columns:
        for term in walk(column.value):
            if isinstance(term, Attribute) and term.id not in known:
                raise ValueError(f"column {term.name} is neither grouped by nor aggregated")


class _Builder:
    """Rewrites results over the columns of the aggregate, collecting its measures."""

    def __init__(self, numbering: Numbering, keys: dict[int, Named], fresh: Callable[[], int]) -> None:
        self.measures: dict[int, Named] = {}
        self.keys = keys
        self._numbering = numbering
        self._fresh = fresh

    def over(self, column: Named) -> Expression:
        """The column's value over keys and measures."""
        value = column.value
        if is_aggregate(value):
            number = self._numbering.number(value)
            if number not in self.measures:
                self.measures[number] = Named(value, column.id, column.name)
            return self.measures[number].attribute
        return self._changed(value)  # type: ignore[return-value]

    def _changed(self, root: Term) -> Term:
        """Replace the largest keys and aggregates within an expression, without recursion."""
        waiting: list[tuple[Term, bool]] = [(root, False)]
        done: list[Term] = []
        while waiting:
            term, ready = waiting.pop()
            if ready:
                count = len(term.terms())
                parts = tuple(done[len(done) - count :])
                del done[len(done) - count :]
                done.append(term.replaced(terms=parts))
                continue
            column = self._column(term)
            if column is not None:
                done.append(column)
            else:
                waiting.append((term, True))
                waiting.extend((part, False) for part in reversed(term.terms()))
        return done[0]

    def _column(self, term: Term) -> Attribute | None:
        number = self._numbering.number(term)
        if number in self.keys:
            return self.keys[number].attribute
        if not is_aggregate(term):
            return None
        if number not in self.measures:
            self.measures[number] = Named(term, self._fresh(), f"measure_{len(self.measures)}")  # type: ignore[arg-type]
        return self.measures[number].attribute


def is_aggregate(term: Term) -> bool:
    """Return True for what a group of rows gives a value."""
    return isinstance(term, AggregateCall) or (isinstance(term, (Udf, Opaque)) and term.aggregate)
