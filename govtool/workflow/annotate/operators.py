"""Operators that work row by row, and the table of all rules."""

from __future__ import annotations

from dataclasses import replace

from govtool.records.plan.expressions import Call, Literal, passed
from govtool.records.plan.nodes import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    Generate,
    Join,
    LateralJoin,
    Limit,
    LocalRows,
    Project,
    Range,
    Relation,
    SetOperation,
    Sort,
    Union,
    Window,
    outputs,
)
from govtool.records.plan.types import LONG
from govtool.records.trace.segment import conjuncts
from govtool.workflow.annotate.annotator import Annotator, Context, Rules, refused
from govtool.workflow.annotate.circuit import ONE
from govtool.workflow.annotate.collected import exploded_terms
from govtool.workflow.annotate.comma_joins import pushed
from govtool.workflow.annotate.conditions import restricted, valued
from govtool.workflow.annotate.groups import aggregate, distinct
from govtool.workflow.annotate.joins import join, lateral
from govtool.workflow.annotate.rows import LONG_ONE, Rows, pruned, reads_cells
from govtool.workflow.annotate.sets import set_operation
from govtool.workflow.annotate.unfolded import unfolded
from govtool.workflow.annotate.unions import united
from govtool.workflow.annotate.values import each_once, with_columns
from govtool.workflow.annotate.windows import limit, window


def relation(a: Annotator, node: Relation, context: Context | None) -> Rows:
    """A source record is its token."""
    return a.leaves(node)


def literal_rows(a: Annotator, node: LocalRows | Range, context: Context | None) -> Rows:
    """Rows that the query itself has are always there."""
    columns = (node.column,) if isinstance(node, Range) else node.columns
    annotation = a.ids.named("node", Literal(ONE, LONG))
    return Rows(Project(node, (*map(passed, columns), annotation)), columns, annotation.attribute, LONG_ONE)


def project(a: Annotator, node: Project, context: Context | None) -> Rows:
    """Unchanged; a cell that reads computed cells is computed, too."""
    rows = a.rows(node.child, context)
    rows, values = a.local(rows, [each.value for each in node.columns], context)
    rows, values = valued(a, rows, values, context)
    named = [replace(each, value=value) for each, value in zip(node.columns, values, strict=True)]
    rows = with_columns(a, rows, each_once(named))
    return pruned(rows, (each.attribute for each in named))


def filtered(a: Annotator, node: Filter, context: Context | None) -> Rows:
    """Unchanged; a conjunct on computed values is a guard, one on a subquery a semijoin or an antijoin."""
    child, parts = node.child, list(conjuncts(node.condition))
    if isinstance(child, Join):
        child, parts = pushed(child, parts)
    rows = a.rows(child, context)
    if child is not node.child:
        by_id = {column.id: column for column in rows.columns}
        rows = replace(rows, columns=tuple(by_id[column.id] for column in outputs(node.child)))
    for part in parts:
        rows = restricted(a, rows, part, context)
    return rows


def generate(a: Annotator, node: Generate, context: Context | None) -> Rows:
    """That of the row, once an element; elements of a collected list are the rows that were collected."""
    plain = unfolded(node, a.ids)
    if not isinstance(plain, Generate):
        return a.rows(plain, context)
    rows = a.rows(node.child, context)
    rows, (generator,) = a.local(rows, [node.generator], context)
    call = generator
    if not isinstance(call, Call):
        raise refused("a function of the user that makes rows")
    if reads_cells(call, rows):
        return exploded_terms(a, rows, node, call)
    made = replace(node, child=rows.node, generator=call)
    return replace(rows, node=made, columns=rows.columns + node.columns)


def union(a: Annotator, node: Union, context: Context | None) -> Rows:
    """Rows side by side."""
    parts = [a.rows(child, context) for child in node.children]
    first = next((part for part in parts if part.context is not None), parts[0])
    parts = [a.in_context(part, first, context) for part in parts]
    return united(a, parts, node.columns)


def expand(a: Annotator, node: Expand, context: Context | None) -> Rows:
    """That of the row, once a projection."""
    rows, _ = a.keep(a.rows(node.child, context))
    parts = []
    for line in node.projections:
        named = [a.ids.named(column.name, value) for value, column in zip(line, node.columns, strict=True)]
        wider = with_columns(a, rows, named)
        parts.append(pruned(wider, (each.attribute for each in named)))
    return united(a, parts, node.columns)


def sort(a: Annotator, node: Sort, context: Context | None) -> Rows:
    """Unchanged: order is not provenance."""
    return a.rows(node.child, context)


RULES: Rules = {
    Relation: relation, LocalRows: literal_rows, Range: literal_rows, Project: project, Filter: filtered,
    Generate: generate, Union: union, Expand: expand, Sort: sort, Join: join, LateralJoin: lateral,
    Aggregate: aggregate, Distinct: distinct, SetOperation: set_operation, Window: window, Limit: limit,
}  # fmt: skip
"""The rule of every operator that the specification covers."""
