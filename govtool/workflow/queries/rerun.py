"""Replay of a deletion: the query evaluated again without some records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np  # noqa: TID253 - circuits are arrays; only what evaluates them imports this

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import passed
from govtool.records.plan.nodes import Join, Project, Relation
from govtool.records.plan.subqueries import everywhere
from govtool.records.plan.tree import Node
from govtool.records.plan.types import LONG
from govtool.records.sql.dialect import EvaluationFailed
from govtool.records.trace.carrier import RECORD
from govtool.records.trace.segment import alike
from govtool.workflow.annotate.query import AnnotatedQuery
from govtool.workflow.queries.statuses import RowDeletion, RowStatus, Values, key_of, stood_in


class ReplayDiffers(Exception):
    """A row that propagation was certain of is not in the re-run: floats that round to other digits."""


class RerunFailed(EvaluationFailed):
    """The query fails over what is left, as it may: a row that appears divides by zero."""


def rerun(query: AnnotatedQuery, plan: Node, gone: Array, sizes: Mapping[str, int]) -> list[Values]:
    """The rows of a query without some of its records.

    Args:
        query: The annotated query, whose executor evaluates it.
        plan: The query's plan.
        gone: Source nodes.
        sizes: The number of records of each relation.

    Raises:
        RerunFailed: The query fails over what is left.
    """
    executor, ids = query.table.store.executor, query.ids
    tables: dict[str, Relation] = {}
    for name, start in query.sources.items():
        inside = gone[(gone >= start) & (gone < start + sizes[name])]
        if len(inside):
            tables[name] = query.table.store.load({ids.attribute("gone", LONG): np.sort(inside) - start})

    def without(node: Node) -> Node:
        if not isinstance(node, Relation) or node.dataset not in tables:
            return node
        record = ids.attribute("record", LONG)
        read = replace(
            node, columns=(*node.columns, record), metadata=(*node.metadata, (record.id, RECORD))
        )  # fmt: skip
        (number,) = tables[node.dataset].columns
        copy = ids.named("gone", number)
        left = Join(read, Project(tables[node.dataset], (copy,)), "left_anti", alike(record, copy.attribute))
        return Project(left, tuple(map(passed, node.columns)))

    try:
        return executor.fetch(everywhere(plan, without))
    except EvaluationFailed as error:
        raise RerunFailed(str(error)) from error


def replayed(before: Sequence[Values], after: Sequence[Values], computed: Sequence[int]) -> RowDeletion:
    """Statuses from a re-run alone: rows with equal values are kept, others matched by what is not computed.

    Args:
        before: The rows before.
        after: The rows of the re-run.
        computed: The positions of computed columns.
    """
    return resolved(RowDeletion(tuple(RowStatus(row, "unknown") for row in before), (), True), after, computed)


def resolved(propagation: RowDeletion, after: Sequence[Values], computed: Sequence[int]) -> RowDeletion:
    """A deletion with a re-run's answer for what propagation left open; the rest stays as it is.

    A row that lost its derivation is open, too: another row may have its values in the re-run.

    Raises:
        ReplayDiffers: The re-run does not have a row that propagation was certain of.
    """
    left: dict[Any, list[Values]] = defaultdict(list)
    for row in after:
        left[key_of(row)].append(row)
    for each in propagation.rows:
        if each.after is not None:
            _take(left, each.after)
    arrived = [value for values in left.values() for value in values]
    rest = [row if row.after is not None else RowStatus(row.before, "deleted") for row in propagation.rows]
    rows, gains = stood_in(rest, arrived, computed)
    return RowDeletion(tuple(rows), tuple(gains), False, True)


def _take(left: dict[Any, list[Values]], row: Values) -> None:
    values = left[key_of(row)]
    if not values:
        raise ReplayDiffers(f"the re-run does not have {row}")
    values.pop()
