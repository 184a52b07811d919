"""The executors of recorded plans: DuckDB, and Spark where DuckDB does not give what Spark gives."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.app.project.spark_session import use_own_python
from govtool.errors import EngineError
from govtool.records.execute.chain import PlanEngine

if TYPE_CHECKING:
    from govtool.records.execute.duckdb import DuckDatabase
    from govtool.records.plan.nodes import Session
    from govtool.records.plan.tree import Node
    from govtool.records.sidecar.lookup import SidecarUse
    from govtool.records.trace.back import Executor

_STDERR = 2
SMALL = 1 << 26
"""Bytes of files up to which a JVM of its own is to start fast, rather than to run fast."""
_JAVA = "JDK_JAVA_OPTIONS"
"""Options of Java, in addition to those of Spark's own settings."""
MAX_FILES = 2000
"""The most files in which the functions of a plan are looked for."""
_LIBRARIES = frozenset({"node_modules", "site-packages", "__pycache__"})


def engines(
    session: Session,
    sidecars: SidecarUse | None = None,
    database: Callable[[], DuckDatabase] | None = None,
    root: Node | None = None,
) -> tuple[PlanEngine, ...]:
    """DuckDB, then Spark.

    Args:
        session: What the plans ran in.
        sidecars: What is looked up in sidecars.
        database: Gives the database that several executors share; by default each has its own.
        root: The plan that is evaluated, where it is known: over small files, a new Spark starts in less time.
    """
    duckdb = PlanEngine("DuckDB", lambda: _duckdb(session, sidecars, database))
    return (duckdb, PlanEngine("Spark", lambda: _spark(session, root)))


def _duckdb(
    session: Session, sidecars: SidecarUse | None, database: Callable[[], DuckDatabase] | None = None
) -> Executor:
    from govtool.records.sql.dialect import NotExact

    try:
        from govtool.records.execute.duckdb import DuckExecutor
        from govtool.records.sidecar.lookup import SidecarExecutor

        executor = DuckExecutor(session, database=database() if database is not None else None)
        return executor if sidecars is None else SidecarExecutor(executor, sidecars)
    except ImportError as error:
        raise NotExact("it is not installed (pip install 'govtool[records]')") from error
    except EngineError as error:
        raise NotExact(f"{error.message} ({error.hint})") from error


def _spark(session: Session, root: Node | None) -> Executor:
    try:
        from pyspark.sql import SparkSession

        from govtool.records.execute.spark_executor import SparkExecutor
    except ImportError as error:
        raise EngineError(
            "Spark would, and pyspark is not installed", code="engine.spark", hint="pip install 'govtool[spark]'"
        ) from error
    from govtool.records.execute.functions import registry

    active = SparkSession.getActiveSession()
    spark = active if active is not None else local_spark(small=root is not None and _size(root) <= SMALL)
    return SparkExecutor(session, spark, registry(own_files(Path.cwd())))


def _size(root: Node) -> int:
    from govtool.records.execute.inputs import relations

    return sum(file.size for leaf in relations(root) for file in leaf.files)


def own_files(folder: Path) -> list[Path]:
    """The user's Python files in a folder and below, where functions of a plan are looked for; libraries aside."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LIBRARIES)
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        found += [Path(place, name) for name in sorted(files) if name.endswith(".py")]
        if len(found) >= MAX_FILES:
            break
    return found[:MAX_FILES]


def local_spark(*, small: bool = False) -> Any:
    """Return a session of Spark on this machine.

    Args:
        small: Whether little is evaluated: Java then compiles code in its fast way alone, and shuffles have few parts.

    Raises:
        EngineError: It does not start (``engine.spark``).
    """
    from pyspark.sql import SparkSession

    use_own_python()
    # tasks that fail are tried four times, as on a cluster: a job that lived on that is traced alike
    builder = SparkSession.builder.master("local[*,4]").appName("govtool trace")
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
    if small:
        quiet["spark.sql.shuffle.partitions"] = "8"
    for name, value in quiet.items():
        builder = builder.config(name, value)
    printed: list[str] = []
    try:
        with _without_stderr(printed), _java("-XX:TieredStopAtLevel=1" if small else ""):
            return builder.getOrCreate()
    except Exception as error:  # no Java, or one that is too old
        reason = next((line for line in reversed(printed) if line.strip()), str(error).splitlines()[0])
        raise EngineError(
            f"Spark would, and does not start: {reason.strip()[:200]}",
            code="engine.spark",
            hint="Spark needs Java 17 or newer: set JAVA_HOME",
        ) from error


@contextlib.contextmanager
def _java(option: str) -> Iterator[None]:
    """Start Java with an option, beside those that the environment has."""
    before = os.environ.get(_JAVA)
    if option:
        os.environ[_JAVA] = f"{before or ''} {option}".strip()
    try:
        yield
    finally:
        if option:
            del os.environ[_JAVA]
        if before is not None:
            os.environ[_JAVA] = before


@contextlib.contextmanager
def _without_stderr(printed: list[str]) -> Iterator[None]:
    """Keep what Spark's launcher and its JVM print from the terminal: they inherit stderr, and print on every start.

    Args:
        printed: Takes the lines, where the start fails.
    """
    try:
        kept = os.dup(_STDERR)
    except OSError:  # it is closed
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as lines:
        os.dup2(lines.fileno(), _STDERR)
        try:
            yield
        except BaseException:
            lines.seek(0)
            printed += lines.read().decode(errors="replace").splitlines()
            raise
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
