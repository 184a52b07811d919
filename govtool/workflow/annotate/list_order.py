"""Functions of collected lists: a list has the order in which its rows came, which a new run need not repeat.

What depends on that order cannot be computed again after a deletion: it is not settled. Lists that are computed count
as lists in any order, unless the function that made them orders them (``sort_array``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np  # noqa: TID253 - circuits are arrays; only what makes them imports this

from govtool.arrays import sets
from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Case, Cast, Expression, Lambda, Variable
from govtool.records.plan.tree import Term, walk
from govtool.records.plan.types import Array, Map, Struct, Type
from govtool.workflow.annotate.circuit import NONE, Circuit, Terms, ValueFunction

IsLoose = Callable[[Attribute], bool]
"""Tells whether a column has lists in any order, at its top or within."""
Bound = Mapping[int, bool]
"""Whether the parameters of the lambdas around have such lists."""

_OF_ELEMENTS = frozenset({"array_contains", "array_max", "array_min", "arrays_overlap", "sort_array", "array_sort"})
"""Functions that give the same whatever the order is, where elements can be compared."""
_COUNTING = frozenset({"size", "array_size", "cardinality", "is null", "is not null", "typeof"})
_SAME_ELEMENTS = frozenset(
    {"array_distinct", "array_remove", "array_compact", "array_union", "array_intersect", "array_except"}
)
"""Functions that compare elements and give some of them, in an order that is not determined either."""
_CARRIED = frozenset(
    {
        "array_append", "array_prepend", "concat", "flatten", "reverse", "shuffle", "coalesce", "nvl", "nvl2", "if",
        "nullif", "named_struct", "array",
    }
)  # fmt: skip
"""Functions that hand lists on, or put them into others."""
_COMMUTATIVE = frozenset({"+", "*", "and", "or", "greatest", "least", "&", "|", "^"})


class _OrderMatters(Exception):
    """A value depends on the order of a list."""


def order_matters(value: Expression, is_loose: IsLoose) -> bool:
    """Return whether a value depends on the order of lists that have none."""
    try:
        _loose(value, is_loose, {})
    except _OrderMatters:
        return True
    return False


def is_ordered(value: Expression, is_loose: IsLoose) -> bool:
    """Return whether the lists of a value are in the same order in every run."""
    try:
        return not _loose(value, is_loose, {})
    except _OrderMatters:
        return False


def has_lists(kind: Type) -> bool:
    """Return whether values of a type are lists, or hold some."""
    if isinstance(kind, Array):
        return True
    if isinstance(kind, Struct):
        return any(has_lists(field.type) for field in kind.fields)
    return isinstance(kind, Map)


def has_several(circuit: Circuit, nodes: sets.Array) -> sets.Array:
    """Which values have, or are made of, a list that may have several elements: bool; ``NONE`` has none."""
    found = np.zeros(len(nodes), bool)
    known = np.flatnonzero(nodes != NONE)
    ends = np.array([*circuit.starts[1:], circuit.size])
    numbers = np.searchsorted(ends, nodes[known], "right")
    for number in np.unique(numbers).tolist():
        own = known[numbers == number]
        block, places = circuit.blocks[number], nodes[own] - circuit.starts[number]
        if isinstance(block, Terms):
            found[own] = _of_terms(circuit, block, places)
        elif isinstance(block, ValueFunction):
            for _, cells in block.cells:
                found[own] |= has_several(circuit, cells[places])
        else:
            found[own] = True
    return found


def _of_terms(circuit: Circuit, block: Terms, places: sets.Array) -> sets.Array:
    if not has_lists(block.call.type):
        return np.zeros(len(places), bool)
    if block.around is not None:
        return np.ones(len(places), bool)
    found: sets.Array = np.diff(block.inputs.offsets)[places] > 1
    if block.cells is not None and block.argument is not None and has_lists(block.argument.type):
        within = block.inputs.sums(has_several(circuit, block.cells)) > 0
        found |= within[places]
    return found


def _loose(term: Term, is_loose: IsLoose, bound: Bound) -> bool:
    """Return whether a value has lists in any order.

    Raises:
        _OrderMatters: It, or a part of it, depends on such an order.
    """
    if isinstance(term, Variable):
        return bound.get(term.id, False)
    if isinstance(term, Attribute):
        return is_loose(term)
    if not _reads_loose(term, is_loose, bound):
        return False
    if isinstance(term, AggregateCall):
        return _of_aggregate(term, is_loose, bound)
    if isinstance(term, Case):
        return _of_case(term, is_loose, bound)
    if isinstance(term, Cast):
        return _handed_on(_loose(term.value, is_loose, bound), isinstance(term.type, Array))
    if isinstance(term, Call):
        return _of_call(term, is_loose, bound)
    parts = [_loose(part, is_loose, bound) for part in term.terms()]  # each, as one may depend on an order
    return _handed_on(any(parts), False)


def _reads_loose(term: Term, is_loose: IsLoose, bound: Bound) -> bool:
    return any(
        (isinstance(each, Attribute) and is_loose(each)) or (isinstance(each, Variable) and bound.get(each.id, False))
        for each in walk(term)
    )


def _handed_on(is_loose: bool, may_be: bool) -> bool:
    if is_loose and not may_be:
        raise _OrderMatters
    return is_loose


def _of_aggregate(call: AggregateCall, is_loose: IsLoose, bound: Bound) -> bool:
    parts = [_loose(part, is_loose, bound) for part in call.terms()]
    is_known = call.name in ("count", "collect_list") and not call.distinct
    return _handed_on(any(parts), is_known) and call.name == "collect_list"


def _of_case(term: Case, is_loose: IsLoose, bound: Bound) -> bool:
    for condition, _ in term.branches:
        _handed_on(_loose(condition, is_loose, bound), False)
    results = [result for _, result in term.branches] + ([] if term.otherwise is None else [term.otherwise])
    parts = [_loose(result, is_loose, bound) for result in results]
    return any(parts)


def _of_call(call: Call, is_loose: IsLoose, bound: Bound) -> bool:
    last = call.arguments[-1]
    if isinstance(last, Lambda) or any(isinstance(each, Lambda) for each in call.arguments):
        return _of_lambda(call, is_loose, bound)
    parts = [_loose(each, is_loose, bound) for each in call.arguments]
    if not any(parts):
        return False
    if call.name in _COUNTING:
        return False
    if call.name in _OF_ELEMENTS:
        return _handed_on(_elements_loose(call.arguments, parts), False)
    if call.name in _SAME_ELEMENTS:
        _handed_on(_elements_loose(call.arguments, parts), False)
        return True
    if call.name in ("get field", "get fields"):  # of a row, and of each row of a list
        return has_lists(call.type)
    return _handed_on(True, call.name in _CARRIED and has_lists(call.type))


def _elements_loose(arguments: Sequence[Expression], parts: Sequence[bool]) -> bool:
    """Return whether elements that are compared, or values that are compared with them, have lists in any order."""
    return any(
        part and (not isinstance(each.type, Array) or has_lists(each.type.element))
        for each, part in zip(arguments, parts, strict=True)
    )


def _of_lambda(call: Call, is_loose: IsLoose, bound: Bound) -> bool:
    first, *others = call.arguments
    whole = _loose(first, is_loose, bound)
    inner = whole and isinstance(first.type, Array) and has_lists(first.type.element)
    body = others[0] if len(others) == 1 else None
    if call.name in ("filter", "transform", "exists", "forall") and isinstance(body, Lambda):
        if whole and len(body.parameters) != 1:  # the place of an element
            raise _OrderMatters
        made = _loose(body.body, is_loose, {**bound, **dict.fromkeys((each.id for each in body.parameters), inner)})
        if call.name == "transform":
            return whole or made
        return _handed_on(made, False) or (whole and call.name == "filter")
    if call.name == "aggregate" and isinstance(others[1], Lambda):
        return _of_fold(call, is_loose, bound, whole, inner)
    parts = [_loose(each.body if isinstance(each, Lambda) else each, is_loose, bound) for each in others]
    return _handed_on(whole or any(parts), False)


def _of_fold(call: Call, is_loose: IsLoose, bound: Bound, whole: bool, inner: bool) -> bool:
    """``aggregate(list, start, (total, element) -> …)``: in any order, if elements come in by what is commutative."""
    _, start, merge, *finish = call.arguments
    assert isinstance(merge, Lambda)
    total, element = merge.parameters
    if whole and not _is_commutative(merge.body, total.id):
        raise _OrderMatters
    parts = [start, merge.body, *(each.body if isinstance(each, Lambda) else each for each in finish)]
    made = [_loose(part, is_loose, {**bound, total.id: False, element.id: inner}) for part in parts]
    return _handed_on(any(made), False)


def _is_commutative(body: Term, total: int) -> bool:
    """Return whether a body is ``total + f(element)``, or alike."""
    while isinstance(body, Cast):
        body = body.value
    if not isinstance(body, Call) or body.name not in _COMMUTATIVE:
        return False
    own = [any(isinstance(each, Variable) and each.id == total for each in walk(part)) for part in body.arguments]
    if own.count(True) != 1:
        return False
    part: Term = body.arguments[own.index(True)]
    while isinstance(part, Cast):
        part = part.value
    return (isinstance(part, Variable) and part.id == total) or (
        isinstance(part, Call) and part.name == body.name and _is_commutative(part, total)
    )
