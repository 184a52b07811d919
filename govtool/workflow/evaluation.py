"""Multiplicities of tuples and values of aggregates, before and after a deletion.

The multiplicity of a tuple is its annotation evaluated in N with every record 1 (bag semantics). The value of an
aggregate is made of its terms ``t ⊗ v``: a value each, as often as the tuple is there. Comparisons count 1 where they
hold. Nothing is guessed: where a value is missing, ``UNDECIDED`` or ``None`` times are the result.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, Inexact, InvalidOperation, localcontext
from typing import Any, NamedTuple

import numpy as np  # noqa: TID253 - graphs are arrays; only what reads them imports this

from govtool.arrays.sets import Array
from govtool.arrays.walks_large import marked
from govtool.workflow import vocabulary as terms
from govtool.workflow.graph import ProvenanceGraph
from govtool.workflow.values import Value, same


class _Undecided:
    def __repr__(self) -> str:
        return "UNDECIDED"


UNDECIDED = _Undecided()
"""Not known, and not to be guessed."""


class AggregateTerm(NamedTuple):
    """A term of an aggregate: a value, and how often it counts."""

    value: Value
    times: int | None


class World:
    """A graph with some nodes removed: multiplicities and values in it.

    Args:
        graph: The graph.
        removed: Per node, whether it is gone: bool[n]; None: nothing is.
        values: New values of nodes, in place of recorded ones.
    """

    def __init__(
        self, graph: ProvenanceGraph, removed: Array | None = None, values: Mapping[int, Value] | None = None
    ) -> None:
        self.graph, self.values = graph, values if values is not None else {}
        self.removed = removed
        self.edges = graph.edges.in_python()
        self._times: dict[int, int | None] = {}

    # multiplicities --------------------------------------------------------------------------------------------------

    def times(self, node: int) -> int | None:
        """The multiplicity of a p-node; None if it hangs on a comparison that cannot be made."""
        pending = [node]
        while pending:  # no recursion: derivations may be long
            at = pending[-1]
            missing = [] if at in self._times else [each for each in self._operands(at) if each not in self._times]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if at not in self._times:
                self._times[at] = self._combined(at)
        return self._times[node]

    def _gone(self, node: int) -> bool:
        return self.removed is not None and bool(self.removed[node])

    def _operands(self, node: int) -> list[int]:
        """The tuples that a multiplicity is made of."""
        if self._gone(node) or not counted(self.graph)[node]:
            return []
        edges, kind = self.edges, self.graph.kind
        return [s for s in (int(edges.source[edge]) for edge in edges.in_edges(node)) if kind[s] == terms.P]

    def _combined(self, node: int) -> int | None:
        if self._gone(node):
            return 0
        if not counted(self.graph)[node]:
            return 1
        label = self.graph.label_of(node)
        if terms.is_guard(label):
            return self._compared(node, label)
        if label == terms.MONUS:
            return self._difference(node)
        operands = [self._times[each] for each in self._operands(node)]
        return _COMBINED.get(label, _added)(operands) if operands else 1

    def _compared(self, node: int, label: str) -> int | None:
        """Return whether a comparison of two values holds."""
        graph, inputs = self.graph, list(self.edges.in_edges(node))
        sides = {int(graph.side[edge]): int(self.edges.source[edge]) for edge in inputs}
        if len(inputs) != 2 or len(sides) != 2 or label not in _COMPARISONS:
            return None
        left, right = (self.value(sides[side]) if graph.kind[sides[side]] else UNDECIDED for side in sorted(sides))
        if left is UNDECIDED or right is UNDECIDED:
            return None
        try:
            return int(left is not None and right is not None and _COMPARISONS[label](_order(left), _order(right)))
        except (TypeError, ArithmeticError):  # ArithmeticError: a decimal that is no number
            return None

    def _difference(self, node: int) -> int | None:
        sides: dict[bool, list[int | None]] = {True: [], False: []}
        for edge in self.edges.in_edges(node):
            operand = self._times.get(self.edges.source[edge], 0)
            sides[bool(self.graph.side[edge] == terms.RIGHT)].append(operand)
        left, right = _added(sides[False]) if sides[False] else 1, _added(sides[True])
        if left == 0:
            return 0
        return None if left is None or right is None else max(0, left - right)

    # values ----------------------------------------------------------------------------------------------------------

    def value(self, node: int) -> Value:
        """The value of a v-node; a cell without one has that of what it was copied from."""
        while True:
            if node in self.values:
                return self.values[node]
            found = self.graph.value_of(node, UNDECIDED)
            is_known = found is not UNDECIDED and found is not None  # null: some files know no value
            if is_known or self.graph.label_of(node) != terms.CELL:
                return found
            edges = self.edges.in_edges(node)
            if len(edges) != 1:
                return UNDECIDED
            node = int(self.edges.source[edges[0]])

    def terms_of(self, node: int) -> list[AggregateTerm]:
        """The terms of an aggregate that are still there."""
        sources = [int(self.edges.source[edge]) for edge in self.edges.in_edges(node)]
        return [self._term(each) for each in sources if not self._gone(each)]

    def _term(self, node: int) -> AggregateTerm:
        graph = self.graph
        if graph.label_of(node) != terms.TENSOR:
            return AggregateTerm(self.value(node) if graph.kind[node] == terms.V else UNDECIDED, 1)
        inputs = [int(self.edges.source[edge]) for edge in self.edges.in_edges(node)]
        values = [each for each in inputs if graph.kind[each] == terms.V]
        times = _multiplied([self.times(each) for each in inputs if graph.kind[each] == terms.P])
        found = self.value(values[0]) if len(values) == 1 else UNDECIDED
        return AggregateTerm(self.value(node) if found is UNDECIDED else found, times)

    def aggregate(self, node: int, like: Value = UNDECIDED) -> Value:
        """The value of an aggregate by its terms.

        Args:
            node: The aggregate.
            like: A value whose type and scale the result has.
        """
        label = self.graph.label_of(node)
        fast = None if self.values else _of_plain_terms(self, node, label)
        if fast is not None:
            return _shaped(fast, like)
        found = [each for each in self.terms_of(node) if each.times != 0 and each.value is not None]
        if any(each.times is None for each in found):
            return UNDECIDED
        if label == "COUNT":
            return _count(found)
        if any(each.value is UNDECIDED for each in found):
            return UNDECIDED
        try:
            return _shaped(_AGGREGATES[label](found), like)
        except (TypeError, ArithmeticError, ValueError):
            return UNDECIDED


def _of_plain_terms(world: World, node: int, label: str) -> Value | None:
    """COUNT, SUM, MIN, MAX of many integers, each once: in numpy; None where that is not the case."""
    graph = world.graph
    edges = np.asarray(graph.edges.backward_edge[int(graph.edges.backward[node]) : int(graph.edges.backward[node + 1])])
    if len(edges) < 64 or label not in _ON_ARRAYS:
        return None
    tensors = np.asarray(graph.edges.source)[edges].astype(np.int64)
    if not graph.labelled(terms.TENSOR)[tensors].all():
        return None
    if world.removed is not None:
        tensors = tensors[~world.removed[tensors]]
    numbers = _plain_integers(graph, tensors)
    return None if numbers is None else _ON_ARRAYS[label](numbers)


def _plain_integers(graph: ProvenanceGraph, tensors: Array) -> Array | None:
    from govtool.arrays.neighbours import entering
    from govtool.workflow.values import INTEGER

    edge, _ = entering(graph.edges, tensors)
    inputs = np.asarray(graph.edges.source)[edge].astype(np.int64)
    is_value = graph.kind[inputs] == terms.V
    cells = inputs[is_value]
    if len(inputs) != 2 * len(tensors) or len(cells) != len(tensors) or counted(graph)[inputs[~is_value]].any():
        return None
    has, places = graph.values.places(cells)
    if not has.all() or not (graph.values.type[places] == INTEGER).all():
        return None
    numbers = graph.values.number[places]
    bound = (1 << 62) // max(1, len(numbers))
    return numbers if not len(numbers) or (numbers.max() < bound and numbers.min() > -bound) else None


_ON_ARRAYS: Mapping[str, Callable[[Array], Value]] = {
    "COUNT": len,
    "SUM": lambda numbers: int(numbers.sum()) if len(numbers) else UNDECIDED,
    "MIN": lambda numbers: int(numbers.min()) if len(numbers) else UNDECIDED,
    "MAX": lambda numbers: int(numbers.max()) if len(numbers) else UNDECIDED,
}


_LONGEST = 4096
"""Bits of a multiplicity. Each product may double them, so that products of products would never end."""


def _multiplied(times: Sequence[int | None]) -> int | None:
    if 0 in times:
        return 0
    product: int | None = 1
    for each in times:
        if product is None or each is None:
            return None
        product = _bounded(product * each)
    return product


def _added(times: Sequence[int | None]) -> int | None:
    return None if None in times else _bounded(sum(each or 0 for each in times))


def _bounded(times: int) -> int | None:
    return times if times.bit_length() <= _LONGEST else None


def _any(times: Sequence[int | None]) -> int | None:
    if any(each for each in times):
        return 1
    return None if None in times else 0


_COMBINED: Mapping[str, Callable[[Sequence[int | None]], int | None]] = {
    terms.TIMES: _multiplied,
    terms.PLUS: _added,
    terms.DELTA: _any,
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(("[=]", "[==]"), operator.eq),
    **dict.fromkeys(("[!=]", "[<>]", "[≠]"), operator.ne),
    "[<]": operator.lt,
    "[>]": operator.gt,
    **dict.fromkeys(("[<=]", "[≤]"), operator.le),
    **dict.fromkeys(("[>=]", "[≥]"), operator.ge),
}


def _count(found: Sequence[AggregateTerm]) -> int:
    return sum(each.times or 0 for each in found)


def _sum(found: Sequence[AggregateTerm]) -> Value:
    if not found:
        return None
    if any(isinstance(each.value, float) for each in found):
        return math.fsum(float(each.value) * (each.times or 0) for each in found)
    with localcontext(_EXACT):
        return sum(_number(each.value) * (each.times or 0) for each in found)


_EXACT = Context(prec=76, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation])
"""Sums of decimals of 38 digits are exact; what is not, as of exponents that no database has, is not computed."""


def _average(found: Sequence[AggregateTerm]) -> Value:
    if not found:
        return None
    count = _count(found)
    total = _sum(found)
    if isinstance(total, Decimal):
        return Context(prec=60).divide(total, Decimal(count))
    return total / count


def _number(value: Value) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise TypeError("not a number")
    return value


def _extreme(pick: Callable[..., Any]) -> Callable[[Sequence[AggregateTerm]], Value]:
    def of(found: Sequence[AggregateTerm]) -> Value:
        return pick((each.value for each in found), key=_order) if found else None

    return of


def _order(value: Value) -> tuple[bool, Value]:
    """Spark's order: NaN is larger than any number; Python compares numbers of all types exactly."""
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


