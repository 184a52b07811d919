"""Traces forward through all runs: those that read an input, and those that read what these wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from govtool.answers.trace import TraceReport
from govtool.app.rdd.hops import program_hop_forward, written_lines
from govtool.app.rdd.program_records import input_records
from govtool.app.records.opened import OpenedWrite
from govtool.app.records.opening import open_write
from govtool.app.records.runs import NO_ROWS, ahead, recorded
from govtool.app.records.sidecars import sidecar_use
from govtool.app.trace.file_rows import Found, Rows, merged, rows_at, rows_by_file, together
from govtool.app.trace.report import output_rows
from govtool.app.trace.run_walk import Followed, Hops, ReachedRun, RecordedFiles, RunWalk
from govtool.app.trace.untraced_readers import named_ends, untraced_reads
from govtool.app.workflow_runs.programs.actions import read_programs
from govtool.app.workflow_runs.programs.layout import written_files
from govtool.errors import GovtoolError
from govtool.records.execute.places import place_of
from govtool.records.recordset import RecordSet
from govtool.records.split_plans import files_made, relation_of
from govtool.records.trace.back import StagePosition, count_rows

if TYPE_CHECKING:
    from govtool.app.trace.report import TraceRequest
    from govtool.app.workflow_runs.programs.actions import ProgramAction
    from govtool.model.records import RecordRun
    from govtool.records.execute.places import Place
    from govtool.store import Commit, Reader


class ForwardHops:
    """The traces through all runs that read an input, and through those that read what they wrote.

    Args:
        store: The store.
        commit: Runs are those of this commit.
        request: The question.
        name_in: What a run that read the input calls it.
    """

    def __init__(
        self, store: Reader, commit: Commit, request: TraceRequest, name_in: Callable[[RecordRun], str]
    ) -> None:
        self._name_in = name_in
        self._store, self._commit, self._request = store, commit, request
        self._files = RecordedFiles.of(recorded(store, commit, ahead(request.dataset)))
        readers = self._files.exchange.readers
        self._walk = RunWalk(self._files, False, lambda place: readers.get(place, ()), self._follow, _no_reader)
        self._first: Callable[[RecordRun], TraceReport] | None = None
        self._starts: set[str] = set()
        self._errors: list[GovtoolError] = []
        self.reports: list[TraceReport] = []

    def trace(self, readers: Sequence[RecordRun], first: Callable[[RecordRun], TraceReport]) -> Hops:
        """The traces through runs beside ``reports``, which are those of the runs that read the input alone.

        Args:
            readers: The runs that read the input.
            first: The trace of chosen rows of the input through one of them.

        Raises:
            GovtoolError: The trace is lost through all of them, or none has read such rows: that of the first.
        """
        self._first, self._starts = first, {run.run for run in readers}
        for run in readers:
            self._walk.start(run.run)
        hops, ends = self._walk.go()
        if not self.reports:
            raise self._errors[0]
        starts = [
            (self._name_in(run), min((modified for _, _, modified in self._files.exchange.reads[run.run]), default=0))
            for run in readers
        ]
        ends = named_ends(untraced_reads(self._store, self._commit), starts, ends)
        return tuple(sorted(hops, key=lambda hop: hop.depth)), ends

    def _follow(self, run: RecordRun, rows: Rows, reached: ReachedRun) -> Followed:
        if run.run in self._starts:
            if not rows:
                return self._started(run)
            rows = together(rows, self._chosen(run))
        if run.program:
            trace, lines, found = program_hop_forward(self._store, self._commit, run, rows, self._request.limit)
            hop = reached.hop(trace, lines)
            return hop, found, hop.outputs
        use = sidecar_use(self._request.sidecars)
        write = open_write(self._store, self._commit, run, use, kept=True, in_part=True).as_written()
        chosen = rows_at(write, rows)
        reached_rows = chosen.go_next_all()
        trace = replace(reached_rows.answer(self._request.limit), selected=chosen.count())
        places = [part for part in reached_rows.parts if isinstance(part, StagePosition)]
        outputs = tuple(output_rows(write, reached_rows, part, self._request.limit) for part in places)
        hop = reached.hop(trace, outputs)
        return hop, self._written(write, reached_rows), hop.outputs

    def _started(self, run: RecordRun) -> Followed:
        """The trace through a run that read the input, and none of the files that other traces came to."""
        assert self._first is not None
        try:
            report = self._first(run)
        except GovtoolError as error:
            self._errors.append(error)
            if error.code != NO_ROWS:  # another version of the dataset, without such rows
                self._walk.ended(run.run, self._name_in(run), "", 0, error.message, True)
            return None, [], ()
        self.reports.append(report)
        return None, self._left(report), report.outputs

    def _chosen(self, run: RecordRun) -> Rows:
        """The chosen rows of the input, by file."""
        name, where = self._name_in(run), self._request.where
        if run.program:
            found = input_records(self._store, self._commit, run, name).where(where).file_rows()
        else:
            write = open_write(self._store, self._commit, run, kept=True, in_part=True)
            found = rows_by_file(write.lineage.input(name, where))
        return merged(found)

    def _left(self, report: TraceReport) -> Found:
        """The rows of an output that a trace forward came to."""
        records = report.records
        if isinstance(records, RecordSet):
            return self._written(report.opened, records)
        return written_lines(records) if records is not None else []

    def _written(self, write: OpenedWrite, found: RecordSet) -> Found:
        """Rows of an output, as rows of the written files."""
        rows: Found = []
        for part in found.parts:
            if not isinstance(part, StagePosition):
                continue
            count = count_rows(write.executor, part.rows)
            written = write.in_output(part) if count else None
            if written is not None:
                rows += rows_by_file(written)
            elif count:
                self._walk.ended(write.run.run, write.run.output, "", count, *self._lost(write))
        return rows

    def _lost(self, write: OpenedWrite) -> tuple[str, bool]:
        """Why a trace does not go on from rows that are not in the written files, and whether it is lost there."""
        if write.output is not None:
            return "its rows are not found again in the files that it wrote", True
        files = self._files_of(write.run)
        if files is None:
            return "the files that it wrote are gone, and are not known", True
        if not any(self._files.exchange.readers.get(place) for place in files):
            return "no recorded run read it before its files were written again or removed", False
        return "the files that it wrote are gone or were written again", True

    def _files_of(self, run: RecordRun) -> set[Place] | None:
        """The files that a run wrote, those that a later write of its job replaced too; None: not all are known."""
        known = self._files.exchange.writes.get(run.run, set())
        left = relation_of(run.written, run.output)
        if left is not None and files_made(left) <= len(known):
            return known
        action = self._actions.get(run.run)
        listed = set() if action is None else set(map(place_of, written_files(action)))
        made = max(files_made(left) if left is not None else 1, 1)
        return known | listed if len(known | listed) >= made else None

    @cached_property
    def _actions(self) -> dict[str, ProgramAction]:
        """What the history knows of all writes, by run."""
        found: dict[str, ProgramAction] = {}
        for program in read_programs(self._store, self._commit, of_workflows=True):
            for each in program.actions:
                found.setdefault(each.run.id, each)
        return found


def _no_reader(place: Place) -> tuple[str, bool]:
    return "no recorded run read it", False
