"""The Spark engine: the same graph as the local one, and statements that stay where they are."""

from __future__ import annotations

import json

import pytest
from hardlogs import write_logs

from govtool.app.ingest.logs import local, steps
from govtool.app.ingest.logs.ingest import ingest_log
from govtool.app.ingest.logs.request import LogRequest
from govtool.app.ingest.sql_options import SqlRequest
from govtool.app.project import spark_session
from govtool.capture.logs import pieces
from govtool.errors import EngineError, EvidenceError, UsageError
from govtool.store import Store

STATEMENTS = 680
LONG = 100_000
"""Characters of each: together more than the driver takes."""


def graph(store: Store) -> list[object]:
    """All that a store holds of its head, but for who committed it when."""
    head = store.head()
    assert head is not None
    return [sorted(tuple(ref) for ref in store.fragments(head)), json.dumps(head.summary, sort_keys=True)]


def ingested(folder, place, **more) -> list[object]:
    store = Store.init(str(place))
    result = ingest_log(store, LogRequest(SqlRequest((str(folder),), dialect="postgres"), **more))
    shown = sorted((s.runs, s.text) for s in result.shortfalls)
    return [*graph(store), result.diagnostics, result.reasons, shown, result.counts]


def test_spark_makes_the_same_graph(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pieces, "RANGE", 60_000)
    monkeypatch.setattr(steps, "GROUP", 100)
    monkeypatch.setattr("govtool.app.ingest.logs.spark.DERIVATIONS_PER_FRAGMENT", 100)
    monkeypatch.setattr(local, "DERIVATIONS_PER_FRAGMENT", 100)
    logs = write_logs(tmp_path / "logs", sessions=90)
    before = spark.conf.get("spark.sql.adaptive.enabled")
    assert ingested(logs, tmp_path / "one", engine="spark") == ingested(logs, tmp_path / "two", workers=1)
    assert spark.conf.get("spark.sql.adaptive.enabled") == before


@pytest.mark.long
def test_what_is_done_is_not_done_again(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    logs = write_logs(tmp_path / "logs", sessions=4)
    store = Store.init(str(tmp_path / "store"))
    request = LogRequest(SqlRequest((str(logs),), dialect="postgres"), engine="spark")

    class StopError(Exception):
        pass

    def stop(status):
        if status.stage == "resolving":
            raise StopError

    with pytest.raises(StopError):
        ingest_log(store, request, progress=stop)
    assert store.head() is None

    def again(*arguments, **more):
        raise AssertionError("what was read is read again")

    monkeypatch.setattr("govtool.app.ingest.logs.tasks.read_step", again)
    ingest_log(store, request)
    other = Store.init(str(tmp_path / "other"))
    ingest_log(other, LogRequest(SqlRequest((str(logs),), dialect="postgres"), workers=1))
    assert graph(store) == graph(other)
    assert list((tmp_path / "cache" / "ingest").iterdir()) == []


@pytest.mark.long
def test_statements_never_reach_the_driver(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    assert spark.sparkContext.getConf().get("spark.driver.maxResultSize") == "64m"
    log = tmp_path / "long.jsonl"
    with log.open("w") as file:
        for number in range(STATEMENTS):
            text = f"SELECT a{number} FROM t -- {'x' * LONG}\nWHERE b = {number}"
            file.write(json.dumps({"sql": text, "session_id": f"s{number % 7}"}) + "\n")
        file.write('{"sql": "SET search_path = s", "session_id": "s1"}\n')
    assert STATEMENTS * LONG > 64 << 20
    store = Store.init(str(tmp_path / "store"))
    result = ingest_log(store, LogRequest(SqlRequest((str(log),), dialect="postgres"), engine="spark"))
    assert result.coverage.understood == STATEMENTS
    assert result.counts["records"] == STATEMENTS + 1


def test_what_goes_wrong_far_away_is_said(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    logs = write_logs(tmp_path / "logs", sessions=3)
    with pytest.raises(EvidenceError):
        ingested(logs, tmp_path / "one", engine="spark", max_errors=1)
    (tmp_path / "x.log").write_text("hello\n")
    store = Store.init(str(tmp_path / "two"))
    with pytest.raises((EngineError, UsageError)) as error:
        ingest_log(store, LogRequest(SqlRequest((str(tmp_path / "x.log"),)), engine="spark"))
    assert "format" in error.value.message
    assert store.head() is None


def test_spark_that_is_not_installed_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(EngineError) as error, spark_session.session(None, "ingest log", {}):
        pass
    assert error.value.code == "engine.spark-missing"
    assert "pip install" in (error.value.hint or "")
