"""Annotations as polynomials over tokens, in their canonical form.

A polynomial is a sum of monomials: sorted atoms, with repetitions, and a coefficient. Atoms are tokens, ``δ(p)``,
``(p ⊖ q)`` and ``[condition]``. Only what the rows at hand are made of is written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.records.plan.expressions import Attribute
from govtool.workflow.annotate.circuit import (
    NONE,
    ONE,
    ZERO,
    Block,
    Box,
    Circuit,
    Delta,
    Guard,
    LimitGuard,
    Monus,
    Product,
    Sources,
    Sum,
    Terms,
    ValueFunction,
)
from govtool.workflow.semirings.ancestors import ancestors
from govtool.workflow.semirings.capped import capped
from govtool.workflow.semirings.long_sums import LongSums
from govtool.workflow.semirings.texts import aggregate_name, expression_text, folded, operand, plain_type, value_text
from govtool.workflow.semirings.tokens import Tokens

MAX_MONOMIALS = 5_000_000
"""The most monomials that one polynomial may have."""

Polynomial = Mapping[tuple[str, ...], int]
"""Coefficients by monomial."""


class _DeltaAtom(str):
    """The text of ``δ(p)``."""

    __slots__ = ()


_ZERO: Polynomial = {}
_ONE: Polynomial = {(): 1}


def text_of(polynomial: Polynomial) -> str:
    """The canonical string."""
    return " + ".join(_monomial(atoms, polynomial[atoms]) for atoms in sorted(polynomial)) or "0"


def _monomial(atoms: tuple[str, ...], times: int) -> str:
    if len(atoms) == 1 and times == 1:
        return atoms[0]
    powers = [(text, len(list(same))) for text, same in groupby(atoms)]
    factors = [text if k == 1 else f"{text}^{k}" for text, k in powers]
    if times != 1 or not factors:
        factors.insert(0, str(times))
    return "*".join(factors)


def plus(polynomials: Iterable[Polynomial]) -> Polynomial:
    """The sum."""
    total: dict[tuple[str, ...], int] = {}
    for each in polynomials:
        for atoms, times in each.items():
            total[atoms] = total.get(atoms, 0) + times
        _bounded(len(total))
    return total


def times(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product, multiplied out."""
    if not left or not right:
        return _ZERO
    if right == _ONE:
        return left
    if left == _ONE:
        return right
    _bounded(len(left) * len(right))
    product: dict[tuple[str, ...], int] = {}
    for a, m in left.items():
        for b, n in right.items():
            atoms = tuple(sorted(a + b))
            product[atoms] = product.get(atoms, 0) + m * n
    return product


def minus(left: Polynomial, right: Polynomial) -> Polynomial:
    """``left ⊖ right``: ``0 ⊖ a = 0``, ``a ⊖ 0 = a``, numbers as in N."""
    if not left or not right:
        return left
    if set(left) == set(right) == {()}:
        rest = left[()] - right[()]
        return {(): rest} if rest > 0 else _ZERO
    return {(f"({text_of(left)} ⊖ {text_of(right)})",): 1}


def delta(polynomial: Polynomial) -> Polynomial:
    """``δ(p)``: ``δ(0) = 0``, ``δ(n) = 1``, ``δ(δ(p)) = δ(p)``."""
    if set(polynomial) <= {()}:
        return _ONE if polynomial else _ZERO
    if len(polynomial) == 1:
        (atoms, count), *_ = polynomial.items()
        if count == 1 and len(atoms) == 1 and isinstance(atoms[0], _DeltaAtom):
            return polynomial
    return {(_DeltaAtom(f"δ({text_of(polynomial)})"),): 1}


def _bounded(size: int) -> None:
    if size > MAX_MONOMIALS:
        raise UsageError(
            f"a polynomial of more than {MAX_MONOMIALS:,} monomials",
            code="usage.why-size",
            hint="narrow the query down, or request which or count",
        )


