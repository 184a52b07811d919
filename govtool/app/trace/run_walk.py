"""A walk from run to run, by the files that they exchange."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeVar

from govtool.answers.trace import HopAnswer, HopEnd
from govtool.app.records.exchange import FileExchange
from govtool.app.trace.file_rows import MAX_ROWS, Found, Rows
from govtool.errors import GovtoolError, UsageError
from govtool.records.execute.places import Place, place_of
from govtool.records.trace.answer import InputAnswer, StepAnswer, TraceAnswer
from govtool.records.trace.segment import EXACT, Grade

if TYPE_CHECKING:
    from govtool.model.records import RecordRun

Hops = tuple[tuple[HopAnswer, ...], tuple[HopEnd, ...]]
Followed = tuple[HopAnswer | None, Found, Sequence[InputAnswer]]
"""A trace through a run: as a part of the answer, unless it stands elsewhere; the rows that it came to, by file; and
these as the answer has them."""
_BEGINS = "it begins with rows"


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


_Graded = TypeVar("_Graded", StepAnswer, InputAnswer)


@dataclass(slots=True)
class ReachedRun:
    """A run that a trace came to.

    Attributes:
        depth: How many runs it is away from the first at least.
        paths: How many ways from run to run lead to it.
        via: The runs that its rows come from.
        grade: How exact these rows are.
    """

    depth: int = 0
    paths: int = 0
    via: dict[str, None] = field(default_factory=dict)
    grade: Grade = EXACT

    def hop(self, trace: TraceAnswer, outputs: tuple[InputAnswer, ...] = ()) -> HopAnswer:
        """The trace through it, as a part of the answer: no more exact than the rows that it begins with."""
        if self.grade != EXACT:
            trace = replace(
                trace,
                steps=tuple(map(self._graded, trace.steps)),
                inputs=tuple(map(self._graded, trace.inputs)),
                against=tuple(map(self._graded, trace.against)),
            )
            outputs = tuple(map(self._graded, outputs))
        return HopAnswer(self.depth, trace, outputs, tuple(self.via), self.paths)

    def _graded(self, answer: _Graded) -> _Graded:
        grade = Grade(answer.exactness, answer.why).worst(self.grade)
        return replace(answer, exactness=grade.exactness, why=grade.why)


class RunWalk:
    """A trace from run to run: each run is traced once, with the rows that all ways to it came to.

    A run comes after those that lead to it: files are written before they are read.

    Args:
        files: The files of all runs.
        back: The direction.
        candidates: The runs that go on from a file.
        follow: Traces rows through a run.
        why: Why a trace ends at a file from which no run goes on, and whether it is lost there.
    """

    def __init__(
        self,
        files: RecordedFiles,
        back: bool,
        candidates: Callable[[Place], Sequence[str]],
        follow: Callable[[RecordRun, Rows, ReachedRun], Followed],
        why: Callable[[Place], tuple[str, bool]],
    ) -> None:
        self._files = files
        self._candidates = candidates
        self._follow = follow
        self._why = why
        order = files.exchange.ordered(files.runs)
        self._order = {name: -at if back else at for at, name in enumerate(order)}
        self._waiting: list[tuple[int, str]] = []
        self._wanted: dict[str, Rows] = {}
        self._reached: dict[str, ReachedRun] = {}
        self._seen: dict[tuple[str, Place], set[int]] = {}
        self.hops: list[HopAnswer] = []
        self.ends: dict[tuple[str, str, str, bool], dict[str, int]] = {}

    def start(self, run: str) -> None:
        """Let a run be traced whether or not others lead to it."""
        self._reached[run] = ReachedRun(0, 1)
        heappush(self._waiting, (self._order[run], run))

    def go(self) -> Hops:
        """Trace all runs that rows lead to."""
        while self._waiting:
            _, name = heappop(self._waiting)
            run, rows, reached = self._files.runs[name], self._wanted.pop(name, {}), self._reached[name]
            try:
                if sum(map(len, rows.values())) > MAX_ROWS:
                    raise UsageError(f"more than {MAX_ROWS:,} rows: trace them in parts")
                hop, found, groups = self._follow(run, rows, reached)
            except GovtoolError as error:
                for place, ids in rows.items():
                    self.ended(name, run.output, place[0], len(ids), error.message, True)
                continue
            self.hops += [] if hop is None else [hop]
            self.come(name, found, groups)
        return tuple(self.hops), tuple(_end(*what, files) for what, files in self.ends.items())

    def come(self, run: str, found: Found, groups: Sequence[InputAnswer]) -> None:
        """Take in the rows that the trace of a run came to.

        Args:
            run: The run.
            found: The rows.
            groups: The same as the answer has them, with how exact they are.
        """
        for dataset, rows in found:
            grade = _grade_of(dataset, groups)
            for place, ids in rows.items():
                candidates = self._candidates(place)
                if not candidates:
                    self.ended(run, dataset, place[0], len(ids), *self._why(place))
                for name in candidates:
                    self._want(run, name, place, ids)
                    self._reached[name].grade = self._reached[name].grade.worst(grade)

    def _want(self, source: str, run: str, place: Place, ids: set[int]) -> None:
        before = self._reached.setdefault(source, ReachedRun(0, 1))
        reached = self._reached.setdefault(run, ReachedRun())
        if source not in reached.via:
            reached.depth = before.depth + 1 if not reached.paths else min(reached.depth, before.depth + 1)
            reached.paths += before.paths
            reached.via[source] = None
        seen = self._seen.setdefault((run, place), set())
        new = ids - seen  # all of them, unless a damaged record has two runs read each other's files
        seen |= new
        if new:
            if run not in self._wanted and (self._order[run], run) not in self._waiting:
                heappush(self._waiting, (self._order[run], run))
            self._wanted.setdefault(run, {}).setdefault(place, set()).update(new)

    def ended(self, run: str, dataset: str, uri: str, rows: int, why: str, lost: bool) -> None:
        """Note that a trace does not go on from rows of a file."""
        files = self.ends.setdefault((run, dataset, why, lost), {})
        files[uri] = max(files.get(uri, 0), rows)


def _grade_of(dataset: str, groups: Sequence[InputAnswer]) -> Grade:
    """The grade of what begins with rows of a dataset."""
    own = [group for group in groups if group.dataset == dataset] or groups
    worst = EXACT
    for group in own:
        worst = worst.worst(Grade(group.exactness, group.why))
    if worst == EXACT:
        return worst
    name = dataset.rpartition("/")[2]
    why = worst.why if worst.why.startswith(_BEGINS) else f"{_BEGINS} of {name} that are not exact: {worst.why}"
    return Grade("incomplete" if worst.exactness == "incomplete" else "superset", why)


def _end(run: str, dataset: str, why: str, lost: bool, files: dict[str, int]) -> HopEnd:
    return HopEnd(run, dataset, tuple(sorted(filter(None, files))), sum(files.values()), why, lost)
