"""A few of the random workflows of ``spark_workflows.py``, which compares as many as are wanted."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

from spark_workflows import run


@pytest.mark.parametrize(
    "seed",
    [
        1009,  # rows that come into an empty relation
        pytest.param(1041, marks=pytest.mark.long),  # bags of another module
    ],
)
def test_answers_are_those_of_the_reference_and_of_a_run_anew(spark, seed):
    wrong, report, cases = run(range(seed, seed + 1), spark)
    assert (wrong, cases) == ([], 1)
    assert report["auto kept"] + report["auto deleted"] + report["auto recomputed"] > 0
