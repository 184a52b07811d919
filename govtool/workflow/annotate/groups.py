"""Groups: ``δ(Σ t)`` for the row, ``AGG(t1⊗v1 + …)`` for its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.errors import UsageError
from govtool.records.plan.expressions import AggregateCall, Attribute, Call, Expression, Literal, Named, passed
from govtool.records.plan.nodes import Aggregate, Distinct, Join, Project, Range
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.segment import alike, both
from govtool.workflow.annotate.annotator import Annotator, Context, refused
from govtool.workflow.annotate.circuit import (
    NONE,
    ONE,
    Delta,
    Gate,
    Guard,
    Inputs,
    Product,
    Terms,
    ValueFunction,
    arrays_of,
)
from govtool.workflow.annotate.conditions import valued
from govtool.workflow.annotate.group_rows import columns_of, deltas
from govtool.workflow.annotate.rows import (
    LONG_ONE,
    Rows,
    chosen,
    extended,
    is_there,
    joined,
    shifted,
    there,
    truth,
)
from govtool.workflow.annotate.tables import KeptTable
from govtool.workflow.annotate.term_lists import Groups, TermLists, held
from govtool.workflow.annotate.values import guarded, is_settled, with_columns

UNORDERED = frozenset(
    {
        "count",
        "sum",
        "min",
        "max",
        "avg",
        "collect_list",
        "collect_set",
        "bool_and",
        "bool_or",
        "every",
        "some",
        "stddev_samp",
        "stddev_pop",
        "var_samp",
        "var_pop",
    }
)
"""Aggregates whose value does not depend on the order of rows."""


def grouped(
    a: Annotator,
    rows: Rows,
    keys: Sequence[Attribute],
    measures: Callable[[Rows], Sequence[Named]] = lambda rows: (),
    context: Context | None = None,
) -> Groups:
    """Put rows into groups by keys, NULL being equal to NULL; a computed key guards its row.

    Args:
        a: The annotator.
        rows: The rows.
        keys: Columns of theirs.
        measures: Gives the aggregates over the guarded rows.
        context: The query around, if there is to be a group for each of its rows.
    """
    rows, gate = _guarded_keys(a, rows, keys)
    gate = a.either(gate, rows.gate)
    made = measures(rows)
    rows, table = a.keep(rows)
    by = tuple(passed(key) for key in keys) + (() if rows.context is None else (passed(rows.context),))
    source = _physical(a, rows) if made else rows.node
    total = a.ids.named("times", AggregateCall("sum", (rows.times,), LONG, mode="ansi"))
    if context is not None and not keys:
        return _whole_contexts(a, rows, table, (*made, total), context, gate)
    groups = a.tables.numbered(Aggregate(source, by, (*made, total)))
    if not by:
        everything = Inputs(np.array([0, table.count]), np.arange(table.count))
        return Groups(rows, table, groups, everything, gate)
    return Groups(rows, table, groups, _members(a, rows, table, groups, [each.attribute for each in by]), gate)


def _whole_contexts(
    a: Annotator, rows: Rows, table: KeptTable, measures: Sequence[Named], context: Context, gate: int
) -> Groups:
    """One group for every row around, those for which there is no row included."""
    number = a.ids.named("context", context.number)
    numbers = Project(context.rows.node, (number,))
    assert rows.context is not None
    source = joined(numbers, _physical(a, rows), alike(number.attribute, rows.context), "left")
    own = Named(number.attribute, rows.context.id, rows.context.name)
    aggregated = Aggregate(source, (passed(number.attribute),), tuple(measures))
    made = Project(aggregated, (own, *(passed(each.attribute) for each in measures)))
    groups = a.tables.numbered(made)
    return Groups(rows, table, groups, _members(a, rows, table, groups, [rows.context]), gate)


def _members(a: Annotator, rows: Rows, table: KeptTable, groups: KeptTable, keys: list[Attribute]) -> Inputs:
    copies = [a.ids.named(key.name, key) for key in keys]
    group = a.ids.named("group", groups.number)
    side = Project(groups.node, (*copies, group))
    same = both(alike(key, copy.attribute) for key, copy in zip(keys, copies, strict=True))
    found = a.tables.fetch(joined(rows.node, side, same), [group.attribute, table.number])
    owners, members = arrays_of(found.columns)
    return Inputs.grouped(owners, members, groups.count)[0]


def _physical(a: Annotator, rows: Rows) -> Node:
    """Every row as often as it is there; candidates once."""
    if not rows.bag:
        return rows.node
    most = a.tables.scalar(rows.node, AggregateCall("max", (rows.times,), LONG)) or 1
    number = a.ids.attribute("copy", LONG)
    first = Call("=", (number, LONG_ONE), BOOLEAN)
    within = Call("<=", (number, rows.times), BOOLEAN)
    return Join(rows.node, Range(0, 1, most + 1, 1, number), "inner", Call("or", (first, within), BOOLEAN))


def _guarded_keys(a: Annotator, rows: Rows, keys: Sequence[Attribute]) -> tuple[Rows, int]:
    """Rows guarded by the values of computed keys, and the gate that opens when one changes."""
    watched, alive, placed = [], [], []
    for key in dict.fromkeys(keys):
        if key.id in rows.cells:
            constant = a.ids.named("as it stands", key)
            rows = replace(rows, node=extended(rows, [constant]), columns=(*rows.columns, constant.attribute))
            rows = guarded(a, rows, alike(key, constant.attribute))
            guard, product = a.circuit.blocks[-2:]
            assert isinstance(guard, Guard)
            assert isinstance(product, Product)
            start, first = a.circuit.starts[-2:]
            watched.append(np.arange(start, start + guard.count))
            alive.append(product.left)
            placed.append(np.where(product.right == ONE, NONE, np.arange(first, first + product.count)))
    if not watched:
        return rows, NONE
    return rows, a.add(Gate(np.concatenate(watched), "present", np.concatenate(alive), np.concatenate(placed)))


# ---- operators ------------------------------------------------------------------------------------------------------


def distinct(a: Annotator, node: Distinct, context: Context | None) -> Rows:
    """``δ(Σ)`` over equal rows."""
    rows = a.rows(node.child, context)
    return deltas(a, grouped(a, rows, rows.columns), rows.columns)


def aggregate(a: Annotator, node: Aggregate, context: Context | None) -> Rows:
    """``δ(Σ t)``, or ``1`` without keys; values are aggregates of ``t⊗v``."""
    rows = a.rows(node.child, context)
    rows, parts = _prepared(a, rows, node, context)
    keys = [each.attribute for each in node.keys]

    def measures(guarded_rows: Rows) -> list[Named]:
        return [Named(part.standing(guarded_rows), part.column.id, part.column.name) for part in parts]

    found = grouped(a, rows, keys, measures, context if rows.context is not None else None)
    lists = TermLists(found, [part.plain_condition(found.rows) for part in parts])
    columns = tuple(each.attribute for each in node.keys + node.measures)
    made = deltas(a, found, columns) if keys else _one_always(a, found, columns)
    cells = dict(made.cells)
    added = []
    for part in parts:
        start = a.add(part.block(a, found, lists))
        named = a.ids.named("cell", shifted(found.groups.number, start))
        added.append(named)
        cells[part.column.id] = named.attribute
    return replace(made, node=extended(made, added), cells=cells)


def _one_always(a: Annotator, found: Groups, columns: tuple[Attribute, ...]) -> Rows:
    annotation = a.ids.named("node", Literal(ONE, LONG))
    made = Project(found.groups.node, (*map(passed, columns_of(found.groups.node)), annotation))
    return Rows(made, columns, annotation.attribute, LONG_ONE, context=found.rows.context)


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate over columns of the rows below.

    Attributes:
        column: The measure.
        call: The function as the query has it.
        arguments: Columns of its arguments; those that are the same for every row are left out.
        condition: The column of its FILTER; None without one.
        guards: The column of v-nodes of the condition's guard; None where the condition is plain.
    """

    column: Named
    call: AggregateCall
    arguments: tuple[Attribute, ...]
    condition: Attribute | None
    computed: bool

    def standing(self, rows: Rows) -> AggregateCall:
        """The aggregate over the rows that are there."""
        here = there(rows.times) if rows.candidates else None
        # A row around without any row here is padded: a count of all rows must not see that.
        inside = None if rows.context is None else is_there(rows.context)
        arguments = self.arguments or self.call.arguments
        kept = self.condition if self.condition is None else truth(self.condition)
        return replace(self.call, arguments=arguments, filter=both([inside, here, kept]))

    def block(self, a: Annotator, found: Groups, lists: TermLists) -> Terms:
        """The terms of every group."""
        annotation, is_term = lists.annotation, lists.is_term(self.plain_condition(found.rows))
        if self.computed and self.condition is not None:
            annotation = _guarded_terms(a, found.rows, found.table, self.condition, annotation)
        if self.call.distinct and self.arguments:
            return self._by_value(a, found, annotation, is_term)
        inputs, rows = lists.of(annotation, is_term)
        cells = self.cells(found.rows, found.table)
        argument = self.arguments[0] if len(self.arguments) == 1 else None
        result = (found.groups, self.column.attribute)
        return Terms(
            self.call, inputs, rows, None if cells is None else cells[rows], found.table, argument, result,
            gate=found.gate,
        )  # fmt: skip

    def cells(self, rows: Rows, table: KeptTable) -> Array | None:
        """The v-node of each row's argument; None where there is none."""
        if len(self.arguments) != 1 or self.arguments[0].id not in rows.cells:
            return None
        (cells,) = table.ids(rows.cells[self.arguments[0].id])
        return cells

    def plain_condition(self, rows: Rows) -> Expression | None:
        """The condition, on plain values, under which a row has a term; None: every row has one."""
        conditions: list[Expression | None] = [self._has_value(rows, each) for each in self.arguments]
        if self.condition is not None:
            holds = truth(self.condition)
            # Of rows that come side by side, some may have a computed value in a column and others a plain one.
            is_guarded = is_there(rows.cells[self.condition.id]) if self.computed else None
            conditions.append(holds if is_guarded is None else Call("or", (is_guarded, holds), BOOLEAN))
        return both(conditions)

    def terms(self, a: Annotator, rows: Rows, table: KeptTable) -> tuple[Array, Array]:
        """The annotation of each row's term, and whether it has one."""
        condition = self.plain_condition(rows)
        (annotation,) = table.ids(rows.annotation)
        is_term = held(table, [condition])[0] if condition is not None else np.ones(table.count, bool)
        if self.computed and self.condition is not None:
            annotation = _guarded_terms(a, rows, table, self.condition, annotation)
        return annotation, is_term

    def _has_value(self, rows: Rows, column: Attribute) -> Expression:
        plain = is_there(column)
        cell = rows.cells.get(column.id)
        return plain if cell is None else Call("or", (plain, is_there(cell)), BOOLEAN)

    def _by_value(self, a: Annotator, found: Groups, annotation: Array, is_term: Array | None) -> Terms:
        """One term a value, annotated ``δ(Σ)``."""
        if len(self.arguments) != 1:
            raise refused(f"{self.call.name.upper()}(DISTINCT …) of several values")
        owners = np.full(found.table.count, NONE)
        owners[found.members.nodes] = found.members.owners()
        number, group, node = (a.ids.attribute(name, LONG) for name in ("row", "group", "node"))
        kept = np.arange(found.table.count) if is_term is None else np.flatnonzero(is_term)
        side = a.tables.load({number: kept, group: owners[kept], node: annotation[kept]})
        value = self.arguments[0]
        cells = {value.id: found.rows.cells[value.id]} if value.id in found.rows.cells else {}
        base = replace(found.rows, columns=(value, group), annotation=node, cells=cells, outer={}, context=None)
        rows = replace(base, node=joined(found.rows.node, side, alike(found.table.number, number)))
        if self.computed and self.condition is not None:
            times = a.ids.named("times", chosen(truth(self.condition), found.rows.times, Literal(0, LONG)))
            rows = replace(rows, columns=(*rows.columns, self.condition))
            rows = replace(rows, node=extended(rows, [times]), times=times.attribute, candidates=True)
            rows = replace(rows, columns=(value, group))
        inner = grouped(a, rows, [group, value])
        (nodes,) = inner.table.ids(inner.rows.annotation)
        start = a.add(Delta(Inputs(inner.members.offsets, nodes[inner.members.nodes]), inner.gate))
        own, has_value = inner.groups.ids(group, chosen(is_there(value), LONG_ONE, Literal(0, LONG)))
        kept = np.flatnonzero(has_value)
        inputs, order = Inputs.grouped(own[kept], kept + start, found.groups.count)
        gate = inner.gate if inner.gate != NONE else found.gate
        call = replace(self.call, distinct=False)
        result = (found.groups, self.column.attribute)
        return Terms(call, inputs, kept[order], None, inner.groups, value, result, gate=gate)


