"""Rows of Iceberg tables as published, traced at the snapshots that a job read and wrote; the data again in Python."""

from __future__ import annotations

import pytest
from lake_formats import START
from lake_records import Traced, record
from test_iceberg import SETTINGS

pytestmark = pytest.mark.maven("iceberg")

KINDS = ["a b/é=%20", "it's", None]
ORDERS = [(n, KINDS[n % 3], n * 10) for n in range(12)]
JOB = """
kinds = ["a b/é=%20", "it's", None]
def frame(numbers):
    return spark.createDataFrame([(n, kinds[n % 3], n * 10) for n in numbers], "id long, kind string, paid long")
def first(table):
    return spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()[0][0]
spark.sql("CREATE TABLE lake.db.orders (id LONG, kind STRING, paid LONG) USING iceberg PARTITIONED BY (kind, bucket(2, id))")
frame(range(8)).writeTo("lake.db.orders").append()
early = spark.table("lake.db.orders")
frame(range(8, 12)).writeTo("lake.db.orders").append()
early.groupBy("kind").sum("paid").toDF("kind", "total").coalesce(1).write.parquet("out/newest")
old = spark.sql(f"SELECT * FROM lake.db.orders VERSION AS OF {first('lake.db.orders')}")
old.where("paid >= 20").coalesce(1).write.parquet("out/first")
spark.sql("CREATE TABLE lake.db.users USING iceberg AS SELECT id, concat('user ', id) AS name FROM range(6)")
spark.sql("CREATE TABLE lake.db.joined USING iceberg AS"
          " SELECT u.id, u.name, o.paid FROM lake.db.users u JOIN lake.db.orders o ON u.id = o.id")
spark.sql("DELETE FROM lake.db.users WHERE id = 4")
spark.sql("ALTER TABLE lake.db.users ADD COLUMN more STRING")
spark.sql("INSERT INTO lake.db.users VALUES (40, 'new', 'm')")
spark.table("lake.db.users").coalesce(1).write.parquet("out/users")
spark.sql("MERGE INTO lake.db.users u USING lake.db.joined j ON u.id = j.id WHEN MATCHED AND j.paid > 20"
          " THEN UPDATE SET name = 'x' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (j.id, j.name)")
spark.table("lake.db.users").groupBy("name").count().coalesce(1).write.parquet("out/merged")
spark.sql("INSERT OVERWRITE lake.db.joined SELECT * FROM lake.db.joined WHERE paid < 30")
spark.sql("CREATE TABLE lake.db.vectors (id LONG) USING iceberg"
          " TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')")
spark.sql("INSERT INTO lake.db.vectors SELECT id FROM range(0, 9, 1, 1)")
spark.table("lake.db.vectors").coalesce(1).write.parquet("out/before")
spark.sql("DELETE FROM lake.db.vectors WHERE id IN (3, 8)")
spark.table("lake.db.vectors").coalesce(1).write.parquet("out/after")
spark.sql("CREATE TABLE lake.db.third (id LONG) USING iceberg"
          " TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')")
spark.sql("INSERT INTO lake.db.third SELECT id FROM range(0, 9, 1, 1)")
spark.sql("DELETE FROM lake.db.third WHERE id IN (3, 8)")
spark.table("lake.db.third").selectExpr("id").coalesce(1).write.parquet("out/third")
spark.sql("ALTER TABLE lake.db.vectors RENAME COLUMN id TO number")
spark.sql(f"SELECT * FROM lake.db.vectors VERSION AS OF {first('lake.db.vectors')}").coalesce(1).write.parquet("out/past")
spark.table("lake.db.joined").selectExpr("id", "paid").writeTo("lake.db.renamed").using("iceberg").create()
spark.sql("ALTER TABLE lake.db.renamed RENAME COLUMN paid TO spent")
spark.sql("INSERT INTO lake.db.renamed VALUES (50, 500)")
spark.table("lake.db.renamed").coalesce(1).write.parquet("out/renamed")
spark.sql("CALL lake.system.rewrite_data_files(table => 'db.orders', options => map('min-input-files', '1'))")
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory, jars):
    folder = tmp_path_factory.mktemp("rows") / "job"
    own = {**SETTINGS, "spark.sql.catalog.lake.warehouse": str(folder / "data" / "lake")}
    said = record(folder, START + JOB, jars("iceberg"), own)
    return folder, said


@pytest.fixture
def traced(job, capsys, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(job[0])
    return Traced(job[0], capsys)


def orders(*numbers):
    return sorted((ORDERS[n] for n in numbers), key=repr)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_that_was_made_before_an_append(traced, kind):
    """Whatever the versions of Spark and Iceberg made of it: the total is that of the rows of the snapshot."""
    where = "kind IS NULL" if kind is None else "kind = '{}'".format(kind.replace("'", "\\'"))
    answer = traced.back("out/newest", where)
    assert traced.rows(answer)["lake.db.orders"] == orders(*(n for n in range(12) if ORDERS[n][1] == kind))


def test_time_travel_after_a_compaction(traced):
    answer = traced.back("out/first", "id in (5, 7, 9)")
    assert traced.rows(answer)["lake.db.orders"] == orders(5, 7)


def test_a_table_is_traced_to_the_run_that_made_its_present_snapshot(traced):
    rows = traced.rows(traced.back("lake.db.joined", "id = 2", "--all-runs"))
    assert rows["lake.db.joined"] == [(2, "user 2", 20)]
    assert rows["lake.db.orders"] == orders(2)
    assert rows["lake.db.users"] == [(2, "user 2")]


def test_deleted_rows_and_added_columns(traced):
    rows = traced.rows(traced.back("out/users", "true"))
    kept = [(n, f"user {n}", None) for n in (0, 1, 2, 3, 5)]
    assert rows["lake.db.users"] == sorted([*kept, (40, "new", "m")], key=repr)


def test_the_result_of_a_merge_is_an_input(traced, job):
    rows = traced.rows(traced.back("out/merged", "name = 'x'"))
    assert rows["lake.db.users"] == [(3, "x", None), (5, "x", None)]
    assert "MERGE, UPDATE and DELETE" in job[1]


def test_rows_that_delete_files_and_vectors_delete(traced):
    kept = [(n,) for n in (0, 1, 2, 4, 5, 6, 7)]
    assert traced.rows(traced.back("out/before", "id = 3"))["lake.db.vectors"] == [(3,)]
    assert traced.rows(traced.back("out/after", "true"))["lake.db.vectors"] == kept
    assert traced.rows(traced.back("out/third", "true"))["lake.db.third"] == kept


def test_renamed_columns(traced):
    assert traced.rows(traced.back("out/past", "id > 6"))["lake.db.vectors"] == [(7,), (8,)]
    every = traced.rows(traced.back("out/renamed", "true"))["lake.db.renamed"]
    assert every == [(0, 0), (1, 10), (2, 20), (50, 500)]
    assert traced.rows(traced.back("out/renamed", "spent in (10, 500)"))["lake.db.renamed"] == [(1, 10), (50, 500)]


def test_forward_and_replay_over_tables(traced):
    code, answer = traced.ask("trace", "back", "out/first", "--where", "id = 5")
    run = answer["run"]
    code, answer = traced.ask("trace", "forward", "lake.db.orders", "--where", "id = 5", "--run", run)
    assert code == 0, answer
    assert [row["id"] for row in answer["outputs"][0]["rows"]] == [5]
    code, answer = traced.ask("replay", run, "--without", "lake.db.orders", "--where", "id = 5")
    assert code == 0, answer
    assert [row["id"] for row in answer["gone"]["rows"]] == [5]
    code, message = traced.ask("trace", "forward", "lake.db.orders", "--where", "id = 5")
    assert code == 2  # its files were compacted since
    assert "was not read by a write that is recorded" in message
