"""How a trace starts Spark: what its launcher prints, which Python its workers run, what their errors say."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from govtool.app.rdd.open import run_again
from govtool.app.records.engines import _without_stderr, local_spark
from govtool.errors import EngineError
from govtool.records.execute.spark_executor import _refusals
from govtool.records.sql.dialect import NotExact

CHATTER = [sys.executable, "-c", "import sys; sys.stderr.write('WARNING: Using incubator modules\\nsays why\\n')"]


def test_a_start_prints_nothing(capfd):
    printed = []
    with _without_stderr(printed):
        subprocess.run(CHATTER, check=True)
    subprocess.run(CHATTER, check=True)
    assert capfd.readouterr().err.count("incubator") == 1
    assert printed == []


def test_a_start_that_fails_says_why(capfd):
    printed = []
    failing = [*CHATTER[:2], f"{CHATTER[2]}; sys.exit(1)"]
    with pytest.raises(subprocess.CalledProcessError), _without_stderr(printed):
        subprocess.run(failing, check=True)
    assert printed == ["WARNING: Using incubator modules", "says why"]
    assert capfd.readouterr().err == ""


def test_python_workers_run_the_python_of_govtool(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: os.environ["PYSPARK_PYTHON"])
    assert local_spark() == sys.executable


def test_tasks_that_fail_are_tried_again_as_on_a_cluster(monkeypatch):
    """A recorded job that lived on this is traced alike."""
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: builder._options["spark.master"])
    assert local_spark() == "local[*,4]"


def test_little_data_is_evaluated_by_code_that_java_compiles_fast(monkeypatch):
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Da=b")
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: os.environ["JDK_JAVA_OPTIONS"])
    assert local_spark(small=True) == "-Da=b -XX:TieredStopAtLevel=1"
    assert local_spark() == os.environ["JDK_JAVA_OPTIONS"] == "-Da=b"


def test_an_error_of_a_python_worker_is_its_exception():
    error = PythonException(
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "worker.py", line 9, in main\n    import pyarrow\n'
        "ModuleNotFoundError: No module named 'pyarrow'\n\n\tat org.apache.spark.Worker.run(Worker.java:1)"
    )
    with pytest.raises(NotExact, match=r"^Spark: ModuleNotFoundError: No module named 'pyarrow'$"), _refusals():
        raise error


def test_a_program_that_fails_when_it_is_run_again_is_an_error_with_its_reason():
    with pytest.raises(EngineError, match=r"when it is run again: RuntimeError: no licence$") as caught, run_again():
        raise PythonException("An exception was thrown:\nTraceback …\nRuntimeError: no licence\n\n\tat x.run(X.java:1)")
    assert caught.value.code == "engine.failed"
    assert "--records=eager" in caught.value.hint
    with pytest.raises(KeyError), run_again():
        raise KeyError
