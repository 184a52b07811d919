from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import spark_archive
from hypothesis import HealthCheck, settings

from bench.oracles import cluster as clusters

# No test measures time, and a busy machine is no failure.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Spark hands these options to every JVM that it starts, those of jobs in processes of their own too.
os.environ.setdefault("SPARK_SUBMIT_OPTS", spark_archive.options())
os.environ.setdefault("SPARK_LAUNCHER_OPTS", spark_archive.SHORT)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the files with slow tests, or with Spark, to the front: processes that share the files end together."""
    slow = {
        item.path for item in items if item.get_closest_marker("slow") or "spark" in getattr(item, "fixturenames", ())
    }
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def postgres():
    """A running PostgreSQL of Debian's packages; without them, tests that need it are skipped."""
    try:
        with clusters.Cluster() as cluster:
            yield cluster
    except clusters.Missing as error:
        pytest.skip(str(error))


def _activate_the_shared_session() -> None:
    """Spark takes the session in which somebody last made a DataFrame for the active one; tests expect their own."""
    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        session = SparkSession._instantiatedSession
        if session is not None and session._sc._jsc is not None:
            SparkSession._activeSession = session
            class_of = getattr(SparkSession, "_get_j_spark_session_class", lambda jvm: jvm.SparkSession)  # Spark 3.5
            class_of(session._jvm).setActiveSession(session._jsparkSession)


@pytest.fixture(autouse=True, scope="module")
def _active_session_of_the_file():
    _activate_the_shared_session()


@pytest.fixture(autouse=True)
def _active_session(request):
    if "spark" in request.fixturenames:
        _activate_the_shared_session()


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory):
    """A folder for what the shared session leaves on disk: warehouse, event log, scratch files."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def spark(spark_home):
    """The one local Spark session of all tests: two threads, no UI, event log in ``spark_home / "events"``.

    Settings of a test go through ``spark.conf.set`` and back, or through ``spark.newSession()``.
    """
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[test]")
    from pyspark.sql import SparkSession

    # The workers import this very checkout, wherever pytest was started.
    root = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    events = spark_home / "events"
    events.mkdir()
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.maxResultSize": "64m",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={spark_home}",
        "spark.sql.warehouse.dir": str(spark_home / "warehouse"),
        "spark.local.dir": str(spark_home / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("govtool-tests")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