def _guarded_terms(
    a: Annotator, rows: Rows, table: KeptTable, condition: Attribute, annotation: Array
) -> Array:  # fmt: skip
    """Annotations times the guard of a computed condition."""
    (cells,) = table.ids(rows.cells[condition.id])
    (truths,) = table.ids(chosen(truth(condition), LONG_ONE, Literal(0, LONG)))
    function = ValueFunction(condition, table, ((condition.id, cells),), condition)
    start = a.add(Guard(function, truths.astype(bool)))
    guards = np.where(cells != NONE, np.arange(table.count) + start, ONE)
    return a.add(Product(annotation, guards)) + np.arange(table.count)


def _prepared(a: Annotator, rows: Rows, node: Aggregate, context: Context | None) -> tuple[Rows, list[Measure]]:
    """Rows with keys, arguments and conditions as columns."""
    rows, values = a.local(rows, [each.value for each in node.keys], context)
    named = [replace(each, value=value) for each, value in zip(node.keys, values, strict=True)]
    rows = with_columns(a, rows, named)
    measures = []
    for each in node.measures:
        if not isinstance(each.value, AggregateCall):
            raise refused("an aggregate of the user's own")
        rows, measure = prepared(a, rows, each, each.value, context)
        measures.append(measure)
    return rows, measures


