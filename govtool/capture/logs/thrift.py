"""Logs of HiveServer2 and of Spark's Thrift server: statements among the other lines that log4j writes.

Hive says ``Compiling command(queryId=…): …`` (``org.apache.hadoop.hive.ql.Driver``), Spark
``Submitting query '…' with …`` (``SparkExecuteStatementOperation``; ``Running query '…' with …`` before version 2.4).
A message goes on until the next line that begins with a time. What fails says so later, by the same id or in the same
thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from govtool.capture.logs.query_record import FAILED, Entry, QueryRecord, Reject
from govtool.capture.logs.rows import Line
from govtool.capture.logs.stream import MAX_RECORD, text_of
from govtool.capture.logs.times import parse_time

MAX_HELD = 100_000
"""Statements that are held back until their outcome at a time."""

_TIMED = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?|\d\d/\d\d/\d\d \d\d:\d\d:\d\d)[: ]"
)
_SHORT = re.compile(r"(\d\d)/(\d\d)/(\d\d) (.*)")
_SESSION = re.compile(r"\[([0-9a-f]{8}-[0-9a-f-]{27})[ \]]")
_THREAD = re.compile(r"\[(?=[^\]])")
# Ids have a bound, and ends are looked for from the end: a line may repeat the beginning of a statement endlessly.
_HIVE = re.compile(r"Compiling command\(queryId=([^)]{1,1000})\): ?(.*)\Z", re.DOTALL)
_SPARK = re.compile(r"(?:Submitting|Running) query '")
_SPARK_END = "' with "
_HIVE_FAILED = re.compile(r"FAILED: (.*)|Error (?:while compiling|running) (?:statement|query)", re.DOTALL)
_SPARK_FAILED = re.compile(r"Error (?:executing|running) query with (\S+?)[, ](.*)", re.DOTALL)
_ENDED = re.compile(
    r"Completed executing command\(queryId=([^)]{1,1000})\)"
    r"|(?:Finished|Close statement|Closing|Close) (?:query )?with (\S+)"
)
_TELLING = re.compile(r"Compiling command\(queryId=|(?:Submitting|Running) query '")


@dataclass(slots=True)
class _Message:
    line: int
    time: str
    parts: list[str]
    size: int = 0


def looks_like_thrift_log(text: str) -> bool:
    """Return whether the head of a log has lines of log4j, and a statement among them."""
    return bool(_TELLING.search(text)) and any(_TIMED.match(line) for line in text.splitlines()[:200])


def thrift_log(lines: Iterator[Line | Reject], file: str, *, dialect: str = "") -> Iterator[Entry]:
    """Records of the log of a Thrift server; Hive's are of the dialect hive, Spark's of spark, unless one is given."""
    held: dict[str, tuple[str, QueryRecord]] = {}
    for message in _messages(lines, file):
        if isinstance(message, Reject):
            yield message
            continue
        text = "\n".join(message.parts)
        made = _statement(text, message, file, dialect)
        if isinstance(made, Reject):
            yield made
        elif made is not None:
            assert made.query_id is not None
            known = held.get(made.query_id)
            if known is None:
                held[made.query_id] = (_thread(text), made)
            if len(held) > MAX_HELD:
                yield held.pop(next(iter(held)))[1]
        else:
            yield from _outcome(text, held)
    for _, record in held.values():
        yield record


def _messages(lines: Iterator[Line | Reject], file: str) -> Iterator[_Message | Reject]:
    message: _Message | None = None
    for line in lines:
        if isinstance(line, Reject):
            yield line
            continue
        number, data = line
        text = text_of(data).removesuffix("\r")
        timed = _TIMED.match(text)
        if timed is not None:
            if message is not None:
                yield message
            message = _Message(number, timed[1], [text[timed.end() :]])
        elif message is not None and message.size < MAX_RECORD:
            message.parts.append(text)
            message.size += len(text)
    if message is not None:
        yield message


def _statement(text: str, message: _Message, file: str, dialect: str) -> QueryRecord | Reject | None:
    hive = _HIVE.search(text)
    if hive is not None:
        query, sql, own = hive[1], hive[2], "hive"
        start = hive.start(2)
    else:
        spark = _of_spark(text)
        if spark is None:
            return None
        (start, sql, query), own = spark, "spark"
    session = _SESSION.search(text[:start])
    line = message.line + text.count("\n", 0, start)
    try:
        time = _time(message.time)
    except ValueError as error:
        return Reject(file, message.line, f"time: {error}")
    return QueryRecord(
        sql.strip(),
        file,
        line,
        dialect or own,
        started_at=time,
        # Without a session in the pattern of the log, what one statement sets must not be taken to hold for others.
        session_id=session[1] if session is not None else query,
        query_id=query,
        spans=not sql[:1].isspace(),
    )


def _of_spark(text: str) -> tuple[int, str, str] | None:
    """Where the statement of a message begins, the statement, and its id."""
    found = _SPARK.search(text)
    head, _, query = text.rstrip().rpartition(_SPARK_END)
    if found is None or found.end() > len(head) or query.split() != [query]:
        return None
    return found.end(), head[found.end() :], query


def _thread(text: str) -> str:
    found = _THREAD.search(text)
    name, end, _ = text[found.end() :].partition("]") if found is not None else ("", "", "")
    return name if end else ""


def _outcome(text: str, held: dict[str, tuple[str, QueryRecord]]) -> Iterator[QueryRecord]:
    failed = _SPARK_FAILED.search(text)
    if failed is not None:
        known = held.pop(failed[1], None)
        if known is not None:
            yield known[1]._replace(status=FAILED, error=failed[2].strip()[:300])
        return
    ended = _ENDED.search(text)
    if ended is not None:
        known = held.pop(ended[1] or ended[2], None)
        if known is not None:
            yield known[1]
        return
    failed = _HIVE_FAILED.search(text)
    thread = _thread(text)
    if failed is not None and thread:
        query = next((q for q, (of, _) in reversed(held.items()) if of == thread), None)
        if query is not None:
            yield held.pop(query)[1]._replace(status=FAILED, error=(failed[1] or text).splitlines()[0][:300])


def _time(text: str) -> datetime | None:
    short = _SHORT.match(text)  # log4j's yy/MM/dd
    return parse_time(f"20{short[1]}-{short[2]}-{short[3]} {short[4]}" if short is not None else text.replace(",", "."))
