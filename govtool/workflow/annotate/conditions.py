"""Conditions with subqueries: semijoins, antijoins and subqueries as values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.records.plan.expressions import (
    AggregateCall,
    Attribute,
    Call,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Named,
    ScalarSubquery,
    passed,
)
from govtool.records.plan.nodes import Aggregate, Filter, Project
from govtool.records.plan.tree import Node, Term
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.segment import alike, both, subqueries, unique
from govtool.workflow.annotate.annotator import Annotator, Context, refused
from govtool.workflow.annotate.circuit import NONE, ONE, ZERO, Delta, Inputs, Monus, Product, Sum, Terms, arrays_of
from govtool.workflow.annotate.failing import is_late
from govtool.workflow.annotate.origins import equated
from govtool.workflow.annotate.rows import (
    LONG_ONE,
    LONG_ZERO,
    Rows,
    chosen,
    joined,
    reads_cells,
    rewritten,
    shifted,
    there,
)
from govtool.workflow.annotate.tables import KeptTable
from govtool.workflow.annotate.values import guarded, with_columns


def restricted(a: Annotator, rows: Rows, condition: Expression, context: Context | None) -> Rows:
    """Rows under one conjunct."""
    negated = isinstance(condition, Call) and condition.name == "not"
    inner = condition.arguments[0] if isinstance(condition, Call) and negated else condition
    if isinstance(inner, (Exists, InSubquery)):
        return _by_subquery(a, rows, inner, negated, context)
    rows, values = a.local(rows, [condition], context)
    before = rows.columns
    rows, (condition,) = valued(a, rows, values, context)
    if reads_cells(condition, rows) or is_late(a, rows, condition):
        rows = guarded(a, rows, condition)
    else:
        rows = replace(rows, node=Filter(rows.node, condition))
        if a.origins is not None and a.origins.by_equality:
            rows, table = a.keep(rows)
            rows = equated(a.origins, a.tables, rows, table, [condition])
    return replace(rows, columns=before)


# ---- subqueries that keep or drop rows ------------------------------------------------------------------------------


def _by_subquery(
    a: Annotator, rows: Rows, term: Exists | InSubquery, negated: bool, context: Context | None
) -> Rows:  # fmt: skip
    rows, table, pairs, _ = _pairs(a, rows, term, negated, context)
    return kept_by(a, rows, table, pairs, negated)


def _pairs(
    a: Annotator, rows: Rows, term: Exists | InSubquery, negated: bool, context: Context | None
) -> tuple[Rows, KeptTable, Matches, Rows]:
    values: list[Expression] = []
    if isinstance(term, InSubquery):
        rows, values = a.local(rows, list(term.values), context)
        rows, values = valued(a, rows, values, context)
        named = [a.ids.named("value", value) for value in values]
        before = rows.columns
        rows = with_columns(a, rows, named)
        values = [each.attribute for each in named]
    rows, table, inner = a.subcontext(rows, term.plan, context)
    found = a.rows(term.plan, inner)
    conditions = [
        _equality(value, column, negated) for value, column in zip(values, found.columns, strict=False)
    ]  # fmt: skip
    pairs = matches(a, rows, table, found, conditions)
    if isinstance(term, InSubquery):
        rows = replace(rows, columns=before)
    return rows, table, pairs, found


def _equality(value: Expression, column: Attribute, negated: bool) -> Expression:
    """IN matches what is equal; NOT IN fails on what is not unequal: NULL on either side, too."""
    equal = Call("=", (value, column), BOOLEAN)
    if not negated:
        return equal
    return Call("not", (alike(equal, Literal(False, BOOLEAN)),), BOOLEAN)


class Matches:
    """Rows of a right side beside the numbers of the left rows that they match.

    Attributes:
        rows: The pairs; their annotations are those of the right rows, times the guards of the match.
        left: The number of the left row.
    """

    __slots__ = ("left", "rows")

    def __init__(self, rows: Rows, left: Attribute) -> None:
        self.rows = rows
        self.left = left


def matches(a: Annotator, rows: Rows, table: KeptTable, right: Rows, conditions: list[Expression]) -> Matches:
    """Pairs of kept rows with the rows of a subquery that was evaluated for them, or once."""
    number = a.ids.named("left", table.number)
    copies = [column for column in rows.everything if column.id not in {each.id for each in right.everything}]
    side = Project(rows.node, (number, *map(passed, copies)))
    around = None if right.context is None else alike(right.context, number.attribute)
    plain = [each for each in conditions if not _reads(each, rows, right)]
    node = joined(right.node, side, both([around, *plain]))
    cells = {**rows.cells, **right.cells}
    columns = unique([*right.columns, *rows.columns, number.attribute])
    pairs = replace(right, node=node, columns=columns, cells=cells, outer={**rows.outer, **right.outer})
    for each in conditions:
        if each not in plain:
            pairs = guarded(a, pairs, each)
    return Matches(pairs, number.attribute)


def _reads(condition: Expression, left: Rows, right: Rows) -> bool:
    return bool(reads_cells(condition, left) or reads_cells(condition, right))


def kept_by(
    a: Annotator, rows: Rows, table: KeptTable, pairs: Matches, negated: bool, *, is_padding: bool = False
) -> Rows:
    """The semijoin ``a·δ(Σ b)`` or the antijoin ``a·(1 ⊖ Σ b)``."""
    inputs, _ = against(a, table, pairs)
    gate = pairs.rows.gate
    (annotation,) = table.ids(rows.annotation)
    if negated:
        sums = a.add(Sum(inputs, gate)) + np.arange(table.count)
        is_matched = (np.diff(inputs.offsets) > 0) | (gate != NONE)
        share = a.add(Monus(np.full(table.count, ONE), np.where(is_matched, sums, ZERO), is_padding))
    else:
        share = a.add(Delta(inputs, gate))
    first = a.add(Product(annotation, share + np.arange(table.count)))
    counts = _counts(a, pairs)
    total = counts.named
    number = a.ids.named("pair", counts.left)
    side = Project(counts.node, (number, total))
    same = alike(table.number, number.attribute)
    node = joined(rows.node, side, same, "left" if negated else "inner")
    node_column = a.ids.named("node", shifted(table.number, first))
    found = there(total.attribute)
    present = (
        chosen(found, LONG_ZERO, rows.times) if negated else chosen(found, rows.times, LONG_ZERO)
    )  # fmt: skip
    times = a.ids.named("times", present)
    gone = {rows.annotation.id} | ({rows.times.id} if isinstance(rows.times, Attribute) else set())
    rest = [passed(column) for column in rows.everything if column.id not in gone]
    made = Project(node, (*rest, node_column, times))
    gate = rows.gate if negated else a.either(rows.gate, gate)
    return replace(
        rows, node=made, annotation=node_column.attribute, times=times.attribute, candidates=True, gate=gate
    )  # fmt: skip


class _Counts:
    __slots__ = ("left", "named", "node")

    def __init__(self, node: Node, left: Attribute, named: Named) -> None:
        self.node = node
        self.left = left
        self.named = named


def _counts(a: Annotator, pairs: Matches) -> _Counts:
    """How many rows match each left row as things stand; left rows without any pair are missing."""
    total = a.ids.named("matches", AggregateCall("sum", (pairs.rows.times,), LONG, mode="ansi"))
    node = Aggregate(pairs.rows.node, (passed(pairs.left),), (total,))
    column = a.ids.named("matches", total.attribute)
    return _Counts(node, pairs.left, column)


def against(a: Annotator, table: KeptTable, pairs: Matches) -> tuple[Inputs, Rows]:
    """For each kept row the p-nodes of what matches it."""
    found = a.tables.fetch(pairs.rows.node, [pairs.left, pairs.rows.annotation])
    left, right = arrays_of(found.columns)
    return Inputs.grouped(left, right, table.count)[0], pairs.rows


# ---- subqueries as values -------------------------------------------------------------------------------------------


def valued(
    a: Annotator, rows: Rows, values: list[Expression], context: Context | None
) -> tuple[Rows, list[Expression]]:
    """Expressions with the values of their subqueries as columns of the rows."""
    found = list(dict.fromkeys(subqueries(values)))
    made: dict[Term, Attribute] = {}
    for term in found:
        rows, column = _value(a, rows, term, context)
        made[term] = column
    if not made:
        return rows, values

    def swap(term: Term) -> Term:
        return made[term] if isinstance(term, (ScalarSubquery, Exists, InSubquery)) else term

    return rows, [rewritten(value, swap) for value in values]


def _value(
    a: Annotator, rows: Rows, term: ScalarSubquery | Exists | InSubquery, context: Context | None
) -> tuple[Rows, Attribute]:
    if isinstance(term, ScalarSubquery):
        return _scalar(a, rows, term, context)
    if isinstance(term, Exists):
        before = rows.columns
        rows, table, pairs, _ = _pairs(a, rows, term, False, context)
        rows, column = existence(a, rows, table, pairs)
        return replace(rows, columns=(*before, column)), column
    return _membership(a, rows, term, context)


def _membership(a: Annotator, rows: Rows, term: InSubquery, context: Context | None) -> tuple[Rows, Attribute]:
    """IN as a value: true by what matches, NULL by what may, else false."""
    before = rows.columns
    rows, table, pairs, _ = _pairs(a, rows, term, False, context)
    rows, yes = existence(a, rows, table, pairs)
    rows = replace(rows, columns=(*before, yes))
    rows, table, pairs, _ = _pairs(a, rows, term, True, context)
    rows, may = existence(a, rows, table, pairs)
    rows = replace(rows, columns=(*before, yes, may))
    maybe = chosen(may, Literal(None, BOOLEAN), Literal(False, BOOLEAN))
    named = a.ids.named("in", chosen(yes, Literal(True, BOOLEAN), maybe))
    rows = with_columns(a, rows, [named])
    return replace(rows, columns=(*before, named.attribute)), named.attribute


def existence(a: Annotator, rows: Rows, table: KeptTable, pairs: Matches) -> tuple[Rows, Attribute]:
    """A column that is true where rows match; its v-nodes are ``EXISTS`` over them."""
    counts = _counts(a, pairs)
    number = a.ids.named("pair", counts.left)
    side = Project(counts.node, (number, counts.named))
    same = alike(table.number, number.attribute)
    value = a.ids.named("exists", alike(there(counts.named.attribute), Literal(True, BOOLEAN)))
    before = a.ids.named("before", table.number)
    added = (value, before)
    node = Project(joined(rows.node, side, same, "left"), (*map(passed, rows.everything), *added))
    rows, kept = a.keep(replace(rows, node=node, columns=(*rows.columns, *(each.attribute for each in added))))
    rows = replace(rows, columns=tuple(each for each in rows.columns if each.id != before.id))
    pair_rows, pair_table = a.keep(replace(pairs.rows, columns=(*pairs.rows.columns, pairs.left)))
    left, annotation = pair_table.ids(pairs.left, pair_rows.annotation)
    (old,) = kept.ids(before.attribute)
    position = np.empty(table.count, np.int64)
    position[old] = np.arange(kept.count)
    inputs, order = Inputs.grouped(position[left], annotation, kept.count)
    call = AggregateCall("exists", (), BOOLEAN)
    start = a.add(Terms(call, inputs, order, None, pair_table, None, (kept, value.attribute), gate=pairs.rows.gate))
    cell = a.ids.named("cell", shifted(kept.number, start))
    made = Project(rows.node, (*map(passed, rows.everything), cell))
    return replace(rows, node=made, cells={**rows.cells, value.id: cell.attribute}), value.attribute


def _scalar(a: Annotator, rows: Rows, term: ScalarSubquery, context: Context | None) -> tuple[Rows, Attribute]:
    """The one cell of a subquery, NULL where it has no row."""
    before = rows.columns
    rows, table, inner = a.subcontext(rows, term.plan, context)
    found = a.rows(term.plan, inner)
    return _scalar_column(a, replace(rows, columns=before), table, found)


def _scalar_column(a: Annotator, rows: Rows, table: KeptTable, found: Rows) -> tuple[Rows, Attribute]:
    found, inner = a.keep(found)
    (column,) = found.columns[:1]
    (annotation,) = inner.ids(found.annotation)
    is_plain = bool((annotation == ONE).all()) and column.id in found.cells
    value = a.ids.named("scalar", column)
    number = None if found.context is None else a.ids.named("context", found.context)
    if not is_plain:
        found = _one_row(a, found, inner)
        value, number = a.ids.named("scalar", found.columns[0]), number and a.ids.named("context", found.columns[1])
        column = found.columns[0]
    cell = a.ids.named("cell", found.cells[column.id])
    side = Project(found.node, (value, cell, *((number,) if number is not None else ())))
    same = Literal(True, BOOLEAN) if number is None else alike(table.number, number.attribute)
    node = joined(rows.node, side, same, "left")
    return (
        replace(
            rows,
            node=node,
            columns=(*rows.columns, value.attribute),
            cells={**rows.cells, value.id: cell.attribute},
        ),
        value.attribute,
    )


def _one_row(a: Annotator, found: Rows, inner: KeptTable) -> Rows:
    """One row for each row around: the cell of the row that is there, as ``ROW`` over all that may be."""
    (column,) = found.columns[:1]
    keys = () if found.context is None else (passed(found.context),)
    if keys and found.gate != NONE:
        raise refused("a correlated scalar subquery over a limit, a window or computed groups")
    here = there(found.times)
    first = AggregateCall("max", (column,), column.type, filter=here)
    total = AggregateCall("sum", (found.times,), LONG, mode="ansi")
    value, times = a.ids.named("scalar", first), a.ids.named("times", total)
    groups = a.tables.numbered(Aggregate(found.node, keys, (value, times)))
    most = a.tables.scalar(groups.node, AggregateCall("max", (times.attribute,), LONG))
    if most is not None and most > 1:
        raise refused("a scalar subquery that gives more than one row")
    (annotation,) = inner.ids(found.annotation)
    if found.context is None:
        owners = np.zeros(inner.count, np.int64)
    else:
        (contexts,) = inner.ids(found.context)
        (own,) = groups.ids(found.context)
        order = np.argsort(own)
        owners = order[np.searchsorted(own[order], contexts)]
    inputs, order = Inputs.grouped(owners, annotation, groups.count)
    cells = None
    if column.id in found.cells:
        (cells,) = inner.ids(found.cells[column.id])
        cells = cells[order]
    call = AggregateCall("row", (column,), column.type)
    start = a.add(Terms(call, inputs, order, cells, inner, column, (groups, value.attribute), gate=found.gate))
    cell = a.ids.named("cell", shifted(groups.number, start))
    node = Project(groups.node, (passed(value.attribute), cell, *keys))
    columns = (value.attribute, *((found.context,) if found.context is not None else ()))
    return Rows(node, columns, found.annotation, LONG_ONE, {value.id: cell.attribute})
