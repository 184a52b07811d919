"""Positions of the rows of DataFrames: the plan of a write is rewritten to carry ids, and the ids are kept beside it.

Only where a trace of the recorded plan may not be exact, and only with ``--records=eager``. The rows with their ids are
cached on disk while they are written, so that what was written and what is kept are of one evaluation; the written
columns are the query's own. What cannot be carried is written as it is, and the reason is noted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from govtool.spark.live.jvm.scala import safely, sequence
from govtool.spark.live.records import carried, packing, rewritten
from govtool.spark.live.records.cached_rows import CachedRows, failed_tasks
from govtool.spark.live.records.carried import NotCarried, PlanCarrier
from govtool.spark.live.records.layouts import SortsInMemory, WriteLayout, layout_of, named_places
from govtool.spark.live.spool import Spool

_SETTINGS = frozenset(["mode", "format", "option", "options", "partitionBy", "bucketBy", "sortBy", "clusterBy"])
_WRITES = frozenset(["save", "insertInto", "saveAsTable", "json", "parquet", "text", "csv", "xml", "orc"])
MAX_PLANS = 1000
"""Queries that are known until the listener has heard of their writes."""
_AGAIN = (
    "Spark may have evaluated some rows again, where a task failed or a block of its cache was lost: their "
    "ids may be others now"
)
_SORTED = "Spark sorted the rows by their partitions or buckets on disk, so that their places are not known"
_TOO_MANY = f"there are more than {packing.MAX_PAIRS:,} pairs of records"
_patched: set[Any] = set()
_newest: list[EagerWrites] = []
"""The recorder of writes: the class of writers is patched once, and a process may be recorded anew."""


class TooMany(NotCarried):
    """An action has more positions than are kept."""


class EagerWrites:
    """Keeps the positions of what DataFrames write.

    Args:
        spool: Takes lines about positions; its folder takes the positions, too.
        is_wanted: Whether positions are wanted now.
        known_rows: Gives the ids of first columns of leaves whose rows the driver made and that are kept.
    """

    def __init__(self, spool: Spool, is_wanted: Callable[[], bool], known_rows: Callable[[], frozenset[int]]) -> None:
        self._spool = spool
        self.is_wanted = is_wanted
        self._known_rows = known_rows
        self._originals: dict[int, Any] = {}
        self._here = threading.local()

    def original(self, session: Any, plan: Any) -> tuple[Any, int | None]:
        """An analyzed plan as it would be without ids, and the key of its positions; None: it was not rewritten."""
        if not self._originals:
            return plan, None
        return rewritten.restored(PlanCarrier(session), plan, self._originals)

    def patch(self, writer_class: Any) -> None:
        """Hear of writes before they run."""
        _newest[:] = [self]
        if writer_class in _patched:
            return
        _patched.add(writer_class)
        original = writer_class.__init__

        @wraps(original)
        def made(own: Any, frame: Any) -> None:
            original(own, frame)
            if _newest[-1].is_wanted():
                own._jwrite = _Writer(_newest[-1], frame, own._jwrite, [])

        writer_class.__init__ = made

    def confirm(self, key: int, number: int) -> None:
        """Write down the number of the execution that wrote the rows of some positions."""
        self._put({"e": "written", "key": key, "n": number})

    def write(self, frame: Any, settings: list[tuple[str, tuple[Any, ...]]], plain: Any, name: str, words: Any) -> Any:
        """Run a write, with positions where they can be kept.

        Args:
            frame: The DataFrame of pyspark.
            settings: What was set of its writer.
            plain: The Java writer that writes it as it is.
            name: The method that writes.
            words: Its arguments.
        """
        if getattr(self._here, "busy", False):
            return getattr(plain, name)(*words)
        self._here.busy = True
        try:
            return self._write(frame, settings, plain, name, words)
        finally:
            self._here.busy = False

    def _write(self, frame: Any, settings: Any, plain: Any, name: str, words: Any) -> Any:
        started = time.time()
        action, reason = self._carried(frame, settings, name, words)
        if action is None:
            begun = time.time()
            done = getattr(plain, name)(*words)
            if reason:
                self.note_missing(begun, time.time(), reason)
            return done
        try:
            begun = time.time()
            done = getattr(action.writer, name)(*words)
            action.confirm()
            self._keep(action, begun - started, time.time() - begun)
            return done
        finally:
            action.close()

    def note_missing(self, begun: float, ended: float, reason: str) -> None:
        """Write down why no positions are kept of a write that ran at some time, in seconds."""
        self._put({"e": "positions", "from": begun, "to": ended, "missing": reason})

    def _carried(self, frame: Any, settings: Any, name: str, words: Any) -> tuple[EagerWrite | None, str]:
        """A write whose rows and ids are evaluated; or None, and why it has none where it needs them."""
        action = None
        try:
            action = self._prepared(frame, settings, name, words)
            if action is not None:
                action.take()
                action.prepare(settings)
            return action, ""
        except NotCarried as why:
            reason = str(why)
        except Exception as error:
            reason = f"the ids of records could not be carried: {type(error).__name__}: {error}"[:300]
        if action is not None:
            action.close()
        return None, reason

    def _prepared(self, frame: Any, settings: Any, name: str, words: Any) -> EagerWrite | None:
        session, execution = frame.sparkSession, frame._jdf.queryExecution()
        plan = execution.analyzed()
        why = rewritten.why_eager(session, plan)
        if not why:
            return None
        layout = layout_of(session, plan, settings, name, words)
        reason = rewritten.cannot_carry(session, execution)
        if reason:
            raise NotCarried(reason)
        action = EagerWrite(session, plan, why, self._known_rows(), layout)
        self._originals[action.key] = plan
        while len(self._originals) > MAX_PLANS:
            del self._originals[next(iter(self._originals))]
        return action

    def _keep(self, action: EagerWrite, taken: float, written: float) -> None:
        line: dict[str, Any] = {"e": "positions", "key": action.key, "why": action.why, **action.facts}
        line.update(seconds=round(taken, 3), write_seconds=round(written, 3))
        try:
            if "missing" not in line:
                file = f"{os.getpid()}-{time.time_ns()}.positions"
                self._file(file, action.data)
                line.update(file=file, sha256=hashlib.sha256(action.data).hexdigest())
        except OSError as error:
            line["missing"] = f"the positions could not be written: {error.strerror}"
        self._put(line)

    def _put(self, line: dict[str, Any]) -> None:
        """Write a line; the job has written its rows by now, and does not fail for it."""
        with contextlib.suppress(OSError):
            os.makedirs(self._spool.folder, mode=0o700, exist_ok=True)
            self._spool.write(line)

    def _file(self, name: str, data: bytes) -> None:
        os.makedirs(self._spool.folder, mode=0o700, exist_ok=True)
        place = os.path.join(self._spool.folder, name)
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:
            sink.write(data)


def newest_note() -> Callable[[float, float, str], None] | None:
    """What notes writes without positions now; None: positions are not wanted."""
    return _newest[-1].note_missing if _newest and _newest[-1].is_wanted() else None


class _Writer:
    """A Java writer that hands a write to `EagerWrites`; all else is the writer's own."""

    def __init__(
        self, eager: EagerWrites, frame: Any, writer: Any, settings: list[tuple[str, tuple[Any, ...]]]
    ) -> None:
        self._eager = eager
        self._frame = frame
        self._writer = writer
        self._settings = settings

    def __getattr__(self, name: str) -> Any:
        if name in _SETTINGS:
            return lambda *words: _Writer(
                self._eager, self._frame, getattr(self._writer, name)(*words), [*self._settings, (name, words)]
            )
        if name in _WRITES:
            return lambda *words: self._eager.write(self._frame, self._settings, self._writer, name, words)
        return getattr(self._writer, name)


