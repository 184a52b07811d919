"""Hadoop's file systems behind py4j, also once the application was stopped: its last actions are written down later."""

from __future__ import annotations

from typing import Any

_known: list[Any] = []


def remember(context: Any) -> Any:
    """Keep the settings of an application's file systems beyond its end, and return them."""
    _known[:] = [context._jsc.hadoopConfiguration()]
    return _known[0]


def java() -> Any:
    """Java's classes and packages."""
    from pyspark import SparkContext

    return SparkContext._jvm


def configuration() -> Any:
    """The settings of file systems: those of the application, or of the last one that there was."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    return _known[0] if context is None or context._jsc is None else remember(context)


def qualified(text: str, session: Any = None) -> str:
    """A path as Hadoop sees it: with its scheme, from the root.

    Args:
        text: The path.
        session: The Java session whose settings count.
    """
    path = java().org.apache.hadoop.fs.Path(text)
    settings = configuration() if session is None else session.sessionState().newHadoopConf()
    return str(path.getFileSystem(settings).makeQualified(path).toString())


def place_of(path: Any) -> str:
    """A path of a relation: most are qualified, those of what a streaming query wrote are as they were given."""
    text = str(path.toString())
    return text if text.startswith("/") or ":/" in text else qualified(text)
