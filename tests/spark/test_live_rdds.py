"""RDDs in a recorded job without records of rows: what they write and hand on leaves a run and a break, never nothing."""

from __future__ import annotations

import pytest
from recorders import own_recorder

import govtool.spark
from govtool.app.runs.job import read_captured
from govtool.spark.live import process


@pytest.fixture(scope="module")
def job(spark, tmp_path_factory):
    """The folder of a job whose rows go through RDDs, and what was recorded of it."""
    from pyspark.sql.session import _monkey_patch_RDD

    _monkey_patch_RDD(spark)  # RDD.toDF makes frames of the session that was made last, by whichever test
    folder = tmp_path_factory.mktemp("rdds")
    (folder / "lines.txt").write_text("a\nb\n")
    spark.range(4).selectExpr("id", "id % 2 AS k", "'n' AS name").write.json(f"{folder}/rows")
    context = spark.sparkContext
    with own_recorder():
        govtool.spark.attach(spark, source="run:rdds", spool=str(folder / "spool"))
        rows = spark.read.schema("id long, k long, name string").json(f"{folder}/rows")
        few = rows.where("k = 1").select("id")
        lines = context.textFile(f"{folder}/lines.txt")
        rows.select("id", "name").foreachPartition(lambda part: None)
        rows.select("k").foreach(lambda row: None)
        few.rdd.foreachPartition(lambda part: None)
        context.parallelize([1]).foreach(lambda number: None)
        with pytest.raises(Exception, match="ZeroDivisionError"):
            few.rdd.foreach(lambda row: 1 / 0)
        few.rdd.map(str).saveAsTextFile(f"{folder}/text")
        lines.union(rows.select("name").rdd.map(str)).saveAsPickleFile(f"{folder}/pickled")
        configured = {
            "mapreduce.output.fileoutputformat.outputdir": f"{folder}/configured",
            "mapreduce.job.outputformat.class": "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat",
            "mapreduce.job.output.key.class": "org.apache.hadoop.io.Text",
            "mapreduce.job.output.value.class": "org.apache.hadoop.io.Text",
        }
        lines.map(lambda line: (line, line)).saveAsNewAPIHadoopDataset(configured)
        few.rdd.map(lambda row: (row.id, "x")).toDF(["n", "x"]).write.parquet(f"{folder}/through")
        spark.createDataFrame(lines.map(lambda line: (line,)), "line string").write.parquet(f"{folder}/lined")
        kept = few.rdd.collect()
        spark.createDataFrame([(row.id,) for row in kept], "n long").write.parquet(f"{folder}/again")
        process.recorder(process.folder).finish(60)
    return folder, read_captured(folder / "spool", None)


def _short(folder, name):
    return name.removeprefix(f"file://{folder}/")


@pytest.fixture
def runs(job):
    """Runs of functions that were handed rows, and of RDDs that wrote, with the short names of what they read."""
    folder, captured = job
    return {
        run.id.rpartition("/")[2]: (run, [_short(folder, each.dataset) for each in run.inputs])
        for run in captured.gathered.runs
        if "/rdd-" in run.id
    }


def _edges(job, target):
    folder, captured = job
    return {
        (edge.target_path, f"{_short(folder, edge.source.dataset)}.{edge.source.path}", edge.kind.label)
        for made in captured.gathered.derivations()
        if _short(folder, made.target) == target
        for edge in made.edges
    }


def test_a_function_that_is_handed_rows_is_a_run_with_a_break(runs):
    handed = [(run, reads) for run, reads in runs.values() if any("foreach" in each.message for each in run.breaks)]
    assert [(run.status, reads) for run, reads in handed] == [
        ("complete", ["rows"]), ("complete", ["rows"]), ("complete", ["rows"]), ("complete", []), ("failed", ["rows"]),
    ]  # fmt: skip
    assert all("where it put them is not known" in run.breaks[0].message for run, _ in handed)
    assert "test_live_rdds.py:" in handed[0][0].breaks[0].message
    assert handed[-1][0].error.startswith("PythonException")
    assert [each.code for each in handed[3][0].breaks] == ["break.rdd", "break.target"]


def test_a_function_is_handed_the_columns_of_its_query_and_no_others(job, runs):
    _, captured = job
    found = {
        (edge.source.path, edge.kind.label)
        for made in captured.gathered.derivations()
        if made.statement.run in {run.id for run, _ in runs.values()} and made.target.startswith("query:")
        for edge in made.edges
        if edge.target_path == "value"
    }
    assert {("id", "opaque"), ("name", "opaque"), ("k", "opaque")} <= found


@pytest.mark.parametrize(
    ("target", "edges"),
    [
        ("text", {("value", "rows.id", "opaque")}),
        ("pickled", {("value", "rows.name", "opaque"), ("value", "lines.txt.value", "opaque")}),
        ("configured", {("value", "lines.txt.value", "opaque")}),
        ("through", {("n", "rows.id", "opaque"), ("x", "rows.id", "opaque")}),
        ("lined", {("line", "lines.txt.value", "opaque")}),
    ],
)
def test_what_an_rdd_hands_on_comes_from_its_queries_and_files(job, target, edges):
    found = _edges(job, target)
    assert {edge for edge in found if edge[2] == "opaque" and edge[0] != "*"} == edges
    assert ("*", f"{next(iter(edges))[1].rpartition('.')[0]}.*", "read") in found


def test_rows_that_an_rdd_gave_to_the_driver_are_a_break_where_they_may_come_back(job):
    _, captured = job
    (run,) = [run for run in captured.gathered.runs for each in run.outputs if each.dataset.endswith("/again")]
    assert [each.code for each in run.breaks] == ["break.driver"]


def test_nothing_was_lost(job):
    assert job[1].warnings == []
