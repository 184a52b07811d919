"""Lists in no order: what an aggregate collects is in the order that its rows came in, which is another one each time.

A value that depends on this order is not evaluated again, unless all elements of each list are one value. Other values
are: how many elements there are, whether one of them is 3, the list sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Case,
    Cast,
    Expression,
    Frame,
    Lambda,
    Named,
    Outer,
    ScalarSubquery,
    SortKey,
    WindowCall,
    passed,
)
from govtool.records.plan.nodes import (
    Aggregate,
    Deduplicate,
    Definition,
    Distinct,
    Expand,
    Project,
    Reference,
    SetOperation,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.subqueries import everywhere_within
from govtool.records.plan.tree import Node, Term, fold, walk, walk_nodes
from govtool.records.plan.types import Array
from govtool.records.trace.loose_terms import read_by
from govtool.records.trace.ties import COLLECTED, Choice, ChosenCell, Tied, always_tied, never_tied

_WHY = "depends on the order of a collected list: nothing orders it"
_IGNORING = frozenset({
    "size", "array_size", "array_contains", "sort_array", "array_max", "array_min", "exists", "forall",
    "arrays_overlap", "is null", "is not null", "explode", "inline", "typeof",
})  # fmt: skip
"""Functions of a list that give the same whatever its order is; rows of a generator have none."""
_SAME_ELEMENTS = frozenset({
    "array_distinct", "array_remove", "array_compact", "array_union", "array_intersect", "array_except",
    "array_append", "array_prepend", "concat", "flatten", "reverse", "shuffle", "coalesce", "nvl",
})  # fmt: skip
"""Functions that give the same elements, in an order that is not determined either."""
_BY_ELEMENT = frozenset({"filter", "transform"})
_Lists = tuple[tuple[Choice, Node | None], ...]
"""The aggregates that collect the lists of a column, each with the plan of the rows around it."""
_Result = tuple[Term, _Lists]


def with_settled_lists(root: Node, tied: Tied) -> Node:
    """A plan where values that depend on the order of a collected list are opaque.

    Args:
        root: The plan.
        tied: Whether a list has different values, so that their order counts.
    """
    return _Pass(tied).plan(root) if _collects(root) else root


def unordered_lists(root: Node) -> frozenset[int]:
    """The ids of columns of lists that an aggregate collects, in any order."""
    if not _collects(root):
        return frozenset()
    work = _Pass(never_tied)
    work.plan(root)
    return frozenset(work.lists)


def depends_on_lists(root: Node) -> bool:
    """Return whether a value of a plan depends on the order of a collected list."""
    work = _Pass(always_tied)
    return _collects(root) and any(
        isinstance(term, ChosenCell) and term.reason == _WHY
        for node in walk_nodes(work.plan(root))
        for term in walk(node)
    )


def collected_lists(root: Node) -> frozenset[Term]:
    """The aggregates of a plan that collect lists in any order."""
    return frozenset(term for node in walk_nodes(root) for term in walk(node) if _is_collected(term))


def depends_on_order(term: Expression, lists: Collection[int]) -> bool:
    """Return whether a value depends on the order of lists that columns of some ids hold."""
    if not any(isinstance(each, Attribute) and each.id in lists for each in walk(term)):
        return False
    work = _Pass(always_tied)
    nothing = Choice(Union((), ()), (), AggregateCall("collect_list", (), term.type))
    work.lists.update(dict.fromkeys(lists, ((nothing, None),)))
    return any(isinstance(each, ChosenCell) for each in walk(work.term(term, lambda each: ())[0]))


def _collects(root: Node) -> bool:
    return bool(collected_lists(root))


def _is_collected(term: Term) -> bool:
    return isinstance(term, AggregateCall) and term.name in COLLECTED and not term.order


class _Pass:
    """A pass over a plan and the plans of its subqueries."""

    def __init__(self, tied: Tied) -> None:
        self._tied = tied
        self.lists: dict[int, _Lists] = {}
        """Where the lists of a column come from, by its id."""
        self._defined: dict[int, tuple[Attribute, ...]] = {}

    def plan(self, root: Node) -> Node:
        """A plan with those of its subqueries."""
        return everywhere_within(root, self._changed)

    def _changed(self, node: Node, around: Node | None) -> Node:
        if isinstance(node, Union):
            for child in node.children:
                self._passed_on(outputs(child), node.columns)
        elif isinstance(node, Definition):
            self._defined[node.id] = outputs(node.child)
        elif isinstance(node, Reference):
            self._passed_on(self._defined.get(node.id, ()), node.columns)
        elif isinstance(node, (Distinct, SetOperation)):
            return node.replaced(nodes=tuple(self._compared(child) for child in node.nodes()))
        elif isinstance(node, Deduplicate):
            return replace(node, child=self._compared(node.child, {key.id for key in node.keys}))
        return self._with_terms(node, around)

    def _passed_on(self, old: Sequence[Attribute], new: Sequence[Attribute]) -> None:
        for one, other in zip(old, new, strict=False):
            self._add(other.id, self.lists.get(one.id, ()))

    def _add(self, number: int, found: _Lists) -> None:
        if found:
            self.lists[number] = (*self.lists.get(number, ()), *found)

    def _compared(self, node: Node, keys: Collection[int] | None = None) -> Node:
        """Rows whose lists are compared: in their order."""
        columns = outputs(node)
        lost = {c.id for c in columns if c.id in self.lists and (keys is None or c.id in keys) and self._is_tied(c.id)}
        if not lost:
            return node
        return Project(node, tuple(self._opaque_column(c) if c.id in lost else passed(c) for c in columns))

    def _is_tied(self, number: int) -> bool:
        return self._any_tied(self.lists[number])

    def _any_tied(self, lists: _Lists) -> bool:
        return any(self._tied([choice], around)[0] for choice, around in lists)

    def _opaque_column(self, column: Attribute) -> Named:
        return Named(_opaque(column), column.id, column.name)

    # ---- expressions ----------------------------------------------------------------------------------------------

    def _with_terms(self, node: Node, around: Node | None) -> Node:
        if not node.terms():
            return node

        def own(term: Term) -> _Lists:
            found = _choice(node, term)
            return () if found is None else ((found, around),)

        results = [self.term(term, own) for term in node.terms()]
        keys = node.keys if isinstance(node, Aggregate) else ()
        results = [self._key(*each) if number < len(keys) else each for number, each in enumerate(results)]
        for term, found in results:
            if isinstance(term, Named):
                self._add(term.id, found)
        if isinstance(node, Expand):
            columns = [column for line in node.projections for column, _ in zip(node.columns, line, strict=True)]
            for column, (_, found) in zip(columns, results, strict=False):
                self._add(column.id, found)
        return node.replaced(terms=tuple(term for term, _ in results))

    def _key(self, term: Term, found: _Lists) -> _Result:
        """A key of groups: lists are compared in their order."""
        assert isinstance(term, Named)
        if not self._any_tied(found):
            return term, ()
        return replace(term, value=_opaque(term.value)), ()

    def term(self, root: Term, own: Callable[[Term], _Lists]) -> _Result:
        """An expression without values that depend on an order, and the lists that its own value is in the order of.

        Args:
            root: The expression.
            own: The list that an aggregate collects.
        """

        def combine(term: Term, parts: tuple[_Result, ...]) -> _Result:
            made = term.replaced(terms=tuple(part for part, _ in parts))
            found = tuple(dict.fromkeys(each for _, lists in parts for each in lists))
            if not found:
                return made, own(made) or self._held(made)
            if _keeps(made):
                return made, found
            if _ignores(made) or not self._any_tied(found):
                return made, ()
            if isinstance(made, SortKey):
                return replace(made, value=_opaque(made.value)), ()
            return _opaque(made), ()

        return fold(root, combine)

    def _held(self, term: Term) -> _Lists:
        """The lists of a column, or of the column of a scalar subquery."""
        if isinstance(term, ScalarSubquery):
            term = outputs(term.plan)[0]
        if isinstance(term, Outer):
            term = term.attribute
        return self.lists.get(term.id, ()) if isinstance(term, Attribute) else ()


def _choice(node: Node, term: Term) -> Choice | None:
    """The list that an aggregate collects of a group, or over a window."""
    if isinstance(node, Aggregate) and isinstance(term, AggregateCall) and _is_collected(term):
        return Choice(node.child, tuple(key.value for key in node.keys), term)
    if isinstance(node, Window) and isinstance(term, WindowCall) and isinstance(term.function, AggregateCall):
        return Choice(node.child, term.partition, term.function, term) if _is_collected(term.function) else None
    return None


def _keeps(term: Term) -> bool:
    if isinstance(term, (Named, Lambda, Frame, Case)):
        return True
    if isinstance(term, Cast):
        return isinstance(term.type, Array)
    if not isinstance(term, Call):
        return False
    return (term.name in _SAME_ELEMENTS or _by_element(term)) and isinstance(term.type, Array)


def _by_element(call: Call) -> bool:
    """Return whether a function looks at each element without its place."""
    last = call.arguments[-1]
    return call.name in _BY_ELEMENT and isinstance(last, Lambda) and len(last.parameters) == 1


def _ignores(term: Term) -> bool:
    if isinstance(term, AggregateCall):
        return term.name == "count" and not term.distinct and term.filter is None
    return isinstance(term, Call) and (
        term.name in _IGNORING or (term.name == "array_sort" and len(term.arguments) == 1)
    )


def _opaque(term: Term) -> ChosenCell:
    """A value that the run chose; the aggregate in it has the same rows behind it."""
    calls = [each for each in walk(term) if isinstance(each, AggregateCall)]
    kind = term.type  # type: ignore[attr-defined]
    return ChosenCell(_WHY, tuple(read_by([term])), kind, bool(calls), calls[0] if len(calls) == 1 else None)
