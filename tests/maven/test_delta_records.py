"""Rows of Delta tables as published, traced at the versions that a job read and wrote; the data again in plain Python."""

from __future__ import annotations

import shutil

import pytest
from lake_formats import START
from lake_records import Traced, record
from test_delta import SETTINGS

from govtool.records.execute.inputs import local_path

pytestmark = pytest.mark.maven("delta")

KINDS = ["a b/é=%20", "it's", None]
ORDERS = [(n, KINDS[n % 3], n * 10) for n in range(12)]
USERS = [(n, f"user {n}") for n in range(6)]
JOB = """
kinds = ["a b/é=%20", "it's", None]
def frame(numbers):
    return spark.createDataFrame([(n, kinds[n % 3], n * 10) for n in numbers], "id long, kind string, paid long")
frame(range(8)).coalesce(2).write.format("delta").partitionBy("kind").save("data/orders")
early = spark.read.format("delta").load("data/orders")
frame(range(8, 12)).coalesce(1).write.format("delta").mode("append").save("data/orders")
early.groupBy("kind").sum("paid").toDF("kind", "total").coalesce(1).write.parquet("out/newest")
first = spark.read.format("delta").option("versionAsOf", 0).load("data/orders")
first.where("paid >= 20").coalesce(1).write.parquet("out/first")
spark.read.format("delta").load("data/orders").createOrReplaceTempView("by_path")
spark.sql("CREATE TABLE users (id LONG, name STRING) USING delta")
spark.sql("INSERT INTO users SELECT id, concat('user ', id) FROM range(6)")
spark.sql("CREATE TABLE joined USING delta AS SELECT u.id, u.name, o.paid FROM users u JOIN by_path o ON u.id = o.id")
spark.sql("DELETE FROM users WHERE id = 4")
spark.sql("ALTER TABLE users ADD COLUMN more STRING")
spark.sql("INSERT INTO users VALUES (40, 'new', 'm')")
spark.table("users").coalesce(1).write.parquet("out/users")
spark.sql("MERGE INTO users u USING joined j ON u.id = j.id WHEN MATCHED AND j.paid > 20 THEN UPDATE SET name = 'x'"
          " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (j.id, j.name)")
spark.table("users").groupBy("name").count().coalesce(1).write.parquet("out/merged")
spark.table("joined").where("paid < 30").write.format("delta").mode("overwrite").saveAsTable("joined")
spark.sql("CREATE TABLE vectors (id LONG) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
spark.sql("INSERT INTO vectors SELECT id FROM range(0, 9, 1, 1)")
spark.table("vectors").coalesce(1).write.parquet("out/before")
spark.sql("DELETE FROM vectors WHERE id IN (3, 8)")
spark.table("vectors").coalesce(1).write.parquet("out/after")
spark.sql("CREATE TABLE mapped (id LONG) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
spark.sql("INSERT INTO mapped VALUES (1)")
spark.sql("ALTER TABLE mapped RENAME COLUMN id TO number")
spark.sql("ALTER TABLE mapped ADD COLUMN id LONG")
spark.sql("INSERT INTO mapped VALUES (2, 20)")
spark.table("mapped").coalesce(1).write.parquet("out/mapped")
spark.sql("CREATE TABLE numbered (id LONG) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'id')")
spark.sql("INSERT INTO numbered VALUES (1)")
spark.table("numbered").coalesce(1).write.parquet("out/numbered")
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory, jars):
    folder = tmp_path_factory.mktemp("rows") / "job"
    said = record(folder, START + JOB, jars("delta"), SETTINGS)
    return folder, said


@pytest.fixture
def traced(job, capsys, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(job[0])
    return Traced(job[0], capsys)


def orders(*numbers):
    return sorted((ORDERS[n] for n in numbers), key=repr)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_that_was_made_before_an_append_reads_what_is_newest(traced, kind):
    where = "kind IS NULL" if kind is None else "kind = '{}'".format(kind.replace("'", "\\'"))
    answer = traced.back("out/newest", where)
    assert traced.rows(answer)["data/orders"] == orders(*(n for n in range(12) if ORDERS[n][1] == kind))
    assert answer["inputs"][0]["version"] == "1"


def test_time_travel(traced):
    answer = traced.back("out/first", "id in (5, 7, 9)")
    assert traced.rows(answer)["data/orders"] == orders(5, 7)
    assert answer["inputs"][0]["version"] == "0"


def test_a_table_is_traced_to_the_run_that_made_its_present_version(traced):
    """It was overwritten by rows of itself: these come of the first version, and that one of two other tables."""
    answer = traced.back("default.joined", "id = 2", "--all-runs")
    rows = traced.rows(answer)
    assert rows["default.joined"] == [(2, "user 2", 20)]
    assert rows["data/orders"] == orders(2)
    assert rows["default.users"] == [USERS[2]]
    assert len(answer["hops"]) >= 3


def test_deleted_rows_and_added_columns(traced):
    rows = traced.rows(traced.back("out/users", "true"))
    assert rows["default.users"] == sorted([*((*USERS[n], None) for n in (0, 1, 2, 3, 5)), (40, "new", "m")], key=repr)


def test_the_result_of_a_merge_is_an_input(traced, job):
    rows = traced.rows(traced.back("out/merged", "name = 'x'"))
    assert rows["default.users"] == [(3, "x", None), (5, "x", None)]
    assert "MERGE, UPDATE and DELETE" in job[1]
    assert "that were not kept" not in job[1]  # of tables that were created empty


def test_rows_that_deletion_vectors_delete(traced):
    assert traced.rows(traced.back("out/before", "id = 3"))["default.vectors"] == [(3,)]
    assert traced.rows(traced.back("out/after", "true"))["default.vectors"] == [(n,) for n in (0, 1, 2, 4, 5, 6, 7)]


def test_columns_under_other_names(traced):
    assert traced.rows(traced.back("out/mapped", "true"))["default.mapped"] == [(1, None), (2, 20)]
    assert traced.rows(traced.back("out/mapped", "id = 20"))["default.mapped"] == [(2, 20)]


def test_column_mapping_by_ids_is_stated(traced):
    code, message = traced.ask("trace", "back", "out/numbered", "--where", "true")
    assert code == 4
    assert "column mapping" in message


def test_forward_and_replay_over_tables(traced):
    code, answer = traced.ask("trace", "forward", "data/orders", "--where", "id = 10")
    assert code == 2  # three writes read these files
    run = traced.back("out/newest", "true")["run"]
    code, answer = traced.ask("trace", "forward", "data/orders", "--where", "id = 10", "--run", run)
    assert code == 0, answer
    assert [row["kind"] for row in answer["outputs"][0]["rows"]] == ["it's"]
    code, answer = traced.ask("trace", "back", "out/first", "--where", "id = 5")
    code, answer = traced.ask("replay", answer["run"], "--without", "data/orders", "--where", "id = 5")
    assert code == 0, answer
    assert [row["id"] for row in answer["gone"]["rows"]] == [5]


def test_files_that_are_gone(traced):
    """As after a vacuum."""
    code, answer = traced.ask("trace", "back", "out/first", "--where", "true")
    path = local_path(answer["inputs"][0]["rows"][0]["_file"])
    shutil.move(path, f"{path}.away")
    try:
        code, found = traced.ask("trace", "back", "out/first", "--where", "true")
        assert code == 3
        assert [each["reason"] for each in found["refused"]] == ["is gone: versions of tables are not evaluated again"]
        assert 0 < found["inputs"][0]["count"] < answer["inputs"][0]["count"]
    finally:
        shutil.move(f"{path}.away", path)
