"""A recorded write, opened: its plan over the files that still are what was read, ready to be traced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from govtool.app.records.written_files import renamed, written_output
from govtool.errors import EvidenceError, UsageError
from govtool.records.execute.chain import ExecutorChain
from govtool.records.lineage import DUPLICATES, Lineage
from govtool.records.plan.expressions import Attribute, Call, Named
from govtool.records.plan.nodes import Distinct, Filter, Join, Plan, Project, Relation, outputs
from govtool.records.plan.tree import Node
from govtool.records.plan.types import BOOLEAN
from govtool.records.recordset import RecordSet
from govtool.records.replay.choices import chooses_rows, without_choices
from govtool.records.trace.back import ReachedRows, StagePosition, count_rows
from govtool.records.trace.computed import computed
from govtool.records.trace.list_order import depends_on_order
from govtool.records.trace.lost_inputs import around_lost_inputs
from govtool.records.trace.push import semijoined
from govtool.records.trace.rounding import is_close
from govtool.records.trace.segment import EXACT, Grade, alike, both, projected, reads, unique
from govtool.records.trace.selection import bound_condition

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.sidecar.lookup import SidecarUse

_FACTS = ("run", "output", "refused", "keys", "session", "evaluated")
"""What a lineage knows of a write beside its plan."""
PARTIAL = Grade("superset", "rows were matched by the columns that are not computed")


@dataclass(frozen=True, slots=True)
class OpenedWrite:
    """A recorded write that can be traced.

    Attributes:
        run: What the store holds of it.
        plan: Its rows, columns named as in the output, over the files that are still what was read.
        lineage: The plan, cut at its boundaries.
        executor: Evaluates it.
        output: The files that it wrote, if they are still what was written.
        sidecars: Key sidecars that rows are looked up in.
        record: The column of the outermost stage that has the ids of written rows, where a trace goes by positions
            that the run kept; None: it goes by the plan.
        untouched: Cells that the run may have chosen are blank without a look at the rows: no condition reads them.
    """

    run: RecordRun
    plan: Plan
    lineage: Lineage
    executor: ExecutorChain
    output: Relation | None
    sidecars: SidecarUse
    record: Attribute | None = None
    untouched: bool = False

    def rows(self, condition: str | None = None) -> RecordSet:
        """The output rows that meet a condition.

        The condition is evaluated over the plan's own rows. Where input files are missing, cells cannot be evaluated
        again, or another evaluation may choose other rows, it is evaluated over the recorded output, and the rows are
        matched by the columns that are the same in both.

        Raises:
            UsageError: The condition does not parse, or names what is not there.
            EvidenceError: Another evaluation of the plan chose other rows (``evidence.not-reproduced``).
        """
        lineage = self.lineage
        if (
            self.record is not None
            or self.output is None
            or self.untouched
            or not (
                lineage.refused
                or lineage.blank
                or lineage.looseness
                or chooses_rows(self.plan.root)
                or (condition is not None and self.reads_order(condition))
            )
        ):
            return lineage.loose_rows(condition)
        if lineage.refused:
            return self._over_the_rest(self._written(self.output, condition), self.output)
        try:
            return lineage.recorded(self._written(self.output, condition))
        except EvidenceError:
            if not chooses_rows(self.plan.root):
                raise
        around = self._around_choices()
        return around.lineage.recorded(around._written(around.output or self.output, condition))

    def as_written(self) -> OpenedWrite:
        """This write; where its plan gives other rows than the run chose, one in which the choices are not known."""
        if self.record is not None or self.output is None or self.lineage.refused:
            return self
        if not chooses_rows(self.plan.root):
            return self
        try:
            self.lineage.recorded(self.output)
        except EvidenceError:
            return self._around_choices()
        return self

    def _written(self, output: Relation, condition: str | None) -> Node:
        if condition is None:
            return output
        return Filter(output, bound_condition(condition, outputs(output), self.executor))

    def _around_choices(self) -> OpenedWrite:
        """A plan in which it is not known what the run chose: traces go by the written rows."""
        return self._with_plan(without_choices(self.plan.root))

    def around_lost_inputs(self) -> OpenedWrite | None:
        """A plan in which it is not known what rows joined inputs had that are gone; None where none is joined."""
        lost = {each.dataset for each in self.lineage.refused}
        root = around_lost_inputs(self.plan.root, lost)
        if self.output is None or root == self.plan.root:
            return None
        around = self._with_plan(root)
        return around if around.output is not None and around.lineage.leaves() else None

    def _with_plan(self, root: Node) -> OpenedWrite:
        """This write by another plan, of which parts cannot be evaluated again."""
        facts = {name: getattr(self.lineage, name) for name in _FACTS}
        lineage = Lineage.in_part(root, self.executor, **facts)
        output = written_output(self.run, root, lineage)
        lineage = replace(lineage, written=output)
        return replace(self, plan=Plan(root, self.plan.session), lineage=lineage, output=output)

    def reads_order(self, condition: str) -> bool:
        """Return whether a condition depends on the order of collected lists, or of the terms of a sum of floats."""
        lists, rounded = self.lineage.lists, self.lineage.rounded
        if not (lists or rounded):
            return False
        meets = bound_condition(condition, self.lineage.stage.segment.visible, self.executor)
        return bool(reads([meets]) & rounded) or depends_on_order(meets, lists)

    def selected(self, condition: str) -> int | None:
        """The number of written rows that meet a condition; None where the plan's rows over the inputs are the run's.

        Raises:
            UsageError: The condition does not parse, or names what is not there.
        """
        lineage = self.lineage
        if self.output is None or self.record is not None or self.untouched:
            return None
        if not (lineage.looseness or lineage.blank or lineage.refused):
            return None
        return count_rows(
            self.executor, Filter(self.output, bound_condition(condition, outputs(self.output), self.executor))
        )

    def at_places(self, output: Relation, ids: Sequence[tuple[int, int]]) -> RecordSet:
        """The output rows at given places of the written files.

        Args:
            output: The written files, or some of them: see ``written_output``.
            ids: File ordinal and row index of each.

        Raises:
            EvidenceError: The plan does not give these rows again.
        """
        if self.record is not None:
            return self._by_record(self.record, ids)
        if not self.lineage.refused:
            return self.lineage.rows(output, ids)
        return self._over_the_rest(self.lineage.at_places(output, ids), output)

    def _over_the_rest(self, chosen: Node, output: Relation) -> RecordSet:
        """The plan's rows with the values of written rows; where no such row can be without the inputs that are gone,
        the rows of the others that may have been joined with these.
        """
        found = self._matched(chosen, output)
        around = None if found.count() else self.around_lost_inputs()
        return found if around is None else around._matched(chosen, output)

    def _by_record(self, record: Attribute, ids: Sequence[tuple[int, int]]) -> RecordSet:
        places = self.lineage.kept_records(ids)
        (wanted,) = outputs(places)
        stage = self.lineage.stage
        found = semijoined(stage.segment.node, places, Call("=", (record, wanted), BOOLEAN))
        return RecordSet(self.lineage, (StagePosition(stage, found),))

    def _matched(self, chosen: Node, output: Relation) -> RecordSet:
        """The plan's rows with the values of rows of the output, in the columns that are not computed."""
        lineage, stage = self.lineage, self.lineage.stage
        kept = self.executor.keep(chosen)
        copies = {column.id: lineage.ids.named(column.name, column) for column in unique(outputs(kept))}
        own = computed(self.plan.root)
        pairs = list(zip(stage.segment.visible, output.columns, strict=True))
        plain = [(c, other) for c, other in pairs if c.id not in own and lineage.can_match(c)]
        same = both(alike(column, copies[other.id].attribute) for column, other in plain)
        found = Join(stage.segment.node, Project(kept, tuple(copies.values())), "left_semi", same)
        grade = lineage.loosely(EXACT).worst(EXACT if len(plain) == len(pairs) else PARTIAL)
        return RecordSet(lineage, (StagePosition(stage, found, grade),))

    def in_output(self, position: StagePosition) -> RecordSet | None:
        """Output rows as records of the written files; None where they are not found there, value by value."""
        if self.output is None:
            return None
        if self.record is not None:
            rows = Distinct(projected(position.rows, (self.record,)))
            return RecordSet(self.lineage, (ReachedRows(self.output, rows, position.grade),))
        visible = position.stage.segment.visible
        kept = self.executor.keep(Project(position.rows, tuple(map(renamed, unique(visible)))))
        copies = {column.id: self.lineage.ids.named(column.name, column) for column in outputs(kept)}
        node, record = self.lineage.read(self.output)
        pairs = [(column, copies[other.id], other) for column, other in zip(self.output.columns, visible, strict=True)]
        same = [alike(column, copy.attribute) for column, copy, other in pairs if self.lineage.can_match(other)]
        close = [is_close(column, copy.attribute) for column, copy, other in pairs if self.lineage.is_nearly(other)]
        grade: Grade | None = None
        for conditions in (same, [*same, *close]) if close else (same,):
            found = Join(node, Project(kept, tuple(copies.values())), "left_semi", both(conditions))
            these = Distinct(projected(found, (record,)))
            own = self._found_again(kept, these) if self.lineage.looseness is None else self._loosely_found(kept, these)
            if own is not None or grade is None:
                grade, rows = own, these
            if grade == EXACT and (conditions is not same or not close or self._is_all_of(kept, found, pairs)):
                break
        if grade is None:
            return None
        grade = position.grade.worst(grade)
        return RecordSet(self.lineage, (ReachedRows(self.output, rows, grade),))

    def _is_all_of(self, kept: Node, found: Node, pairs: Sequence[tuple[Attribute, Named, Attribute]]) -> bool:
        """Return whether written rows have the values of rows of the plan, each as often, but for sums of floats."""
        ids = self.lineage.ids
        plain = [(column, copy.value) for column, copy, other in pairs if self.lineage.can_match(other)]
        if not plain:
            return True
        values = Project(kept, tuple(ids.named(column.name, value) for column, value in plain))
        written = Project(found, tuple(ids.named(column.name, column) for column, _ in plain))
        return not self.lineage.exceeds(written, values)

    def gives_its_rows(self) -> bool:
        """Return whether the plan's rows are those that the run wrote, though its files are gone or were written again.

        Its inputs are what they were, and nothing is chosen or computed that another evaluation may give otherwise.
        """
        lineage = self.lineage
        is_loose = lineage.refused or lineage.blank or lineage.lists or lineage.looseness
        return self.output is None and not is_loose and not chooses_rows(self.plan.root)

    def _found_again(self, kept: Node, rows: Node) -> Grade | None:
        """The grade of written rows with the values of rows of the plan; None if there are too few."""
        there, wanted = count_rows(self.executor, rows), count_rows(self.executor, kept)
        if there < wanted:
            return None
        return DUPLICATES if there > wanted else EXACT

    def _loosely_found(self, kept: Node, rows: Node) -> Grade:
        """The same of a plan that may have more rows than the run: exact where just these have the written values."""
        lineage = self.lineage
        assert lineage.looseness is not None
        visible = lineage.stage.segment.visible
        there = count_rows(self.executor, rows)
        if lineage.looseness.unsure or there != count_rows(self.executor, kept):
            return lineage.loosely(EXACT)
        copies = {column.id: lineage.ids.named(column.name, column) for column in outputs(kept)}
        same = both(alike(c, copies[c.id].attribute) for c in unique(visible) if lineage.can_match(c))
        every = Join(lineage.stage.segment.node, Project(kept, tuple(copies.values())), "left_semi", same)
        return EXACT if count_rows(self.executor, every) == there else lineage.loosely(EXACT)

    @property
    def unverified(self) -> tuple[str, ...]:
        """The output's columns that cannot be evaluated again: ``verified`` leaves them out."""
        visible = self.lineage.stage.segment.visible
        return tuple(column.name for column in visible if column.id in self.lineage.blank)

    def verified(self) -> bool:
        """Evaluate the plan again; return whether its rows are the written ones, each as often.

        Cells that cannot be evaluated again are left out; lists that an aggregate collects may have any order.

        Raises:
            UsageError: The written files are not known or not there any more, or the plan has operators that cannot be
                evaluated again (``usage.verify``).
        """
        from govtool.records.execute.compare import same_rows

        if self.lineage.looseness is not None:
            raise UsageError(
                f"the rows of {self.run.run} cannot be evaluated again: {self.lineage.looseness.why}",
                code="usage.verify",
            )
        if self.output is None:
            raise UsageError(
                f"the files that {self.run.run} wrote are gone, have changed or are not known: there is nothing to "
                "compare with",
                code="usage.verify",
            )
        visible = self.lineage.stage.segment.visible
        places = [i for i, column in enumerate(visible) if column.id not in self.lineage.blank]
        again = self.executor.arrow(Project(self.lineage.stage.segment.node, tuple(map(renamed, visible))))
        written = self.executor.arrow(self.output)
        unordered = {n for n, place in enumerate(places) if visible[place].id in self.lineage.lists}
        return same_rows(again.select(places), written.select(places), unordered)
