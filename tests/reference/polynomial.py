"""Annotations: polynomials over tokens with δ, ⊖ and guards, and the aggregate values that are built on them.

An annotation is a sum of monomials; a monomial is a product of atoms. Atoms are tokens, δ(p), (p ⊖ q) and guards over
values. Two atoms with one text are one atom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import Any

Counts = Mapping[str, int]
"""How often each token is there; a token that is missing is there once."""

ALL: Counts = {}


class Atom:
    """A factor of a monomial, the same as any other with its text."""

    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def count(self, counts: Counts) -> int:
        raise NotImplementedError


@dataclass(eq=False)
class Tok(Atom):
    """One source record."""

    text: str

    def count(self, counts: Counts) -> int:
        return counts.get(self.text, 1)


@dataclass(eq=False)
class Delta(Atom):
    """δ(p): there or not."""

    of: Poly

    @cached_property
    def text(self) -> str:
        return f"δ({self.of})"

    def count(self, counts: Counts) -> int:
        return min(self.of.count(counts), 1)


@dataclass(eq=False)
class Minus(Atom):
    """(p ⊖ q): monus."""

    left: Poly
    right: Poly

    @cached_property
    def text(self) -> str:
        return f"({self.left} ⊖ {self.right})"

    def count(self, counts: Counts) -> int:
        return max(0, self.left.count(counts) - self.right.count(counts))


@dataclass(eq=False)
class Guard(Atom):
    """[v]: a condition that reads values; 1 where it is true."""

    value: Value

    @cached_property
    def text(self) -> str:
        return f"[{self.value}]"

    def count(self, counts: Counts) -> int:
        return int(self.value.get(counts) is True)


@dataclass(eq=False)
class Steered(Atom):
    """A limit's black box: always true as it ran, read by replays only."""

    label: str
    over: tuple[Poly, ...]

    @cached_property
    def text(self) -> str:
        return f"[{self.label}({total(self.over)})]"

    def count(self, counts: Counts) -> int:
        return 1


class Poly:
    """A polynomial: monomials, each a sorted tuple of atoms with repetitions, and their coefficients."""

    def __init__(self, terms: Iterable[tuple[tuple[Atom, ...], int]]) -> None:
        merged: dict[tuple[Atom, ...], int] = {}
        for atoms, times in terms:
            ordered = tuple(sorted(atoms, key=lambda atom: atom.text))
            merged[ordered] = merged.get(ordered, 0) + times
        self.terms = {atoms: times for atoms, times in merged.items() if times}

    @cached_property
    def text(self) -> str:
        def order(item: tuple[tuple[Atom, ...], int]) -> list[str]:
            return [atom.text for atom in item[0]]

        return " + ".join(_monomial(*item) for item in sorted(self.terms.items(), key=order)) or "0"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __add__(self, other: Poly) -> Poly:
        return Poly([*self.terms.items(), *other.terms.items()])

    def __mul__(self, other: Poly) -> Poly:
        return Poly((a + b, m * n) for a, m in self.terms.items() for b, n in other.terms.items())

    def __sub__(self, other: Poly) -> Poly:
        """Monus: 0 ⊖ a = 0, a ⊖ 0 = a; numbers as in N."""
        if not self.terms or not other.terms:
            return self
        if self.is_number and other.is_number:
            return number(max(0, self.terms[()] - other.terms[()]))
        return atom(Minus(self, other))

    @property
    def is_number(self) -> bool:
        return set(self.terms) <= {()}

    def count(self, counts: Counts = ALL) -> int:
        """The value in N, every token there as often as ``counts`` says."""
        return sum(times * _product(a.count(counts) for a in atoms) for atoms, times in self.terms.items())


def _product(numbers: Iterable[int]) -> int:
    product = 1
    for n in numbers:
        product *= n
        if not product:
            return 0
    return product


def _monomial(atoms: tuple[Atom, ...], times: int) -> str:
    powers = [(text, len(list(same))) for text, same in groupby(a.text for a in atoms)]
    factors = [text if k == 1 else f"{text}^{k}" for text, k in powers]
    if times != 1 or not factors:
        factors.insert(0, str(times))
    return "*".join(factors)


def atom(one: Atom) -> Poly:
    return Poly([((one,), 1)])


def token(text: str) -> Poly:
    return atom(Tok(text))


def number(n: int) -> Poly:
    return Poly([((), n)])


ZERO, ONE = number(0), number(1)


def total(polys: Iterable[Poly]) -> Poly:
    return Poly(item for poly in polys for item in poly.terms.items())


def delta(poly: Poly) -> Poly:
    """δ(0) = 0, δ(n) = 1, δ(δ(p)) = δ(p)."""
    if poly.is_number:
        return ONE if poly.terms else ZERO
    only = next(iter(poly.terms.items()))
    if len(poly.terms) == 1 and only[1] == 1 and len(only[0]) == 1 and isinstance(only[0][0], Delta):
        return poly
    return atom(Delta(poly))


