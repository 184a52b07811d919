"""``why``: the rows of an annotated query with their annotations in the semirings that are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.long_text import LongList, LongText
from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.workflow.annotate.circuit import NONE, Box, Gate, LimitGuard, Terms
from govtool.workflow.annotate.query import AnnotatedQuery
from govtool.workflow.semirings.cost_trust import COST, TRUST, OrderedSemiring, evaluate
from govtool.workflow.semirings.counts import standing_counts
from govtool.workflow.semirings.lineage import lineage
from govtool.workflow.semirings.long_sums import LONG, LongSums
from govtool.workflow.semirings.polynomial import Polynomials, plus, text_of
from govtool.workflow.semirings.positive import obstacles, supported
from govtool.workflow.semirings.tokens import Tokens
from govtool.workflow.semirings.unevaluated import unevaluated
from govtool.workflow.semirings.witnesses import minimal, united, witnesses

_WORDS = {
    "⊖": "a difference (⊖)",
    "padding": "the lack of a partner in an outer join (⊖)",
    "guard": "a condition on a computed value",
    "limit": "a limit",
    "opaque": "a module whose inside is not known",
}


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row of the result: rows of equal plain values are one.

    Attributes:
        values: Its cells.
        members: The rows of the query's table that it stands for.
        multiplicity: How often it is there; 0: a candidate, there only after a deletion.
    """

    values: tuple[Any, ...]
    members: tuple[int, ...]
    multiplicity: int


