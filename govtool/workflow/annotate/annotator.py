"""The annotator: what the rules of all operators share while one plan is evaluated to annotated rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np  # noqa: TID253 - arrays of node ids; only what annotates imports this

from govtool.errors import UsageError
from govtool.records.plan.expressions import Attribute, Expression, Literal, Outer, passed
from govtool.records.plan.nodes import Project, Relation
from govtool.records.plan.tree import Node, walk
from govtool.records.plan.types import LONG
from govtool.records.trace.normal import Ids
from govtool.records.trace.segment import alike, free_columns
from govtool.workflow.annotate.circuit import NONE, ONE, Block, Circuit, Gate
from govtool.workflow.annotate.origins import Origins
from govtool.workflow.annotate.rows import Rows, joined, localized, shifted
from govtool.workflow.annotate.tables import Executor, KeptTable, TableStore

Leaves = Callable[[Relation], Rows]
"""Gives the annotated rows of a relation, under the ids of the relation's columns."""


@dataclass(frozen=True, slots=True)
class Context:
    """The rows of the query around a subquery.

    Attributes:
        rows: The rows; their table has ``number``.
        number: The number of each.
    """

    rows: Rows
    number: Attribute


Rule = Callable[["Annotator", Any, Context | None], Rows]
"""Annotates the rows of one operator; the annotator gives it those of the operators below."""
Rules = Mapping[type[Node], Rule]


