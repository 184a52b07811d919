"""Functions over lists and bags: DuckDB gives what Spark gives, or refuses."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

from list_functions import REFUSED, listed, problems, refused


def test_functions_over_lists_give_what_spark_gives(spark, tmp_path):
    assert problems(spark, Random(7), tmp_path / "lists") == []
    assert [each for each in listed(REFUSED) if not refused(spark, each)] == []
