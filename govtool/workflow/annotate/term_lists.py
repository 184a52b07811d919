"""Groups of rows, and the terms of the aggregates over them: aggregates over the same rows share their arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Expression
from govtool.workflow.annotate.circuit import Inputs
from govtool.workflow.annotate.rows import LONG_ONE, LONG_ZERO, Rows, chosen
from govtool.workflow.annotate.tables import KeptTable


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows of a table in groups.

    Attributes:
        rows: The rows.
        table: Their table.
        groups: One row a group: its keys, and values as they stand.
        members: For each group its rows in ``table``.
        gate: Opens when a computed key changes; or ``NONE``.
    """

    rows: Rows
    table: KeptTable
    groups: KeptTable
    members: Inputs
    gate: int


class TermLists:
    """The terms of several aggregates over the same groups: those over the same rows share their arrays.

    Args:
        found: The groups.
        conditions: The conditions of the aggregates, which are evaluated together; None: every row has a term.
    """

    def __init__(self, found: Groups, conditions: Sequence[Expression | None]) -> None:
        self._groups = found
        (self.annotation,) = found.table.ids(found.rows.annotation)
        wanted = list(dict.fromkeys(each for each in conditions if each is not None))
        self._is_term = dict(zip(wanted, held(found.table, wanted), strict=True))
        self._made: list[tuple[Array, Array, tuple[Inputs, Array]]] = []

    def is_term(self, condition: Expression | None) -> Array | None:
        """Return whether each row has a term: bool; None: every one has."""
        found = None if condition is None else self._is_term[condition]
        return None if found is None or found.all() else found

    def of(self, annotation: Array, is_term: Array | None) -> tuple[Inputs, Array]:
        """The terms of every group, and the row of each."""
        mask = np.ones(len(annotation), bool) if is_term is None else is_term
        for other, marks, found in self._made:
            if other is annotation and np.array_equal(marks, mask):
                return found
        members = self._groups.members
        if is_term is None:
            made = Inputs(members.offsets, annotation[members.nodes]), members.nodes
        else:
            chosen_ = is_term[members.nodes]
            rows = members.nodes[chosen_]
            inputs, order = Inputs.grouped(members.owners()[chosen_], annotation[rows], self._groups.groups.count)
            made = inputs, rows[order]
        self._made.append((annotation, mask, made))
        return made


def held(table: KeptTable, conditions: Sequence[Expression]) -> list[Array]:
    """Return for each condition whether it is true in each row: bool."""
    if not conditions:
        return []
    found = table.ids(*(chosen(each, LONG_ONE, LONG_ZERO) for each in conditions))
    return [each.astype(bool) for each in found]
