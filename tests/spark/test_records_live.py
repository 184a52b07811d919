"""Rows of a real job, recorded as it ran and traced by command afterwards."""

from __future__ import annotations

import importlib
import json
import os
import sys

import pyarrow.parquet as pq
import pytest
from recorders import own_recorder

import govtool.spark
from govtool.app.records.runs import recorded
from govtool.cli.main import main
from govtool.model.records import PRIVATE_POSITIONS, PRIVATE_VALUES, RECORD_TABLES
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

VIEWS = [("ann", 1, 10), ("ann", 2, 20), ("bob", 1, 30), ("bob", 1, 30), ("eve", 9, 5)]
USERS = [("ann", "fr"), ("bob", "de"), ("zoe", "fr")]
FUNCTIONS = """
def initial(name):
    return name[0] if name else None
"""


@pytest.fixture(scope="module")
def job(spark, tmp_path_factory):
    """A folder with a job's data and the store that it was committed to, with records; the number of its plans."""
    from pyspark.sql import functions as F

    folder = tmp_path_factory.mktemp("records")
    data = folder / "data"
    (folder / "records_functions.py").write_text(FUNCTIONS, encoding="utf-8")
    spark.sparkContext.addPyFile(str(folder / "records_functions.py"))
    assert main(["init", "--store", str(folder / "store")]) == 0
    with own_recorder():
        capture = govtool.spark.attach(
            spark, source="run:job", store=str(folder / "store"), spool=str(folder / "spool"), records=True
        )
        sys.path.insert(0, str(folder))
        try:
            views = spark.createDataFrame(VIEWS, "user string, page int, spent int")
            views.repartition(2).write.parquet(str(data / "views"))
            spark.createDataFrame(USERS, "name string, land string").write.parquet(str(data / "users"))
            views, users = spark.read.parquet(str(data / "views")), spark.read.parquet(str(data / "users"))
            joined = views.join(users, views.user == users.name)
            report = joined.groupBy("land").agg(F.sum("spent").alias("total"), F.count("*").alias("n"))
            report.where("total > 20").write.parquet(str(data / "report"))
            report.select("land", F.upper("land").alias("big")).write.partitionBy("land").parquet(str(data / "lands"))
            initial = F.udf(importlib.import_module("records_functions").initial, "string")
            users.select(initial("name").alias("letter"), "land").write.parquet(str(data / "letters"))
            directory = os.path.relpath(data / "directory")
            spark.sql(
                f"INSERT OVERWRITE DIRECTORY '{directory}' USING parquet SELECT land FROM parquet.`{data / 'users'}`"
            )
            spark.sql(f"CREATE TABLE records_ddl (a INT) USING parquet LOCATION '{data / 'ddl'}'")
            spark.sql("DROP TABLE records_ddl")
            assert capture.commit(identify=0) is not None
            yield folder
        finally:
            sys.path.remove(str(folder))


