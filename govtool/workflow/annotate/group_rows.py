"""Groups as rows: ``δ(Σ)`` or ``Σ`` over the rows of each."""

from __future__ import annotations

from dataclasses import replace

from govtool.records.plan.expressions import Attribute, Expression, Literal, passed
from govtool.records.plan.nodes import Project, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.trace.segment import unique
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.circuit import Delta, Inputs, Sum
from govtool.workflow.annotate.rows import LONG_ONE, Rows, chosen, shifted, there
from govtool.workflow.annotate.term_lists import Groups


def deltas(a: Annotator, found: Groups, columns: tuple[Attribute, ...]) -> Rows:
    """One row a group, annotated ``δ(Σ)``; its columns are plain."""
    start = a.add(Delta(_annotations(found), found.gate))
    if not found.rows.candidates:
        return _one_a_group(a, found, columns, start, LONG_ONE)
    return _one_a_group(a, found, columns, start, chosen(there(_total(found)), LONG_ONE, Literal(0, LONG)))


def summed(a: Annotator, found: Groups, columns: tuple[Attribute, ...]) -> Rows:
    """One row a group, annotated ``Σ``, and there as often as its rows are; its columns are plain."""
    start = a.add(Sum(_annotations(found), found.gate))
    return replace(_one_a_group(a, found, columns, start, _total(found)), bag=True)


def _annotations(found: Groups) -> Inputs:
    (annotation,) = found.table.ids(found.rows.annotation)
    return Inputs(found.members.offsets, annotation[found.members.nodes])


def _total(found: Groups) -> Attribute:
    """How often the rows of a group are there."""
    return [column for column in columns_of(found.groups.node) if column.name == "times"][-1]


def _one_a_group(
    a: Annotator, found: Groups, columns: tuple[Attribute, ...], start: int, count: Expression
) -> Rows:  # fmt: skip
    node = a.ids.named("node", shifted(found.groups.number, start))
    times = a.ids.named("times", count)
    made: Node = Project(found.groups.node, (*map(passed, columns_of(found.groups.node)), node, times))
    made, origins = with_origins(a, found, made)
    return Rows(
        made, columns, node.attribute, count if count == LONG_ONE else times.attribute, {}, origins,
        found.rows.context, candidates=found.rows.candidates, gate=found.gate,
    )  # fmt: skip


def with_origins(a: Annotator, found: Groups, node: Node) -> tuple[Node, dict[int, Attribute]]:
    """Rows of groups with the origins of their keys: those of all rows of the group."""
    if a.origins is None:
        return node, {}
    here = Literal(True, BOOLEAN) if found.rows.times == LONG_ONE else there(found.rows.times)
    (present,) = found.table.ids(chosen(here, LONG_ONE, Literal(0, LONG)))
    keys = {column.id for column in columns_of(found.groups.node)}
    added, origins = [], {}
    for number, column in found.rows.origins.items():
        if number in keys:
            start = a.origins.grouped(found.members, found.table.ids(column)[0], present.astype(bool))
            added.append(a.ids.named("origin", shifted(found.groups.number, start)))
            origins[number] = added[-1].attribute
    return Project(node, (*map(passed, columns_of(node)), *added)), origins


def columns_of(node: Node) -> tuple[Attribute, ...]:
    """The columns of rows, each once."""
    return unique(outputs(node))
