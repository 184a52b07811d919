"""Elements of collected lists: ``explode(collect_list(…))`` gives back the rows that were collected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, Call, Named
from govtool.records.plan.nodes import Generate, Project
from govtool.records.plan.types import LONG
from govtool.records.trace.segment import alike
from govtool.workflow.annotate.annotator import Annotator, refused
from govtool.workflow.annotate.circuit import NONE, Terms
from govtool.workflow.annotate.rows import LONG_ONE, LONG_ZERO, Rows, chosen, is_there, joined
from govtool.workflow.annotate.values import multiplied
from govtool.workflow.semirings.counts import standing_counts


def exploded_terms(a: Annotator, rows: Rows, node: Generate, call: Call) -> Rows:
    """``δ(group)·t``: the elements of a collected list are the rows that were collected."""
    column = call.arguments[0]
    if not isinstance(column, Attribute) or call.name != "explode" or node.outer:
        raise refused(f"{call.name} of a computed array")
    rows, table = a.keep(rows)
    cells, has_value = table.ids(rows.cells[column.id], chosen(is_there(column), LONG_ONE, LONG_ZERO))
    if has_value[cells == NONE].any():
        raise refused("explode of arrays of which some are collected and others not")
    if (cells == NONE).all():  # no row has an array
        plain = replace(node, child=rows.node, generator=call)
        return replace(rows, node=plain, columns=rows.columns + node.columns)
    terms = _collected(a, cells)
    owners, places = terms.inputs.expanded(_local_places(a, cells))
    parent, row, factor = (a.ids.attribute(name, LONG) for name in ("parent", "row", "factor"))
    lists = np.flatnonzero(cells != NONE)
    side = a.tables.load({parent: lists[owners], row: terms.rows[places], factor: terms.inputs.nodes[places]})
    assert terms.argument is not None
    value = Named(terms.argument, node.columns[0].id, node.columns[0].name)
    number = a.ids.named("row", terms.table.number)
    elements = Project(terms.table.node, (value, number))
    found = joined(joined(rows.node, side, alike(table.number, parent)), elements, alike(row, number.attribute))
    made = replace(rows, node=found, columns=rows.columns + node.columns, gate=a.either(rows.gate, terms.gate))
    made = multiplied(a, made, factor, LONG_ONE)
    return _recounted(a, made)


def _recounted(a: Annotator, rows: Rows) -> Rows:
    """Rows whose counts are those of their nodes: elements of rows that are gone are gone, too."""
    rows, table = a.keep(rows)
    (annotation,) = table.ids(rows.annotation)
    number, times = a.ids.attribute("row", LONG), a.ids.attribute("times", LONG)
    counts = standing_counts(a.circuit)[annotation]
    side = a.tables.load({number: np.arange(table.count), times: counts})
    node = joined(rows.node, side, alike(table.number, number))
    return replace(rows, node=node, times=times, candidates=True, bag=bool(len(counts) and counts.max() > 1))


def _collected(a: Annotator, cells: Array) -> Terms:
    known = cells[cells != NONE]
    block, _ = a.circuit.place(int(known[0]))
    last, _ = a.circuit.place(int(known[-1]))
    if not isinstance(block, Terms) or block is not last or block.call.name not in ("collect_list", "collect_set"):
        raise refused("explode of a computed array that is no collected list")
    return block


def _local_places(a: Annotator, cells: Array) -> Array:
    known = cells[cells != NONE]
    _, place = a.circuit.place(int(known[0]))
    found: Array = known - (known[0] - place)
    return found
