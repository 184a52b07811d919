"""Hears of executions and hands them to a thread that writes them down.

Spark calls a listener on the thread of its listener bus, which everything else on the bus waits for. So a call only
takes a note, and a thread of our own asks the plan for the rest. The queue is bounded: what does not fit is counted as
lost, and nothing ever waits for us but the end of the process, for so many seconds.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from govtool.spark.live import streams
from govtool.spark.live.job import code, facts
from govtool.spark.live.job.digest_key import Digests, read_key
from govtool.spark.live.job.packages import imported_packages
from govtool.spark.live.job.settings import EFFECTIVE, ApplicationSettings, modified_settings
from govtool.spark.live.jvm import hadoop
from govtool.spark.live.jvm.prefetch import EXECUTION, Prefetcher, stored_executions
from govtool.spark.live.jvm.scala import let_go
from govtool.spark.live.numbers import Mark, Numbers, facts_of
from govtool.spark.live.plans import catalyst, files, physical
from govtool.spark.live.records import exact
from govtool.spark.live.records.sink_batches import SinkBatches, WrittenBatch, written_batch
from govtool.spark.live.spool import Spool

MAX_WAITING = 1000
"""Executions that wait to be written down."""

_PLAN_TEXT = 8 << 20
_HOUSEKEEPING = ("Cache Delta ", "Delta checkpoint")
"""Delta Lake's names for its own work on a table's log: large plans, about no data of anybody's."""


