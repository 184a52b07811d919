"""A recorded plan that can be traced: its output and its inputs as sets of records."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from govtool.errors import EvidenceError, UnknownNameError
from govtool.records.execute.inputs import relations
from govtool.records.plan.expressions import Expression
from govtool.records.plan.nodes import Distinct, Join, Project, Relation, outputs
from govtool.records.plan.tree import Node
from govtool.records.recordset import RecordSet
from govtool.records.trace.back import ReachedRows, StagePosition
from govtool.records.trace.forward import input_key
from govtool.records.trace.leaf_names import is_called, leaf_name
from govtool.records.trace.segment import EXACT, Grade, alike, both, projected
from govtool.records.trace.selection import bound_condition, filtered
from govtool.records.trace.traced_plan import TracedPlan

DUPLICATES = Grade("superset", "duplicates: other rows of the output have the same values")


@dataclass(frozen=True, slots=True)
class Lineage(TracedPlan):
    """A plan whose output and inputs are sets of records."""

    def all(self) -> RecordSet:
        """Every row of the output."""
        return RecordSet(self, (StagePosition(self.stage, self.stage.segment.node),))

    def loose_rows(self, condition: str | Expression | None = None) -> RecordSet:
        """The rows of the plan that meet a condition, graded as such: some may not have been the run's.

        Raises:
            UsageError: It does not parse, or names what is not there.
        """
        found = self.all() if condition is None else self.where(condition)
        (part,) = found.parts
        assert isinstance(part, StagePosition)
        return RecordSet(self, (StagePosition(part.stage, part.rows, self.loosely(part.grade)),))

    def where(self, condition: str | Expression) -> RecordSet:
        """The output rows that meet a condition, a Spark SQL boolean expression.

        Raises:
            UsageError: It does not parse, or names what is not there.
        """
        return self.all().where(condition)

    def recorded(self, rows: Node) -> RecordSet:
        """The rows of the output that have the values of given rows: by position, NULL being one value.

        Where the output has more rows with these values than are given, nothing distinguishes them: a superset.

        Args:
            rows: A plan of rows as the run wrote them.

        Raises:
            EvidenceError: The plan does not give these rows again.
        """
        kept = self.executor.keep(rows)
        pairs = [
            (column, self.ids.named(column.name, other))
            for column, other in zip(self.stage.segment.visible, outputs(rows), strict=True)
            if self.can_match(column)
        ]
        given: Node = Project(kept, tuple(named for _, named in pairs))
        same = both(alike(column, named.attribute) for column, named in pairs)
        found = Join(self.stage.segment.node, given, "left_semi", same)
        again: Node = self.executor.keep(
            Project(found, tuple(self.ids.named(column.name, column) for column, _ in pairs))
        )
        if self.looseness is not None and self.looseness.unsure:
            given, again = (self.executor.keep(Distinct(each)) for each in (given, again))
        if self.exceeds(given, again):
            raise EvidenceError(
                "the recorded plan does not give these rows again",
                code="evidence.not-reproduced",
                hint="a function, a clock or an order that was not recorded decided them, or an input changed",
            )
        grade = self._compared(given, again)
        return RecordSet(self, (StagePosition(self.stage, found, grade),))

    def _compared(self, given: Node, again: Node) -> Grade:
        """The grade of rows of the plan that have the values of given rows, these among them."""
        if self.looseness is None:
            return DUPLICATES if self.exceeds(again, given) else EXACT
        if self.looseness.unsure or self.exceeds(again, given):
            return self.loosely(EXACT)
        return EXACT

    def rows(self, output: Relation, ids: Iterable[tuple[int, int]]) -> RecordSet:
        """The output rows that a run wrote at given places.

        Args:
            output: The written files.
            ids: File ordinal and row index of each.

        Raises:
            EvidenceError: The plan does not give these rows again.
        """
        return self.recorded(self.at_places(output, ids))

    def _unreached(self) -> list[Relation]:
        """Inputs that no trace comes to, such as the list of a NOT IN: none of their rows is behind a row."""
        return [] if self.plan is None or self.looseness is not None else relations(self.plan)

    def input(self, dataset: str, condition: str | Expression | None = None) -> RecordSet:
        """Rows of an input, to be traced forward.

        Raises:
            UnknownNameError: The plan reads no such dataset.
            UsageError: The condition does not parse, or names what is not there.
        """
        leaves = {input_key(leaf): leaf for leaf in (*self.leaves(), *self._unreached()) if is_called(leaf, dataset)}
        if not leaves:
            known = sorted({leaf_name(leaf) for leaf in self.leaves()})
            near = tuple(difflib.get_close_matches(dataset, known)) or tuple(known[:3])
            raise UnknownNameError(f"'{dataset}' is no input", code="usage.unknown-dataset", nearest=near)
        parts = []
        for leaf in leaves.values():
            node, record = self.read(leaf)
            if condition is not None:
                node = filtered(self.executor, self.ids, node, bound_condition(condition, outputs(leaf)))
            parts.append(ReachedRows(leaf, Distinct(projected(node, (record,)))))
        return RecordSet(self, tuple(parts))
