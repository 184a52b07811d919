"""Traces across runs: from the rows that a run read to the run that wrote them, and on.

Two runs are joined by files, not by names: a file that a run read is the one that another wrote if place, size and time
of writing are those that both recorded. Where they are not, the trace ends there, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from govtool.answers.trace import HopAnswer, HopEnd, TraceReport
from govtool.app.rdd.hops import program_hop_back, program_hop_forward, written_lines
from govtool.app.records.exchange import FileExchange
from govtool.app.records.opened import OpenedWrite, open_write, written_output
from govtool.app.records.runs import recorded
from govtool.app.records.sidecars import sidecar_use
from govtool.app.trace.report import output_rows
from govtool.errors import EvidenceError, GovtoolError, UsageError
from govtool.model.token import FILE_BITS, ROW_BITS
from govtool.records.execute.places import Place, place_of
from govtool.records.plan.nodes import Limit, LocalRows, Relation
from govtool.records.plan.types import LONG
from govtool.records.recordset import RecordSet
from govtool.records.trace.back import ReachedRows, StagePosition, count_rows
from govtool.records.trace.forward import input_key

if TYPE_CHECKING:
    from govtool.app.trace.report import TraceRequest
    from govtool.model.records import RecordRun
    from govtool.store import Commit, Reader

MAX_ROWS = 100_000
"""The most rows that go from one run to the next."""
Rows = dict[Place, set[int]]
"""Rows by file."""


@dataclass(frozen=True, slots=True)
class RecordedFiles:
    """The files of recorded runs.

    Attributes:
        runs: By id.
        exchange: Which of them exchange files.
    """

    runs: dict[str, RecordRun] = field(default_factory=dict)
    exchange: FileExchange = field(default_factory=FileExchange)

    @staticmethod
    def of(runs: Iterable[RecordRun]) -> RecordedFiles:
        """The files of some runs."""
        from govtool.records.execute.inputs import relations
        from govtool.records.plan import codec
        from govtool.records.split_plans import relation_of

        found = RecordedFiles()
        for run in runs:
            found.runs[run.run] = run
            written = relation_of(run.written, run.output)
            left = [place_of(file) for file in written.files] if written is not None else []
            read = [place_of(file) for leaf in relations(codec.loads(run.listings).root) for file in leaf.files]
            found.exchange.add(run.run, read, left)
        return found


Found = list[tuple[str, Rows]]
"""Rows by dataset and file."""


class _Walk:
    """A trace from run to run, level by level; rows that a run was traced for already are not traced again.

    Args:
        candidates: The runs that go on from a file.
        follow: Traces rows through a run.
        why: Why a trace ends at a file from which no run goes on, and whether it is lost there.
    """

    def __init__(
        self,
        files: RecordedFiles,
        candidates: Callable[[Place], Sequence[str]],
        follow: Callable[[RecordRun, Rows, int], tuple[HopAnswer, Found]],
        why: Callable[[Place], tuple[str, bool]],
    ) -> None:
        self._files = files
        self._candidates = candidates
        self._follow = follow
        self._why = why
        self._seen: dict[tuple[str, Place], set[int]] = {}
        self.hops: list[HopAnswer] = []
        self.ends: dict[tuple[str, str, str, bool], dict[str, int]] = {}

    def go(self, level: list[tuple[str, Found]]) -> tuple[tuple[HopAnswer, ...], tuple[HopEnd, ...]]:
        """Follow rows that some runs came to."""
        depth = 1
        while level:
            level = self._traced(self._next(level), depth)
            depth += 1
        return tuple(self.hops), tuple(_end(*what, files) for what, files in self.ends.items())

    def _next(self, level: list[tuple[str, Found]]) -> dict[str, Rows]:
        wanted: dict[str, Rows] = {}
        for run, found in level:
            for dataset, rows in found:
                for place, ids in rows.items():
                    candidates = self._candidates(place)
                    if not candidates:
                        self.ended(run, dataset, place[0], len(ids), *self._why(place))
                    for name in candidates:
                        self._wanted(wanted, name, place, ids)
        return wanted

    def _wanted(self, wanted: dict[str, Rows], run: str, place: Place, ids: set[int]) -> None:
        seen = self._seen.setdefault((run, place), set())
        new = ids - seen
        seen |= new
        if new:
            wanted.setdefault(run, {}).setdefault(place, set()).update(new)

    def _traced(self, wanted: dict[str, Rows], depth: int) -> list[tuple[str, Found]]:
        level = []
        for name, rows in sorted(wanted.items()):
            run, count = self._files.runs[name], sum(map(len, rows.values()))
            try:
                if count > MAX_ROWS:
                    raise UsageError(f"more than {MAX_ROWS:,} rows: trace them in parts")
                hop, found = self._follow(run, rows, depth)
            except GovtoolError as error:
                for place, ids in rows.items():
                    self.ended(name, run.output, place[0], len(ids), error.message, True)
                continue
            self.hops.append(hop)
            level.append((name, found))
        return level

    def ended(self, run: str, dataset: str, uri: str, rows: int, why: str, lost: bool) -> None:
        """Note that a trace does not go on from rows of a file."""
        files = self.ends.setdefault((run, dataset, why, lost), {})
        files[uri] = max(files.get(uri, 0), rows)


def _end(run: str, dataset: str, why: str, lost: bool, files: dict[str, int]) -> HopEnd:
    return HopEnd(run, dataset, tuple(sorted(filter(None, files))), sum(files.values()), why, lost)


Hops = tuple[tuple[HopAnswer, ...], tuple[HopEnd, ...]]


def hops_back(store: Reader, commit: Commit, opened: OpenedWrite, found: RecordSet, request: TraceRequest) -> Hops:
    """The traces through the runs that wrote what a trace back came to, and through those before them."""
    return go_back_from(store, commit, (opened.run.run, rows_by_file(found)), request)


def go_back_from(store: Reader, commit: Commit, start: tuple[str, Found], request: TraceRequest) -> Hops:
    """The traces through the runs that wrote rows that a run read, and through those before them.

    Args:
        store: The store.
        commit: Runs are those of this commit.
        start: The run, and rows by dataset and file.
        request: The question.
    """
    files = RecordedFiles.of(recorded(store, commit))

    def follow(run: RecordRun, rows: Rows, depth: int) -> tuple[HopAnswer, Found]:
        if run.program:
            trace, found = program_hop_back(store, commit, run, rows, request.limit)
            return HopAnswer(depth, trace), found
        write = open_write(store, commit, run, sidecar_use(request.sidecars), kept=True, in_part=True)
        reached = _written_rows(write, rows).go_back_all()
        return HopAnswer(depth, reached.answer(request.limit)), rows_by_file(reached)

    def why(place: Place) -> tuple[str, bool]:
        writer = files.exchange.paths.get(place[0])
        if writer is None:
            return "no recorded run wrote it", False
        return f"{writer} wrote it, but it was written again before it was read", True

    walk = _Walk(files, lambda place: files.exchange.writers.get(place, ()), follow, why)
    return walk.go([start])


def hops_forward(store: Reader, commit: Commit, starts: Sequence[TraceReport], request: TraceRequest) -> Hops:
    """The traces through the runs that read what a trace forward came to, and through those after them."""
    files = RecordedFiles.of(recorded(store, commit))

    def follow(run: RecordRun, rows: Rows, depth: int) -> tuple[HopAnswer, Found]:
        if run.program:
            trace, lines, found = program_hop_forward(store, commit, run, rows, request.limit)
            return HopAnswer(depth, trace, lines), found
        write = open_write(store, commit, run, sidecar_use(request.sidecars), kept=True, in_part=True)
        chosen = rows_at(write, rows)
        reached = chosen.go_next_all()
        trace = replace(reached.answer(request.limit), selected=chosen.count())
        places = [part for part in reached.parts if isinstance(part, StagePosition)]
        outputs = tuple(output_rows(write, reached, part, request.limit) for part in places)
        return HopAnswer(depth, trace, outputs), _written(walk, write, reached)

    def why(place: Place) -> tuple[str, bool]:
        return "no recorded run read it", False

    walk = _Walk(files, lambda place: files.exchange.readers.get(place, ()), follow, why)
    return walk.go([(report.trace.run, _left(walk, report)) for report in starts])


def _left(walk: _Walk, report: TraceReport) -> Found:
    """The rows of an output that a trace forward came to."""
    records = report.records
    if isinstance(records, RecordSet):
        return _written(walk, report.opened, records)
    return written_lines(records) if records is not None else []


def _written(walk: _Walk, write: OpenedWrite, found: RecordSet) -> Found:
    """Rows of an output, as rows of the written files."""
    rows: Found = []
    for part in found.parts:
        if not isinstance(part, StagePosition) or not count_rows(write.executor, part.rows):
            continue
        written = write.in_output(part)
        if written is None:
            why = "its rows are not found again in the files that it wrote"
            walk.ended(write.run.run, write.run.output, "", count_rows(write.executor, part.rows), why, True)
        else:
            rows += rows_by_file(written)
    return rows


def rows_by_file(found: RecordSet) -> Found:
    """Rows of files, by dataset and file."""
    answer: Found = []
    for part in found.parts:
        if isinstance(part, ReachedRows) and isinstance(part.leaf, Relation) and not part.against:
            files = {file.ordinal: place_of(file) for file in part.leaf.files}
            rows: Rows = {}
            for (packed,) in found.lineage.executor.fetch(Limit(part.rows, MAX_ROWS + 1)):
                place = files[packed >> ROW_BITS & (1 << FILE_BITS) - 1]
                rows.setdefault(place, set()).add(packed & (1 << ROW_BITS) - 1)
            answer.append((part.leaf.dataset, rows))
    return answer


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


def rows_at(write: OpenedWrite, rows: Rows) -> RecordSet:
    """Rows of inputs at given places of files."""
    lineage, parts = write.lineage, {}
    for leaf in lineage.leaves():
        ordinals = {place_of(file): file.ordinal for file in leaf.files} if isinstance(leaf, Relation) else {}
        packed = [(ordinals[place] << ROW_BITS | row,) for place in rows if place in ordinals for row in rows[place]]
        if packed:
            record = lineage.ids.attribute("record", LONG)
            kept = lineage.executor.keep(LocalRows(0, (record,), tuple(sorted(packed))))
            parts[input_key(leaf)] = ReachedRows(leaf, kept)
    return RecordSet(lineage, tuple(parts.values()))
