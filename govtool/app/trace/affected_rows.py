"""Rows of datasets that a selection of rows reached: forward traces through all recorded runs.

A run counts whose output is still there. Runs are joined by the identity of files, as in ``govtool.app.trace.runs``,
and are traced in the order of these joins; each run once, with everything that reached it. Only datasets that the
column reaches are entered, so that rows and columns meet: a count is of rows whose lineage has a selected row by runs
that also carry the column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from govtool.answers.affected_rows import NO_RUN, NOT_RECORDED, UNKNOWN, AffectedDataset, AffectedRows
from govtool.app.datasets.stranger_files import are_local, files_beside
from govtool.app.records.dataset_names import inputs_of
from govtool.app.records.opened import OpenedWrite
from govtool.app.records.opening import open_write
from govtool.app.records.runs import no_rows, recorded_beside_damage
from govtool.app.records.sidecars import sidecar_use
from govtool.app.records.written_files import written_output
from govtool.app.trace.affected_outputs import ReachedOutput, lines_forward, rows_forward, united
from govtool.app.trace.file_rows import MAX_ROWS, Rows, merged, rows_at, rows_by_file
from govtool.app.trace.run_walk import RecordedFiles
from govtool.errors import EvidenceError, GovtoolError, UsageError
from govtool.records.execute.inputs import changed, relations
from govtool.records.execute.places import Place, place_of
from govtool.records.lake.written import LiveTables
from govtool.records.plan import codec
from govtool.records.plan.nodes import Distinct, Limit, Relation, Tail
from govtool.records.plan.tree import walk_nodes
from govtool.records.recordset import RecordSet
from govtool.records.split_plans import made_nothing, relation_of
from govtool.records.trace.answer import RefusedFile
from govtool.records.trace.back import ReachedRows, count_rows
from govtool.records.trace.computed import guards
from govtool.records.trace.forward import input_key
from govtool.records.trace.segment import EXACT, Grade, projected
from govtool.records.trace.selection import bound_condition, filtered

if TYPE_CHECKING:
    from govtool.app.records.unreadable import UnreadableRun
    from govtool.model.records import RecordRun
    from govtool.records.plan.tree import Node
    from govtool.store import Commit, Reader


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A question about the rows behind an impact.

    Attributes:
        dataset: The dataset whose rows are selected.
        where: A Spark SQL boolean expression over its columns.
        reached: The datasets that the column reaches.
    """

    dataset: str
    where: str
    reached: tuple[str, ...]


def affected_rows(store: Reader, commit: Commit, request: RowRequest) -> AffectedRows:
    """Count the rows of each reached dataset whose lineage has a selected row.

    Raises:
        UsageError: The store has no records, no recorded run read the dataset (``usage.no-run``), the condition is
            mistaken, or no row meets it (``usage.no-rows``).
        EvidenceError: The files that recorded runs read are all gone or have changed (``evidence.changed``).
        EngineError: No engine evaluates the condition.
    """
    flow = _Flow(store, commit, request, *recorded_beside_damage(store, commit))
    flow.select()
    flow.follow()
    datasets = tuple(flow.answer(name) for name in sorted(request.reached))
    return AffectedRows(request.dataset, request.where, flow.selected, datasets)


