"""Where-provenance: for each cell the cells that it was copied from.

Origins are nodes of their own: a cell of a relation, or the union of origins. They go along with the rows as columns.
Source: Buneman, Khanna and Tan, "Why and Where", ICDT 2001, and the specification, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Call, Expression
from govtool.workflow.annotate.circuit import NONE, Inputs
from govtool.workflow.annotate.rows import Rows, extended, shifted
from govtool.workflow.annotate.tables import KeptTable, TableStore


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a column of a relation.

    Attributes:
        relation: The relation.
        column: Its column.
        records: The node of the first record in the circuit.
        count: Records.
    """

    relation: str
    column: str
    records: int
    count: int


class Origins:
    """Blocks of origins in topological order.

    Args:
        by_equality: A condition that two columns are equal gives both cells the origins of both.
    """

    def __init__(self, *, by_equality: bool) -> None:
        self.by_equality = by_equality
        self._blocks: list[tuple[int, Cells | Inputs]] = []
        self._size = 0

    def add(self, block: Cells | Inputs) -> int:
        """Add a block; return its first node."""
        start = self._size
        self._blocks.append((start, block))
        self._size += block.count if isinstance(block, Cells) else len(block)
        return start

    def read(self, store: TableStore, rows: Rows, relation: str, records: int, count: int) -> Rows:
        """Rows of a relation with the origins of their cells: themselves."""
        added, found = [], {}
        for column in rows.columns:
            start = self.add(Cells(relation, column.name, records, count))
            named = store.ids.named("origin", shifted(rows.annotation, start - records))
            added.append(named)
            found[column.id] = named.attribute
        return replace(rows, node=extended(rows, added), origins=found)

    def grouped(self, members: Inputs, origins: Array, there: Array) -> int:
        """The first node of the unions of the origins of the rows of each group that are there."""
        owners, nodes = members.owners(), members.nodes
        kept = there[nodes] & (origins[nodes] != NONE)
        return self.add(Inputs.grouped(owners[kept], origins[nodes[kept]], len(members))[0])

    def pairs(self, one: Array, two: Array) -> int:
        """The first node of the unions of two lists of origins."""
        both = np.stack([one, two], 1).ravel()
        owners = np.repeat(np.arange(len(one)), 2)
        kept = both != NONE
        return self.add(Inputs.grouped(owners[kept], both[kept], len(one))[0])

    def resolved(self, owners: Array, nodes: Array) -> list[tuple[Array, Cells, Array]]:
        """The cells behind nodes: for each column of a relation the owners and the places of the records."""
        found = []
        waiting = (owners[nodes != NONE], nodes[nodes != NONE])
        for start, block in reversed(self._blocks):
            here = waiting[1] >= start
            own = np.unique(np.stack([waiting[0][here], waiting[1][here] - start]), axis=1)
            waiting = waiting[0][~here], waiting[1][~here]
            if isinstance(block, Cells):
                found.append((own[0], block, own[1]))
                continue
            positions, places = block.expanded(own[1])
            waiting = (
                np.concatenate([waiting[0], own[0][positions]]),
                np.concatenate([waiting[1], block.nodes[places]]),
            )
        return found


def equated(origins: Origins, store: TableStore, rows: Rows, table: KeptTable, parts: Sequence[Expression]) -> Rows:
    """Kept rows in which columns that a condition makes equal share their origins."""
    found = dict(rows.origins)
    added = []
    for one, two in filter(None, map(_equal_columns, parts)):
        if one.id in found and two.id in found:
            (left, right) = table.ids(found[one.id], found[two.id])
            named = store.ids.named("origin", shifted(table.number, origins.pairs(left, right)))
            rows = replace(rows, node=extended(replace(rows, columns=(*rows.columns, table.number)), [named]))
            table = replace(table, node=rows.node)
            added.append(named)
            found[one.id] = found[two.id] = named.attribute
            rows = replace(rows, origins=found)
    return rows


def _equal_columns(part: Expression) -> tuple[Attribute, Attribute] | None:
    if not isinstance(part, Call) or part.name != "=":
        return None
    one, two = (_bare(each) for each in part.arguments)
    return (one, two) if isinstance(one, Attribute) and isinstance(two, Attribute) else None


def _bare(value: Expression) -> Expression:
    from govtool.records.plan.expressions import Cast

    return _bare(value.value) if isinstance(value, Cast) else value
