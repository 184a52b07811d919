"""Whether the rows of a plan decide what a choosing function returns, or whether some tie.

``first`` returns the value of any row, ``max_by`` that of any row with the largest key, ``mode`` any of the most
frequent values, ``listagg`` and ``collect_list`` values in any order. The rows decide where all that it may return is
one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from govtool.errors import EngineError
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Case,
    Expression,
    Frame,
    Literal,
    Named,
    Opaque,
    WindowCall,
    passed,
)
from govtool.records.plan.nodes import Aggregate, Distinct, Filter, Join, LateralJoin, Project, Window, With, outputs
from govtool.records.plan.tree import Node, Term, rewrite, walk, walk_nodes
from govtool.records.plan.types import BOOLEAN, INTEGER, LONG, VOID, Decimal, Scalar, Type, comparable
from govtool.records.trace.back import Executor
from govtool.records.trace.looseness import has_breaks
from govtool.records.trace.normal import Ids, refreshed
from govtool.records.trace.segment import alike, both, either, free_columns, projected

_BY_KEY = {"max_by": "max", "min_by": "min"}
CHOOSING = frozenset({"first", "last", "any_value", "mode", "listagg", *_BY_KEY})
"""Aggregates that return one of several values where the order of rows does not decide."""
COLLECTED = frozenset({"collect_list", "collect_set", "collect_union"})
"""Aggregates that return values in the order of their rows."""
_COUNT = AggregateCall("count", (Literal(1, INTEGER),), LONG)
_ONE = Literal(1, LONG)
_ALL = Frame("range", "unbounded preceding", "unbounded following")
_WHOLE = ("unbounded preceding", "unbounded following")


@dataclass(frozen=True, slots=True)
class Choice:
    """A choosing function in its place.

    Attributes:
        child: The rows.
        parts: What the rows are grouped or partitioned by.
        call: The function.
        window: The window that it is over; None: it is an aggregate of groups.
    """

    child: Node
    parts: tuple[Expression, ...]
    call: AggregateCall
    window: WindowCall | None = None

    @property
    def whole(self) -> bool:
        """Whether each value is of all rows of a group or of a partition."""
        frame = self.window.frame if self.window is not None else None
        return frame is None or (frame.lower, frame.upper) == _WHOLE

    @property
    def ordered(self) -> bool:
        """Whether the order of a window counts: for which rows there are up to a row, or for that of a list."""
        return self.call.name == "collect_list" or (self.call.name != "collect_set" and not self.whole)

    @property
    def ignores_null(self) -> bool:
        """Whether NULL is never returned for the cell of a row."""
        return self.call.name in ("mode", "listagg", *COLLECTED) or bool(dict(self.call.options).get("ignore nulls"))


@dataclass(frozen=True, slots=True)
class ChosenCell(Opaque):
    """A value that the run chose of several: it is not known, but the rows behind it are those of the function.

    Attributes:
        call: The function.
    """

    call: AggregateCall | None = None


def restored(value: Expression) -> Expression | None:
    """An expression with the functions of its chosen cells, which have the same rows; None if more is not known."""

    def change(term: Term) -> Term:
        return term.call if isinstance(term, ChosenCell) and term.call is not None else term

    found: Expression = rewrite(value, change)  # type: ignore[assignment]
    return None if any(isinstance(term, Opaque) for term in walk(found)) else found


Tied = Callable[[Sequence[Choice], Node | None], list[bool]]
"""Whether rows tie for each of some choices among the rows of one operator; the second argument is the plan of the rows
that a subquery around the operator is of."""


def always_tied(choices: Sequence[Choice], around: Node | None) -> list[bool]:
    """Whether rows tie, where nothing is known of them: they may."""
    return [True] * len(choices)


def never_tied(choices: Sequence[Choice], around: Node | None) -> list[bool]:
    """Whether rows tie, where it does not matter: as if none did."""
    return [False] * len(choices)


@dataclass(frozen=True, slots=True)
class TieCheck:
    """Looks into the rows of a plan: one evaluation for all choices of an operator that have the same groups.

    Attributes:
        executor: Evaluates plans.
        ids: Ids that the plan does not use.
        root: The plan.
    """

    executor: Executor
    ids: Ids
    root: Node

    def __call__(self, choices: Sequence[Choice], around: Node | None) -> list[bool]:
        """Return of each choice whether rows tie for it, or that cannot be known."""
        tied = [not _is_known(choice) for choice in choices]
        together: dict[tuple[object, ...], list[int]] = {}
        for n, choice in enumerate(choices):
            if not tied[n]:
                alone = n if _is_counted(choice) else -1
                together.setdefault((_grouped_by(choice), _is_best(choice), alone), []).append(n)
        for places in together.values():
            for n, is_tied in zip(places, self._tied([choices[n] for n in places], around), strict=True):
                tied[n] = is_tied
        return tied

    def _tied(self, choices: Sequence[Choice], around: Node | None) -> list[bool]:
        """The same of choices that have the same groups."""
        found = self._bound(self._groups(choices), around)
        if found is None or has_breaks(found):
            return [True] * len(choices)
        flags = outputs(found)[-len(choices) :]
        calls = tuple(self.ids.named("tied", AggregateCall("bool_or", (flag,), BOOLEAN)) for flag in flags)
        try:
            (row,) = self.executor.fetch(self._with_definitions(Aggregate(found, (), calls)))
        except EngineError:
            if len(choices) == 1:
                return [True]
            return [is_tied for choice in choices for is_tied in self._tied([choice], around)]
        return [bool(is_tied) for is_tied in row]

    def _groups(self, choices: Sequence[Choice]) -> Node:
        """The groups; the last columns tell of each choice whether it may return several values."""
        keys = [self.ids.named("key", key) for key in _grouped_by(choices[0])]
        values = [self.ids.named("value", choice.call.arguments[0]) for choice in choices]
        chosen = [self.ids.named("chosen", _chosen(choice)) for choice in choices]
        by = {n: self.ids.named("by", _by(choice)) for n, choice in enumerate(choices) if _is_best(choice)}
        rows: Node = Project(choices[0].child, (*keys, *values, *chosen, *by.values()))
        conditions: list[Expression] = [named.attribute for named in chosen]
        if by:
            calls = [(named.attribute, _BY_KEY[choices[n].call.name]) for n, named in by.items()]
            rows, conditions = self._with_best(rows, keys, calls)
        elif _is_counted(choices[0]):
            times = self.ids.named("times", _COUNT)
            parts = tuple(map(passed, (*_attributes(keys), values[0].attribute)))
            counted = Aggregate(Filter(rows, conditions[0]), parts, (times,))
            rows, conditions = self._with_best(counted, keys, [(times.attribute, "max")])
        rows = Filter(rows, either(conditions))
        of_each = zip(choices, _attributes(values), conditions if len(choices) > 1 else [None], strict=True)
        return self._flagged(rows, _attributes(keys), list(of_each))

    def _with_best(
        self, rows: Node, keys: Sequence[Named], calls: Sequence[tuple[Attribute, str]]
    ) -> tuple[Node, list[Expression]]:
        """Rows with the best values of some columns in their groups, and what holds of each column where it has it."""
        best = [self.ids.named("best", AggregateCall(name, (column,), column.type)) for column, name in calls]
        conditions: list[Expression] = [
            Call("=", (column, named.attribute), BOOLEAN) for named, (column, _) in zip(best, calls, strict=True)
        ]
        if isinstance(rows, Aggregate) or free_columns(rows):
            # Fewer rows, which are not counted twice; or columns of a query around, to be matched on both sides.
            over = [
                replace(named, value=WindowCall(named.value, _attributes(keys), (), _ALL, named.type))
                for named in best
                if isinstance(named.value, AggregateCall)
            ]
            return Window(rows, tuple(over)), conditions
        # A join of the rows with one row a group: a window would have to hold and sort all rows.
        copy = refreshed(rows, self.ids)
        places = {old.id: new for old, new in zip(outputs(rows), outputs(copy), strict=True)}
        copies = [passed(places[key.id]) for key in keys]
        own = [
            replace(named, value=AggregateCall(name, (places[column.id],), column.type))
            for named, (column, name) in zip(best, calls, strict=True)
        ]
        same = both(alike(key.attribute, other.attribute) for key, other in zip(keys, copies, strict=True))
        groups = Aggregate(copy, tuple(copies), tuple(own))
        return Join(rows, groups, "inner" if keys else "cross", same), conditions

    def _flagged(
        self, rows: Node, keys: Iterable[Attribute], values: Sequence[tuple[Choice, Attribute, Expression | None]]
    ) -> Node:
        """Groups of rows, and of each value whether there are several where a condition holds."""
        measures: list[Named] = []
        flags = []

        def measure(
            name: str, value: Expression, kind: Type, where: Expression | None, distinct: bool = False
        ) -> Attribute:
            measures.append(self.ids.named(name, AggregateCall(name, (value,), kind, distinct, filter=where)))
            return measures[-1].attribute

        for choice, value, where in values:
            if _is_ordered(value.type):
                least, most = (measure(name, value, value.type, where) for name in ("min", "max"))
                several = Call("not", (Call("=", (least, most), BOOLEAN),), BOOLEAN)
                some = Call("is not null", (least,), BOOLEAN)
            else:
                count = measure("count", value, LONG, where, True)
                several = Call(">", (count, _ONE), BOOLEAN)
                some = Call(">=", (count, _ONE), BOOLEAN)
            if not choice.ignores_null:  # NULL is one of the values
                nulls = measure("bool_or", Call("is null", (value,), BOOLEAN), BOOLEAN, where)
                several = Call("or", (several, Call("and", (some, nulls), BOOLEAN)), BOOLEAN)
            flags.append(self.ids.named("tied", several))
        groups = Aggregate(rows, tuple(map(passed, keys)), tuple(measures))
        return Project(groups, tuple(flags))

    def _bound(self, found: Node, around: Node | None) -> Node | None:
        """A plan without columns of a query around it: for every row there is around it."""
        free = free_columns(found)
        if not free:
            return found
        if around is None or free_columns(around) or not {c.id for c in free} <= {c.id for c in outputs(around)}:
            return None
        values = Distinct(projected(around, tuple(free)))
        return LateralJoin(values, found, "inner", None, tuple(free))

    def _with_definitions(self, found: Node) -> Node:
        for each in reversed([each for each in walk_nodes(self.root) if isinstance(each, With)]):
            found = With(each.definitions, found)
        return found


def _is_known(choice: Choice) -> bool:
    """Return whether the rows show it: values are comparable, and all that decides can be evaluated."""
    has_opaque = any(isinstance(term, Opaque) for term in walk(choice.call))
    return comparable(choice.call.arguments[0].type) and not has_opaque


def _is_best(choice: Choice) -> bool:
    """Return whether the best rows of a whole group are chosen from."""
    return choice.whole and choice.call.name in _BY_KEY


def _is_counted(choice: Choice) -> bool:
    """Return whether the most frequent values of a whole group are chosen from."""
    return choice.whole and choice.call.name == "mode"


def _grouped_by(choice: Choice) -> tuple[Expression, ...]:
    """What rows have in common among which one is chosen.

    Of a frame that grows, those that come in together; of a list, those between which a window's order does not decide.
    """
    if choice.window is None or not choice.ordered or choice.call.name == "mode":
        return choice.parts
    if choice.call.name in _BY_KEY:
        return (*choice.parts, choice.call.arguments[1])
    return (*choice.parts, *(key.value for key in choice.window.order))


def _chosen(choice: Choice) -> Expression:
    """Whether a row may be chosen."""
    call = choice.call
    there = [call.arguments[0]] if choice.ignores_null else []
    there += call.arguments[1:] if call.name in _BY_KEY else []
    parts = (call.filter, *(Call("is not null", (value,), BOOLEAN) for value in there))
    return both(parts) or Literal(True, BOOLEAN)


def _by(choice: Choice) -> Expression:
    """What decides, where a row may be chosen."""
    by = choice.call.arguments[1]
    return (
        by if choice.call.filter is None and not choice.ignores_null else Case(((_chosen(choice), by),), None, by.type)
    )


def _is_ordered(kind: Type) -> bool:
    """Return whether two values are equal if the smallest and the largest are; DuckDB is given no others."""
    plain = isinstance(kind, Scalar) and kind != VOID and not kind.name.startswith("interval")
    return plain or isinstance(kind, Decimal)


def _attributes(columns: Iterable[Named]) -> tuple[Attribute, ...]:
    return tuple(column.attribute for column in columns)