def back(capsys, folder, *words):
    capsys.readouterr()
    code = main(["trace", "back", *words, "--store", str(folder / "store"), "--format", "json"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    return json.loads(shown.out)


def rows(answer, name):
    (group,) = (group for group in answer["inputs"] if group["dataset"].endswith(f"/{name}"))
    return group["rows"]


def test_a_result_is_traced_to_its_rows_and_verified(job, capsys):
    answer = back(capsys, job, str(job / "data" / "report"), "--where", "total = 60", "--verify")
    assert answer["verified"] is True
    assert answer["engine"] == "DuckDB"
    assert [(row["user"], row["spent"]) for row in rows(answer, "views")] == [("bob", 30)] * 2
    assert [(row["name"], row["land"]) for row in rows(answer, "users")] == [("bob", "de")]
    for row in rows(answer, "views"):
        there = pq.read_table(row["_file"].removeprefix("file://")).to_pylist()[row["_row"]]
        assert there["user"] == "bob"


def test_a_directory_that_was_named_without_its_root_is_traced(job, capsys):
    answer = back(capsys, job, str(job / "data" / "directory"), "--where", "land = 'de'", "--verify")
    assert answer["verified"] is True
    assert [row["name"] for row in rows(answer, "users")] == ["bob"]


def test_a_partitioned_output_is_verified(job, capsys):
    answer = back(capsys, job, str(job / "data" / "lands"), "--where", "big = 'FR'", "--verify")
    assert answer["verified"] is True
    assert len(rows(answer, "views")) == 2


def test_rows_reach_the_written_files(job, capsys):
    capsys.readouterr()
    words = ["trace", "forward", str(job / "data" / "users"), "--where", "name = 'bob'", "--run"]
    runs = {run.output.rpartition("/")[2]: run.run for run in recorded(*opened(job))}
    code = main([*words, runs["report"], "--store", str(job / "store"), "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0
    (group,) = answer["outputs"]
    (row,) = group["rows"]
    there = pq.read_table(row["_file"].removeprefix("file://")).to_pylist()[row["_row"]]
    assert there == {"land": "de", "total": 60, "n": 2}


def test_functions_of_the_user_are_evaluated_in_spark(job, capsys, monkeypatch):
    monkeypatch.chdir(job)
    answer = back(capsys, job, str(job / "data" / "letters"), "--where", "letter = 'b'", "--verify")
    assert answer["engine"] == "Spark"
    assert answer["verified"] is True
    assert [row["name"] for row in rows(answer, "users")] == ["bob"]


@pytest.mark.parametrize(
    ("where", "users"),
    [
        ("array_contains(array('fr', 'xx'), land)", ["ann"]),
        ("exists(split(land, ''), letter -> letter = 'd')", ["bob"]),
        ("date_format(timestamp'2026-01-01 12:00:00', 'HH') = '12' AND land rlike '^f'", ["ann"]),
    ],
)
def test_conditions_that_only_spark_reads(job, capsys, where, users):
    answer = back(capsys, job, str(job / "data" / "report"), "--where", where)
    assert [row["name"] for row in rows(answer, "users")] == users
    assert answer["engine"] in ("DuckDB", "Spark")


@pytest.mark.parametrize(
    ("where", "message"),
    [("nonsense(land)", "nonsense"), ("array_contains(land, 1)", "array_contains"), ("my_udf(land) = (SELECT 1)", "")],
)
def test_conditions_that_mean_nothing_to_spark(job, capsys, where, message):
    capsys.readouterr()
    words = ["trace", "back", str(job / "data" / "report"), "--where", where, "--store", str(job / "store")]
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_commands_without_rows_are_no_records(job):
    found = recorded(*opened(job))
    assert found
    assert not any("Command" in why for each in found if not each.output for why in each.breaks)


def test_records_lie_in_their_own_tables(job):
    store, commit = opened(job)
    tables = {ref.table for ref in store.fragments(commit)}
    assert tables >= {*RECORD_TABLES} - {PRIVATE_POSITIONS}
    assert PRIVATE_VALUES in tables


def opened(folder):
    store = Store.open(str(folder / "store"))
    return store, store.head("main")


@pytest.fixture(scope="module")
def attached(spark, job):
    """The capture of the job's session, as a notebook has it."""
    from govtool.spark.live import process

    before = process.recorder("").replay
    yield govtool.spark.attach(spark, records=True)
    process.recorder("").replay = before


@pytest.mark.slow
def test_a_frame_is_traced_before_it_is_written(spark, job, attached):
    from pyspark.sql import functions as F

    views = spark.read.parquet(str(job / "data" / "views"))
    double = F.udf(lambda value: value * 2, "int")
    land = spark.createDataFrame([("ann", "fr"), ("bob", "de")], "name string, land string")
    land = land.join(land.select("name"), "name", "left_semi")  # Spark gives the right side columns of its own
    frame = views.join(land, views.user == land.name).groupBy("land").agg(F.sum(double("spent")).alias("total"))
    bad = attached.lineage(frame).where("land = 'de'")
    found = bad.go_back_all()
    assert sorted(map(tuple, found.df("views").collect())) == [("bob", 1, 30)] * 2
    assert found.df("views").where("spent > 10").count() == 2  # an ordinary DataFrame
    assert found.arrow("rows-1").to_pylist() == [{"name": "bob", "land": "de"}]
    assert {part.exactness for part in found.answer().inputs} == {"exact"}
    assert all(str(token).startswith("file:///") for token in found.ids("views"))
    forward = attached.lineage(frame).lineage.input("views", "user = 'ann' and spent = 20").go_next_all()
    assert forward.arrow().to_pydict()["land"] == ["fr"]


@pytest.mark.slow
def test_a_value_that_an_evaluation_of_a_frame_chooses_is_none_to_select_by(spark, job, attached):
    from pyspark.sql import functions as F

    from govtool.errors import UsageError

    def chosen(rows):
        return rows.groupBy("user").agg(F.first("page").alias("f"), F.count("*").alias("n"))

    views = spark.read.parquet(str(job / "data" / "views"))
    with pytest.raises(UsageError, match="'f' cannot be evaluated again"):
        attached.lineage(chosen(views)).where("f = 2")
    by_key = attached.lineage(chosen(views)).where("user = 'ann'").go_back_all()
    assert ({part.exactness for part in by_key.answer().inputs}, by_key.count()) == ({"exact"}, 2)
    one = attached.lineage(chosen(views.where("user = 'bob'"))).where("f = 1").go_back_all()
    assert ({part.exactness for part in one.answer().inputs}, one.count()) == ({"exact"}, 2)  # no rows tie
    steered = attached.lineage(chosen(views).where("f = 2").agg(F.sum("n").alias("n"))).go_back_all()
    assert {part.exactness for part in steered.answer().inputs} == {"superset"}
    lists = views.groupBy("user").agg(F.collect_list("page").alias("l"))
    with pytest.raises(UsageError, match="order of a collected list"):
        attached.lineage(lists).where("l = array(1, 2)")
    assert attached.lineage(lists).where("size(l) = 2 and user = 'ann'").go_back_all().count() == 2


def test_a_frame_of_an_unrecorded_session_is_refused(spark):
    from govtool.app.records.frame_lineage import frame_lineage
    from govtool.errors import UsageError

    with pytest.raises(UsageError, match="not recorded with its plans"):
        frame_lineage(spark.range(3), None)
