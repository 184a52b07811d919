"""Streaming queries behind py4j."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def behind(query: Any) -> Any:
    """The ``StreamExecution`` of a Java ``StreamingQuery``."""
    wrapped = str(query.getClass().getSimpleName()) == "StreamingQueryWrapper"
    return query.streamingQuery() if wrapped else query


def running(query: str, sessions: Iterable[Any]) -> Any:
    """The ``StreamExecution`` of a query that runs, by its id; None if none of the sessions of pyspark has it."""
    found = (session._jsparkSession.streams().get(query) for session in sessions)
    active = next((each for each in found if each is not None), None)
    return None if active is None else behind(active)


def sink_folder(sink: Any) -> str:
    """The folder of a sink of files, as it is given."""
    text = str(sink.toString())  # FileSink[path]
    return text[text.index("[") + 1 : text.rindex("]")]
