"""Delta Lake as published: what a live session and its event log say of a job, against lineage written by hand."""

from __future__ import annotations

import pytest
from lake_jobs import edges, run_job

pytestmark = pytest.mark.maven("delta")

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
JOB = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE users USING delta AS SELECT id, concat('u', id) AS email FROM range(3)")
spark.sql("CREATE TABLE copies USING delta AS SELECT id, upper(email) AS email FROM users WHERE id > 0")
print(spark.version, spark.table("copies").count())
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory, jars):
    done = run_job(tmp_path_factory.mktemp("delta") / "job", JOB, jars("delta"), SETTINGS)
    assert done.code == 0, done.err
    return done


def test_the_session_says_what_is_true(ran):
    said = edges([each for _, all_ in ran.live() for each in all_], ran.folder)
    assert said["default.copies create_table_as replace"] == {
        "id <- default.users.id identity",
        "email <- default.users.email transformation",
        "* <- default.users.* read",
        "* <- default.users.id filter",
    }
