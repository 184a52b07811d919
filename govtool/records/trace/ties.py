"""Whether the rows of a plan decide what a choosing function returns, or whether some tie.

``first`` returns the value of any row, ``max_by`` that of any row with the largest key, ``mode`` any of the most
frequent values, ``listagg`` and ``collect_list`` values in any order. The rows decide where all that it may return is
one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from govtool.errors import EngineError
from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Expression,
    Frame,
    Literal,
    Named,
    Opaque,
    WindowCall,
    passed,
)
from govtool.records.plan.nodes import (
    Aggregate,
    Distinct,
    Filter,
    LateralJoin,
    Project,
    Window,
    With,
    outputs,
)
from govtool.records.plan.tree import Node, Term, rewrite, walk, walk_nodes
from govtool.records.plan.types import BOOLEAN, INTEGER, LONG, comparable
from govtool.records.trace.back import Executor, exists
from govtool.records.trace.looseness import has_breaks
from govtool.records.trace.normal import Ids
from govtool.records.trace.segment import free_columns, projected

_BY_KEY = {"max_by": "max", "min_by": "min"}
CHOOSING = frozenset({"first", "last", "any_value", "mode", "listagg", *_BY_KEY})
"""Aggregates that return one of several values where the order of rows does not decide."""
COLLECTED = frozenset({"collect_list", "collect_set", "collect_union"})
"""Aggregates that return values in the order of their rows."""
_COUNT = AggregateCall("count", (Literal(1, INTEGER),), LONG)
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
        """Whether the order of a window has a say: in which rows there are up to a row, or in that of a list."""
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


Tied = Callable[[Choice, Node | None], bool]
"""Whether rows tie for a choice; the second argument is the plan of the rows that a subquery around it is of."""


def always_tied(choice: Choice, around: Node | None) -> bool:
    """Whether rows tie, where nothing is known of them: they may."""
    return True


@dataclass(frozen=True, slots=True)
class TieCheck:
    """Looks into the rows of a plan.

    Attributes:
        executor: Evaluates plans.
        ids: Ids that the plan does not use.
        root: The plan.
    """

    executor: Executor
    ids: Ids
    root: Node

    def __call__(self, choice: Choice, around: Node | None) -> bool:
        """Return whether rows tie for a choice, or that cannot be known."""
        if not comparable(choice.call.arguments[0].type):
            return True
        found = self._bound(self._tied_groups(choice), around)
        if found is None or has_breaks(found):
            return True
        try:
            return exists(self.executor, self._with_definitions(found))
        except EngineError:
            return True

    def _tied_groups(self, choice: Choice) -> Node:
        """The groups that may return several values."""
        call = choice.call
        value = self.ids.named("value", call.arguments[0])
        by = self.ids.named("by", call.arguments[1]) if call.name in _BY_KEY else None
        parts = [self.ids.named("part", part) for part in choice.parts]
        order = () if choice.window is None or not choice.ordered else choice.window.order
        rows: Node = choice.child if call.filter is None else Filter(choice.child, call.filter)
        more = [self.ids.named("order", key.value) for key in order]
        rows = Project(rows, (*parts, *more, value, *([] if by is None else [by])))
        if choice.ignores_null:
            rows = Filter(rows, _there(value.attribute))
        if by is not None:
            rows, more = Filter(rows, _there(by.attribute)), [by]
            if choice.whole:
                rows, more = self._best(rows, parts, by.attribute, _BY_KEY[call.name]), []
        elif call.name == "mode":
            more = []
            if choice.whole:
                rows = self._most(rows, parts, value.attribute)
        columns = tuple(named.attribute for named in (*parts, *more))
        pairs = Distinct(projected(rows, (*columns, value.attribute)))
        values = self.ids.named("values", _COUNT)
        groups = Aggregate(pairs, tuple(map(passed, columns)), (values,))
        return Filter(groups, Call(">", (values.attribute, Literal(1, LONG)), BOOLEAN))

    def _best(self, rows: Node, parts: Iterable[Named], by: Attribute, name: str) -> Node:
        """The rows with the largest, or with the smallest, value of a column."""
        over = WindowCall(AggregateCall(name, (by,), by.type), _attributes(parts), (), _ALL, by.type)
        best = self.ids.named("best", over)
        return Filter(Window(rows, (best,)), Call("<=>", (by, best.attribute), BOOLEAN))

    def _most(self, rows: Node, parts: Iterable[Named], value: Attribute) -> Node:
        """The most frequent values."""
        times = self.ids.named("times", _COUNT)
        counted = Aggregate(rows, tuple(map(passed, (*_attributes(parts), value))), (times,))
        return self._best(counted, parts, times.attribute, "max")

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


def _there(column: Attribute) -> Call:
    return Call("is not null", (column,), BOOLEAN)


def _attributes(columns: Iterable[Named]) -> tuple[Attribute, ...]:
    return tuple(column.attribute for column in columns)
