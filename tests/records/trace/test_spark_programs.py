"""Recorded programs of a real session, traced and replayed by command, have the rows of brute force."""

from __future__ import annotations

import pytest
from depth import LONG

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")


@pytest.fixture
def checked(spark, tmp_path, monkeypatch):
    from spark_programs import Report

    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    mode = "spark.sql.sources.partitionOverwriteMode"
    before = spark.conf.get(mode)
    yield Report()
    spark.conf.set(mode, before)


@pytest.mark.slow
def test_programs(spark, tmp_path, checked):
    from spark_programs import programs

    count = 6 if LONG else 3
    programs(range(count), tmp_path, spark, checked)
    assert checked.wrong == []
    assert checked.counts["programs"] == count
    assert checked.counts["back"] > checked.counts["back, superset"]


@pytest.mark.slow
def test_chains_of_writes(spark, tmp_path, checked):
    from spark_programs import chains

    count = 2 if LONG else 1
    chains(range(count), tmp_path, spark, checked)
    assert checked.wrong == []
    assert checked.counts["chains"] == count
