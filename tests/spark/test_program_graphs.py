"""The provenance graph of a program that Spark ran: CSV, a table that is replaced, partitions, and rows of an RDD."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorders import own_recorder

import govtool
import govtool.spark
from govtool.app.workflow_runs.programs.actions import ProgramAction
from govtool.app.workflow_runs.programs.recorded import find_recorded_run
from govtool.cli.main import main
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

VIEWS = {"user": ["ann", "ann", "bob", "cid"], "page": [1, 2, 1, 2], "spent": [10, 20, 30, 5]}


@pytest.fixture(scope="module")
def program(spark, tmp_path_factory):
    """The folder of a program's data, and its graph."""
    from pyspark.sql import functions as f

    folder = tmp_path_factory.mktemp("program")
    (folder / "users.csv").write_text("name,land\nann,de\nbob,fr\ncid,de\n")
    (folder / "views").mkdir()
    pq.write_table(pa.table(VIEWS), folder / "views" / "a.parquet")
    store = str(folder / "store")
    assert main(["init", "--store", store]) == 0
    with own_recorder():
        capture = govtool.spark.attach(spark, source="run:prog", store=store, spool=str(folder / "spool"), records=True)
        read, path = spark.read.parquet, lambda name: str(folder / name)
        users = spark.read.option("header", "true").csv(path("users.csv"))
        views = read(path("views"))
        views.groupBy("user").agg(f.sum("spent").alias("spent")).write.mode("overwrite").parquet(path("stage"))
        stage = read(path("stage"))
        report = stage.join(users, stage.user == users.name).groupBy("land").agg(f.sum("spent").alias("total"))
        report.write.partitionBy("land").parquet(path("report"))
        views.select("user").write.mode("overwrite").parquet(path("stage"))
        rows = read(path("report")).rdd.map(tuple)
        spark.createDataFrame(rows, ["total", "land"]).write.parquet(path("copy"))
        assert capture.commit(identify=0) is not None
    at = Store.open(store)
    return folder, find_recorded_run(at, at.head("main"), "prog")


def test_actions_are_chained_by_their_files(program):
    _, found = program
    assert [each.module for each in found.run.invocations] == ["stage", "report", "stage.2", "copy"]
    assert ("stage", 1) not in {(each.module, len(each.kept)) for each in found.run.invocations}
    graph = found.graph()
    assert [name.partition("#")[0] for name in graph.coarse] == ["copy"], graph.coarse  # the RDD's rows alone
    rows = {each.relation: sorted(each.rows) for each in graph.outputs}
    assert rows["report"] == [(30, "fr"), (35, "de")]
    assert rows["copy"] == [(30, "fr"), (35, "de")]


def test_rows_after_a_deletion(program):
    folder, found = program
    with found.opened() as (run, files):
        names = {path.rpartition("/")[2]: path for path in files.layout.sources}
        tokens = {name: list(files.rows(run.relations[path]).tokens) for name, path in names.items()}
    graph = govtool.provenance_graph(f"run:{found.run.id}", store=str(folder / "store"))
    after = graph.delete(tokens["views"][0]).to_dict()["relations"]
    assert {tuple(row["before"]): (row["status"], row.get("after")) for row in after["report"]["tuples"]} == {
        (35, "de"): ("recomputed", [25, "de"]),
        (30, "fr"): ("kept", [30, "fr"]),
    }
    assert {row["status"] for row in after["copy"]["tuples"]} == {"unknown"}
    after = graph.delete(tokens["users.csv"][1]).to_dict()["relations"]  # bob, fr
    assert {row["status"] for row in after["report"]["tuples"] if row["before"][1] == "fr"} == {"deleted"}


def test_a_write_whose_files_were_gone_before_they_were_listed(program):
    """As when another write follows at once: Spark's count tells whether a reader had all that the write made."""
    _, found = program
    stage, *others = found.program.actions
    output = stage.run.outputs[0]
    assert (output.dataset, output.files) == (stage.output, 1)
    assert output.written is None or len(output.written.listed) == 1  # on a busy machine it may be as said above

    def graph(**facts):
        outputs = (replace(output, written=None, **facts),)
        record = replace(stage.record, written=None)
        unlisted = ProgramAction(replace(stage.run, outputs=outputs), record)
        return replace(found, program=replace(found.program, actions=(unlisted, *others))).graph()

    assert [name.partition("#")[0] for name in graph().coarse] == ["copy"]
    assert {each.relation: sorted(each.rows) for each in graph().outputs}["report"] == [(30, "fr"), (35, "de")]
    for other in (2, None):
        assert [name.partition("#")[0] for name in graph(files=other).coarse] == ["report", "copy"]
