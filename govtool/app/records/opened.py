"""A recorded write, opened: its plan over the files that still are what was read, ready to be traced."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.records.engines import engines, own_files
from govtool.app.records.frame_positions import KeptPositions
from govtool.app.records.keys import declared_keys
from govtool.app.records.tables import read_plan, read_positions
from govtool.config import load_config
from govtool.errors import EvidenceError, UsageError
from govtool.model.positions import decode_positions
from govtool.records.execute.chain import ExecutorChain
from govtool.records.execute.inputs import changed, relations
from govtool.records.execute.places import Place, place_of
from govtool.records.leaves import with_files
from govtool.records.lineage import DUPLICATES, Lineage
from govtool.records.plan.expressions import Attribute, Call, Named, Opaque, Udf, UdfReference
from govtool.records.plan.nodes import (
    Distinct,
    Filter,
    Join,
    Plan,
    Project,
    Relation,
    Repartition,
    Write,
    outputs,
)
from govtool.records.plan.subqueries import everywhere
from govtool.records.plan.tree import Node, Term, rewrite, walk, walk_nodes
from govtool.records.plan.types import BOOLEAN
from govtool.records.recordset import RecordSet
from govtool.records.split_plans import readable, relation_of
from govtool.records.trace.answer import RefusedFile
from govtool.records.trace.back import ReachedRows, StagePosition, count_rows
from govtool.records.trace.computed import computed
from govtool.records.trace.list_order import depends_on_order
from govtool.records.trace.looseness import has_breaks
from govtool.records.trace.normal import Ids, spare_ids
from govtool.records.trace.push import semijoined
from govtool.records.trace.rounding import is_close
from govtool.records.trace.segment import EXACT, Grade, alike, both, projected, reads, unique
from govtool.records.trace.selection import bound_condition
from govtool.records.trace.ties import ChosenCell, TieCheck, always_tied, never_tied
from govtool.records.trace.undetermined import settled

if TYPE_CHECKING:
    from govtool.model.records import RecordRun
    from govtool.records.sidecar.lookup import SidecarUse
    from govtool.records.trace.answer import EvaluatedInput
    from govtool.store import Commit, Reader

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
                or _chooses_rows(self.plan.root)
                or (condition is not None and self.reads_order(condition))
            )
        ):
            return lineage.loose_rows(condition)
        if lineage.refused:
            return self._matched(self._written(self.output, condition), self.output)
        try:
            return lineage.recorded(self._written(self.output, condition))
        except EvidenceError:
            if not _chooses_rows(self.plan.root):
                raise
        around = self._around_choices()
        return around.lineage.recorded(around._written(around.output or self.output, condition))

    def as_written(self) -> OpenedWrite:
        """This write; where its plan gives other rows than the run chose, one in which the choices are not known."""
        if self.record is not None or self.output is None or self.lineage.refused:
            return self
        if not _chooses_rows(self.plan.root):
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
        from govtool.records.replay.choices import without_choices

        root = without_choices(self.plan.root)
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
        return self._matched(self.lineage.at_places(output, ids), output)

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
        grade = lineage.loosely(EXACT if len(plain) == len(pairs) else PARTIAL)
        return RecordSet(lineage, (StagePosition(stage, found, grade),))

    def in_output(self, position: StagePosition) -> RecordSet | None:
        """Output rows as records of the written files; None where they are not found there, value by value."""
        if self.output is None:
            return None
        if self.record is not None:
            rows = Distinct(projected(position.rows, (self.record,)))
            return RecordSet(self.lineage, (ReachedRows(self.output, rows, position.grade),))
        visible = position.stage.segment.visible
        kept = self.executor.keep(Project(position.rows, tuple(map(_renamed, unique(visible)))))
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
        return self.output is None and not is_loose and not _chooses_rows(self.plan.root)

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
        again = self.executor.arrow(Project(self.lineage.stage.segment.node, tuple(map(_renamed, visible))))
        written = self.executor.arrow(self.output)
        unordered = {n for n, place in enumerate(places) if visible[place].id in self.lineage.lists}
        return same_rows(again.select(places), written.select(places), unordered)


def open_write(
    store: Reader,
    commit: Commit,
    run: RecordRun,
    sidecars: SidecarUse | None = None,
    *,
    in_part: bool = False,
    kept: bool = False,
    chosen_by: str | None = None,
    evaluated: bool = False,
    down_to: Collection[str] = (),
) -> OpenedWrite:
    """Read a write's plan, check its files, and cut it at its boundaries.

    Args:
        store: The store.
        commit: Plans are those of this commit.
        run: The write.
        sidecars: Key sidecars to look rows up in.
        in_part: Trace around operators that cannot be evaluated again: see ``govtool.records.trace.loosen``. Rows of
            such a plan are not all the run's.
        kept: Trace by positions that the run kept, if there are any, instead of the plan.
        chosen_by: The condition that chooses rows of the output, if inputs alone are shown of their trace. Whether rows
            tie for a cell that it does not read, and that decides no rows, is then not looked for.
        evaluated: Inputs that are gone or have changed are evaluated again by the plans of the runs that wrote them,
            where these give the same rows.
        down_to: With ``evaluated``, datasets that the plan is to read itself: see ``evaluated_inputs``.

    Raises:
        EvidenceError: What was made of one of ``down_to`` cannot be evaluated again (``evidence.not-reproduced``).
        UsageError: The plan cannot be traced, its private values were removed, or the condition is mistaken.
        StoreError: A fragment cannot be read.
    """
    from govtool.records.sidecar.lookup import SidecarUse

    sidecars = sidecars or SidecarUse()
    plan = read_plan(store, commit, run)
    again: tuple[EvaluatedInput, ...] = ()
    why: Mapping[str, str] = {}
    if evaluated and not (kept and run.positions):
        from govtool.app.records.evaluated_inputs import evaluated_inputs

        plan, again, why = evaluated_inputs(store, commit, run, plan, down_to)
    leaves = relations(plan.root)
    there, refused = _over_unchanged_files(plan, leaves, why)
    positions = _positions(store, commit, run) if kept else None
    if positions is not None:
        opened = _by_positions(run, there, positions, refused, sidecars)
        if opened is not None:
            return opened
    executor = ExecutorChain(engines(plan.session, sidecars, root=plan.root))
    whole = without_lost_functions(there.root)
    keys = declared_keys(leaves, _own_keys())
    facts = {"run": run.run, "output": run.output or run.run, "refused": refused, "keys": keys, "session": plan.session}
    facts["evaluated"] = again
    is_whole = not refused
    untouched = None
    if is_whole and chosen_by is not None:
        untouched = _untouched(Plan(whole, plan.session), executor, chosen_by, facts)
    if untouched is None:
        # Over a part of the inputs, no rows may tie where some did.
        tied = always_tied if not is_whole else TieCheck(executor, spare_ids(whole), whole)
        root = titled(settled(whole, plan.session, tied))
        lineage = (Lineage.in_part if in_part else Lineage.of)(root, executor, **facts)
    else:
        root, lineage = untouched
    output = written_output(run, root, lineage)
    lineage = replace(lineage, written=output)
    return OpenedWrite(
        run, Plan(root, plan.session), lineage, executor, output, sidecars, untouched=untouched is not None
    )


def _over_unchanged_files(
    plan: Plan, leaves: Sequence[Relation], why: Mapping[str, str]
) -> tuple[Plan, tuple[RefusedFile, ...]]:
    """A plan over the files that are as they were, and the others with the reason; ``why`` adds to a dataset's."""
    lost = changed(leaves)
    reasons = (f"{each.reason}: {why[each.dataset]}" if each.dataset in why else each.reason for each in lost)
    refused = tuple(RefusedFile(each.dataset, each.uri, reason) for each, reason in zip(lost, reasons, strict=True))
    gone = {(each.dataset, each.uri) for each in lost}
    files = {leaf.leaf: [file for file in leaf.files if (leaf.dataset, file.uri) not in gone] for leaf in leaves}
    return Plan(with_files(plan.root, files), plan.session) if gone else plan, refused


