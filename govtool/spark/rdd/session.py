"""The session of Spark that programs of RDDs are traced in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def active_session() -> SparkSession | None:
    """The session of this thread; None if there is none.

    Raises:
        ImportError: pyspark is not installed.
    """
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def any_session() -> SparkSession:
    """The session of this thread, else one of the Spark that runs in this process."""
    from pyspark.sql import SparkSession

    return active_session() or SparkSession.builder.getOrCreate()
