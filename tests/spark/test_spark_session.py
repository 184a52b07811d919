"""The session that the tests of this folder share."""

from __future__ import annotations

import sys


def test_workers_run_the_python_and_the_checkout_of_the_tests(spark):
    def where(_):
        import govtool

        return [(sys.executable, govtool.__file__)]

    import govtool

    assert spark.sparkContext.range(2, numSlices=2).flatMap(where).distinct().collect() == [
        (sys.executable, govtool.__file__)
    ]


def test_event_log_is_written(spark, spark_home):
    assert spark.range(3).selectExpr("sum(id) AS n").collect()[0].n == 3
    assert [p.name for p in (spark_home / "events").iterdir()]