class Polynomials:
    """The polynomials and value terms of the nodes that some rows are made of.

    Args:
        circuit: The annotations.
        tokens: Names of the sources.
        roots: p- and v-nodes.
        erase_delta: Leave ``δ`` out (``how``).
        most: Write out so many parts of a sum or of an aggregate, and how many more there are.
        long: Makes long sums of tokens by columns; None: all are made here.
    """

    def __init__(
        self,
        circuit: Circuit,
        tokens: Tokens,
        roots: Array,
        *,
        erase_delta: bool = False,
        most: int | None = None,
        long: LongSums | None = None,
    ) -> None:
        self._lost: Mapping[int, Array] = {}
        if most is not None:
            circuit, self._lost = capped(circuit, most)
        self._tokens = tokens
        self._erased = erase_delta
        self._polynomials: dict[int, Polynomial] = {ZERO: _ZERO, ONE: _ONE}
        self._texts: dict[int, str] = {}
        self._long = long
        stops = None if long is None or erase_delta else long.long_nodes()
        needed = ancestors(circuit, roots, stops)
        self._stops = frozenset(() if stops is None else stops.tolist())
        for start, block in circuit:
            low, high = np.searchsorted(needed, [start, start + block.count])
            if low < high:
                self._block(start, block, needed[low:high] - start)

    def of(self, node: int) -> Polynomial:
        """The polynomial of a p-node."""
        return self._polynomials[node]

    def text(self, node: int) -> str:
        """The canonical string of a p- or v-node."""
        return self._texts[node] if node in self._texts else text_of(self._polynomials[node])

    # ---- blocks ----------------------------------------------------------------------------------------------------

    def _block(self, start: int, block: Block, own: Array) -> None:
        if self._stops and isinstance(block, (Delta, Terms)):
            own = np.array([at for at in own.tolist() if not self._made_long(block, start + at)], np.int64)
        if isinstance(block, Sources):
            names = self._tokens.names(own + start)
            self._polynomials.update((start + at, {(name,): 1}) for at, name in zip(own.tolist(), names, strict=True))
        elif isinstance(block, (Terms, ValueFunction, Box)):
            self._values(start, block, own)
        elif isinstance(block, Guard):
            conditions = self._functions(block.function, own)
            made = zip(own.tolist(), conditions, strict=True)
            self._polynomials.update((start + at, {(f"[{text}]",): 1}) for at, text in made)
        else:
            for at in own.tolist():
                self._polynomials[start + at] = self._polynomial(block, at, self._more(start, at))

    def _made_long(self, block: Delta | Terms, node: int) -> bool:
        """Take the text of a long node, if it is one."""
        made = self._long.of(node) if self._long is not None and node in self._stops else None
        if made is None:
            return False
        if isinstance(block, Terms):
            self._texts[node] = str(made)
        else:
            self._polynomials[node] = {(_DeltaAtom(str(made)),): 1}
        return True

    def _more(self, start: int, at: int) -> str:
        """What was cut off of a node."""
        lost = int(self._lost[start][at]) if start in self._lost else 0
        return f"… {lost:,} more" if lost else ""

    def _polynomial(self, block: Block, at: int, more: str) -> Polynomial:
        known = self._polynomials
        if isinstance(block, Product):
            return times(known[int(block.left[at])], known[int(block.right[at])])
        if isinstance(block, Monus):
            return minus(known[int(block.left[at])], known[int(block.right[at])])
        if isinstance(block, LimitGuard):
            return {(f"[{block.label}({text_of(known[int(block.over[at])])})]",): 1}
        assert isinstance(block, (Sum, Delta))
        offsets = block.inputs.offsets
        nodes = block.inputs.nodes[offsets[at] : offsets[at + 1]].tolist()
        left_out: list[Polynomial] = [{(more,): 1}] if more else []
        total = plus([*(known[node] for node in nodes), *left_out])
        return delta(total) if isinstance(block, Delta) and not self._erased else total

    def _values(self, start: int, block: Terms | ValueFunction | Box, own: Array) -> None:
        if isinstance(block, ValueFunction):
            made = self._functions(block, own)
        elif isinstance(block, Box):
            made = [f"{block.label}({text_of(self.of(int(block.over[at])))})" for at in own.tolist()]
        else:
            made = self._aggregates(block, own, [self._more(start, at) for at in own.tolist()])
        self._texts.update((start + at, text) for at, text in zip(own.tolist(), made, strict=True))

    def _functions(self, function: ValueFunction, own: Array) -> list[str]:
        """The texts of a function; what reads nothing computed in a row stands there as its value."""
        found = np.empty(len(own), object)
        for computed, places in _by_computed_cells(function, own):
            found[places] = self._function_texts(function, computed, own[places])
        return list(found)

    def _function_texts(self, function: ValueFunction, computed: frozenset[int], own: Array) -> list[str]:
        expression, plain = folded(function.expression, computed)
        standing = {number: Attribute(number, "", plain_type(function.expression, number)) for number in computed}
        columns = {**plain, **standing}
        values = {
            number: column.take(own).to_pylist()
            for number, column in zip(columns, function.table.read(*columns.values()), strict=True)
        }
        cells = {number: nodes for number, nodes in function.cells if number in computed}
        found = []
        for place, at in enumerate(own.tolist()):
            texts = {number: value_text(column[place]) for number, column in values.items()}
            texts.update((n, self.text(int(nodes[at]))) for n, nodes in cells.items() if int(nodes[at]) != NONE)
            found.append(expression_text(expression, texts))
        return found

    def _aggregates(self, block: Terms, own: Array, more: list[str]) -> list[str]:
        values: Any = None
        places = block.inputs.expanded(own)[1]
        if block.argument is not None:
            (column,) = block.table.read(block.argument)
            values = column.take(block.rows[places]).to_pylist()
        terms = [
            _term(self.of(int(node)), self._cell(block, place, None if values is None else values[n]))
            for n, (place, node) in enumerate(zip(places.tolist(), block.inputs.nodes[places], strict=True))
        ]
        offsets, found, at = block.inputs.offsets, [], 0
        for node, rest in zip(own.tolist(), more, strict=True):
            size = int(offsets[node + 1] - offsets[node])
            parts = sorted(terms[at : at + size]) + ([rest] if rest else [])
            found.append(f"{aggregate_name(block.call)}({' + '.join(parts)})")
            at += size
        return found

    def _cell(self, block: Terms, place: int, value: Any) -> str:
        node = NONE if block.cells is None else int(block.cells[place])
        if node != NONE:
            return operand(self.text(node))
        return "1" if block.argument is None else value_text(value)


def _term(polynomial: Polynomial, value: str) -> str:
    text = text_of(polynomial)
    return f"({text})⊗{value}" if len(polynomial) > 1 else f"{text}⊗{value}"


def _by_computed_cells(function: ValueFunction, own: Array) -> Iterator[tuple[frozenset[int], Array]]:
    """Places of rows by the cells that are computed in them: in the padded row of an outer join, those of one side.

    A function of which no cell is computed in a row is written as it is.
    """
    numbers = [number for number, _ in function.cells]
    if not numbers:
        yield frozenset(), np.arange(len(own))
        return
    there = np.array([nodes[own] != NONE for _, nodes in function.cells], bool).reshape(len(numbers), len(own))
    patterns, which = np.unique(there, axis=1, return_inverse=True)
    for at, pattern in enumerate(patterns.T):
        computed = frozenset(number for number, has in zip(numbers, pattern, strict=True) if has)
        yield computed or frozenset(numbers), np.flatnonzero(which.reshape(-1) == at)
