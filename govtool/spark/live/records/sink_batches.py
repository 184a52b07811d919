"""Batches that a streaming query writes to files by itself, each as a write over the files that are new in it.

Spark runs such a batch without a command in its plan, and no ``QueryExecutionListener`` hears of it. A listener inside
the JVM hands its execution on; the command that a batch job with the same effect would have is put on top of its plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from govtool.spark.live.jvm import streaming
from govtool.spark.live.jvm.janino import instance_in
from govtool.spark.live.jvm.scala import safely, sequence, strings
from govtool.spark.live.plans import sink_log
from govtool.spark.live.plans.files import summed
from govtool.spark.live.records.carried import PlanCarrier
from govtool.spark.live.records.stream_batches import NoPlan, bound

SINK = "FileStreamSink"
_WAIT_SECONDS = 1.0
"""Seconds until a query that was started is known: its first batch may end before the method that started it."""


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """One batch that a query wrote to files.

    Attributes:
        key: The ids of the query and of its run, the number of the batch.
        named: The command over the query's own plan, whose inputs are its streams.
        exact: The command over the files of the batch; None: the batch has no such plan.
        reason: Why it has none.
        path: The folder of the sink.
        number: Spark's, of its execution.
    """

    key: tuple[str, str, int]
    named: Any
    exact: Any
    reason: str
    path: str
    number: int

    def complete(self, line: dict[str, Any]) -> None:
        """Add to the line of its execution whose batch it is, and the files that the sink's log has of it."""
        line["batch"] = list(self.key)
        line["command"] = {**(line.get("command") or {}), "stream": True}
        found = safely(partial(sink_log.batch_files, self.path, self.key[2]))
        if found is not None:
            made = {"files": len(found), "bytes": sum(size for _, size, _ in found)}
            metrics = line.setdefault("metrics", {})
            metrics["write"] = {**metrics.get("write", {}), **made}
            line["written"] = summed(found)


@dataclass
class SinkBatches:
    """Hears of batches, application by application.

    Attributes:
        take: Takes an event of Spark on its listener's thread.
    """

    take: Callable[[Any], None]
    _applications: set[str] = field(default_factory=set)

    def follow(self, session: Any) -> None:
        """Hear of the batches of an application's queries from now on; a second time is none."""
        from pyspark.java_gateway import ensure_callback_server_started

        context = session.sparkContext
        if context.applicationId in self._applications:
            return
        ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
        listener = instance_in(context._gateway, "StreamWrites").apply(_Consumer(self.take))
        context._jsc.sc().addSparkListener(listener)
        self._applications.add(context.applicationId)


class _Consumer:
    """A ``java.util.function.Consumer`` of events."""

    def __init__(self, take: Callable[[Any], None]) -> None:
        self._take = take

    def accept(self, event: Any) -> None:
        """Java: take an event."""
        self._take(event)

    class Java:
        """The interface that py4j looks for."""

        implements = ["java.util.function.Consumer"]  # noqa: RUF012


def written_batch(event: Any, sessions: Sequence[Any], queries: list[tuple[Any, float, str]]) -> WrittenBatch | None:
    """The batch of an execution; None if it writes no files by itself.

    Args:
        event: The end of the execution of a batch.
        sessions: Those of its application.
        queries: Streaming queries that were started, as the recorder has them.
    """
    execution = event.qe()
    run = str(execution.runId().toString())
    query = streaming.running(str(execution.queryId().toString()), sessions)
    if query is None or str(query.runId().toString()) != run:
        query = _started(run, queries)
    if query is None or query.sink().getClass().getSimpleName() != SINK:
        return None
    carrier, sink, plan = PlanCarrier(sessions[0]), query.sink(), execution.analyzed()
    table = safely(plan.catalogTable) or carrier.session._jvm.scala.Option.empty()
    path = streaming.sink_folder(sink)
    exact, reason = None, ""
    try:
        exact = _command(carrier, sink, path, table, bound(plan, carrier))
    except NoPlan as why:
        reason = str(why)
    key = (str(query.id().toString()), run, int(execution.currentBatchId()))
    named = _command(carrier, sink, path, table, query.analyzedPlan())
    return WrittenBatch(key, named, exact, reason, path, int(event.executionId()))


def _started(run: str, queries: list[tuple[Any, float, str]]) -> Any:
    """The ``StreamExecution`` of a run of a query that may have ended by now; None if nobody started it."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        for query, _, _ in list(queries):
            if str(query.runId) == run:
                return streaming.behind(query._jsq)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.01)


def _command(carrier: PlanCarrier, sink: Any, path: str, table: Any, plan: Any) -> Any:
    """The command that appends the rows of a plan to the files of a sink, which may be those of a table."""
    jvm = carrier.session._jvm
    own = {name: _private(sink, name) for name in ("fileFormat", "partitionColumnNames", "options")}
    columns = sequence(plan.output())
    by_name = {str(column.name()): column for column in columns}
    folded = {name.lower(): column for name, column in by_name.items()}
    partitions = [by_name.get(name) or folded[name.lower()] for name in strings(own["partitionColumnNames"])]
    nothing, none = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap()), jvm.scala.Option.empty()
    return jvm.org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand(
        jvm.org.apache.hadoop.fs.Path(path), nothing, False, carrier.seq(partitions), none, own["fileFormat"],
        own["options"], plan, jvm.org.apache.spark.sql.SaveMode.Append, table, none,
        carrier.seq([str(column.name()) for column in columns]),
    )  # fmt: skip


def _private(value: Any, name: str) -> Any:
    """A field of an object of Spark that nothing else gives."""
    field = value.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(value)