class _Flow:
    """The selected rows on their way through the runs."""

    def __init__(
        self,
        store: Reader,
        commit: Commit,
        request: RowRequest,
        known: Sequence[RecordRun],
        unreadable: Sequence[UnreadableRun],
    ) -> None:
        self._store, self._commit, self._request = store, commit, request
        self._known, self._unreadable = known, unreadable
        self._scope = {request.dataset, *request.reached}
        self._opened: dict[str, OpenedWrite] = {}
        self._found: dict[str, ReachedOutput] = {}
        self._chosen_rows: Rows = {}
        self._searched: set[Place] = set()
        self._live = LiveTables()
        self.selected = 0

    # Which runs

    @cached_property
    def _readers(self) -> list[RecordRun]:
        """The runs that read the selected dataset: those that read what is there now, else all."""
        readers = [run for run in self._known if self._request.dataset in inputs_of(run)]  # as one input of its own
        for lost in (each for each in self._unreadable if self._request.dataset in each.reads() and not readers):
            raise lost.error()
        if not readers:
            raise UsageError(
                f"no recorded run read {self._request.dataset}: its rows cannot be followed",
                code="usage.no-run",
                hint="govtool run --records -- job.py",
            )
        leaves = {run.run: self._leaves(run, self._request.dataset) for run in readers}
        current = [run for run in readers if not changed(leaves[run.run])]
        live = [run for run in current if all(map(self._live.has, leaves[run.run]))]
        return live or current or readers

    @cached_property
    def _left(self) -> dict[str, Relation]:
        """The files that each run left in a reached dataset and that are still what it left."""
        found = {}
        for run in self._known:
            left = relation_of(run.written, run.output) if run.output in self._request.reached else None
            if left is not None:
                gone = {each.uri for each in changed([left])}
                files = tuple(file for file in self._live.of(left) if file.uri not in gone)
                if files or made_nothing(left):  # not one that later writes of its job replaced
                    found[run.run] = replace(left, files=files)
        return found

    @cached_property
    def _files(self) -> RecordedFiles:
        return RecordedFiles.of(run for run in self._known if run.run in self._left)

    def _leaves(self, run: RecordRun, dataset: str) -> list[Relation]:
        """What a run read of a dataset."""
        listed = {leaf.leaf: leaf for leaf in relations(codec.loads(run.listings).root)}
        return [listed[leaf] for leaf, name in run.inputs if dataset in _names(name) and leaf in listed]

    def _order(self) -> Iterator[RecordRun]:
        """The runs, writers before readers."""
        runs = {run.run: run for run in self._known if run.run in self._left}
        before: dict[str, set[str]] = {}
        for name, run in runs.items():
            places = [place for dataset in self._between(run) for place in self._places(run, dataset)]
            before[name] = {writer for place in places for writer in self._files.exchange.writers.get(place, ())} - {
                name
            }
        try:
            order = list(TopologicalSorter(before).static_order())
        except CycleError:  # two runs that read what the other wrote: of times that a clock set back
            order = sorted(runs)
        return (runs[name] for name in order)

    def _between(self, run: RecordRun) -> list[str]:
        """The datasets that a run read and that the column reaches, besides the selected one."""
        return [name for name in _read_by(run) if name in self._scope and name != self._request.dataset]

    def _places(self, run: RecordRun, dataset: str) -> list[Place]:
        return [place_of(file) for leaf in self._leaves(run, dataset) for file in leaf.files]

    # The rows

    def select(self) -> None:
        """Evaluate the condition over what recorded runs read.

        Raises:
            UsageError: It is mistaken, or no row meets it.
            EvidenceError: All the files are gone or have changed.
        """
        most, refused, problems = 0, list[RefusedFile](), list[GovtoolError]()
        for run in self._readers:
            if self._searched.issuperset(self._places(run, self._request.dataset)) and self._searched:
                continue  # another run read the same files
            try:
                count, found, gone = self._reading(run)
            except GovtoolError as error:  # a program that is lost; a folder of a partition, without its column
                problems.append(error)
                continue
            most = max(most, count)
            for place, ids in found.items():
                self._chosen_rows.setdefault(place, set()).update(ids)
            self._searched.update(self._places(run, self._request.dataset))
            refused += gone
        self.selected = max(most, sum(map(len, self._chosen_rows.values())) if most <= MAX_ROWS else most)
        if self.selected:
            return
        if problems:
            raise problems[0]
        own = [file for file in refused if file.dataset == self._request.dataset]
        if own:
            raise EvidenceError(
                f"no row of {self._request.dataset} meets the condition in what is left of the files that runs read: "
                f"{own[0].file} {own[0].reason}",
                code="evidence.changed",
                hint="run the job again with govtool run --records",
            )
        raise no_rows(self._request.dataset, self._request.where)

    def _reading(self, run: RecordRun) -> tuple[int, Rows, Sequence[RefusedFile]]:
        """The selected rows among the inputs of a run: their number and which they are, and the files that are gone."""
        if run.program:
            from govtool.app.rdd.program_records import input_records

            lines = input_records(self._store, self._commit, run, self._request.dataset).where(self._request.where)
            return lines.count(), merged(lines.file_rows()), lines.opened.refused
        chosen = self._chosen(self._open(run))
        return chosen.count(), merged(rows_by_file(chosen)), chosen.lineage.refused

    def _open(self, run: RecordRun) -> OpenedWrite:
        if run.run not in self._opened:
            write = open_write(self._store, self._commit, run, sidecar_use(True), in_part=True)
            self._opened[run.run] = write.as_written()
        return self._opened[run.run]

    def _chosen(self, write: OpenedWrite) -> RecordSet:
        """The selected rows among what a run read, be it what no row of its output comes from."""
        lineage = write.lineage
        parts: dict[tuple[object, ...], ReachedRows] = {}
        for leaf in relations(write.plan.root):
            if leaf.dataset == self._request.dataset and input_key(leaf) not in parts:
                node, record = lineage.read(leaf)
                meets = bound_condition(self._request.where, leaf.columns, write.executor)
                rows = Distinct(projected(filtered(write.executor, lineage.ids, node, meets), (record,)))
                parts[input_key(leaf)] = ReachedRows(leaf, rows)
        return RecordSet(lineage, tuple(parts.values())).kept()

    def follow(self) -> None:
        """Trace every run whose output is there, writers before readers."""
        for run in self._order():
            try:
                found = self._traced(run)
            except GovtoolError as error:
                found = ReachedOutput(total=None, lost=(f"{run.run}: {error.message}",))
            if found is not None:
                self._found[run.run] = found
            self._opened.pop(run.run, None)  # its tables are not needed any more

    def _traced(self, run: RecordRun) -> ReachedOutput | None:
        """What a run came to; None if it read nothing that the selected rows reach."""
        own = self._request.dataset in _read_by(run)
        between = self._between(run)
        if not own and not between:
            return None
        rows, grade, lost = self._arrived(run, between)
        if run.program:
            return self._through_program(run, rows, ReachedOutput(grade=grade, lost=lost))
        write = self._open(run)
        parts: dict[tuple[object, ...], ReachedRows] = {}
        if sum(map(len, rows.values())) > MAX_ROWS:
            lost = (*lost, f"more than {MAX_ROWS:,} rows reach {run.run}")
        elif rows:
            parts |= {input_key(part.leaf): part for part in _inputs(rows_at(write, rows))}
        if own and self._request.dataset not in inputs_of(run):
            lost = (*lost, f"{run.run} read it together with other paths")
        elif own:
            parts |= {input_key(part.leaf): part for part in _inputs(self._selected_in(write))}
        left = written_output(run, write.plan.root, write.lineage, set(map(place_of, self._left[run.run].files)))
        write = replace(write, output=left)
        total = 0 if left is None else count_rows(write.executor, left)
        reached = rows_forward(write, tuple(parts.values()), total)
        keepers, passed_on = self._keepers(run, between)
        keeps_out = passed_on or _keeps_out(write.plan.root, keepers)
        return replace(reached, grade=reached.grade.worst(grade), lost=(*lost, *reached.lost), keeps_out=keeps_out)

    def _selected_in(self, write: OpenedWrite) -> RecordSet:
        """The selected rows among what a run read; by their places, where it read too few columns for the condition.

        Raises:
            UsageError: It did, and no other run read the same files.
        """
        try:
            return self._chosen(write)
        except GovtoolError:
            places = self._places(write.run, self._request.dataset)
            rows = {place: self._chosen_rows[place] for place in places if place in self._chosen_rows}
            if not self._searched.issuperset(places) or sum(map(len, rows.values())) > MAX_ROWS:
                raise
            return rows_at(write, rows)

    def _through_program(self, run: RecordRun, rows: Rows, reached: ReachedOutput) -> ReachedOutput:
        """The rows that an RDD program reached.

        Args:
            run: The program.
            rows: Affected lines that other runs left.
            reached: How certain these are.
        """
        own = self._places(run, self._request.dataset) if self._request.dataset in _read_by(run) else []
        if not self._searched.issuperset(own):
            raise EvidenceError(f"the rows of {self._request.dataset} that it read cannot be searched")
        for place in own:
            rows.setdefault(place, set()).update(self._chosen_rows.get(place, ()))
        return lines_forward(self._store, self._commit, run, self._left[run.run], rows, reached)

    def _keepers(self, run: RecordRun, between: Sequence[str]) -> tuple[set[str], bool]:
        """The inputs that have selected or affected rows; and whether rows were kept out before."""
        found = {self._request.dataset}
        passed_on = False
        for dataset in between:
            writers = {w for place in self._places(run, dataset) for w in self._files.exchange.writers.get(place, ())}
            reached = [self._found[writer] for writer in writers if writer in self._found]
            passed_on = passed_on or any(each.keeps_out for each in reached)
            if any(each.count or each.keeps_out for each in reached):
                found.add(dataset)
        return found, passed_on

    def _arrived(self, run: RecordRun, between: Sequence[str]) -> tuple[Rows, Grade, tuple[str, ...]]:
        """The affected rows of what a run read, from the runs that wrote it."""
        rows: Rows = {}
        grade, lost = EXACT, dict[str, None]()
        for dataset in between:
            for place in self._places(run, dataset):
                writers = self._files.exchange.writers.get(place, ())
                if not writers:
                    lost[f"{run.run} read files of {dataset} that no recorded run left as they are"] = None
                for writer in writers:
                    reached = self._found.get(writer)
                    if reached is None:  # nothing of the selection comes to it
                        continue
                    lost.update(dict.fromkeys(reached.lost))
                    if reached.count > MAX_ROWS:
                        lost[f"more than {MAX_ROWS:,} rows of {dataset}: select fewer"] = None
                    if place in reached.rows:
                        rows.setdefault(place, set()).update(reached.rows[place])
                    if place in reached.rows or reached.grade.exactness == "incomplete":
                        grade = grade.worst(reached.grade)
        return rows, grade, tuple(lost)

    # The answer

    def answer(self, dataset: str) -> AffectedDataset:
        """The affected rows of a dataset, from all runs that left some of it."""
        writers = [run for run in self._known if run.output == dataset and self._concerned(run)]
        unreadable = self._unreadable_writers(dataset)
        if not writers and not unreadable:
            return AffectedDataset(dataset, None, None, NOT_RECORDED, NO_RUN)
        found = {run.run: self._found[run.run] for run in writers if run.run in self._found}
        if not found and unreadable:
            return AffectedDataset(dataset, None, None, UNKNOWN, "; ".join(unreadable))
        if not found:
            return AffectedDataset(dataset, None, None, UNKNOWN, _why_gone(writers[-1]))
        return self._together(dataset, found, unreadable)

    def _together(self, dataset: str, found: Mapping[str, ReachedOutput], unreadable: Sequence[str]) -> AffectedDataset:
        """The affected rows that runs left in a dataset; others that may have left some cannot be read."""
        reached = list(found.values())
        totals = [each.total for each in reached]
        lost = tuple(dict.fromkeys(why for each in reached for why in each.lost))
        grade = EXACT
        for each in reached:
            grade = grade.worst(each.grade)
        strangers = self._strangers(dataset)
        if unreadable and (strangers or not are_local(self._files_of(dataset))):
            lost = (*lost, *unreadable)
        if strangers:
            grade = grade.worst(Grade("incomplete", strangers))
        return AffectedDataset(
            dataset,
            None if lost else _count(reached),
            None if None in totals else sum(filter(None, totals)),
            UNKNOWN if lost else grade.exactness,
            "; ".join(lost) or grade.why,
            tuple(found),
            any(each.keeps_out for each in reached),
        )

    def _concerned(self, run: RecordRun) -> bool:
        """Return whether a run read a dataset that the column belongs to or comes through."""
        return any(name in self._scope for name in _read_by(run))

    def _unreadable_writers(self, dataset: str) -> list[str]:
        """Why rows that further runs left in a dataset are not known: their records cannot be read."""
        return [each.why() for each in self._unreadable if dataset in each.writes() and self._scope & each.reads()]

    def _files_of(self, dataset: str) -> set[str]:
        """The files that runs left in a dataset."""
        return {file.uri for left in self._left.values() for file in left.files if left.dataset == dataset}

    def _strangers(self, dataset: str) -> str:
        """Why a dataset may have other rows: files of it that no recorded run left there, rows that were deleted."""
        left = [each for each in self._left.values() if each.dataset == dataset]
        others = files_beside(left, self._live)
        if others:
            return f"{others} of its files were not left by a recorded run"
        return "rows of its files were deleted since" if any(map(self._live.are_thinned, left)) else ""