def _collected(found: Sequence[AggregateTerm]) -> Value:
    return [each.value for each in found for _ in range(each.times or 0)]


_AGGREGATES: Mapping[str, Callable[[Sequence[AggregateTerm]], Value]] = {
    "SUM": _sum,
    "AVG": _average,
    "MIN": _extreme(min),
    "MAX": _extreme(max),
    "COLLECT": _collected,
}


def _shaped(value: Value, like: Value) -> Value:
    """A value in the type and the scale of another."""
    if isinstance(like, float) and isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return float(value)
    if isinstance(like, Decimal) and isinstance(value, (int, Decimal)):
        try:
            step = Decimal((0, (1,), int(like.as_tuple().exponent)))
            return Decimal(value).quantize(step, ROUND_HALF_UP, Context(prec=60))
        except (InvalidOperation, ValueError):
            return value
    if isinstance(like, list) and isinstance(value, list):
        return _in_order_of(value, like)
    return value


def _in_order_of(values: list[Value], like: list[Value]) -> list[Value]:
    """Values in the order that they have in another list; those that it lacks come last."""
    left, found = list(values), []
    for each in like:
        place = next((at for at, other in enumerate(left) if same(each, other)), None)
        if place is not None:
            found.append(left.pop(place))
    return found + left


def counted(graph: ProvenanceGraph) -> Array:
    """Return per p-node whether its multiplicity may be other than 1 while it stands: bool[n].

    A record, an invocation and a black box count once, and so do products of these. Sums of several, and what is made
    of them up to a ``δ``, do not; nor does anything behind a difference or a comparison.
    """
    return graph.once("counted", _counted)


