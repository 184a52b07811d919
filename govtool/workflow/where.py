"""Where-provenance of a query's rows: for each cell the cells that it was copied from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np  # noqa: TID253 - origins are arrays; only what reads them imports this

from govtool.records.plan.tree import Node
from govtool.workflow.annotate.origins import Origins
from govtool.workflow.annotate.query import AnnotatedQuery, annotate_query
from govtool.workflow.annotate.tables import Executor
from govtool.workflow.semirings.tokens import Tokens
from govtool.workflow.why import hashable


@dataclass(frozen=True, slots=True)
class CellOrigins:
    """For rows, by their values, the origins of each column's cell.

    Attributes:
        columns: Names of the columns.
        found: ``relation.token.column`` of every origin, by values and the position of the column.
    """

    columns: tuple[str, ...]
    found: Mapping[Any, Mapping[int, set[str]]]

    def of(self, values: tuple[Any, ...]) -> dict[str, list[str]]:
        """The origins of a row's cells, by column."""
        own = self.found.get(hashable(values), {})
        return {name: sorted(own.get(at, ())) for at, name in enumerate(self.columns)}


def cell_origins(
    plan: Node, executor: Executor, sizes: Mapping[str, int], tokens: Tokens, *, by_equality: bool
) -> CellOrigins:
    """The origins of the cells of the rows that are there.

    Args:
        plan: The query.
        executor: Evaluates it.
        sizes: The number of records of each relation.
        tokens: Names of the records.
        by_equality: A condition that two columns are equal gives both cells the origins of both.
    """
    origins = Origins(by_equality=by_equality)
    query = annotate_query(plan, executor, sizes, origins)
    columns = [column.to_pylist() for column in query.table.read(*query.columns)]
    values = list(zip(*columns, strict=True)) if columns else [()] * query.table.count
    there = np.flatnonzero(query.times() > 0)
    found: dict[Any, dict[int, set[str]]] = {}
    keys = {int(at): hashable(values[at]) for at in there}
    for place, column in enumerate(query.columns):
        for owner, name in _cells(query, origins, column.id, there, tokens):
            found.setdefault(keys[owner], defaultdict(set))[place].add(name)
    return CellOrigins(tuple(column.name for column in query.columns), found)


def _cells(query: AnnotatedQuery, origins: Origins, column: int, there: Any, tokens: Tokens) -> list[tuple[int, str]]:
    if column not in query.rows.origins:
        return []
    (nodes,) = query.table.ids(query.rows.origins[column])
    found = []
    for owners, cells, records in origins.resolved(there, nodes[there]):
        names = tokens.labels[cells.relation].take(records).to_pylist()
        found += [(int(o), f"{cells.relation}.{n}.{cells.column}") for o, n in zip(owners, names, strict=True)]
    return found