def _why_gone(run: RecordRun) -> str:
    """Why nothing can be computed of what a run wrote."""
    if not run.written:
        return f"which files {run.run} wrote is not recorded"
    return f"the files that {run.run} wrote are gone, or were written again since"


def _count(reached: Sequence[ReachedOutput]) -> int:
    """The affected rows of several runs; those of files that they have in common once, unless there are too many."""
    if any(each.count > MAX_ROWS for each in reached):
        return sum(each.count for each in reached)
    return united(each.rows for each in reached)


def _inputs(found: RecordSet) -> list[ReachedRows]:
    return [part for part in found.parts if isinstance(part, ReachedRows) and not part.against]


def _keeps_out(root: Node, datasets: Collection[str]) -> bool:
    """Return whether rows of some inputs may keep others out: one row less may then mean another one more."""
    guarding = (node for node in walk_nodes(root) if guards(node) or isinstance(node, (Limit, Tail)))
    return any(leaf.dataset in datasets for node in guarding for leaf in relations(node))


def _names(name: str) -> tuple[str, ...]:
    """The datasets that one input may be: several paths that are read as one have commas between them."""
    return (name, *name.split(","))


def _read_by(run: RecordRun) -> list[str]:
    return list(dict.fromkeys(each for name in inputs_of(run) for each in _names(name)))