def _counted(graph: ProvenanceGraph) -> Array:
    may_be_none = maybe_absent(graph)
    is_p = graph.kind == terms.P
    degree = np.diff(np.asarray(graph.edges.backward).astype(np.int64))
    sums = np.flatnonzero(graph.labelled(terms.PLUS) & (degree > 1) & is_p & ~graph.is_opaque)
    closed = ~is_p | graph.is_opaque | (graph.labelled(terms.DELTA) & ~may_be_none)
    found: Array = marked(graph.edges, sums, closed=closed) | may_be_none
    return found


def maybe_absent(graph: ProvenanceGraph) -> Array:
    """Return per p-node whether it may stand in the graph without being there: bool[n].

    Those are differences, comparisons, and what is made of them: rows that fail a condition on an aggregate stay in
    the graph, as another deletion may let them pass.
    """
    return graph.once("maybe absent", _maybe_absent)


def _maybe_absent(graph: ProvenanceGraph) -> Array:
    guards = is_comparison(graph)
    seeds = np.flatnonzero((graph.labelled(terms.MONUS) & (graph.kind == terms.P)) | guards)
    closed = (graph.kind == terms.V) | (graph.is_opaque & ~guards)
    found: Array = marked(graph.edges, seeds, closed=closed)
    return found


def is_comparison(graph: ProvenanceGraph) -> Array:
    """Return per node whether it is a comparison: bool[n]."""
    operators = graph.type == terms.OPERATOR
    used = np.unique(graph.label[operators])
    numbers = [number for number in used.tolist() if terms.is_guard(graph.labels[number])]
    found: Array = operators & np.isin(graph.label, numbers)
    return found
