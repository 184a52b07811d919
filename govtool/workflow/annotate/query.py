"""A whole query annotated: its result rows, candidates included, over the records of its relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from govtool.arrays.sets import Array
from govtool.records.plan.expressions import Attribute, passed
from govtool.records.plan.nodes import Project, Relation
from govtool.records.plan.tree import Node
from govtool.records.plan.types import LONG
from govtool.records.sql.dialect import EvaluationFailed
from govtool.records.trace.carrier import RECORD
from govtool.records.trace.normal import Ids, normalized, spare_ids
from govtool.workflow.annotate.annotator import Annotator
from govtool.workflow.annotate.circuit import Circuit, Sources
from govtool.workflow.annotate.early_filters import filters_first
from govtool.workflow.annotate.operators import RULES
from govtool.workflow.annotate.origins import Origins
from govtool.workflow.annotate.rows import LONG_ONE, Rows, shifted
from govtool.workflow.annotate.tables import Executor, KeptTable


@dataclass(frozen=True, slots=True)
class AnnotatedQuery:
    """The result of a query with its provenance.

    Attributes:
        circuit: The annotations.
        rows: The result rows and candidates; their node is ``table``'s.
        table: The rows, numbered.
        sources: For each relation that was read the node of its first record.
        plan: The plan that was annotated.
        ids: Ids of columns to spare.
        origins: The origins of cells, where they were wanted.
    """

    circuit: Circuit
    rows: Rows
    table: KeptTable
    sources: Mapping[str, int]
    plan: Node
    ids: Ids
    origins: Origins | None = None

    @property
    def columns(self) -> tuple[Attribute, ...]:
        """The columns of the result, in order."""
        return self.rows.columns

    def annotations(self) -> Array:
        """The p-node of each row."""
        return self.table.ids(self.rows.annotation)[0]

    def times(self) -> Array:
        """How often each row is there."""
        return self.table.ids(self.rows.times)[0]

    def cells(self) -> dict[int, Array]:
        """The v-nodes of the columns that have some, by the column's id: a node a row, or ``NONE``."""
        found = [column.id for column in dict.fromkeys(self.columns) if column.id in self.rows.cells]
        return dict(zip(found, self.table.ids(*(self.rows.cells[number] for number in found)), strict=True))


def annotate_query(
    plan: Node, executor: Executor, sizes: Mapping[str, int], origins: Origins | None = None
) -> AnnotatedQuery:
    """Evaluate a plan with its provenance.

    An expression that fails on a value of a row that the query leaves out does not fail the query: it is then
    annotated again, with filters first and such expressions evaluated only for rows that are there.

    Args:
        plan: The query.
        executor: Evaluates plans; its tables are this query's.
        sizes: For each relation, by ``dataset``, the number of its records. A relation is one file.
        origins: Where the origins of cells are put; None: they are not wanted.

    Raises:
        UsageError: The specification does not cover an operator or a function (``usage.why-unsupported``).
        NotExact: The executor is not exact on it.
    """
    try:
        return _annotated(plan, executor, sizes, origins, is_careful=False)
    except EvaluationFailed:
        return _annotated(plan, executor, sizes, origins, is_careful=True)


def _annotated(
    plan: Node, executor: Executor, sizes: Mapping[str, int], origins: Origins | None, *, is_careful: bool
) -> AnnotatedQuery:
    ids = spare_ids(plan)
    node = normalized(plan, ids)
    if is_careful:
        node = filters_first(node)
    circuit = Circuit()
    starts: dict[str, int] = {}

    def leaf(relation: Relation) -> Rows:
        if relation.dataset not in starts:
            starts[relation.dataset] = circuit.add(Sources(sizes[relation.dataset], relation.dataset))
        name = relation.dataset
        rows = record_rows(ids, relation, starts[name])
        return rows if origins is None else origins.read(annotator.tables, rows, name, starts[name], sizes[name])

    annotator = Annotator(executor, ids, leaf, RULES, circuit, origins, is_careful=is_careful)
    rows, table = annotator.keep(annotator.whole(node))
    return AnnotatedQuery(circuit, rows, table, starts, node, ids, origins)


def record_rows(ids: Ids, relation: Relation, start: int) -> Rows:
    """The rows of a relation of one file, whose records are nodes from ``start``."""
    record = ids.attribute("record", LONG)
    read = replace(
        relation, columns=(*relation.columns, record), metadata=(*relation.metadata, (record.id, RECORD))
    )  # fmt: skip
    node = ids.named("node", shifted(record, start))
    columns = tuple(map(passed, relation.columns))
    return Rows(Project(read, (*columns, node)), relation.columns, node.attribute, LONG_ONE)
