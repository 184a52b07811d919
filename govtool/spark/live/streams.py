"""Streams, their batches, and data of the driver: what a listener does not hear, or hears without its beginning.

Streaming queries run in sessions of their own; what they read and write is read from the query itself, when it ends or
the job does, and the offsets and rows of each batch from the progress that Spark reports of it. The DataFrame that
``foreachBatch`` hands to its function begins with an RDD, and so does data that the driver made: their columns are
known by their ids.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import wraps
from itertools import count
from typing import Any

from govtool.spark.live import stopping
from govtool.spark.live.driver import checkpoints, frame_rdds
from govtool.spark.live.driver.collected import CollectedRows
from govtool.spark.live.job import facts
from govtool.spark.live.job.cleaned import clean_url
from govtool.spark.live.jvm import streaming
from govtool.spark.live.jvm.hadoop import qualified
from govtool.spark.live.jvm.scala import safely, sequence, table_parts
from govtool.spark.live.plans import catalyst, python_functions

MAX_OFFSET = 4096
"""Characters of an offset that are kept; a longer one is left out."""

_patched = False
_newest: list[Any] = []
_streams = count()
"""Names of streams: an object's id may be that of an earlier one that is gone."""


class _Newest:
    """The recorder that was attached last: methods are patched once, and a process may attach again."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_newest[-1], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_newest[-1], name, value)


def patch(recorder: Any) -> None:
    """Patch the classic session's ways to make DataFrames and to start streams; once."""
    global _patched
    _newest[:] = [recorder]
    if _patched:
        return
    _patched = True
    recorder = _Newest()
    from pyspark.sql.session import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    _patch_create(SparkSession, recorder)
    _patch_sql(SparkSession, recorder)
    _patch_batches(DataStreamWriter, recorder)
    python_functions.patch(recorder)
    stopping.patch(recorder)
    for name in ("start", "toTable"):
        _patch_start(DataStreamWriter, name, recorder)


_collected = CollectedRows()


