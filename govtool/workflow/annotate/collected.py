"""Elements of collected lists: ``explode(collect_list(…))`` gives back the rows that were collected."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Call, Named, passed
from govtool.records.plan.nodes import Generate, Project
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.segment import alike
from govtool.workflow.annotate.annotator import Annotator, refused
from govtool.workflow.annotate.circuit import NONE, Terms, ValueFunction
from govtool.workflow.annotate.conditions import Matches, kept_by
from govtool.workflow.annotate.fields import is_struct
from govtool.workflow.annotate.rows import LONG_ONE, LONG_ZERO, Rows, chosen, is_there, joined
from govtool.workflow.annotate.tables import KeptTable
from govtool.workflow.annotate.unions import padded, united
from govtool.workflow.annotate.values import guarded, multiplied
from govtool.workflow.semirings.counts import standing_counts


def exploded_terms(a: Annotator, rows: Rows, node: Generate, call: Call) -> Rows:
    """``δ(group)·t``: the elements of a collected list are the rows that were collected.

    An outer explode has the row of an empty list besides, ``δ(group)·(1 ⊖ Σ t)``.

    Raises:
        UsageError: Another generator, or an array that is no collected list (``usage.why-unsupported``).
    """
    column = call.arguments[0] if call.arguments else None
    if not isinstance(column, Attribute) or call.name != "explode":
        raise refused(f"{call.name} of a computed array")
    rows, table = a.keep(rows)
    cells, has_value = table.ids(rows.cells[column.id], chosen(is_there(column), LONG_ONE, LONG_ZERO))
    if has_value[cells == NONE].any():
        raise refused("explode of arrays of which some are collected and others not")
    if (cells == NONE).all():  # no row has an array
        plain = replace(node, child=rows.node, generator=call)
        return replace(rows, node=plain, columns=rows.columns + node.columns)
    several = _collected(a, cells)
    may_be_null = [each.terms.cells is not None and _may_be_null(a, each.terms.cells) for each in several]
    if node.outer and any(may_be_null):
        raise refused("an outer explode of values that may be NULL")
    parts = [
        _elements(a, rows, table, node, elements, nullable)
        for elements, nullable in zip(several, may_be_null, strict=True)
    ]
    columns = parts[0].columns
    if node.outer:
        parts.append(padded(a, _without_elements(a, rows, table, several), columns))
    return united(a, parts, columns) if len(parts) > 1 else parts[0]


@dataclass(frozen=True, slots=True)
class _Elements:
    """The terms of the lists of some rows.

    Attributes:
        terms: What made the lists.
        rows: The rows, by number.
        lists: The list of each.
    """

    terms: Terms
    rows: Array
    lists: Array

    def expanded(self) -> tuple[Array, Array]:
        """Return for each element the number of its row, and its place among the terms."""
        owners, places = self.terms.inputs.expanded(self.lists)
        return self.rows[owners], places


def _elements(
    a: Annotator, rows: Rows, table: KeptTable, node: Generate, elements: _Elements, may_be_null: bool
) -> Rows:
    terms = elements.terms
    parents, places = elements.expanded()
    parent, row, factor, cell = (a.ids.attribute(name, LONG) for name in ("parent", "row", "factor", "cell"))
    side = {parent: parents, row: terms.rows[places], factor: terms.inputs.nodes[places]}
    if terms.cells is not None:
        side[cell] = terms.cells[places]
    assert terms.argument is not None
    value = Named(terms.argument, node.columns[0].id, node.columns[0].name)
    number = a.ids.named("row", terms.table.number)
    found = joined(rows.node, a.tables.load(side), alike(table.number, parent))
    made = replace(
        rows,
        node=joined(found, Project(terms.table.node, (value, number)), alike(row, number.attribute)),
        columns=rows.columns + node.columns,
        gate=a.either(rows.gate, terms.gate),
    )
    if terms.cells is not None:  # values that were computed before they were collected
        known = a.ids.named("cell", chosen(Call(">=", (cell, LONG_ZERO), BOOLEAN), cell))
        made = replace(made, node=Project(made.node, (*map(passed, (*made.everything, factor)), known)))
        made = replace(made, cells={**made.cells, value.id: known.attribute})
    made = multiplied(a, made, factor, LONG_ONE)
    if may_be_null:  # such an element is a candidate: lists have no NULLs
        made = guarded(a, made, is_there(value.attribute))
    return _recounted(a, made)


def _without_elements(a: Annotator, rows: Rows, table: KeptTable, several: list[_Elements]) -> Rows:
    """The rows whose list is empty, others as candidates."""
    expanded = [(each, *each.expanded()) for each in several]
    parents = np.concatenate([own for _, own, _ in expanded])
    nodes = np.concatenate([each.terms.inputs.nodes[places] for each, _, places in expanded])
    parent, factor, times = (a.ids.attribute(name, LONG) for name in ("parent", "factor", "times"))
    side = a.tables.load({parent: parents, factor: nodes, times: standing_counts(a.circuit)[nodes]})
    found = Rows(side, (parent,), factor, times, candidates=True, gate=a.either(*(each.terms.gate for each in several)))
    return kept_by(a, rows, table, Matches(found, parent), True, is_padding=True)


def _recounted(a: Annotator, rows: Rows) -> Rows:
    """Rows whose counts are those of their nodes: elements of rows that are gone are gone, too."""
    rows, table = a.keep(rows)
    (annotation,) = table.ids(rows.annotation)
    number, times = a.ids.attribute("row", LONG), a.ids.attribute("times", LONG)
    counts = standing_counts(a.circuit)[annotation]
    side = a.tables.load({number: np.arange(table.count), times: counts})
    node = joined(rows.node, side, alike(table.number, number))
    return replace(rows, node=node, times=times, candidates=True, bag=bool(len(counts) and counts.max() > 1))


def _may_be_null(a: Annotator, cells: Array) -> bool:
    """Return whether a value may be NULL after a deletion: neither bags of rows nor counts ever are."""
    ends = np.array([*a.circuit.starts[1:], a.circuit.size])
    blocks = (a.circuit.blocks[at] for at in np.unique(np.searchsorted(ends, cells[cells != NONE], "right")))
    return not all(
        (isinstance(block, Terms) and block.call.name == "count")
        or (isinstance(block, ValueFunction) and is_struct(block.expression))
        for block in blocks
    )


def _collected(a: Annotator, cells: Array) -> list[_Elements]:
    """The lists of some rows by the aggregates that made them: those of a UNION, or of kept state, are of several."""
    rows = np.flatnonzero(cells != NONE)
    ends = np.array([*a.circuit.starts[1:], a.circuit.size])
    numbers = np.searchsorted(ends, cells[rows], "right")
    found = []
    for number in np.unique(numbers).tolist():
        block, own = a.circuit.blocks[number], rows[numbers == number]
        if not isinstance(block, Terms) or block.call.name not in ("collect_list", "collect_set"):
            raise refused("explode of a computed array that is no collected list")
        if block.around is not None:
            raise refused("explode of a list that was collected over a frame of positions")
        found.append(_Elements(block, own, cells[own] - a.circuit.starts[number]))
    return found
