"""Two of the workflows of ``bag_workflows.py``, which compares as many as are wanted."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

from bag_workflows import run

pytestmark = pytest.mark.long


@pytest.mark.parametrize(("seed", "wide"), [(3, True), (100, False)])
def test_answers_about_bags_are_those_of_the_functions_called_anew(spark, seed, wide):
    wrong, report, cases = run(range(seed, seed + 1), spark, wide)
    assert (wrong, cases) == ([], 1)
    assert report["propagate kept"] + report["propagate deleted"] + report["propagate recomputed"] > 0
