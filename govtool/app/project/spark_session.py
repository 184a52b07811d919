"""A Spark session for the engines of commands: what they share, and what goes wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from govtool.errors import EngineError, GovtoolError, UnknownNameError, UsageError
from govtool.redaction import clean_failure

ENGINES: Final = ("local", "spark")
"""The engines of commands that have several."""

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # it would join partitions by the size of what must be taken apart again
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # what is broadcast goes through the driver
}
PARTITIONS = "spark.sql.shuffle.partitions"
"""The setting of how many parts a shuffle has; restored at the end like the others."""


def use_own_python() -> None:
    """Have Spark's Python workers run the Python that runs govtool, unless ``PYSPARK_PYTHON`` names one.

    Spark would take the first ``python3`` on the path, which may lack what the workers need.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


@contextmanager
def session(master: str | None, command: str, settings: Mapping[str, str]) -> Iterator[Any]:
    """A Spark session: the one that there is, else a new one, stopped at the end.

    Args:
        master: Of a new one: ``local[4]``, ``spark://host:7077`` …
        command: The command that works on it.
        settings: While it works.

    Raises:
        EngineError: Spark is not installed, cannot be started, or fails (``engine.spark``).
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineError(
            "Spark is not installed", code="engine.spark-missing", hint="pip install 'govtool[spark]'"
        ) from error
    use_own_python()
    active = SparkSession.getActiveSession()
    try:
        spark = active or _builder(SparkSession, master, command).getOrCreate()
    except Exception as error:  # Java is missing, or no such master: py4j and pyspark raise what they like
        raise _failed("cannot be started", error, command) from error
    wanted = {**_SETTINGS, **settings}
    before = {name: spark.conf.get(name, None) for name in (*wanted, PARTITIONS)}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield spark
    except GovtoolError:
        raise
    except PySparkException as error:
        raise _failed("failed", error, command) from error
    except Exception as error:
        if type(error).__module__.startswith("py4j"):
            raise _failed("failed", error, command) from error
        raise
    finally:
        if active is None:
            spark.stop()
        else:
            for name, known in before.items():
                if known is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, known)


def _builder(session: Any, master: str | None, command: str) -> Any:
    builder = session.builder.appName(f"govtool {command}").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    return builder


def _failed(what: str, error: Exception, command: str) -> EngineError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    error_lines = (line for line in reversed(lines) if "Error" in line and not line.startswith("at "))
    message = next(error_lines, lines[0] if lines else "")
    return EngineError(
        f"Spark {what}: {clean_failure(message)[:300] or type(error).__name__}",
        code="engine.spark",
        hint=f"govtool --debug {command} … shows the whole output of Spark",
    )


def check_engine(engine: str, master: str | None) -> None:
    """Check the options of a command with engines.

    Raises:
        UsageError: There is no such engine, or it has no master.
    """
    if engine not in ENGINES:
        raise UnknownNameError.of_few("engine", engine, ENGINES, hint=f"--engine {'|'.join(ENGINES)}")
    if engine != "spark" and master is not None:
        raise UsageError("--master applies only to the Spark engine", code="usage.arguments", hint="--engine spark")