class Annotator:
    """What the evaluation of one plan shares.

    Args:
        executor: Evaluates plans; its tables are the annotator's.
        ids: Ids of columns that the plan does not use.
        leaves: Gives the rows of relations.
        rules: The rule of each operator: ``operators.RULES``. They call the annotator for the operators below.
        circuit: Where nodes are put; it may have some already.
        origins: Where the origins of cells are put; None: they are not wanted.
        noted: Called after each operator that is in no query around, with the circuit and its first block.
        is_careful: Expressions that may fail on a value are evaluated only for rows that are there.
    """

    def __init__(
        self,
        executor: Executor,
        ids: Ids,
        leaves: Leaves,
        rules: Rules,
        circuit: Circuit | None = None,
        origins: Origins | None = None,
        noted: Callable[[Node, Circuit, int], None] | None = None,
        *,
        is_careful: bool = False,
    ) -> None:
        self.executor = executor
        self.ids = ids
        self.leaves = leaves
        self.rules = rules
        self.circuit = circuit or Circuit()
        self.tables = TableStore(executor, ids)
        self.origins = origins
        self.is_careful = is_careful
        self.ordered: set[int] = set()
        """Computed columns whose lists have the same order in every run."""
        self.unsettled = False
        """A value of a row that may not be there depends on the order of a collected list."""
        self._noted = noted

    def rows(self, node: Node, context: Context | None = None) -> Rows:
        """The annotated rows of a plan in the form of ``records.trace.normal``.

        Raises:
            UsageError: An operator or a function that the specification does not cover (``usage.why-unsupported``).
            NotExact: The executor is not exact on it.
        """
        rule = self.rules.get(type(node))
        if rule is None:
            raise refused(f"the operator {type(node).__name__}")
        first = len(self.circuit.blocks)
        rows = rule(self, node, context)
        if self._noted is not None and context is None:
            self._noted(node, self.circuit, first)
        return rows

    def whole(self, node: Node) -> Rows:
        """The annotated rows of a whole plan.

        Raises:
            UsageError: As ``rows``; rows that may appear have values that depend on the order of a collected list.
            NotExact: The executor is not exact on it.
        """
        rows = self.rows(node)
        if self.unsettled and rows.candidates:
            raise refused("rows that may appear with values that depend on the order of a collected list")
        return rows

    def keep(self, rows: Rows) -> tuple[Rows, KeptTable]:
        """Rows evaluated once and numbered; ``table.number`` is the number."""
        table = self.tables.numbered(Project(rows.node, tuple(map(passed, rows.everything))))
        return replace(rows, node=table.node), table

    def add(self, block: Block) -> int:
        """Add a block; return its first node."""
        return self.circuit.add(block)

    def either(self, *gates: int) -> int:
        """A gate that opens when one of several does."""
        known = sorted({gate for gate in gates if gate != NONE})
        if len(known) < 2:
            return known[0] if known else NONE
        return self.add(Gate(np.array(known), "same"))

    def annotated(self, rows: Rows, table: KeptTable, start: int) -> Rows:
        """Rows of a kept table whose annotations are the nodes of a block, one a row."""
        added = self.ids.named("node", shifted(table.number, start))
        rest = [column for column in rows.everything if column.id != rows.annotation.id]
        node = Project(rows.node, (*map(passed, rest), added, passed(table.number)))
        return replace(rows, node=node, annotation=added.attribute)

    def one(self, rows: Rows) -> Rows:
        """Rows that are there whatever else is."""
        added = self.ids.named("node", Literal(ONE, LONG))
        rest = [column for column in rows.everything if column.id != rows.annotation.id]
        return replace(rows, node=Project(rows.node, (*map(passed, rest), added)), annotation=added.attribute)

    # ---- queries around --------------------------------------------------------------------------------------------

    def contextual(self, rows: Rows, context: Context | None, wanted: tuple[Attribute, ...]) -> Rows:
        """Rows once for every row of the query around, with the columns of it that are read."""
        if context is None or (rows.context is not None and all(each.id in rows.outer for each in wanted)):
            return rows
        around = context.rows
        sources = {each.id: around.outer.get(each.id, each) for each in wanted}
        number = self.ids.named("context", context.number)
        copies = {key: self.ids.named(source.name, source) for key, source in sources.items()}
        cells = {key: around.cells[source.id] for key, source in sources.items() if source.id in around.cells}
        nodes = {key: self.ids.named("cell", cell) for key, cell in cells.items()}
        side = Project(around.node, (number, *copies.values(), *nodes.values()))
        same = None if rows.context is None else alike(rows.context, number.attribute)
        return replace(
            rows,
            node=joined(rows.node, side, same),
            context=number.attribute,
            outer={**rows.outer, **{key: copy.attribute for key, copy in copies.items()}},
            cells={**rows.cells, **{copies[key].id: named.attribute for key, named in nodes.items()}},
        )

    def local(self, rows: Rows, values: list[Expression], context: Context | None) -> tuple[Rows, list[Expression]]:
        """Expressions over the rows alone: columns of the query around are brought along."""
        wanted = {term.attribute.id: term.attribute for v in values for term in walk(v) if isinstance(term, Outer)}
        if not wanted:
            return rows, values
        if context is None:
            raise refused("a column of a query further out")
        rows = self.contextual(rows, context, tuple(wanted.values()))
        return rows, [localized(value, rows.outer) for value in values]

    def subcontext(self, rows: Rows, plan: Node, context: Context | None) -> tuple[Rows, KeptTable, Context | None]:
        """Rows kept, and the context in which a subquery over them is evaluated; None: it reads nothing of them."""
        free = free_columns(plan)
        own = {column.id for column in rows.columns} | set(rows.outer)
        further = tuple(each for each in free if each.id not in own)
        if further:
            rows = self.contextual(rows, context, further)
        rows, table = self.keep(rows)
        return rows, table, Context(rows, table.number) if free else None

    def in_context(self, rows: Rows, other: Rows, context: Context | None) -> Rows:
        """Rows evaluated for every row around if others are."""
        return rows if rows.context is not None or other.context is None else self.contextual(rows, context, ())


def same_context(left: Rows, right: Rows) -> Expression | None:
    """The condition that two rows belong to the same row of the query around; None if one belongs to none."""
    if left.context is None or right.context is None:
        return None
    return alike(left.context, right.context)


def refused(construct: str) -> UsageError:
    """The error of what the specification does not cover."""
    return UsageError(f"row-level provenance does not cover {construct}", code="usage.why-unsupported")
