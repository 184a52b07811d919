"""Streaming queries of a process: the plans behind their batches, their offsets, the rows of all their batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.read import read_plan
from govtool.capture.spark.live.checkpoints import Checkpoints
from govtool.capture.spark.live.rdd_actions import RddSources
from govtool.capture.spark.live.spool import Line, Process
from govtool.capture.spark.streams import BatchKey, BatchProgress, batches_from
from govtool.model.run import Batches

_MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)


DRIVER_LEAVES = frozenset({"LocalRelation", "LogicalRDD"})
"""Leaves of plans whose rows the driver, or an RDD, may have made."""
_COLLECTED = "rows that the driver collected were made a DataFrame again: any column may have become any other"
_THROUGH_RDD = "rows were records of an RDD, and made a DataFrame again: any column may have become any other"
_MAYBE_COLLECTED = "the driver made these rows after it had collected others: they may hold some of them"


class _Begun(NamedTuple):
    """A batch that was handed to a function of ``foreachBatch``."""

    time: float
    key: BatchKey


@dataclass(slots=True)
class Streams:
    """The notes of a process about streams, and about data that the driver made."""

    plans: dict[int, p.Node] = field(default_factory=dict)
    """The plan of the stream behind a column of a batch, by the column's id."""
    driver: frozenset[int] = frozenset()
    """Ids of columns of data that the driver made."""
    progress: dict[str, dict[int, BatchProgress]] = field(default_factory=dict)
    """Of each batch, by the query's run and the batch's number."""
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    """Plans whose rows the job kept as RDDs."""
    _begun: dict[int, list[_Begun]] = field(default_factory=dict)
    """By the id of a column of their data, in order of time."""
    _origins: dict[int, tuple[Line, ...]] = field(default_factory=dict)
    """The queries whose rows the driver, or an RDD, made a DataFrame again, by the id of a column of that."""

    @classmethod
    def of(cls, process: Process) -> Streams:
        """The streams of a process."""
        streams = cls(checkpoints=Checkpoints.of(process.streams))
        plans: dict[str, p.Node] = {}
        for line in process.streams:
            ids = [number for number in line.get("ids") or () if isinstance(number, int)]
            match line.get("e"):
                case "local":
                    streams.driver |= frozenset(ids)
                    streams._made(line, ids)
                    streams._origins.update(dict.fromkeys(ids, _queries([line.get("from")])))
                case "rows":
                    streams._made_of_rdd(line, ids)
                    streams._origins.update(dict.fromkeys(ids, _queries(line.get("frames"))))
                case "stream":
                    plans.update(_plan_of(line))
                case "batch":
                    streams._begin(line, ids, plans.get(str(line.get("stream"))))
        for found in filter(None, map(BatchProgress.read, process.progress)):
            streams.progress.setdefault(found.key.run, {})[found.key.batch] = found
        return streams

    def _made(self, line: Line, ids: Sequence[int]) -> None:
        """Data of the driver that is, or may be, of rows that it collected."""
        if "from" not in line and not line.get("collected"):
            return
        try:
            origin: tuple[p.Node, ...] = (read_plan(line["from"]).root,)
        except _MALFORMED:
            origin = ()
        text = _COLLECTED if origin else _MAYBE_COLLECTED
        outputs = tuple(p.Named(number, "") for number in ids)
        lost = p.LineageBreak(origin, outputs, "break.driver", text)
        self.plans.update(dict.fromkeys(ids, lost))

    def _made_of_rdd(self, line: Line, ids: Sequence[int]) -> None:
        """Data of an RDD whose queries or files are known."""
        paths = line.get("paths")
        leaves = ({"paths": [path]} for path in (paths if isinstance(paths, list) else ()))
        sources = RddSources.of(line.get("frames"), leaves, self.plans, self.driver)
        if sources.frames or sources.files:
            lost = sources.lost([p.Named(number, "") for number in ids], _THROUGH_RDD)
            self.plans.update(dict.fromkeys(ids, lost))

    def _begin(self, line: Line, ids: Iterable[int], plan: p.Node | None) -> None:
        key = BatchKey.read([line.get("query"), line.get("run"), line.get("batch")])
        time = line.get("time")
        for number in ids:
            if plan is not None:
                self.plans[number] = plan
            if key is not None and isinstance(time, int | float):
                self._begun.setdefault(number, []).append(_Begun(float(time), key))

    def batches_of(self, line: Line) -> Batches | None:
        """The batches that an execution processed, as `Run.batches`; None if it is no part of a streaming query."""
        if line.get("name") == "stream" and line.get("run"):
            return batches_from(self._of_run(line).values())
        key = BatchKey.read(line.get("batch")) or self._begun_before(line)
        if key is None:
            return None
        return batches_from([self.progress.get(key.run, {}).get(key.batch, BatchProgress(key))])

    def _of_run(self, line: Line) -> Mapping[int, BatchProgress]:
        return self.progress.get(str(line.get("run")), {})

    def _begun_before(self, line: Line) -> BatchKey | None:
        """The batch whose data an execution reads: in a thread of the job's own, Spark does not describe it."""
        started = line.get("started")
        if not isinstance(started, int | float) or not self._begun or not isinstance(line.get("plan"), list):
            return None
        for node in line["plan"]:
            if isinstance(node, dict) and node.get("c") == "LogicalRDD":
                begun = next((self._begun[i] for i in _ids(node) if i in self._begun), [])
                at = bisect_right(begun, started, key=lambda each: each.time)
                return begun[at - 1].key if at else None
        return None

    def origins_of(self, line: Line) -> list[Line]:
        """The queries behind the rows that an execution reads from the driver or an RDD, however often they went."""
        found: dict[int, Line] = {}
        waiting = [line]
        while waiting:
            each = waiting.pop()
            origins = self.checkpoints.origins_of(each)
            for node in each.get("plan") or ():
                ids = _ids(node) if isinstance(node, Mapping) and node.get("c") in DRIVER_LEAVES else ()
                origins += [origin for number in ids for origin in self._origins.get(number, ())]
            fresh = {id(origin): origin for origin in origins if id(origin) not in found}
            found.update(fresh)
            waiting += fresh.values()
        return list(found.values())

    def measured(self, line: Line) -> Line:
        """An execution with its figures; a streaming query's are those of all its batches."""
        if line.get("name") != "stream" or line.get("metrics"):
            return line
        rows: dict[str, int] = {}
        for batch in self._of_run(line).values():
            for source in batch.offsets:
                rows[source.path] = rows.get(source.path, 0) + (source.offsets.rows or 0)
        scans = [{"paths": [path], "rows": total} for path, total in rows.items() if path]
        return {**line, "metrics": {"scans": scans}} if scans else line


def _queries(lines: object) -> tuple[Line, ...]:
    return tuple(each for each in lines if isinstance(each, Mapping)) if isinstance(lines, list) else ()


def _plan_of(line: Line) -> dict[str, p.Node]:
    """The plan of a stream by its name; nothing if it cannot be read."""
    try:
        return {str(line.get("stream")): read_plan(line).root}
    except _MALFORMED:
        return {}


def _ids(node: Mapping[str, Any]) -> list[int]:
    found = []
    for tree in node.get("output") or ():
        first = tree[0] if isinstance(tree, list) and tree else tree
        number = first.get("exprId") if isinstance(first, dict) else None
        if isinstance(number, int):
            found.append(number)
    return found
