"""COGROUP and FLATTEN over lists of annotated rows, from section 2 of the specification.

A group is annotated δ(Σ A + Σ B …), nested rows keep their own annotations, and FLATTEN gives each of them times its
group's. Rows whose key is NULL are one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reference.algebra import Row, grouped
from reference.polynomial import ALL, Counts, Value, delta, plain, total


@dataclass(eq=False)
class Bag(Value):
    """Rows within a cell, each with its annotation."""

    rows: tuple[Row, ...]

    def get(self, counts: Counts = ALL) -> Any:
        """The rows that are there, as often as they are there, in the order of their values."""
        there = [
            tuple(plain(cell, counts) for cell in row.cells)
            for row in self.rows
            for _ in range(row.annotation.count(counts))
        ]
        return sorted(there, key=str)

    def __str__(self) -> str:
        return f"BAG({' + '.join(sorted(f'({row.annotation})⊗{row.values}' for row in self.rows))})"


def cogroup(sides: Sequence[Sequence[Row]], key: int) -> list[Row]:
    """One row a key: the key, and a bag for each side. A computed key guards its row."""
    bags = [grouped(side, [key]) for side in sides]
    found = []
    for value in dict.fromkeys(each for bag in bags for each in bag):
        members = [tuple(Row(row.cells, annotation) for annotation, row in bag.get(value, ())) for bag in bags]
        annotation = delta(total(row.annotation for bag in members for row in bag))
        found.append(Row((*value, *map(Bag, members)), annotation))
    return found


def flatten(rows: Sequence[Row], at: int) -> list[Row]:
    """One row for each row of a bag: the other cells, then those of the nested row."""
    found = []
    for row in rows:
        others = row.cells[:at] + row.cells[at + 1 :]
        found += [Row(others + each.cells, row.annotation * each.annotation) for each in row.cells[at].rows]
    return found