class Recorder:
    """Writes what sessions execute into a spool, on a thread of its own."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.digests = Digests(read_key())
        self.lost = 0
        self.sessions: dict[str, Any] = {}
        self.queries: list[tuple[Any, float, str]] = []
        """Streaming queries that were started, when, and how."""
        self._applications: set[str] = set()
        self._settings: dict[str, str] = {}
        """Those of the first session, as they are written down."""
        self._application_settings: dict[str, ApplicationSettings] = {}
        self._number = 0
        self._known: dict[int, None] = {}
        self._numbers: dict[str, Numbers] = {}
        self._unsettled: dict[int, tuple[str, Mark]] = {}
        self._queue: queue.Queue[Callable[[], None]] = queue.Queue(MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._started = False
        self._prefetchers: dict[str, Prefetcher] = {}
        self._stores: dict[str, Any] = {}
        self.replay = exact.from_environment()
        self._sink_batches = SinkBatches(self._batch_ended)
        self._written_runs: set[str] = set()
        """Runs of streaming queries whose batches are written down one by one."""

    # ---- from any thread --------------------------------------------------------------------------------------

    def put(self, job: Callable[[], None]) -> None:
        """Have something done on the recorder's thread; never waits."""
        try:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="govtool-recorder", daemon=True)
                self._thread.start()
            self._queue.put_nowait(job)
        except Exception:
            self.lost += 1

    def attach(self, session: Any) -> None:
        """Listen to a classic session; a second time is none."""
        key = facts.session_id(session)
        if key in self.sessions:
            if self.replay is not None:  # records were requested later than the first recording
                self.replay.attach(session)
            return
        from pyspark.java_gateway import ensure_callback_server_started

        gateway = session.sparkContext._gateway
        hadoop.remember(session.sparkContext)
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        listener = Listener(self, key)
        session._jsparkSession.listenerManager().register(listener)
        self.sessions[key] = (session, listener, session.sparkContext.applicationId)
        self.put(lambda: self._session(session))
        streams.follow(session, self)
        streams.patch(self)
        if self.replay is not None:
            self.replay.attach(session)

    def follow_sinks(self, session: Any) -> None:
        """Hear of the batches that streaming queries write to files by themselves, where records are wanted."""
        if self.replay is not None:
            self._sink_batches.follow(session)

    def _batch_ended(self, event: Any) -> None:
        """Have the batch of a streaming query written down; Spark waits for this call."""

        def write() -> None:
            try:
                if not event.executionFailure().isDefined():
                    self._batch_written(event)
            finally:
                let_go(event)

        self.put(write)

    def note(self, line: dict[str, Any]) -> None:
        """Write a line that is ready."""
        self.put(lambda: self.write(line))

    def checkpointed(self, line: dict[str, Any]) -> None:
        """Write down which RDD stands for the rows of a DataFrame, for whoever reads plans."""

        def write() -> None:
            self.write(line)
            if self.replay is not None:
                self.replay.spool.write(line)

        self.put(write)

    def called(self, key: str, command: dict[str, Any], started: float, ended: float) -> None:
        """Write down a procedure that was called."""

        def write() -> None:
            application = self.sessions[key][2]
            line = {"e": "execution", "n": self.next_number(), "name": "call", "ok": True, "session": key}
            self.write({**line, "application": application, "started": started, "ended": ended, "command": command})

        self.put(write)

    def drain(self, timeout: float) -> bool:
        """Wait until what was heard is written down; False if that takes too long."""
        deadline = time.monotonic() + timeout
        for context in {id(s.sparkContext): s.sparkContext for s, _, _ in self.sessions.values()}.values():
            try:
                if context._jsc is not None:
                    context._jsc.sc().listenerBus().waitUntilEmpty(int(max(1, (deadline - time.monotonic()) * 1000)))
            except Exception:
                self.lost += 0  # a stopped context has drained its bus
        done = threading.Event()
        self.put(done.set)
        return done.wait(max(0.0, deadline - time.monotonic()))

    # ---- on the recorder's thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            job = self._queue.get()
            try:
                job()
            except Exception as error:
                self.lost += 1
                self.spool.write({"e": "trouble", "what": type(error).__name__})
            del job  # else what its execution's joins hold in memory stays until the next one

    def write(self, line: dict[str, Any]) -> None:
        """Write a line, after what is to be said of the process."""
        if not self._started:
            self._started = True
            self.spool.write({**facts.process_facts(), **self._code()})
        self.spool.write(line)

    def _code(self) -> dict[str, Any]:
        """Arguments of the script, and modules of its own that are imported by now."""
        try:
            found = {"key": self.digests.id, "arguments": code.arguments(self.digests)}
            return {**found, "modules": code.own_modules()}
        except Exception:
            self.lost += 1
            return {}

    def next_number(self) -> int:
        """The number of the next execution, in the order in which they are written down."""
        self._number += 1
        return self._number

    def _session(self, session: Any) -> None:
        line = facts.session_facts(session)
        line["effective"] = self._settings_of(session, line["application"]).values(EFFECTIVE)
        self._settings = self._settings or {**line["effective"], **line["conf"]}
        if line["application"] in self._applications:  # a further session of the application: the rest is the same
            line = {key: line[key] for key in ("e", "time", "session", "application")}
        self._applications.add(line["application"])
        self.write(line)

    def _settings_of(self, session: Any, application: str) -> ApplicationSettings:
        """The settings of a session's application."""
        if application not in self._application_settings:
            self._application_settings[application] = ApplicationSettings(session.sparkContext)
        return self._application_settings[application]

    def _batch_written(self, event: Any) -> None:
        """Write down the batch of a query that writes files by itself."""
        execution = event.qe()
        application = str(execution.sparkSession().sparkContext().applicationId())
        own = {key: session for key, (session, _, known) in self.sessions.items() if known == application}
        batch = written_batch(event, list(own.values()), self.queries)
        if batch is not None:
            self._written_runs.add(batch.key[1])
            key, ended = next(iter(own)), int(event.time()) / 1000
            self.executed(key, "batch", execution, int(event.duration()), "", ended, batch)

    def executed(
        self,
        key: str,
        name: str,
        execution: Any,
        nanoseconds: int | None,
        error: str,
        ended: float,
        batch: WrittenBatch | None = None,
    ) -> None:
        """Write down an execution.

        Args:
            key: The session's id.
            name: What Spark calls the action.
            execution: The ``QueryExecution``.
            nanoseconds: How long it took; None if it failed.
            error: Why it failed.
            ended: When we heard of it.
            batch: What it is of a streaming query that writes files by itself.
        """
        query_execution = int(execution.id())
        if name.startswith(_HOUSEKEEPING) or self._is_known(query_execution):
            return
        number = self.next_number()
        session, _, application = self.sessions[key]
        plans = execution
        if self._prefetches and not error:
            execution = self._prefetcher(session, application).fetched(execution, EXECUTION)
        line: dict[str, Any] = {"e": "execution", "n": number, "name": name, "ok": not error, "session": key}
        line["application"] = application
        line["query_execution"] = query_execution
        line["ended"] = ended
        if nanoseconds is not None:
            line["started"] = ended - nanoseconds / 1e9
        if error:
            line["error"] = facts.one_line(error)
        try:
            line.update(self._identified(session, application, execution, batch))
        except Exception:
            line["unidentified"] = True
        modified = line.pop("modified", None)
        if error and _is_unanalyzed(error):
            # There is no plan, and asking for it again would have pyspark log the job's error a second time.
            line["break"] = "plan-unanalyzed"
            self.write(line)
            return
        plan, positions = None, None
        try:
            plan, positions = self._analyzed(session, execution, batch)
            line.update(catalyst.captured(plan, self.digests))
        except Exception as failure:
            line["break"] = "plan-too-large" if "plan-too-large" in str(failure) else "plan-unreadable"
            self._as_text(execution, line)
        try:
            if not error:
                line["metrics"] = physical.measured(execution.executedPlan())
                physical.settle_overwrites(line, execution.executedPlan())
        except Exception:
            line["unmeasured"] = True
        try:
            line.update(self._changed(session, application, execution, modified))
            if batch is not None:
                batch.complete(line)
            if not error:
                line.update(_left(line))
        except Exception:
            line["unlisted"] = True
        self.write(line)
        if self.replay is not None and not error:
            details: dict[str, Any] = {"query_execution": query_execution}
            if modified is not None:
                known = self._settings_of(session, application)
                details["began"] = known.values(exact.SETTINGS, modified_settings(modified))
            self.replay.executed(session, plans, number, application, plan, positions, details, batch)

    def _changed(self, session: Any, application: str, execution: Any, modified: str | None) -> dict[str, Any]:
        """The settings of an execution that are others than those of the first session, as ``settings``."""
        if modified is None:
            return facts.changed_settings(execution, self._settings)
        known = self._settings_of(session, application)
        changed = known.changed(modified_settings(modified), self._settings)
        return {"settings": changed} if changed else {}

    @property
    def _prefetches(self) -> bool:
        """True if answers are fetched together: a job of one action is spared the compiler."""
        return self.replay is not None or self._number > 1

    def _prefetcher(self, session: Any, application: str) -> Prefetcher:
        if application not in self._prefetchers:
            self._prefetchers[application] = Prefetcher(session.sparkContext._gateway)
        return self._prefetchers[application]

    def _analyzed(self, session: Any, execution: Any, batch: WrittenBatch | None) -> tuple[Any, int | None]:
        """The analyzed plan as the job has it, and the key of the positions that are kept of its rows."""
        if batch is not None:
            return batch.named, None
        return (execution.analyzed(), None) if self.replay is None else self.replay.analyzed(session, execution)

    def _is_known(self, number: int) -> bool:
        """Sessions that Spark clones for its streams have our listener too: they hear what we hear."""
        if number in self._known:
            return True
        self._known[number] = None
        if len(self._known) > 10 * MAX_WAITING:
            del self._known[next(iter(self._known))]
        return False

    def _as_text(self, execution: Any, line: dict[str, Any]) -> None:
        """Keep the formatted plan where the analyzed one cannot be had."""
        try:
            text = execution.toString() if line["break"] == "plan-unreadable" else ""
            if text and len(text) <= _PLAN_TEXT:
                line["text"] = text
        except Exception:
            line.pop("text", None)

    def _identified(self, session: Any, application: str, execution: Any, batch: WrittenBatch | None) -> dict[str, Any]:
        """Spark's own number of an execution, and of the one that it is a part of, as event logs write them.

        Spark's store of executions hears of them on another thread than we: what it does not know yet is asked again.
        """
        if batch is not None:
            return facts_of(self._status_store(session, application, [batch.number]), batch.number)
        numbers = self._numbers.get(application)
        if numbers is None:
            numbers = self._numbers[application] = Numbers()
        mark = numbers.mark(execution)
        store = partial(self._status_store, session, application)
        numbers.look(store(numbers.upcoming()), mark.query, store)
        self._settle()
        found = numbers.take(mark)
        if found is None:
            self._unsettled[self._number] = (application, mark)
            if len(self._unsettled) > MAX_WAITING:
                del self._unsettled[next(iter(self._unsettled))]
        query = {"query": mark.query} if mark.query else {}
        return {**query, **(found or {})}

    def _status_store(self, session: Any, application: str, wanted: list[int]) -> Any:
        """Spark's store of executions, some of them fetched."""
        if application not in self._stores:
            self._stores[application] = session._jsparkSession.sharedState().statusStore()
        store = self._stores[application]
        if not self._prefetches:
            return store
        return self._prefetcher(session, application).fetched(store, stored_executions(wanted))

    def _settle(self) -> None:
        """Write down the numbers of executions that had none when they were heard of."""
        for n, (application, mark) in list(self._unsettled.items()):
            found = self._numbers[application].take(mark)
            if found is not None:
                del self._unsettled[n]
                modified = found.pop("modified", None)
                if modified is not None and application in self._application_settings:
                    known = self._application_settings[application]
                    found["settings"] = known.changed(modified_settings(modified), self._settings)
                self.write({"e": "number", "n": n, **found})

    def _settle_all(self) -> None:
        for session, _, application in list(self.sessions.values()):
            numbers = self._numbers.get(application)
            if numbers is not None and self._unsettled:
                numbers.look(session._jsparkSession.sharedState().statusStore())
        self._settle()

    def _streams(self) -> None:
        queries, self.queries = self.queries, []
        for query, started, name in queries:
            application = next((key for _, _, key in self.sessions.values()), "")
            line = streams.finished(query, started, name, application)
            if line is not None and not (line["ok"] and line["run"] in self._written_runs):
                self.write(dict(line, n=self.next_number()))

    def checkpoint(self, timeout: float) -> bool:
        """Write down what was heard until now, and which packages are there; False if that takes too long."""
        if self.queries:
            self.put(self._streams)
        drained = self.settle(timeout)
        self.note(self._end(drained))
        return self.drain(timeout) and drained

    def settle(self, timeout: float) -> bool:
        """Write down what was heard until now, with Spark's numbers of it; False if that takes too long."""
        drained = self.drain(timeout)
        self.put(self._settle_all)
        return self.drain(timeout) and drained

    def _end(self, drained: bool) -> dict[str, Any]:
        packages: dict[str, str] = {}
        try:
            packages = imported_packages()
        except Exception:
            self.lost += 1
        line = {"e": "end", "time": time.time(), "packages": packages, "lost": self.lost + self.spool.lost}
        line["modules"] = self._code().get("modules") or {}
        if not drained:
            line["undrained"] = True
        return line

    def finish(self, timeout: float) -> None:
        """Write down what is still waiting, and that this is the end."""
        if self.queries:
            self.put(self._streams)
        drained = self.settle(timeout)
        if self._started:
            self.spool.write(self._end(drained))


