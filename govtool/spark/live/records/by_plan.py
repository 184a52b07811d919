"""Writes that positions of records are not kept of: statements of SQL, and ``DataFrame.writeTo``.

They are traced by their plans. Where a trace by the plan may not be exact, that is noted, so that nobody takes it for
what ``--records=eager`` keeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from govtool.spark.live.jvm.call_sites import standing_for
from govtool.spark.live.jvm.scala import called, safely, sequence
from govtool.spark.live.records.rewritten import why_eager

_WRITES = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")
_BY_NAME = frozenset(["AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic", "InsertIntoHiveTable"])
_patched: set[Any] = set()

Note = Callable[[float, float, str], None]
"""Takes the begin and the end of a write, and why no positions are kept of it."""


def patch(session_class: Any, writer_class: Any, wanted: Callable[[], Note | None]) -> None:
    """Hear of such writes; once a class.

    Args:
        session_class: The classic ``SparkSession``.
        writer_class: ``DataFrameWriterV2``.
        wanted: What notes a write now; None: positions are not wanted.
    """
    if session_class in _patched:
        return
    _patched.add(session_class)
    session_class.sql = _noted(session_class.sql, "spark.sql", wanted, _of_statement)
    for name in _WRITES:
        original = getattr(writer_class, name)
        setattr(writer_class, name, _noted(original, f"writeTo(…).{name}", wanted, _of_writer))


def _noted(original: Any, label: str, wanted: Callable[[], Note | None], why: Callable[[Any, Any], str]) -> Any:
    @wraps(original)
    def write(own: Any, *words: Any, **named: Any) -> Any:
        begun = time.time()
        done = original(own, *words, **named)
        note = wanted()
        if note is not None:
            reason = safely(partial(why, own, done))
            if reason:
                text = f"{label} is traced by its plan, which may not be exact as {reason}; DataFrame.write keeps them"
                note(begun, time.time(), text)
        return done

    return standing_for(original, write)


def _of_writer(writer: Any, done: Any) -> str:
    frame = writer._df
    return why_eager(frame.sparkSession, frame._jdf.queryExecution().analyzed())


def _of_statement(session: Any, frame: Any) -> str:
    """Return why a trace of a statement may not be exact; empty: it is, or the statement writes nothing."""
    plan = frame._jdf.queryExecution().analyzed()
    kind = str(plan.getClass().getSimpleName())
    commands = sequence(plan.children()) if kind == "Union" else [plan]  # a multi-insert is a union of commands
    return next((why for each in commands if (why := _of_command(session, each))), "")


def _of_command(session: Any, plan: Any) -> str:
    kind = str(plan.getClass().getSimpleName())
    if kind not in _BY_NAME and not kind.endswith(("Command", "AsSelect")):
        return ""
    query = safely(partial(called, plan, "query"))
    return why_eager(session, query) if query is not None else ""
