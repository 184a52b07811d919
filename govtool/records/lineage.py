"""A recorded plan that can be traced: its output and its inputs as sets of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from govtool.errors import EvidenceError
from govtool.records.execute.inputs import relations
from govtool.records.plan.expressions import Attribute, Expression, Literal, Named
from govtool.records.plan.nodes import Distinct, Join, Project, Relation, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN, LONG
from govtool.records.recordset import RecordSet
from govtool.records.trace.back import ReachedRows, StagePosition
from govtool.records.trace.forward import input_key
from govtool.records.trace.leaf_names import is_called, leaf_name, unknown_input
from govtool.records.trace.rounding import is_close
from govtool.records.trace.segment import EXACT, Grade, alike, both, projected
from govtool.records.trace.selection import bound_condition, filtered
from govtool.records.trace.traced_plan import TracedPlan

Pairs = Sequence[tuple[Attribute, Named]]
"""Columns of the output, each with the value of rows that it is compared with."""
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
        named = [
            (column, self.ids.named(column.name, other))
            for column, other in zip(self.stage.segment.visible, outputs(rows), strict=True)
        ]
        plain = [pair for pair in named if self.can_match(pair[0])]
        close = [pair for pair in named if self.is_nearly(pair[0])]
        found, grade = self._found(kept, plain, () if plain else close)
        if plain and close and grade != EXACT:
            closely, better = self._found(kept, plain, close)
            found, grade = (found, grade) if better is None else (closely, better)
        if grade is None:
            raise EvidenceError(
                "the recorded plan does not give these rows again",
                code="evidence.not-reproduced",
                hint="a function, a clock or an order that was not recorded decided them, or an input changed; "
                "--records=eager keeps positions",
            )
        return RecordSet(self, (StagePosition(self.stage, found, grade),))

    def _found(self, kept: Node, plain: Pairs, close: Pairs = ()) -> tuple[Node, Grade | None]:
        """The rows of the plan with the values of given rows, and their grade; None if there are too few.

        Args:
            kept: The given rows.
            plain: Columns that are equal, each with that of the given rows.
            close: Columns of floats that are equal up to the order of a sum.
        """
        one = (self.ids.named("", Literal(1, LONG)),)  # without any column, rows are only counted
        values = Project(kept, tuple(named for _, named in (*plain, *close)) or one)
        same = [alike(column, named.attribute) for column, named in plain]
        same += [is_close(column, named.attribute) for column, named in close]
        # Evaluated once: rows that tie may come out otherwise the next time, and what is compared would not be traced.
        found = self.executor.keep(
            Join(self.stage.segment.node, values, "left_semi", both(same) or Literal(True, BOOLEAN))
        )
        given: Node = Project(kept, tuple(self.ids.named(n.name, n.value) for _, n in plain) or one)
        again: Node = self.executor.keep(Project(found, tuple(self.ids.named(c.name, c) for c, _ in plain) or one))
        if self.looseness is not None and self.looseness.unsure:
            given, again = (self.executor.keep(Distinct(each)) for each in (given, again))
        return found, None if self.exceeds(given, again) else self._compared(given, again)

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

    def reads(self, dataset: str) -> bool:
        """Return whether rows of an input can be traced forward."""
        return any(is_called(leaf, dataset) for leaf in (*self.leaves(), *self._unreached()))

    def input(self, dataset: str, condition: str | Expression | None = None) -> RecordSet:
        """Rows of an input, to be traced forward.

        Raises:
            UnknownNameError: The plan reads no such dataset.
            UsageError: The condition does not parse, or names what is not there.
        """
        leaves = {input_key(leaf): leaf for leaf in (*self.leaves(), *self._unreached()) if is_called(leaf, dataset)}
        if not leaves:
            raise unknown_input(dataset, map(leaf_name, self.leaves()))
        parts = []
        for leaf in leaves.values():
            node, record = self.read(leaf)
            if condition is not None:
                meets = bound_condition(condition, outputs(leaf), self.executor)
                node = filtered(self.executor, self.ids, node, meets)
            parts.append(ReachedRows(leaf, Distinct(projected(node, (record,)))))
        return RecordSet(self, tuple(parts))
