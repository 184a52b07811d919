"""Traces back across runs: from the rows that a run read to the run that wrote them, and on.

Two runs are joined by files, not by names: a file that a run read is the one that another wrote if place, size and time
of writing are those that both recorded. Where they are not, the trace ends there, and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from govtool.app.rdd.hops import program_hop_back
from govtool.app.records.opened import OpenedWrite
from govtool.app.records.opening import open_write
from govtool.app.records.runs import behind, recorded
from govtool.app.records.sidecars import sidecar_use
from govtool.app.records.written_files import written_output
from govtool.app.trace.file_rows import Found, Rows, rows_by_file
from govtool.app.trace.listed_rows import ListedRows
from govtool.app.trace.run_walk import Followed, Hops, ReachedRun, RecordedFiles, RunWalk
from govtool.errors import EvidenceError
from govtool.records.execute.places import Place, place_of
from govtool.records.recordset import RecordSet

if TYPE_CHECKING:
    from govtool.app.trace.report import TraceRequest
    from govtool.model.records import RecordRun
    from govtool.records.trace.answer import InputAnswer
    from govtool.store import Commit, Reader


def hops_back(
    store: Reader,
    commit: Commit,
    opened: OpenedWrite,
    found: RecordSet,
    groups: Sequence[InputAnswer],
    request: TraceRequest,
) -> Hops:
    """The traces through the runs that wrote what a trace back came to, and through those before them."""
    return go_back_from(store, commit, (opened.run.run, rows_by_file(found)), groups, request)


def go_back_from(
    store: Reader, commit: Commit, start: tuple[str, Found], groups: Sequence[InputAnswer], request: TraceRequest
) -> Hops:
    """The traces through the runs that wrote rows that a run read, and through those before them.

    Args:
        store: The store.
        commit: Runs are those of this commit.
        start: The run, and rows by dataset and file.
        groups: The rows as its answer has them.
        request: The question.
    """
    files, listed = RecordedFiles.of(recorded(store, commit, behind(start[0]))), ListedRows()
    listed.add(start[1])

    def follow(run: RecordRun, rows: Rows, reached: ReachedRun) -> Followed:
        if run.program:
            trace, found = program_hop_back(store, commit, run, rows, request.limit)
            trace = listed.of_program(trace, found)
        else:
            use = sidecar_use(request.sidecars)
            write = open_write(store, commit, run, use, kept=True, in_part=True, evaluated=True)
            trace, found = listed.answer(_written_rows(write, rows).go_back_all().kept(), request.limit)
        listed.add(found)
        hop = reached.hop(trace)
        return hop, found, hop.trace.inputs

    def why(place: Place) -> tuple[str, bool]:
        writer = files.exchange.paths.get(place[0])
        if writer is None:
            return "no recorded run wrote it", False
        return f"{writer} wrote it, but it was written again before it was read", True

    walk = RunWalk(files, True, lambda place: files.exchange.writers.get(place, ()), follow, why)
    walk.come(*start, groups)
    return walk.go()


def _written_rows(write: OpenedWrite, rows: Rows) -> RecordSet:
    """The rows of an output that are at given places of the written files.

    Raises:
        EvidenceError: The plan does not give these rows again, or they are not there any more.
    """
    output = written_output(write.run, write.plan.root, write.lineage, rows)
    if output is None:
        raise EvidenceError("the files that it wrote are gone or have changed", code="evidence.changed")
    ordinals = {place_of(file): file.ordinal for file in output.files}
    return write.at_places(output, [(ordinals[place], row) for place, ids in rows.items() for row in sorted(ids)])
