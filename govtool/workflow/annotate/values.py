"""Values computed from values: functions over cells with v-nodes, and guards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Call, Expression, Literal, Named, passed
from govtool.records.plan.nodes import Filter, Project
from govtool.records.plan.tree import walk
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.segment import alike, either
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.casts import without_casts
from govtool.workflow.annotate.circuit import NONE, ONE, Guard, Product, ValueFunction
from govtool.workflow.annotate.failing import condition_if_there, failing_rows, is_absent, is_late, value_if_there
from govtool.workflow.annotate.fields import field_cells
from govtool.workflow.annotate.list_order import has_lists, has_several, is_ordered, order_matters
from govtool.workflow.annotate.rows import (
    LONG_ONE,
    LONG_ZERO,
    Rows,
    chosen,
    extended,
    is_there,
    joined,
    reads_cells,
    shifted,
    times_of,
    truth,
)
from govtool.workflow.annotate.tables import KeptTable


def with_columns(a: Annotator, rows: Rows, added: Sequence[Named]) -> Rows:
    """Rows with more columns; one that reads cells with v-nodes gets v-nodes of its own."""
    made = tuple(added)
    late = {each.id for each in made if is_late(a, rows, each.value)}
    functions = [
        each
        for each in made
        if not isinstance(each.value, Attribute) and (each.id in late or reads_cells(each.value, rows))
    ]
    standing = [replace(each, value=value_if_there(rows, each.value)) if each.id in late else each for each in made]
    columns = _appended(rows.columns, made)
    wider = replace(rows, node=extended(rows, [each for each in standing if not each.is_passed]), columns=columns)
    cells = _copied(rows.cells, ((each.id, each.value) for each in made))
    origins = _copied(rows.origins, ((each.id, without_casts(each.value)) for each in made))
    wider = replace(wider, cells=cells, origins=origins)
    a.ordered.update(each.id for each in made if _is_ordered(a, rows, each.value))
    for each in functions:
        wider = _function(a, wider, each)
    return wider


def _copied(known: Mapping[int, Attribute], added: Iterable[tuple[int, Expression]]) -> dict[int, Attribute]:
    """What is known of columns, and of new ones what is known of the columns that they copy."""
    copies = {
        number: known[source.id] for number, source in added if isinstance(source, Attribute) and source.id in known
    }
    return {**known, **copies}


def is_settled(a: Annotator, rows: Rows, value: Expression) -> bool:
    """Return whether a value is the same in every run: it does not depend on the order of a collected list."""
    return not order_matters(value, lambda column: _is_loose(a, rows, column))


def _unsettled(a: Annotator, rows: Rows, value: Expression, cells: Sequence[tuple[int, Array]]) -> Array | None:
    """For which rows a value depends on the order of a list of several elements; None: for none."""
    if is_settled(a, rows, value):
        return None
    loose = {term.id for term in walk(value) if isinstance(term, Attribute) and _is_loose(a, rows, term)}
    several = [has_several(a.circuit, nodes) for number, nodes in cells if number in loose]
    found: Array = np.logical_or.reduce(several)
    return found if found.any() else None


def _is_loose(a: Annotator, rows: Rows, column: Attribute) -> bool:
    return column.id in rows.cells and column.id not in a.ordered and has_lists(column.type)


def _is_ordered(a: Annotator, rows: Rows, value: Expression) -> bool:
    return has_lists(value.type) and is_ordered(value, lambda column: _is_loose(a, rows, column))


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
    if isinstance(column.value, Call) and column.value.name == "get field" and len(read) == 1:
        nodes = _fields(a, rows, table, column.value)
        if nodes is not None:
            return _with_cells(a, rows, table, column.id, nodes)
    failing = failing_rows(a, rows, table, column.value)
    cells = cell_arrays(rows, table, read)
    unsettled = _unsettled(a, rows, column.value, cells)
    a.unsettled |= unsettled is not None
    start = a.add(ValueFunction(column.value, table, cells, column.attribute, failing, unsettled))
    has_node = [is_there(rows.cells[number]) for number in read]
    has_node += [is_absent(rows)] if is_late(a, rows, column.value) else []
    node = a.ids.named("cell", chosen(either(has_node), shifted(table.number, start)))
    return replace(rows, node=extended(rows, [node]), cells={**rows.cells, column.id: node.attribute})


def _fields(a: Annotator, rows: Rows, table: KeptTable, call: Call) -> Array | None:
    """The v-nodes of a field, where the struct was put together from columns; else None."""
    struct = call.arguments[0]
    if not isinstance(struct, Attribute):
        return None
    return field_cells(a.circuit, table.ids(rows.cells[struct.id])[0], call)


def _with_cells(a: Annotator, rows: Rows, table: KeptTable, column: int, nodes: Array) -> Rows:
    """Rows whose column has v-nodes that are in the circuit."""
    known = np.flatnonzero(nodes != NONE)
    if not len(known):
        return rows
    number, cell = (a.ids.attribute(name, LONG) for name in ("row", "cell"))
    side = a.tables.load({number: known, cell: nodes[known]})
    node = joined(rows.node, side, alike(table.number, number), "left")
    return replace(rows, node=node, cells={**rows.cells, column: cell})


def cell_arrays(rows: Rows, table: KeptTable, read: Sequence[int]) -> tuple[tuple[int, Array], ...]:
    """The v-nodes of columns, in the order of the table's rows."""
    return tuple(zip(read, table.ids(*(rows.cells[number] for number in read)), strict=True))


def guarded(a: Annotator, rows: Rows, condition: Expression) -> Rows:
    """Rows under a condition that reads v-nodes: those that fail stay as candidates.

    So do candidates for which the condition may fail on a value: it is not evaluated.
    """
    read = reads_cells(condition, rows)
    late = is_late(a, rows, condition)
    is_computed = either([*(is_there(rows.cells[number]) for number in read), *([is_absent(rows)] if late else [])])
    holds = a.ids.named("holds", condition_if_there(rows, truth(condition)) if late else truth(condition))
    # A row that fails on plain values is no candidate. Of a product of two relations that are most.
    able = Filter(extended(rows, [holds]), Call("or", (is_computed, holds.attribute), BOOLEAN))
    rows, table = a.keep(replace(rows, node=able, columns=(*rows.columns, holds.attribute)))
    cells = cell_arrays(rows, table, read)
    (annotation,) = table.ids(rows.annotation)
    found, computed = table.ids(*(chosen(each, LONG_ONE, LONG_ZERO) for each in (holds.attribute, is_computed)))
    unsettled, failing = _unsettled(a, rows, condition, cells), failing_rows(a, rows, table, condition)
    a.unsettled |= rows.candidates and unsettled is not None
    function = ValueFunction(condition, table, cells, holds.attribute, failing, unsettled)
    start = a.add(Guard(function, found.astype(bool)))
    guards = np.where(computed > 0, np.arange(table.count) + start, ONE)
    first = a.add(Product(annotation, guards))
    times = a.ids.named("times", chosen(holds.attribute, rows.times, LONG_ZERO))
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