class EagerWrite:
    """One write with the ids of its records.

    Args:
        session: The session of pyspark.
        plan: The analyzed plan of the query.
        why: Why a lazy trace may not be exact.
        known_rows: As `PlanCarrier` has it.
        layout: Where the rows are written.

    Raises:
        NotCarried: The plan cannot carry ids.
    """

    def __init__(self, session: Any, plan: Any, why: str, known_rows: frozenset[int], layout: WriteLayout) -> None:
        self.why = why
        self._session = session
        self._layout = layout
        self._carrier = carrier = PlanCarrier(session, known_rows)
        made, self._ids = carrier.carry(plan)
        if not self._ids:
            raise NotCarried("it reads nothing that has positions")
        self.key = int(self._ids[0].column.exprId().id())
        made, self._places = carrier.with_columns(made, layout.expressions())
        columns = [*sequence(plan.output()), *(each.column for each in self._ids), *self._places]
        self._rows = carrier.frame(carrier.project(columns, made))
        self._plan = carrier.project(sequence(plan.output()), self._rows.queryExecution().analyzed())
        self.facts: dict[str, Any] = {}
        self.data = b""
        self.writer: Any = None
        self._cached: list[CachedRows] = []
        self._failed = failed_tasks(session)
        self._sorts: SortsInMemory | None = None
        try:
            for each in (*(boundary.source for boundary in carrier.boundaries), self._rows):
                again = carrier.frame(each.queryExecution().analyzed())
                self._cached.append(CachedRows(session, each, again))
        except Exception:
            self.close()
            raise

    def prepare(self, settings: list[tuple[str, tuple[Any, ...]]]) -> None:
        """Make the Java writer of the query's own columns, whose rows are those that ids are kept of."""
        self.writer = self._carrier.frame(self._plan).write()
        for name, values in settings:
            self.writer = getattr(self.writer, name)(*values)
        if not self._layout.is_flat and "missing" not in self.facts:
            self._sorts = SortsInMemory(self._session)

    def close(self) -> None:
        """Let go of what was cached."""
        for rows in reversed(self._cached):
            rows.close()

    def confirm(self) -> None:
        """Drop the ids if any row may have been evaluated again since, and be written with another one."""
        if "missing" not in self.facts and not safely(self._is_evaluated_once):
            self.facts, self.data = {"missing": _AGAIN}, b""
        elif self._sorts is not None and not safely(self._sorts.held):
            self.facts, self.data = {"missing": _SORTED}, b""

    def _is_evaluated_once(self) -> bool:
        return all(rows.are_kept() for rows in self._cached) and failed_tasks(self._session) == self._failed

    def take(self) -> None:
        """Evaluate the rows, and take the pairs of their ids: ``facts``, and ``data``, one after the other.

        Where there are too many, ``facts`` has the reason; what was evaluated is written all the same.
        """
        _ship()
        tables: list[list[Any]] = []
        data: list[bytes] = []
        try:
            rows = self._result(tables, data)
            for each, cached in zip(self._carrier.boundaries, self._cached):
                stops = len(each.stops)
                found = self._rdd(each.frame, stops, cached).mapPartitions(packing.keyed(stops)).collect()
                _add(tables, data, (each.number, each.exactness, each.reason), each.stops, found)
        except TooMany as why:
            self.facts = {"missing": str(why)}
            return
        self.facts = {
            "tables": tables,
            "labels": [[each.number, each.label] for each in self._carrier.boundaries],
            "sources": [self._source(each) for each in self._carrier.sources],
            "rows": rows,
        }
        self.data = b"".join(data)

    def _result(self, tables: list[list[Any]], data: list[bytes]) -> list[Any]:
        """Add the pairs of the written rows; return how many rows each task has, in each folder and bucket."""
        columns = [*(each.column for each in self._ids), *self._places]
        ids = self._carrier.project(columns, self._rows.queryExecution().analyzed())
        stops = [each.stop for each in self._ids]
        numbered = packing.numbered(len(stops))
        parts = (
            self._rdd(self._carrier.frame(ids), len(stops), self._cached[-1]).mapPartitionsWithIndex(numbered).collect()
        )
        _add(tables, data, (-1, "exact", ""), stops, [packed for _, _, packed in parts])
        counted = [(partition, *place) for partition, places, _ in sorted(parts) for place in places]
        return named_places(self._session, self._layout, counted)

    def _source(self, source: carried.CarriedSource) -> dict[str, Any]:
        found: dict[str, Any] = {"stop": source.number, "kind": source.kind, "leaf": source.leaf}
        if source.kind == "files":
            found["files"] = [[number, uri] for number, uri in source.files.items()]
        if source.frame is not None:
            found["rows"] = sorted(self._rdd(source.frame, 0).mapPartitionsWithIndex(packing.counted).collect())
        return found

    def _rdd(self, frame: Any, stops: int, cached: CachedRows | None = None) -> Any:
        """The rows of a Java ``Dataset``: not an action that a listener hears of.

        Args:
            frame: The ``Dataset``.
            stops: How many ids a row has.
            cached: The rows that it is a projection of, where these are cached.

        Raises:
            TooMany: They have more ids than pass through the driver.
            NotCarried: Some rows were evaluated more than once.
        """
        from pyspark.sql import DataFrame

        if cached is not None:
            if int(frame.queryExecution().toRdd().count()) * stops > packing.MAX_PAIRS:
                raise TooMany(_TOO_MANY)
            if not cached.are_kept():
                raise NotCarried(_AGAIN)
        return DataFrame(frame, self._session).rdd


def _add(tables: Any, data: list[bytes], node: tuple[int, str, str], stops: list[int], parts: list[Any]) -> None:
    number, exactness, reason = node
    for place, stop in enumerate(stops):
        found = [part[place] for part in parts]
        if any(part is None for part in found) or sum(map(len, found)) > 16 * packing.MAX_PAIRS:
            raise TooMany(_TOO_MANY)
        packed = b"".join(found)
        tables.append([number, stop, len(packed), exactness, reason])
        data.append(packed)


def _ship() -> None:
    """Have the functions that pack ids sent to executors by value: these need no govtool."""
    from pyspark import cloudpickle

    register: Any = cloudpickle.register_pickle_by_value
    register(packing)
