"""Rows of streams and of databases: batches of files are traced, what has no positions is refused with the reason."""

from __future__ import annotations

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorders import own_recorder

import govtool.spark
from govtool.app.runs.job import read_captured
from govtool.cli.main import main

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

DRIVER = {"driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}


@pytest.fixture(scope="module")
def job(spark, tmp_path_factory):
    """The folder of a job with streams and a database, and what was noted of it."""
    folder = tmp_path_factory.mktemp("batches")
    (folder / "in").mkdir()
    for number in range(2):
        rows = [{"id": number * 10 + n, "k": n % 2} for n in range(4)]
        pq.write_table(pa.Table.from_pylist(rows), folder / "in" / f"{number}.parquet")
        os.utime(folder / "in" / f"{number}.parquet", (1_700_000_000 + number,) * 2)  # a stream takes the oldest first
    (folder / "more").mkdir()
    pq.write_table(pa.Table.from_pylist([{"id": 100, "k": 0}]), folder / "more" / "m.parquet")
    assert main(["init", "--store", str(folder / "store")]) == 0
    with own_recorder():
        capture = govtool.spark.attach(
            spark, source="run:batches", store=str(folder / "store"), spool=str(folder / "spool"), records=True
        )
        stream = spark.readStream.schema("id long, k long").option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")

        def each(batch, number):
            batch.where("k = 1").write.parquet(f"{folder}/odd{number}")
            batch.selectExpr("id * 2 as twice").write.parquet(f"{folder}/twice{number}")

        def counted(batch, number):
            batch.write.mode("overwrite").parquet(f"{folder}/counted")

        grouped = stream.groupBy("k").count().writeStream.outputMode("complete").foreachBatch(counted)
        more = spark.readStream.schema("id long, k long").parquet(
            f"{folder}/more"
        )  # with nothing new in the second batch
        sink = stream.union(more).writeStream.format("parquet").option("path", f"{folder}/sink")
        distinct = stream.dropDuplicates(["k"]).writeStream.option("path", f"{folder}/distinct")
        queries = [stream.where("id <> 1").writeStream.foreachBatch(each), grouped, sink, distinct]
        for number, query in enumerate(queries):
            started = query.option("checkpointLocation", f"{folder}/c{number}").trigger(availableNow=True).start()
            started.awaitTermination()
        spark.read.parquet(os.path.relpath(folder / "sink")).write.parquet(f"{folder}/after")
        rows = spark.read.parquet(f"{folder}/in")
        url = "jdbc:derby:memory:govtool_batches;create=true"
        rows.write.jdbc(url, "copied", properties=DRIVER)
        spark.read.jdbc(url, "copied", properties=DRIVER).write.parquet(f"{folder}/back")
        sums = rows.groupBy("k").count().toPandas()
        spark.createDataFrame(sums).write.parquet(f"{folder}/again")
        sums["k"] = sums["k"] * 2
        spark.createDataFrame(sums.head(1)).write.parquet(f"{folder}/perhaps")
        assert capture.commit(identify=0) is not None
        captured = read_captured(folder / "spool", None)
    return folder, captured


@pytest.fixture
def trace(job, capsys):
    """Runs a trace back; returns the exit code and the answer, or the error."""
    folder = job[0]

    def run(name, where="true", *words):
        capsys.readouterr()
        place = name if name.startswith("jdbc") else str(folder / name)
        words = ["trace", "back", place, "--where", where, *words]
        code = main([*words, "--store", str(folder / "store"), "--format", "json"])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out.startswith("{") else err

    return run


@pytest.mark.parametrize("number", [0, 1])
def test_a_batch_is_traced_to_the_rows_of_its_own_files(trace, number):
    code, answer = trace(f"odd{number}")
    (rows,) = answer["inputs"]
    ids = {row["id"] for row in rows["rows"]}
    assert (code, ids) == (0, {1 + number * 10, 3 + number * 10} - {1})
    assert {row["_file"].rpartition("/")[2] for row in rows["rows"]} == {f"{number}.parquet"}
    assert (rows["exactness"], rows["dataset"].rpartition("/")[2]) == ("exact", "in")
    code, answer = trace(f"twice{number}", f"twice = {number * 20 + 4}")
    assert (code, [row["id"] for row in answer["inputs"][0]["rows"]]) == (0, [number * 10 + 2])


def test_a_stream_with_a_state_is_refused(job, trace):
    code, error = trace("counted")
    assert (code, "engine.not-exact" in error, "the stream keeps a state" in error) == (4, True, True)
    assert ("LogicalRDD" in error, "in a job that reads these" in error) == (False, True)
    assert any("the stream keeps a state" in warning for warning in job[1].warnings)


def test_what_a_streaming_query_writes_by_itself_is_traced_batch_by_batch(job, trace):
    code, error = trace("sink")
    assert (code, "usage.ambiguous-run" in error) == (2, True)
    runs = [each for each in job[1].records.runs.values() if each.output.endswith("/sink")]
    for number, run in enumerate(sorted(runs, key=lambda each: int(each.run.rpartition("/")[2]))):
        code, answer = trace("sink", "k = 1", "--run", run.run, "--verify")
        (rows,) = (each for each in answer["inputs"] if each["rows"])
        assert (code, rows["exactness"], {row["id"] for row in rows["rows"]}) == (
            0, "exact", {1 + number * 10, 3 + number * 10},
        )  # fmt: skip
    batches = [run.batches for run in job[1].gathered.runs if run.id in {each.run for each in runs}]
    assert {(each.first, each.last) for each in batches} == {(0, 0), (1, 1)}


def test_a_sink_of_a_stream_with_a_state_is_refused(job, trace):
    code, error = trace("distinct")
    assert (code, "usage.untraceable" in error, "in a job that reads these" in error) == (2, True, True)


def test_what_a_streaming_query_wrote_is_one_dataset_however_its_path_is_given(job, trace):
    code, answer = trace("after", "id = 2")
    assert (code, [each["dataset"] for each in answer["inputs"]]) == (0, [(job[0] / "sink").as_uri()])
    found = [each for each in job[1].gathered.derivations() if each.target.endswith("/after")]
    assert {edge.source.dataset for each in found for edge in each.edges} == {(job[0] / "sink").as_uri()}


def test_rows_that_the_driver_had_in_between_are_a_break(job):
    captured = job[1]
    found = {each.target.rpartition("/")[2]: each for each in captured.gathered.derivations() if each.edges}
    breaks = {run.outputs[0].dataset.rpartition("/")[2]: run.breaks for run in captured.gathered.runs if run.outputs}
    assert {note.code for name in ("again", "perhaps") for note in breaks[name]} == {"break.driver"}
    assert {(edge.source.text.rpartition("/")[2], edge.kind.label) for edge in found["again"].edges} >= {
        ("in.k", "opaque")
    }
    assert "perhaps" not in found


def test_rows_of_a_database_are_refused_and_rows_for_one_are_traced(job, trace):
    code, error = trace("back")
    assert (code, "rows of a database have no positions: JDBCRelation" in error) == (4, True)
    assert any("rows of a database have no positions" in warning for warning in job[1].warnings)
    (run,) = [run for run in job[1].records.runs.values() if run.output.startswith("jdbc")]
    code, answer = trace(run.output, "id = 12", "--run", run.run)
    assert (code, [row["_row"] for row in answer["inputs"][0]["rows"]]) == (0, [2])