def _untouched(
    plan: Plan, executor: ExecutorChain, chosen_by: str, facts: dict[str, Any]
) -> tuple[Node, Lineage] | None:
    """A plan whose choosing cells and calls of functions are blank, where a condition on the output reads none of them.

    Its rows and their traces are the run's, whatever the run chose. None where such cells decide rows, and where there
    are none.
    """
    functions = dict.fromkeys(_functions(plan.root), "a function of the user's is not called")
    root = titled(settled(_without_functions(plan.root, functions), plan.session))
    has_chosen = any(isinstance(term, ChosenCell) for node in walk_nodes(root) for term in walk(node))
    if not (has_chosen or functions) or _chooses_rows(root):
        return None
    if has_breaks(settled(plan.root, plan.session, never_tied)):
        return None
    lineage = Lineage.in_part(root, executor, **facts)
    condition = bound_condition(chosen_by, lineage.stage.segment.visible, executor)
    if reads([condition]) & (lineage.blank | lineage.rounded) or depends_on_order(condition, lineage.lists):
        return None
    if lineage.looseness is not None or (functions and _has_doubts(lineage)):
        return None
    return root, lineage


def _has_doubts(lineage: Lineage) -> bool:
    """Return whether rows are marked as not certain: see ``loosen``."""
    return any(isinstance(node, Repartition) for stage in lineage.stages() for node in walk_nodes(stage.segment.node))


