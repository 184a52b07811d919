"""The extractor against Spark's own analyzer: nothing is run, every column is compared."""

from __future__ import annotations

import subprocess

import pytest

from bench.oracles.compare import ASPECTS, View
from bench.oracles.corpora import EXPLAINED_SPARK, tpc_queries, written_spark
from bench.oracles.spark import compare_queries
from govtool.capture.sql.files import Script

TABLES = {"t": {"a": "int", "b": "int", "c": "string"}, "u": {"a": "int", "d": "int"}}


@pytest.fixture(scope="module")
def tpc():
    try:
        return tpc_queries()
    except subprocess.CalledProcessError:
        pytest.skip("sqlglot's source distribution, which holds the queries, cannot be downloaded")


@pytest.mark.slow
def test_tpc_ds(spark, tpc):
    tables, queries = tpc["TPC-DS"]
    outcome = compare_queries(spark, "tpc_ds", tables, queries[::8])  # all of them: python -m bench accuracy
    assert outcome.refused == {}
    assert outcome.different() == {}


def test_tpc_h(spark, tpc):
    outcome = compare_queries(spark, "tpc_h", *tpc["TPC-H"])
    assert outcome.refused == {}
    assert outcome.different() == {}
    assert len(outcome.verdicts) == 22


def test_hard_statements(spark):
    outcome = compare_queries(spark, "hard_statements", *written_spark())
    assert outcome.refused == {}
    different = {v.view.query: v.differences for v in outcome.verdicts if v.differences}
    assert different.keys() == EXPLAINED_SPARK.keys(), different


@pytest.mark.parametrize(
    ("query", "aspects"),
    [
        # The extractor reads the first statement and Spark the second: every sort of difference is noticed.
        (("select a from t", "select a as x from t"), {"names", "contributed", "contributed kinds"}),
        (("select a as x from t", "select b as x from t"), {"contributed", "contributed kinds", "depends"}),
        (("select a + b as x from t", "select case a when 1 then b end as x from t"), {"contributed kinds"}),
        (
            ("select a from t where b > 0", "select a from t where c > ''"),
            {"referenced", "referenced kinds", "depends"},
        ),
        (("select a from t where b > 0", "select a from t order by b"), {"referenced kinds"}),
        (("select a, from where", "select a from t"), set(ASPECTS)),
    ],
)
def test_differences_are_noticed(spark, monkeypatch, query, aspects):
    read = Script("query.sql", query[0])
    monkeypatch.setattr("bench.oracles.spark.Script", lambda file, text: read)
    outcome = compare_queries(spark, "noticed", TABLES, [View("q", query[1])])
    assert set(outcome.verdicts[0].differences) == aspects


def test_what_spark_refuses_is_told(spark):
    outcome = compare_queries(spark, "refusing", TABLES, [View("q", "select nothing from t")])
    assert list(outcome.refused) == ["q"]
    assert "nothing" in outcome.refused["q"]