def prepared(
    a: Annotator, rows: Rows, column: Named, call: AggregateCall, context: Context | None
) -> tuple[Rows, Measure]:
    """Rows with the arguments and the condition of a measure as columns."""
    if call.name not in UNORDERED or call.order:
        raise UsageError(
            f"row-level provenance does not cover {call.name.upper()}: it depends on the order of rows",
            code="usage.why-unsupported",
        )
    rows, values = a.local(rows, [*call.arguments, *([call.filter] if call.filter is not None else [])], context)
    rows, values = valued(a, rows, values, context)
    condition, computed = None, False
    if call.filter is not None:
        *values, test = values
        named = a.ids.named("filter", test)
        rows = with_columns(a, rows, [named])
        condition, computed = named.attribute, named.id in rows.cells
    arguments = []
    for value in values:
        if isinstance(value, Literal) and value.value is not None:
            continue
        named = Named(value, value.id, value.name) if isinstance(value, Attribute) else a.ids.named("value", value)
        rows = with_columns(a, rows, [named])
        arguments.append(named.attribute)
    made = replace(call, arguments=tuple(arguments), filter=None)
    if not is_settled(a, rows, made):
        raise refused(f"{call.name.upper()} of collected lists, which depends on their order")
    if not arguments and call.name != "count":
        named = a.ids.named("value", values[0])
        rows = with_columns(a, rows, [named])
        arguments.append(named.attribute)
    return rows, Measure(column, call, tuple(arguments), condition, computed)
