"""Spark Connect: there is no JVM to listen to. Writes are seen as the client sends them, and the server explains them.

``EXPLAIN FORMATTED`` gives the plan text over the wire, which is read as that of event logs is. It is asked for on the
recorder's thread, beside the write, and never for a command itself: the server would run it.
"""

from __future__ import annotations

import os
import re
import time
from functools import wraps
from typing import Any

from govtool.spark.live.job import facts

_WRITING = re.compile(
    r"(?:--[^\n]*+\n|\s|/\*.*?\*/)*+(?:INSERT|REPLACE|MERGE|UPDATE|DELETE|CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW)|FROM|WITH)\b",
    re.IGNORECASE | re.DOTALL,
)
_SAVE_MODES = {0: "ErrorIfExists", 1: "Append", 2: "Overwrite", 3: "ErrorIfExists", 4: "Ignore"}
_V2_MODES = {1: "ErrorIfExists", 2: "Overwrite", 3: "Append", 4: "Append", 5: "Overwrite", 6: "Overwrite"}
_METHOD_INSERT = 2
_MAX_TEXT = 8 << 20


def watch(session: Any, recorder: Any) -> None:
    """Record what a session of Spark Connect writes."""
    client = session._client
    if getattr(client, "_govtool", False):
        return
    client._govtool = True
    if recorder.replay is not None:  # its reader is to know that records were requested: there will be no plans
        os.makedirs(recorder.replay.spool.folder, mode=0o700, exist_ok=True)
    recorder.put(lambda: recorder.write(_session(session)))
    execute = client.execute_command

    @wraps(execute)
    def execute_command(command: Any, *args: Any, **kwargs: Any) -> Any:
        line: dict[str, Any] = {}
        started = time.time()
        try:
            line = _command(command)
            if line:
                recorder.put(lambda: line.update(_explained(client, command)))
        except Exception:
            recorder.lost += 1
        try:
            done = execute(command, *args, **kwargs)
        except Exception as error:
            _note(recorder, session, line, started, str(error) or type(error).__name__)
            raise
        _note(recorder, session, line, started, "")
        return done

    client.execute_command = execute_command


def _session(session: Any) -> dict[str, Any]:
    return {
        "e": "session",
        "time": time.time(),
        "session": session.session_id,
        "application": session.session_id,
        "user": session.client._user_id or "",
        "spark": session.version,
        "conf": {},
    }


def _note(recorder: Any, session: Any, line: dict[str, Any], started: float, error: str) -> None:
    if not line:
        return
    line.update(started=started, ended=time.time(), application=session.session_id, ok=not error)
    if error:
        line["error"] = facts.one_line(error)

    def write() -> None:
        recorder.write(dict(line, e="connect", n=recorder.next_number()))

    recorder.put(write)


def _command(command: Any) -> dict[str, Any]:
    """Return the target of a command; empty if it writes nothing."""
    kind = command.WhichOneof("command_type")
    if kind == "write_operation":
        write = command.write_operation
        described: dict[str, Any] = {"mode": _SAVE_MODES.get(int(write.mode), "Append")}
        if write.WhichOneof("save_type") == "table":
            described["table"] = split(write.table.table_name)
            described["insert"] = int(write.table.save_method) == _METHOD_INSERT
        else:
            path = write.path or write.options.get("path", "")
            if not path:
                return {}
            described["path"] = path
        return {"command": described}
    if kind == "write_operation_v2":
        v2 = command.write_operation_v2
        return {"command": {"mode": _V2_MODES.get(int(v2.mode), "Append"), "table": split(v2.table_name)}}
    if kind == "sql_command" and _WRITING.match(_sql(command.sql_command).query):
        return {"sql": True}
    return {}


def _explained(client: Any, command: Any) -> dict[str, Any]:
    """The plan text of what a command writes."""
    import pyspark.sql.connect.proto as messages

    kind = command.WhichOneof("command_type")
    plan = messages.Plan()
    if kind == "sql_command":
        relation = messages.Relation()
        relation.sql.CopyFrom(_sql(command.sql_command))
        relation.sql.query = f"EXPLAIN FORMATTED {relation.sql.query}"
        plan.root.CopyFrom(relation)
        table, _ = client.to_table(plan, {})[:2]
        text = str(table.column(0)[0].as_py())
    else:
        plan.root.CopyFrom(getattr(command, kind).input)
        text = client.explain_string(plan, "formatted")
    return {"text": text} if len(text) <= _MAX_TEXT else {"break": "plan-too-large"}


def _sql(command: Any) -> Any:
    if command.HasField("input"):
        return command.input.sql
    import pyspark.sql.connect.proto as messages

    return messages.SQL(query=command.sql)


def split(name: str) -> list[str]:
    """The parts of a table's name as the user wrote it."""
    return [a.replace("``", "`") if a else b for a, b in re.findall(r"`((?:[^`]|``)+)`|([^.`]+)", name)]