def _left(line: dict[str, Any]) -> dict[str, Any]:
    """The files that are under the place of a write after it."""
    command = line.get("command") or {}
    path, ended = command.get("path"), line["ended"]
    if not isinstance(path, str) or "write" not in line.get("metrics", {}):
        return {}
    return files.left_files(path, line.get("started"), ended, line["metrics"]["write"])


def _is_unanalyzed(error: str) -> bool:
    return error.startswith(("AnalysisException", "ExtendedAnalysisException", "ParseException", "NoSuchTable"))


class Listener:
    """A ``QueryExecutionListener`` of one session."""

    def __init__(self, recorder: Recorder, session: str) -> None:
        self._recorder = recorder
        self._session = session

    def onSuccess(self, funcName: str, qe: Any, durationNs: int) -> None:
        """Spark: an execution succeeded."""
        ended = time.time()

        def write() -> None:
            try:
                self._recorder.executed(self._session, funcName, qe, int(durationNs), "", ended)
            finally:
                let_go(qe)

        self._recorder.put(write)

    def onFailure(self, funcName: str, qe: Any, exception: Any) -> None:
        """Spark: an execution failed."""
        ended = time.time()

        def write() -> None:
            try:
                kind = str(exception.getClass().getSimpleName())
                message = f"{kind}: {exception.getMessage()}"
            except Exception:
                message = "failed"
            try:
                self._recorder.executed(self._session, funcName, qe, None, message, ended)
            finally:
                let_go(qe)

        self._recorder.put(write)

    def equals(self, other: Any) -> bool:
        """Java's equality of the proxy."""
        return other is self

    def hashCode(self) -> int:
        """Java's hash of the proxy."""
        return id(self) & 0x7FFFFFFF

    def toString(self) -> str:
        """Java's name of the proxy."""
        return "govtool"

    class Java:
        """The interface that py4j looks for."""

        implements = ["org.apache.spark.sql.util.QueryExecutionListener"]  # noqa: RUF012
