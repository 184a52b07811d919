"""Apache Iceberg as published: what a live session and its event log say of a job, against lineage written by hand."""

from __future__ import annotations

import pytest
from lake_jobs import edges, run_job

pytestmark = pytest.mark.maven("iceberg")

SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}
JOB = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE lake.db.users USING iceberg AS SELECT id, concat('u', id) AS email FROM range(3)")
spark.sql("CREATE TABLE lake.db.copies USING iceberg AS SELECT id, upper(email) AS email FROM lake.db.users WHERE id > 0")
print(spark.version, spark.table("lake.db.copies").count())
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory, jars):
    folder = tmp_path_factory.mktemp("iceberg") / "job"
    done = run_job(folder, JOB, jars("iceberg"), {**SETTINGS, "spark.sql.catalog.lake.warehouse": f"{folder}/lake"})
    assert done.code == 0, done.err
    return done


def test_the_session_says_what_is_true(ran):
    said = edges([each for _, all_ in ran.live() for each in all_], ran.folder)
    assert said["lake.db.copies create_table_as replace"] == {
        "id <- lake.db.users.id identity",
        "email <- lake.db.users.email transformation",
        "* <- lake.db.users.* read",
        "* <- lake.db.users.id filter",
    }