def _chooses_rows(root: Node) -> bool:
    from govtool.records.replay.choices import chooses_rows

    return chooses_rows(root)


def _own_keys() -> Any:
    """The declared keys of the working folder's configuration."""
    return load_config(Path.cwd()).keys


def _positions(store: Reader, commit: Commit, run: RecordRun) -> KeptPositions | None:
    """The positions that a write of a DataFrame kept."""
    data = read_positions(store, commit, run) if run.positions and not run.program else None
    return KeptPositions(decode_positions(data)) if data is not None else None


def _by_positions(
    run: RecordRun, plan: Plan, positions: KeptPositions, refused: tuple[RefusedFile, ...], sidecars: SidecarUse
) -> OpenedWrite | None:
    """A write that is traced by positions; None where the written files are not what they were."""
    root, executor = titled(plan.root), ExecutorChain(engines(plan.session, None))
    ids = spare_ids(root)
    output = written_files_now(run, root, ids)
    if output is None:
        return None
    stage, record = positions.trace(root, ids).stage(output)
    lineage = Lineage(
        stage, executor, ids, run.run, run.output or run.run, declared_keys(relations(plan.root), _own_keys()),
        refused, written=output, plan=root, session=plan.session, kept=True,
    )  # fmt: skip
    return OpenedWrite(run, Plan(root, plan.session), lineage, executor, output, sidecars, record)


def without_lost_functions(root: Node) -> Node:
    """A plan whose functions are all at hand: a call of one that is gone, or was changed, is an opaque cell."""
    from govtool.records.execute.functions import find, lost_reason

    used = _functions(root)
    files = own_files(Path.cwd()) if used else []
    lost = {reference: lost_reason(reference, files) for reference in used if find(reference, files) is None}
    if not lost:
        return root

    return _without_functions(root, lost)


def _functions(root: Node) -> set[UdfReference]:
    return {term.reference for node in walk_nodes(root) for term in walk(node) if isinstance(term, Udf)}


def _without_functions(root: Node, reasons: Mapping[UdfReference, str]) -> Node:
    """A plan whose calls of some functions are opaque, those of its subqueries included."""

    def replaced(term: Term) -> Term:
        if not isinstance(term, Udf) or term.reference not in reasons:
            return term
        return Opaque(reasons[term.reference], term.arguments, term.type, term.aggregate)

    return everywhere(root, lambda node: node.replaced(terms=tuple(rewrite(term, replaced) for term in node.terms())))


def titled(root: Node) -> Node:
    """The rows of a plan under the names that its output has."""
    if not isinstance(root, Write) or len(root.columns) != len(outputs(root.child)):
        return root.child if isinstance(root, Write) else root
    ids, used, columns = spare_ids(root), set(), []
    for column, name in zip(outputs(root.child), root.columns, strict=True):
        again = column.id in used  # SELECT a, a AS b
        columns.append(ids.named(name, column) if again else Named(column, column.id, name))
        used.add(column.id)
    return Project(root.child, tuple(columns))


def _renamed(column: Attribute) -> Named:
    return Named(column, column.id, column.name)


def written_output(
    run: RecordRun, root: Node, lineage: Lineage, only: Collection[Place] | None = None
) -> Relation | None:
    """The written files, with columns in the plan's order; None where they are unknown, or are not what was written.

    Args:
        run: The write.
        root: Its plan.
        lineage: The plan, cut at its boundaries.
        only: The files that matter; None: all.
    """
    return written_files_now(run, root, lineage.ids, only)


def written_files_now(run: RecordRun, root: Node, ids: Ids, only: Collection[Place] | None = None) -> Relation | None:
    """As `written_output`, with ids for its columns."""
    left = relation_of(run.written, run.output)
    if left is not None and only is not None:
        left = replace(left, files=tuple(file for file in left.files if place_of(file) in only))
    if left is None or changed([left]):
        return None
    order = in_order(left.columns, [column.name for column in outputs(root)])
    if order is None:
        return None
    own = tuple(ids.attribute(column.name, column.type) for column in order)
    return replace(readable(left), leaf=len(relations(root)), columns=own)


def in_order(columns: Sequence[Attribute], names: Sequence[str]) -> list[Attribute] | None:
    """The columns of files in the order of a plan: by name, in any case as partitions may be named, or by place."""
    by_name = {column.name.lower(): column for column in columns}
    wanted = [name.lower() for name in names]
    if len(by_name) == len(columns) and set(by_name) == set(wanted):
        return [by_name[name] for name in wanted]
    return list(columns) if len(columns) == len(names) else None
