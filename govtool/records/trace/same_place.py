"""Rows that a trace came to at one boundary in several ways, as a pivot reads its rows for each of its sums: as one."""

from __future__ import annotations

from collections.abc import Sequence

from govtool.records.plan.expressions import Attribute, passed
from govtool.records.plan.nodes import Distinct, Project, Union, outputs
from govtool.records.plan.tree import Node
from govtool.records.trace.back import StagePosition
from govtool.records.trace.push import semijoined
from govtool.records.trace.segment import EXACT, alike, both, unique
from govtool.records.trace.traced_plan import TracedPlan


def as_one(lineage: TracedPlan, parts: Sequence[StagePosition]) -> StagePosition | None:
    """Rows of several stages over the same rows, each row once; None where their values do not tell rows apart.

    A link chooses rows by their values: rows that are equal are chosen together, so that the rows with the chosen
    values are the chosen ones.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    columns = unique(first.stage.segment.visible)
    if not all(lineage.can_match(column) for column in columns):
        return None
    whole = next((part for part in parts if part.rows is part.stage.segment.node), None)
    if whole is not None:
        return whole
    chosen = lineage.executor.keep(chosen_values(lineage, parts))
    same = both(alike(column, other) for column, other in zip(columns, outputs(chosen), strict=True))
    grade = EXACT
    for part in parts:
        grade = grade.worst(part.grade)
    return StagePosition(first.stage, semijoined(first.stage.segment.node, chosen, same), grade, first.against)


def chosen_values(lineage: TracedPlan, parts: Sequence[StagePosition]) -> Node:
    """The values of the rows of several stages over the same rows, each combination once, under new ids."""
    columns = unique(parts[0].stage.segment.visible)
    return Distinct(below_each_other(parts, [lineage.ids.attribute(each.name, each.type) for each in columns]))


def below_each_other(parts: Sequence[StagePosition], columns: Sequence[Attribute]) -> Union:
    """The rows of several stages over the same rows, those of one below those of another, under given columns."""
    rows = (Project(part.rows, tuple(map(passed, unique(part.stage.segment.visible)))) for part in parts)
    return Union(tuple(rows), tuple(columns))