class Value:
    """A cell that is computed from rows: it changes when rows go."""

    def get(self, counts: Counts = ALL) -> Any:
        """The value, every token there as often as ``counts`` says."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


Cell = Any
"""A plain value (int, str, list, None, …) or a ``Value``."""


def plain(cell: Cell, counts: Counts = ALL) -> Any:
    return cell.get(counts) if isinstance(cell, Value) else cell


def _times(terms: Iterable[tuple[Poly, Cell]], counts: Counts) -> list[Any]:
    values = [(poly.count(counts), plain(cell, counts)) for poly, cell in terms]
    return [value for n, value in values if value is not None for _ in range(n)]


FOLDS: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT": len,
    "SUM": lambda values: sum(values) if values else None,
    "MIN": lambda values: min(values, default=None),
    "MAX": lambda values: max(values, default=None),
    "AVG": lambda values: Fraction(sum(values), len(values)) if values else None,
    "COLLECT": lambda values: sorted(values, key=lambda value: (str(type(value)), value)),
    "EXISTS": bool,
    "ROW": lambda values: values[0] if len(values) == 1 else None,
}
"""Aggregates over the values that are there; ``ROW`` is a scalar subquery's one row."""


@dataclass(eq=False)
class Agg(Value):
    """AGG(t1⊗v1 + …)."""

    op: str
    terms: tuple[tuple[Poly, Cell], ...]

    def get(self, counts: Counts = ALL) -> Any:
        return FOLDS[self.op](_times(self.terms, counts))

    def __str__(self) -> str:
        return f"{self.op}({' + '.join(sorted(_term(*term) for term in self.terms))})"


def _term(poly: Poly, cell: Cell) -> str:
    text = str(poly)
    return f"{f'({text})' if len(poly.terms) > 1 else text}⊗{_operand(cell)}"


def shown(cell: Cell) -> str:
    """A cell in a canonical string."""
    if cell is None or isinstance(cell, bool):
        return {None: "NULL", True: "true", False: "false"}[cell]
    return str(cell)


def _operand(cell: Cell) -> str:
    text = shown(cell)
    return f"({text})" if isinstance(cell, Fn) and (cell.is_infix or cell.label == "ISNULL") else text


@dataclass(eq=False)
class Fn(Value):
    """A function over cells of which at least one is computed from rows."""

    label: str
    function: Callable[..., Any]
    arguments: tuple[Cell, ...]

    def get(self, counts: Counts = ALL) -> Any:
        return self.function(*(plain(cell, counts) for cell in self.arguments))

    def __str__(self) -> str:
        if self.is_infix:
            return f" {self.label} ".join(map(_operand, self.arguments))
        if self.label == "ISNULL":
            return f"{_operand(self.arguments[0])} IS NULL"
        return f"{self.label}({', '.join(map(shown, self.arguments))})"

    @property
    def is_infix(self) -> bool:
        return len(self.arguments) == 2 and (self.label in ("AND", "OR") or not self.label.isalpha())


@dataclass(eq=False)
class Box(Value):
    """A black box over rows: its value as it ran."""

    label: str
    value: Any
    over: tuple[Poly, ...]
    read: tuple[Cell, ...] = ()
    """The cells that it compares or returns, over whose terms nothing propagates, and which a trace has."""

    def get(self, counts: Counts = ALL) -> Any:
        return self.value

    def __str__(self) -> str:
        return f"{self.label}({total(self.over)})"


@dataclass(frozen=True)
class Trace:
    """The tokens of a result row, and apart from them those that stand against it."""

    rows: frozenset[str]
    against: frozenset[str]

    def __or__(self, other: Trace) -> Trace:
        return Trace(self.rows | other.rows, self.against | other.against)


NOTHING = Trace(frozenset(), frozenset())


def traced(poly: Poly) -> Trace:
    """The trace of an annotation: what is there now, without the alternatives that are not.

    A term that is 0 as things stand is a candidate: a row that something else took off. Right operands of ⊖ stand
    apart, whole, candidates and all, as a replay needs them.
    """
    found = NOTHING
    for atoms, _ in poly.terms.items():
        if _product(a.count(ALL) for a in atoms):
            for one in atoms:
                found |= _traced_atom(one)
    return found


def _traced_atom(one: Atom) -> Trace:
    if isinstance(one, Tok):
        return Trace(frozenset({one.text}), frozenset())
    if isinstance(one, Delta):
        return traced(one.of)
    if isinstance(one, Minus):
        return traced(one.left) | Trace(frozenset(), frozenset(tokens(one.right)))
    if isinstance(one, Guard):
        return traced_cell(one.value)
    return NOTHING


def traced_cell(cell: Cell) -> Trace:
    """The trace of a cell: its terms'."""
    found = NOTHING
    if isinstance(cell, Agg):
        for poly, value in cell.terms:
            if poly.count() and plain(value) is not None:
                found |= traced(poly) | traced_cell(value)
    elif isinstance(cell, Fn):
        for argument in cell.arguments:
            found |= traced_cell(argument)
    elif isinstance(cell, Box):
        for poly in cell.over:
            found |= traced(poly)
        for other in cell.read:
            found |= traced_cell(other)
    return found


def tokens(poly: Poly) -> Iterator[str]:
    """Every token of an annotation, wherever it occurs but in a limit's black box, which only steers."""
    for atoms in poly.terms:
        for one in atoms:
            if isinstance(one, Tok):
                yield one.text
            elif isinstance(one, Delta):
                yield from tokens(one.of)
            elif isinstance(one, Minus):
                yield from tokens(one.left)
                yield from tokens(one.right)
            elif isinstance(one, Guard):
                yield from cell_tokens(one.value)


def cell_tokens(cell: Cell) -> Iterator[str]:
    """Every token of a cell."""
    if isinstance(cell, Agg):
        for poly, value in cell.terms:
            yield from tokens(poly)
            yield from cell_tokens(value)
    elif isinstance(cell, Fn):
        for argument in cell.arguments:
            yield from cell_tokens(argument)
    elif isinstance(cell, Box):
        for poly in cell.over:
            yield from tokens(poly)