@dataclass
class QueryProvenance:
    """The annotations of a query's rows, evaluated where and when they are wanted.

    Attributes:
        query: The annotated query.
        tokens: Names of its records.
        long_from: Parts from which sums are made by columns and written piece by piece.
    """

    query: AnnotatedQuery
    tokens: Tokens
    long_from: int = LONG

    @cached_property
    def counts(self) -> Array:
        """The count of every p-node as things stand."""
        return standing_counts(self.query.circuit)

    @cached_property
    def annotations(self) -> Array:
        """The p-node of every row."""
        return self.query.annotations()

    @cached_property
    def cells(self) -> dict[int, Array]:
        """The v-nodes of computed columns."""
        return self.query.cells()

    @cached_property
    def _long(self) -> LongSums:
        return LongSums(self.query.circuit, self.tokens, self.long_from)

    @cached_property
    def support(self) -> Array:
        """Per p-node whether it can be other than 0."""
        return supported(self.query.circuit)

    def is_source(self, nodes: Array) -> Array:
        """Which of some nodes are records: bool."""
        found = np.zeros(len(nodes), bool)
        for name, start in self.tokens.starts.items():
            found |= (nodes >= start) & (nodes < start + len(self.tokens.labels[name]))
        return found

    @property
    def gains_possible(self) -> bool:
        """True if a deletion may bring rows that are not among the candidates."""
        return bool(self._unevaluated.any()) or any(
            isinstance(block, (Gate, LimitGuard, Box)) or _is_framed(block) for _, block in self.query.circuit
        )

    @cached_property
    def rows(self) -> list[ResultRow]:
        """The rows, and candidates that can be there at all."""
        columns = [column.to_pylist() for column in self.query.table.read(*self.query.columns)]
        values = list(zip(*columns, strict=True)) if columns else [()] * self.query.table.count
        computed = np.zeros(len(values), bool)
        for nodes in self.cells.values():
            computed |= nodes != NONE
        times, possible = self.query.times(), self.support[self.annotations]
        found: dict[Any, list[int]] = {}
        for at in np.flatnonzero(possible & ~self._unevaluated).tolist():
            key = (at,) if computed[at] else (None, hashable(values[at]))
            found.setdefault(key, []).append(at)
        return [ResultRow(values[own[0]], tuple(own), int(times[own].sum())) for own in found.values()]

    @cached_property
    def _unevaluated(self) -> Array:
        """Which rows are candidates with a value that is not known, as its function may fail: bool."""
        marks = unevaluated(self.query.circuit)
        found = np.zeros(self.query.table.count, bool)
        if marks is not None:
            for nodes in self.cells.values():
                found |= (nodes != NONE) & marks[nodes]
            found &= self.query.times() == 0
        return found

    def standing_rows(self) -> list[tuple[Any, ...]]:
        """The rows that are there, each as often as it is."""
        columns = [column.to_pylist() for column in self.query.table.read(*self.query.columns)]
        values = list(zip(*columns, strict=True)) if columns else [()] * self.query.table.count
        return [row for row, times in zip(values, self.query.times().tolist(), strict=True) for _ in range(times)]

    # ---- semirings -------------------------------------------------------------------------------------------------

    def polynomials(
        self, rows: Sequence[ResultRow], *, erase_delta: bool = False, most: int | None = None
    ) -> list[str]:
        """The canonical strings of some rows; with ``most``, so many parts of a sum."""
        made = self._polynomials(self._members(rows), erase_delta, most)
        return [text_of(plus(made.of(node) for node in self._nodes(row))) for row in rows]

    def whole_polynomials(self, rows: Sequence[ResultRow], *, erase_delta: bool = False) -> list[str | LongText]:
        """The canonical strings of some rows; long ones are made when they are written."""
        long = [self._long_polynomial(row, erase_delta) for row in rows]
        rest = iter(
            self.polynomials([r for r, one in zip(rows, long, strict=True) if one is None], erase_delta=erase_delta)
        )
        return [next(rest) if one is None else one for one in long]

    def _long_polynomial(self, row: ResultRow, erase_delta: bool) -> LongText | None:
        nodes = self.nodes(row)
        if len(nodes) == 1:
            return self._long.of(int(nodes[0]), erase_delta=erase_delta)
        return self._long.sum_of(nodes)

    def aggregates(self, rows: Sequence[ResultRow], *, most: int | None = None) -> list[dict[str, str]]:
        """For each row the terms of its computed cells, by the column's name."""
        members = self._members(rows)
        roots = [nodes[members] for nodes in self.cells.values()]
        made = self._polynomials(np.empty(0, np.int64), False, most, roots)
        names = {column.id: column.name for column in self.query.columns}
        found = []
        for row in rows:
            own = {names[number]: int(nodes[row.members[0]]) for number, nodes in self.cells.items()}
            found.append({name: made.text(node) for name, node in own.items() if node != NONE})
        return found

    def whole_aggregates(self, rows: Sequence[ResultRow]) -> list[dict[str, str | LongText]]:
        """For each row the terms of its computed cells; long ones are made when they are written."""
        names = {column.id: column.name for column in self.query.columns}
        own = [
            {
                names[number]: int(nodes[row.members[0]])
                for number, nodes in self.cells.items()
                if nodes[row.members[0]] != NONE
            }
            for row in rows
        ]
        long = {node: self._long.of(node) for node in {node for cells in own for node in cells.values()}}
        rest = np.array([node for node, text in long.items() if text is None], np.int64)
        made = self._polynomials(np.empty(0, np.int64), False, None, [rest])
        return [{name: long[node] or made.text(node) for name, node in cells.items()} for cells in own]

    def which(self, rows: Sequence[ResultRow]) -> list[list[str] | LongList]:
        """The tokens behind each row as things stand; long lists are made when they are written."""
        members = self._members(rows)
        owners = np.repeat(np.arange(len(rows)), [len(row.members) for row in rows])
        there = self.counts[self.annotations[members]] > 0
        owners, members = owners[there], members[there]
        roots = [self.annotations[members], *(nodes[members] for nodes in self.cells.values())]
        of, nodes = lineage(self.query.circuit, self.counts, np.tile(owners, len(roots)), np.concatenate(roots))
        bounds = np.searchsorted(of, np.arange(len(rows) + 1))
        return [self.tokens.listed(nodes[bounds[at] : bounds[at + 1]]) for at in range(len(rows))]

    def why(self, rows: Sequence[ResultRow], *, is_minimal: bool = False) -> list[list[list[str]]]:
        """The witnesses of each row."""
        known = witnesses(self.query.circuit, self.annotations[self._members(rows)])
        found = []
        for row in rows:
            sets = united(known[node] for node in self._nodes(row))
            chosen = minimal(sets) if is_minimal else sets
            found.append([self.tokens.names(np.array(sorted(each), np.int64)) for each in chosen])
        return found

    def ordered(self, rows: Sequence[ResultRow], semiring: OrderedSemiring, values: Array) -> list[float]:
        """The cost or the trust of each row."""
        made = evaluate(self.query.circuit, semiring, values)
        return [float(semiring.best.reduce(made[self._nodes(row)])) for row in rows]

    def cost(self, rows: Sequence[ResultRow], values: Array) -> list[float]:
        """The least cost of each row."""
        return self.ordered(rows, COST, values)

    def trust(self, rows: Sequence[ResultRow], values: Array) -> list[float]:
        """The greatest trust in each row."""
        return self.ordered(rows, TRUST, values)

    # ---- where they fit --------------------------------------------------------------------------------------------

    @cached_property
    def _obstacles(self) -> dict[str, Array]:
        return obstacles(self.query.circuit, self.support)

    def is_positive(self, row: ResultRow, *, guards: bool = False) -> bool:
        """Return whether a row's annotation has no ``⊖``, and unless ``guards`` no guard."""
        return self._obstacle(row, guards) is None

    def is_opaque(self, row: ResultRow) -> bool:
        """Return whether a module whose inside is not known is behind a row."""
        return bool(self._obstacles["opaque"][self.nodes(row)].any())

    def _obstacle(self, row: ResultRow, guards: bool) -> str | None:
        nodes = self.annotations[list(row.members)]
        known = {"⊖", "padding"} if guards else set(self._obstacles)
        return next((name for name, marks in self._obstacles.items() if name in known and marks[nodes].any()), None)

    def check_positive(self, name: str, *, guards: bool = False) -> None:
        """Refuse a semiring that does not fit.

        Raises:
            UsageError: A row that is there has a difference or a guard, or a candidate has a difference that the query
                makes (``usage.semiring``).
        """
        for row in self.rows:
            what = self._obstacle(row, guards)
            if not row.multiplicity and what != "⊖":
                what = None
            if what is not None:
                raise UsageError(
                    f"'{name}' is not defined for rows that depend on {_WORDS[what]}, as in this query",
                    code="usage.semiring",
                    hint="every query has polynomial, count and bool: --as polynomial,count",
                )

    # ---- rows ------------------------------------------------------------------------------------------------------

    def nodes(self, row: ResultRow) -> Array:
        """The p-nodes of a row."""
        found: Array = self.annotations[list(row.members)]
        return found

    def _members(self, rows: Sequence[ResultRow]) -> Array:
        return np.array([member for row in rows for member in row.members], np.int64)

    def _nodes(self, row: ResultRow) -> list[int]:
        found: list[int] = self.annotations[list(row.members)].tolist()
        return found

    def _polynomials(
        self, members: Array, erase_delta: bool, most: int | None, cells: Sequence[Array] = ()
    ) -> Polynomials:
        roots = np.concatenate([self.annotations[members], *cells])
        long = None if most is not None or not len(roots) else self._long
        return Polynomials(self.query.circuit, self.tokens, roots, erase_delta=erase_delta, most=most, long=long)


def _is_framed(block: object) -> bool:
    return isinstance(block, Terms) and block.around is not None


def hashable(value: Any) -> Any:
    """A value as a key."""
    if isinstance(value, (list, tuple)):
        return tuple(map(hashable, value))
    return tuple((k, hashable(v)) for k, v in value.items()) if isinstance(value, Mapping) else value
