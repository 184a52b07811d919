"""What a listener does not hear, or hears without its beginning: streams, their batches, data of the driver.

Streaming queries run in sessions of their own; what they read and write is asked of the query itself, when it ends or
the job does. The DataFrame that ``foreachBatch`` hands to its function begins with an RDD, and so does data that the
driver made: here their columns are told apart by their ids.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from govtool.spark.live import catalyst, facts
from govtool.spark.live.relations import qualified
from govtool.spark.live.scala import sequence, table_parts

_patched = False


def patch(recorder: Any) -> None:
    """Patch the classic session's ways to make DataFrames and to start streams; once."""
    global _patched
    if _patched:
        return
    _patched = True
    from pyspark.sql.session import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    _patch_create(SparkSession, recorder)
    _patch_sql(SparkSession, recorder)
    _patch_batches(DataStreamWriter, recorder)
    for name in ("start", "toTable"):
        _patch_start(DataStreamWriter, name, recorder)


def _patch_create(session_class: Any, recorder: Any) -> None:
    original = session_class.createDataFrame

    @wraps(original)
    def create(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, data, *args, **kwargs)
        if not hasattr(data, "toDF") or not hasattr(data, "mapPartitions"):  # not an RDD
            rows = _rows_digest(data, recorder)
            recorder.put(lambda: recorder.write({"e": "local", "ids": _ids(made), "data": rows}))
        return made

    session_class.createDataFrame = create


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
        stream = f"s{id(self)}"
        frame = getattr(self, "_df", None)
        if frame is not None:
            recorder.put(lambda: recorder.write(dict(_plan(frame), e="stream", stream=stream, time=time.time())))

        @wraps(func)
        def noted(batch: Any, number: int) -> Any:
            recorder.put(lambda: recorder.write({"e": "batch", "stream": stream, "ids": _ids(batch)}))
            return func(batch, number)

        return original(self, noted)

    writer_class.foreachBatch = for_each_batch


def _patch_start(writer_class: Any, name: str, recorder: Any) -> None:
    original = getattr(writer_class, name)

    @wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        query = original(self, *args, **kwargs)
        try:
            recorder.queries.append((query, time.time(), name))
        except Exception:
            recorder.lost += 1
        return query

    setattr(writer_class, name, start)


def finished(query: Any, started: float, name: str, application: str) -> dict[str, Any] | None:
    """A streaming query as a line of the spool: what it last executed, its sink, and the rows of all its batches."""
    behind = query._jsq.streamingQuery() if hasattr(query._jsq, "streamingQuery") else query._jsq
    if behind.lastExecution() is None:
        return None
    line: dict[str, Any] = {"e": "execution", "name": "stream", "ok": True, "application": application}
    line["query"] = str(query.id)
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
    rows = 0
    for progress in query.recentProgress:
        rows += max(0, int(progress["numInputRows"] or 0))
    read = [facts for facts in line["leaves"].values() if isinstance(facts, dict) and facts.get("paths")]
    if len(read) == 1:
        line["metrics"] = {"scans": [{"paths": read[0]["paths"], "rows": rows}]}
    return line


def _sink(behind: Any) -> dict[str, Any] | None:
    """What the sink of a query writes; None for sinks in memory, on the console, and functions of the job."""
    sink = behind.sink()
    name = sink.getClass().getSimpleName()
    if name in ("FileStreamSink", "DeltaSink"):
        text = str(sink.toString())  # FileSink[path]
        path = qualified(text[text.index("[") + 1 : text.rindex("]")])
        found = {"path": path, "mode": "Append", "stream": True}
        return {**found, **_table_of(behind)}
    if name.startswith(("ForeachBatch", "Console", "Memory", "Noop", "ForeachWriter", "ForeachWrite")):
        return None
    facts: dict[str, Any] = {"mode": "Append", "stream": True}
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
