"""Values computed from values: functions over cells with v-nodes, and guards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Call, Expression, Literal, Named, passed
from govtool.records.plan.nodes import Filter, Project
from govtool.records.plan.types import BOOLEAN
from govtool.records.trace.segment import either
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.casts import without_casts
from govtool.workflow.annotate.circuit import NONE, ONE, Guard, Product, ValueFunction
from govtool.workflow.annotate.rows import (
    LONG_ONE,
    LONG_ZERO,
    Rows,
    chosen,
    extended,
    is_there,
    reads_cells,
    shifted,
    times_of,
    truth,
)
from govtool.workflow.annotate.tables import KeptTable


def with_columns(a: Annotator, rows: Rows, added: Sequence[Named]) -> Rows:
    """Rows with more columns; one that reads cells with v-nodes gets v-nodes of its own."""
    made = tuple(each for each in added)
    functions = [each for each in made if not isinstance(each.value, Attribute) and reads_cells(each.value, rows)]
    cells = dict(rows.cells)
    for each in made:
        if isinstance(each.value, Attribute) and each.value.id in rows.cells:
            cells[each.id] = rows.cells[each.value.id]
    columns = _appended(rows.columns, made)
    wider = replace(rows, node=extended(rows, [each for each in made if not each.is_passed]), columns=columns)
    sources = [(each.id, without_casts(each.value)) for each in made]
    copies = {
        number: rows.origins[source.id]
        for number, source in sources
        if isinstance(source, Attribute) and source.id in rows.origins
    }
    wider = replace(wider, cells=cells, origins={**rows.origins, **copies})
    for each in functions:
        wider = _function(a, wider, each)
    return wider


def each_once(columns: Iterable[Named]) -> list[Named]:
    """Columns by their ids, each once."""
    return list({each.id: each for each in columns}.values())


def _appended(columns: tuple[Attribute, ...], added: Sequence[Named]) -> tuple[Attribute, ...]:
    known = {column.id for column in columns}
    return (*columns, *(each.attribute for each in added if each.id not in known))


def _function(a: Annotator, rows: Rows, column: Named) -> Rows:
    """Give a column that is already there its v-nodes."""
    read = reads_cells(column.value, rows)
    rows, table = a.keep(rows)
    block = ValueFunction(column.value, table, cell_arrays(rows, table, read), column.attribute)
    start = a.add(block)
    node = a.ids.named("cell", chosen(any_cell(rows, read), shifted(table.number, start)))
    return replace(rows, node=extended(rows, [node]), cells={**rows.cells, column.id: node.attribute})


def cell_arrays(rows: Rows, table: KeptTable, read: Sequence[int]) -> tuple[tuple[int, Array], ...]:
    """The v-nodes of columns, in the order of the table's rows."""
    return tuple(zip(read, table.ids(*(rows.cells[number] for number in read)), strict=True))


def any_cell(rows: Rows, read: Sequence[int]) -> Expression:
    """The condition that one of the columns has a v-node in the row."""
    return either(is_there(rows.cells[number]) for number in read)


def guarded(a: Annotator, rows: Rows, condition: Expression) -> Rows:
    """Rows under a condition that reads v-nodes: those that fail stay as candidates."""
    read = reads_cells(condition, rows)
    holds = a.ids.named("holds", truth(condition))
    # A row that fails on plain values is no candidate. Of a product of two relations that are most.
    able = Filter(extended(rows, [holds]), Call("or", (any_cell(rows, read), holds.attribute), BOOLEAN))
    rows, table = a.keep(replace(rows, node=able, columns=(*rows.columns, holds.attribute)))
    cells = cell_arrays(rows, table, read)
    (annotation,) = table.ids(rows.annotation)
    (found,) = table.ids(chosen(holds.attribute, LONG_ONE, LONG_ZERO))
    function = ValueFunction(condition, table, cells, holds.attribute)
    start = a.add(Guard(function, found.astype(bool)))
    computed = reduce(np.maximum, (nodes for _, nodes in cells)) != NONE
    guards = np.where(computed, np.arange(table.count) + start, ONE)
    first = a.add(Product(annotation, guards))
    times = a.ids.named("times", chosen(holds.attribute, rows.times, LONG_ZERO))
    is_computed = any_cell(rows, read)
    node = a.ids.named("node", chosen(is_computed, shifted(table.number, first), rows.annotation))
    columns = tuple(column for column in rows.columns if column.id != holds.id)
    rest = [c for c in replace(rows, columns=columns).everything if c.id not in (rows.annotation.id, _id(rows.times))]
    made = Project(rows.node, (*map(passed, rest), node, times))
    return replace(
        rows, node=made, columns=columns, annotation=node.attribute, times=times.attribute, candidates=True
    )  # fmt: skip


def _id(value: Expression) -> int | None:
    return value.id if isinstance(value, Attribute) else None


def multiplied(a: Annotator, rows: Rows, factor: Attribute, times: Expression) -> Rows:
    """Rows whose annotations are multiplied by another node of the row."""
    rows, table = a.keep(replace(rows, columns=(*rows.columns, factor)))
    left, right = table.ids(rows.annotation, factor)
    columns = tuple(column for column in rows.columns if column.id != factor.id)
    made = a.annotated(replace(rows, columns=columns), table, a.add(Product(left, right)))
    return replace(made, times=times_of(rows.times, times))


def counted(a: Annotator, rows: Rows, times: Expression) -> Rows:
    """Rows with another count, as a column."""
    if not isinstance(times, (Attribute, Literal)):
        column = a.ids.named("times", times)
        return replace(rows, node=extended(rows, [column]), times=column.attribute)
    return replace(rows, times=times)
