"""Multiplicities of tuples and values of aggregates, before and after a deletion.

The multiplicity of a tuple is its annotation evaluated in N with every record 1 (bag semantics). The value of an
aggregate is made of its terms ``t ⊗ v``: a value each, as often as the tuple is there. Nothing is guessed: where a
value is missing, ``UNDECIDED`` is the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction
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


class Term(NamedTuple):
    """A term of an aggregate: a value, and how often it counts."""

    value: Value
    times: int


class World:
    """A graph with some nodes removed: multiplicities and values in it.

    Args:
        graph: The graph.
        removed: Per node, whether it is gone: bool[n]; None: nothing is.
        values: New values of nodes, in place of recorded ones.
    """

    def __init__(self, graph: ProvenanceGraph, removed: Array | None = None, values: Mapping[int, Value] | None = None):
        self.graph, self.values = graph, values if values is not None else {}
        self.removed = removed
        self.edges = graph.edges.in_python()
        self._times: dict[int, int] = {}

    # multiplicities --------------------------------------------------------------------------------------------------

    def times(self, node: int) -> int:
        """The multiplicity of a p-node."""
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
        if self._gone(node) or not self.graph.is_counted[node]:
            return []
        edges, kind = self.edges, self.graph.kind
        return [s for s in (int(edges.source[edge]) for edge in edges.in_edges(node)) if kind[s] == terms.P]

    def _combined(self, node: int) -> int:
        if self._gone(node):
            return 0
        if not self.graph.is_counted[node]:
            return 1
        label = self.graph.label_of(node)
        if label == terms.MONUS:
            return self._difference(node)
        operands = [self._times[each] for each in self._operands(node)]
        if not operands:
            return 1
        if label == terms.TIMES:
            return math.prod(operands)
        return int(sum(operands) > 0) if label == terms.DELTA else sum(operands)

    def _difference(self, node: int) -> int:
        edges, left, right, has_left = self.edges, 0, 0, False
        for edge in edges.in_edges(node):
            times = self._times.get(int(edges.source[edge]), 0)
            if self.graph.side[edge] == terms.RIGHT:
                right += times
            else:
                left, has_left = left + times, True
        return max(0, (left if has_left else 1) - right)

    # values ----------------------------------------------------------------------------------------------------------

    def value(self, node: int) -> Value:
        """The value of a v-node; a cell without one has that of what it was copied from."""
        while True:
            if node in self.values:
                return self.values[node]
            found = self.graph.value_of(node, UNDECIDED)
            if found is not UNDECIDED or self.graph.label_of(node) != terms.CELL:
                return found
            edges = self.edges.in_edges(node)
            if len(edges) != 1:
                return UNDECIDED
            node = int(self.edges.source[edges[0]])

    def terms_of(self, node: int) -> list[Term]:
        """The terms of an aggregate that are still there."""
        sources = [int(self.edges.source[edge]) for edge in self.edges.in_edges(node)]
        return [self._term(each) for each in sources if not self._gone(each)]

    def _term(self, node: int) -> Term:
        graph = self.graph
        if graph.label_of(node) != terms.TENSOR:
            return Term(self.value(node) if graph.kind[node] == terms.V else UNDECIDED, 1)
        inputs = [int(self.edges.source[edge]) for edge in self.edges.in_edges(node)]
        values = [each for each in inputs if graph.kind[each] == terms.V]
        times = math.prod(self.times(each) for each in inputs if graph.kind[each] == terms.P)
        found = self.value(values[0]) if len(values) == 1 else UNDECIDED
        return Term(self.value(node) if found is UNDECIDED else found, times)

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
        found = [each for each in self.terms_of(node) if each.times and each.value is not None]
        if label == "COUNT":
            return sum(each.times for each in found)
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
    if len(inputs) != 2 * len(tensors) or len(cells) != len(tensors) or graph.is_counted[inputs[~is_value]].any():
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


def _sum(found: Sequence[Term]) -> Value:
    if not found:
        return None
    if any(isinstance(each.value, float) for each in found):
        return math.fsum(float(each.value) * each.times for each in found)
    return sum(_number(each.value) * each.times for each in found)


def _average(found: Sequence[Term]) -> Value:
    if not found:
        return None
    count = sum(each.times for each in found)
    total = _sum(found)
    if isinstance(total, Decimal):
        return Context(prec=60).divide(total, Decimal(count))
    return total / count


def _number(value: Value) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise TypeError("not a number")
    return value


def _extreme(pick: Callable[..., Any]) -> Callable[[Sequence[Term]], Value]:
    def of(found: Sequence[Term]) -> Value:
        return pick((each.value for each in found), key=_order) if found else None

    return of


def _order(value: Value) -> tuple[bool, Value]:
    """Spark's order: NaN is larger than any number; numbers of all types compare exactly."""
    if isinstance(value, float) and math.isnan(value):
        return (True, 0)
    if isinstance(value, float) and math.isinf(value):
        return (False, value)
    return (False, Fraction(value) if isinstance(value, (float, Decimal)) else value)


def _collected(found: Sequence[Term]) -> Value:
    return [each.value for each in found for _ in range(each.times)]


_AGGREGATES: Mapping[str, Callable[[Sequence[Term]], Value]] = {
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
    may_be_none = maybe_absent(graph)
    is_p = graph.kind == terms.P
    degree = np.diff(np.asarray(graph.edges.backward).astype(np.int64))
    sums = np.flatnonzero(graph.labelled(terms.PLUS) & (degree > 1) & is_p & ~graph.is_opaque)
    closed = ~is_p | graph.is_opaque | (graph.labelled(terms.DELTA) & ~may_be_none)
    found: Array = marked(graph.edges, sums, closed=closed) | may_be_none
    return found


def maybe_absent(graph: ProvenanceGraph) -> Array:
    """Return per p-node whether it may stand in the graph without being there: behind a difference: bool[n]."""
    seeds = np.flatnonzero(graph.labelled(terms.MONUS) & (graph.kind == terms.P))
    found: Array = marked(graph.edges, seeds, closed=(graph.kind == terms.V) | graph.is_opaque)
    return found
