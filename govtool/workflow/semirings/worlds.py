"""Annotations evaluated in many possible worlds at once: each world has some of the tokens.

A node is an array of counts, one a world. Aggregates and conditions are evaluated with numbers; other values do not
fit. Numbers are float64: whole numbers and decimals have to be so small that they are exact, and floats are compared
within 1e-9 of their size.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Case, Cast, Expression, Literal
from govtool.workflow.annotate.casts import keeps_number, scale_of, without_casts
from govtool.workflow.annotate.circuit import (
    NONE,
    ONE,
    ZERO,
    Block,
    Circuit,
    Delta,
    Guard,
    Monus,
    Product,
    Sources,
    Sum,
    Terms,
    ValueFunction,
)
from govtool.workflow.semirings.ancestors import ancestors

Numbers = tuple[Array, Array]
"""float64 a world, and where it is NULL."""
_WHOLE = float(1 << 53)
"""Up to here every whole number is a float64."""


def unfit(what: str) -> UsageError:
    """The error of what cannot be evaluated in possible worlds."""
    return UsageError(
        f"probabilities and shares are not computed over {what}",
        code="usage.semiring",
        hint="whatif delete --mode replay answers for single deletions",
    )


class Worlds:
    """A part of a circuit over the worlds of some tokens.

    Args:
        circuit: The annotations.
        roots: p-nodes.
    """

    def __init__(self, circuit: Circuit, roots: Array) -> None:
        self._circuit = circuit
        self._roots = roots
        self._needed = ancestors(circuit, roots)
        self._parts: list[tuple[int, Block, list[int]]] = []
        tokens: list[int] = []
        for start, block in circuit:
            low, high = np.searchsorted(self._needed, [start, start + block.count])
            own = (self._needed[low:high] - start).tolist()
            if own and isinstance(block, Sources):
                tokens += [start + at for at in own]
            elif own:
                self._parts.append((start, block, own))
        self.tokens = np.array(tokens, np.int64)

    def present(self, worlds: Array) -> Array:
        """Return per world whether one of the roots is there.

        Args:
            worlds: bool[tokens, worlds].

        Raises:
            UsageError: A limit, a window or values that are no numbers are below the roots.
        """
        count = worlds.shape[1]
        known: dict[int, Any] = {ZERO: np.zeros(count, np.int64), ONE: np.ones(count, np.int64)}
        known.update(zip(self.tokens.tolist(), worlds.astype(np.int64), strict=True))
        for start, block, own in self._parts:
            for at in own:
                known[start + at] = _node(block, at, known, count)
        found = np.zeros(count, bool)
        for root in self._roots.tolist():
            found |= known[root] > 0
        return found


def _node(block: Block, at: int, known: dict[int, Any], count: int) -> Any:
    if isinstance(block, (Sum, Delta)):
        _refuse_gate(block.gate)
        offsets = block.inputs.offsets
        total = np.zeros(count, np.int64)
        for node in block.inputs.nodes[offsets[at] : offsets[at + 1]].tolist():
            total = total + known[node]
        return (total > 0).astype(np.int64) if isinstance(block, Delta) else total
    if isinstance(block, Product):
        return known[int(block.left[at])] * known[int(block.right[at])]
    if isinstance(block, Monus):
        return np.maximum(known[int(block.left[at])] - known[int(block.right[at])], 0)
    if isinstance(block, Guard):
        value, null = _function(block.function, at, known, count)
        return ((value != 0) & ~null).astype(np.int64)
    if isinstance(block, ValueFunction):
        return _function(block, at, known, count)
    if isinstance(block, Terms):
        return _aggregate(block, at, known, count)
    raise unfit("limits and window functions")


def _refuse_gate(gate: int) -> None:
    if gate != NONE:
        raise unfit("limits, windows and computed groups")


# ---- values ---------------------------------------------------------------------------------------------------------


def _aggregate(block: Terms, at: int, known: dict[int, Any], count: int) -> Numbers:
    _refuse_gate(block.gate)
    if block.around is not None:
        raise unfit("window functions")
    places = range(int(block.inputs.offsets[at]), int(block.inputs.offsets[at + 1]))
    values: list[Any] = [1.0] * len(places)
    if block.argument is not None:
        (column,) = block.table.read(block.argument)
        values = column.take(block.rows[places.start : places.stop]).to_pylist()
    terms = []
    for place, value in zip(places, values, strict=True):
        times = known[int(block.inputs.nodes[place])]
        cell = NONE if block.cells is None else int(block.cells[place])
        number, null = known[cell] if cell != NONE else _constant(value, count, block.call.name == "count")
        terms.append((np.where(null, 0, times), number))
    value, none = _folded(block.call.name, terms, count)
    return _require_exact(value, block.call.type), none


def _folded(name: str, terms: list[tuple[Array, Array]], count: int) -> Numbers:
    total = sum((times for times, _ in terms), np.zeros(count, np.int64))
    none = total == 0
    if name in ("count", "exists"):
        value = total if name == "count" else total > 0
        return value.astype(float), np.zeros(count, bool)
    if name in ("sum", "avg"):
        sums = sum((times * number for times, number in terms), np.zeros(count))
        return (sums if name == "sum" else sums / np.maximum(total, 1)), none
    if name in ("min", "max", "row"):  # "row" is of a scalar subquery: at most one row, whose value is its maximum
        worst, better = (np.inf, np.minimum) if name == "min" else (-np.inf, np.maximum)
        best = np.full(count, worst)
        for times, number in terms:
            best = better(best, np.where(times > 0, number, worst))
        return np.where(none, 0.0, best), none
    raise unfit(f"the aggregate {name}")


def _constant(value: Any, count: int, is_counted: bool = False) -> Numbers:
    if value is None:
        return np.zeros(count), np.ones(count, bool)
    if is_counted:
        return np.ones(count), np.zeros(count, bool)
    if not isinstance(value, (int, float, Decimal)) or not np.isfinite(float(value)):
        raise unfit("values that are no finite numbers")
    return np.full(count, float(value)), np.zeros(count, bool)


def _function(function: ValueFunction, at: int, known: dict[int, Any], count: int) -> Numbers:
    cells = {number: int(nodes[at]) for number, nodes in function.cells}

    def column(attribute: Attribute) -> Numbers:
        node = cells.get(attribute.id, NONE)
        if node != NONE:
            found: Numbers = known[node]
            return found
        (values,) = function.table.read(attribute)
        return _constant(values[at].as_py(), count)

    return _evaluated(function.expression, column, count)


def _evaluated(term: Expression, column: Any, count: int) -> Numbers:
    if isinstance(term, Attribute):
        found: Numbers = column(term)
        return found
    if isinstance(term, Literal):
        return _constant(term.value, count)
    if isinstance(term, Cast):
        if not keeps_number(term.value.type, term.type):
            raise unfit("casts that change a value")
        return _evaluated(term.value, column, count)
    if isinstance(term, Case):
        return _case(term, column, count)
    if isinstance(term, Call):
        value, null = _call(term, [_evaluated(each, column, count) for each in term.arguments])
        return _require_exact(value, term.type), null
    raise unfit(f"the expression {type(term).__name__}")


def _require_exact(value: Array, kind: t.Type) -> Array:
    """Return numbers that are exact as floats.

    Raises:
        UsageError: They are whole numbers or decimals with more digits than a float64 holds.
    """
    digits = scale_of(kind)
    largest = float(np.abs(value).max(initial=0.0))
    if digits is not None and largest * 10.0**digits > _WHOLE:
        raise unfit("numbers of more than 15 digits")
    return value


def _case(term: Case, column: Any, count: int) -> Numbers:
    other = Literal(None, term.type) if term.otherwise is None else term.otherwise
    value, null = _evaluated(other, column, count)
    for condition, result in reversed(term.branches):
        test, unknown = _evaluated(condition, column, count)
        taken = (test != 0) & ~unknown
        own, own_null = _evaluated(result, column, count)
        value, null = np.where(taken, own, value), np.where(taken, own_null, null)
    return value, null


def _call(call: Call, arguments: list[Numbers]) -> Numbers:
    name, kinds = call.name, [each.type for each in call.arguments]
    if name == "not":
        ((value, null),) = arguments
        return (value == 0).astype(float), null
    if name in ("is null", "is not null"):
        null = arguments[0][1]
        return (null if name == "is null" else ~null).astype(float), np.zeros(len(null), bool)
    if name == "coalesce":
        value, null = arguments[-1]
        for own, own_null in reversed(arguments[:-1]):
            value, null = np.where(own_null, value, own), own_null & null
        return value, null
    if len(arguments) != 2 or name not in (*_ARITHMETIC, *_COMPARISONS, "and", "or"):
        raise unfit(f"conditions with {name}")
    (a, a_null), (b, b_null) = arguments
    if name in ("and", "or"):
        return _logical(name, a, a_null, b, b_null)
    if name in _ARITHMETIC:
        _require_digits(call)
        return _ARITHMETIC[name](a, b), a_null | b_null
    is_same = _same(a, b, kinds)
    if name == "<=>":
        return ((a_null & b_null) | (is_same & ~a_null & ~b_null)).astype(float), np.zeros(len(a), bool)
    return _COMPARISONS[name](a, b, is_same).astype(float), a_null | b_null


def _require_digits(call: Call) -> None:
    """Refuse decimals that are rounded as they are computed."""
    digits, kept = [scale_of(without_casts(each).type) for each in call.arguments], scale_of(call.type)
    if kept is None or None in digits:
        return
    wanted = sum(map(int, digits)) if call.name == "*" else max(map(int, digits))  # type: ignore[arg-type]
    if kept < wanted:
        raise unfit("decimals that are rounded")


def _same(a: Array, b: Array, kinds: list[t.Type]) -> Array:
    """Where two numbers are equal: floats within 1e-9 of their size, others by all of their digits."""
    digits = [scale_of(kind) for kind in kinds]
    if not all(kind in t.FLOATS or scale_of(kind) is not None for kind in kinds):
        raise unfit("values that are no numbers")
    is_float = None in digits
    found: Array = np.isclose(a, b, 1e-9, 0) if is_float else np.abs(a - b) < _half(max(each or 0 for each in digits))
    return found


def _half(digits: int) -> float:
    """Half of the last of some digits after the point."""
    return 0.5 * 10.0**-digits


def _logical(name: str, a: Array, a_null: Array, b: Array, b_null: Array) -> Numbers:
    decides = 0 if name == "and" else 1
    decided = ((a == decides) & ~a_null) | ((b == decides) & ~b_null)
    return np.where(decided, decides, 1 - decides).astype(float), (a_null | b_null) & ~decided


_ARITHMETIC: dict[str, Any] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_COMPARISONS: dict[str, Any] = {
    "=": lambda a, b, same: same,
    "<=>": None,
    "<": lambda a, b, same: (a < b) & ~same,
    "<=": lambda a, b, same: (a < b) | same,
    ">": lambda a, b, same: (a > b) & ~same,
    ">=": lambda a, b, same: (a > b) | same,
}