def _patch_create(session_class: Any, recorder: Any) -> None:
    original = session_class.createDataFrame
    _collected.patch(_frame_class())
    checkpoints.patch(_frame_class(), lambda line: recorder.checkpointed(line))

    @wraps(original)
    def create(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        plan, after = _collected.plan_of(data), _collected.any
        made = original(self, data, *args, **kwargs)
        if hasattr(data, "toDF") and hasattr(data, "mapPartitions"):  # an RDD
            safely(lambda: _put_rdd(made, data, recorder))
        else:
            rows = _rows_digest(data, recorder)
            recorder.put(lambda: recorder.write(_local(made, rows, plan, after)))
        return made

    session_class.createDataFrame = create


def rows_were_collected() -> None:
    """Note that the driver was given records: what it makes of data from now on may hold some of them."""
    _collected.any = True


def _put_rdd(made: Any, rdd: Any, recorder: Any) -> None:
    """Write down the ids of the columns of what was made of an RDD, and the queries and files behind the RDD."""
    description = frame_rdds.described(rdd)
    plans, paths = frame_rdds.known.behind(description), frame_rdds.paths_in(description)
    line = {"e": "rows", "ids": _ids(made), "paths": paths}
    recorder.put(lambda: recorder.write({**line, "frames": frame_rdds.captured(plans)}))


def _frame_class() -> Any:
    try:
        from pyspark.sql.classic.dataframe import DataFrame
    except ImportError:  # before Spark 4
        from pyspark.sql.dataframe import DataFrame  # type: ignore[assignment]
    return DataFrame


def _local(made: Any, rows: str, plan: Any, after: bool) -> dict[str, Any]:
    """The line of data that the driver made: its columns' ids, and where it may come from."""
    line: dict[str, Any] = {"e": "local", "ids": _ids(made), "data": rows}
    if plan is not None:
        line["from"] = safely(lambda: catalyst.captured(plan)) or {}
    elif after:
        line["collected"] = True
    return line


MAX_ROWS = 10_000
"""Rows of the driver that are digested; of more, nothing but their number counts."""


def _rows_digest(data: Any, recorder: Any) -> str:
    """A digest of rows that the driver made; empty where they are of a kind that cannot be read twice."""
    try:
        if isinstance(data, (list, tuple)):
            shown = repr(data) if len(data) <= MAX_ROWS else f"{len(data)} rows"
        elif hasattr(data, "to_csv") and hasattr(data, "dtypes"):  # a frame of pandas
            shown = f"{dict(data.dtypes)} {data.to_csv()}" if len(data) <= MAX_ROWS else f"{len(data)} rows"
        else:
            return ""
        return "" if " at 0x" in shown else str(recorder.digests.of(shown))  # of an object: its place in memory
    except Exception:
        return ""


def _patch_sql(session_class: Any, recorder: Any) -> None:
    """Since Spark 4 a CALL runs while it is analyzed, and no listener hears of it."""
    import pyspark

    if int(pyspark.__version__.partition(".")[0]) < 4:
        return
    original = session_class.sql

    @wraps(original)
    def sql(self: Any, sqlQuery: str, *args: Any, **kwargs: Any) -> Any:
        started = time.time()
        made = original(self, sqlQuery, *args, **kwargs)
        try:
            command = call_facts(sqlQuery)
            if command is not None:
                recorder.called(facts.session_id(self), command, started, time.time())
        except Exception:
            recorder.lost += 1
        return made

    session_class.sql = sql


_COMMENTS = re.compile(r"\A(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_CALL = re.compile(r"CALL\s+([\w.`]+)\s*\((?:\s*(?:\w+\s*=>\s*)?['\"]([\w.`]+)['\"]\s*[,)])?", re.IGNORECASE)


def call_facts(text: Any) -> dict[str, Any] | None:
    """The procedure that a statement calls, and the table that its first argument names; None if it is no CALL.

    >>> call_facts("CALL lake.system.rollback_to_snapshot('db.users', 12)")
    {'does': 'call', 'procedure': 'lake.system.rollback_to_snapshot', 'table': ['lake', 'db', 'users']}
    """
    if not isinstance(text, str):
        return None
    start = _COMMENTS.match(text)
    found = _CALL.match(text, start.end() if start is not None else 0)
    if found is None:
        return None
    parts = found[1].replace("`", "").split(".")
    command: dict[str, Any] = {"does": "call", "procedure": ".".join(parts)}
    if found[2]:
        table = found[2].replace("`", "").split(".")
        command["table"] = [parts[0], *table] if len(parts) > 2 and table[0] != parts[0] else table
    return command


def _patch_batches(writer_class: Any, recorder: Any) -> None:
    original = writer_class.foreachBatch

    @wraps(original)
    def for_each_batch(self: Any, func: Callable[..., Any]) -> Any:
        stream = f"s{next(_streams)}"
        frame = getattr(self, "_df", None)
        if frame is not None:
            recorder.put(lambda: recorder.write(dict(_plan(frame), e="stream", stream=stream, time=time.time())))

        @wraps(func)
        def noted(batch: Any, number: int) -> Any:
            line = {"e": "batch", "stream": stream, "batch": number, "time": time.time(), **_query_of(batch)}
            recorder.put(lambda: recorder.write(dict(line, ids=_ids(batch))))
            if recorder.replay is not None:
                recorder.replay.batch(batch, [session for session, _, _ in recorder.sessions.values()])
            return func(batch, number)

        return original(self, noted)

    writer_class.foreachBatch = for_each_batch


def _query_of(batch: Any) -> dict[str, str]:
    """The ids of the streaming query that calls, and of its run, from the properties of its thread."""
    try:
        context = batch.sparkSession.sparkContext
        names = {"query": "sql.streaming.queryId", "run": "spark.jobGroup.id"}
        found = {name: context.getLocalProperty(key) for name, key in names.items()}
        return {name: str(value) for name, value in found.items() if value}
    except Exception:  # the batch is the job's; that its query is not known is no reason to disturb it
        return {}


def follow(session: Any, recorder: Any) -> None:
    """Write down the progress of the streaming queries of a session, where Spark has a listener for it (since 3.4)."""
    try:
        session._jsparkSession.streams().addListener(
            session._jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(StreamListener(recorder))
        )
    except Exception as error:
        recorder.note({"e": "trouble", "what": f"the progress of streams is not followed: {type(error).__name__}"})


class StreamListener:
    """A ``StreamingQueryListener`` of one session: hands the progress of batches to the recorder's thread."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder

    def onQueryStarted(self, event: Any) -> None:
        """Spark: a query was started."""

    def onQueryProgress(self, event: Any) -> None:
        """Spark: a query made progress, by a batch or by none."""
        self._recorder.put(lambda: self._recorder.write(progress_facts(event.progress().json())))

    def onQueryIdle(self, event: Any) -> None:
        """Spark: a query waits for data."""

    def onQueryTerminated(self, event: Any) -> None:
        """Spark: a query ended."""

    class Java:
        """The interface that py4j implements."""

        implements = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]  # noqa: RUF012


def progress_facts(text: str) -> dict[str, Any]:
    """The progress of a batch as a line of the spool: offsets and rows of its sources, its sink."""
    report = json.loads(text)
    sources = [
        {
            "source": clean_url(str(source.get("description") or "")),
            "start": _offset(source.get("startOffset")),
            "end": _offset(source.get("endOffset")),
            "rows": source.get("numInputRows"),
        }
        for source in report.get("sources") or ()
    ]
    sink = clean_url(str((report.get("sink") or {}).get("description") or ""))
    line = {"e": "progress", "query": report["id"], "run": report["runId"], "batch": report["batchId"]}
    return {**line, "sources": sources, "sink": sink}


def _offset(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= MAX_OFFSET else ""


def _patch_start(writer_class: Any, name: str, recorder: Any) -> None:
    original = getattr(writer_class, name)

    @wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        safely(lambda: recorder.follow_sinks(self._spark))
        query = original(self, *args, **kwargs)
        try:
            recorder.queries.append((query, time.time(), name))
        except Exception:
            recorder.lost += 1
        return query

    setattr(writer_class, name, start)


def finished(query: Any, started: float, name: str, application: str) -> dict[str, Any] | None:
    """A streaming query as a line of the spool: what it last executed, and its sink."""
    behind = streaming.behind(query._jsq)
    if behind.lastExecution() is None:
        return None
    line: dict[str, Any] = {"e": "execution", "name": "stream", "ok": True, "application": application}
    line["query"], line["run"] = str(query.id), str(query.runId)
    line["started"], line["ended"] = started, time.time()
    failure = query.exception()
    if failure is not None:
        line["ok"], line["error"] = False, facts.one_line(str(failure))
    try:
        line.update(catalyst.captured(behind.analyzedPlan()))
    except Exception:  # Delta's sources cannot be written down before a batch has begun
        line.update(catalyst.captured(behind.lastExecution().analyzed()))
    sink = _sink(behind)
    if sink is None:
        return None
    line["command"] = sink
    return line


_PLACELESS = {"Console": "driver", "Memory": "driver", "Noop": "none", "ForeachWrite": "function"}
"""Sinks that write to no place, by the beginning of their classes' names: where the rows end."""


def _sink(behind: Any) -> dict[str, Any] | None:
    """Return the target of a query's sink; None where its batches have writes of their own (``foreachBatch``)."""
    sink = behind.sink()
    name = sink.getClass().getSimpleName()
    if name in ("FileStreamSink", "DeltaSink"):
        path = qualified(streaming.sink_folder(sink))
        found = {"path": path, "mode": "Append", "stream": True}
        return {**found, **_table_of(behind)}
    if name.startswith("ForeachBatch"):
        return None
    facts: dict[str, Any] = {"mode": "Append", "stream": True}
    if ends := next((ends for start, ends in _PLACELESS.items() if name.startswith(start)), None):
        return {**facts, "sink": ends}
    text = str(sink.toString())
    if hasattr(sink, "name"):
        facts["table"] = str(sink.name()).split(".")
        return facts
    return {"relation": text[:100], "mode": "Append", "stream": True}


def _table_of(behind: Any) -> dict[str, Any]:
    """The table that a sink belongs to, where it has one."""
    try:
        table = behind.lastExecution().analyzed().catalogTable()
        return {"table": table_parts(table.get().identifier())} if table.isDefined() else {}
    except Exception:  # a path
        return {}


def _ids(frame: Any) -> list[int]:
    output = frame._jdf.queryExecution().analyzed().output()
    return [int(attribute.exprId().id()) for attribute in sequence(output)]


def _plan(frame: Any) -> dict[str, Any]:
    return catalyst.captured(frame._jdf.queryExecution().analyzed())
