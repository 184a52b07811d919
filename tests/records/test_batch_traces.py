"""Batches of ``foreachBatch`` and of sinks of files traced, against the definition: the input rows behind each output row, found by hand."""

from __future__ import annotations

import os
import random
from collections import defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorders import own_recorder

import govtool
from govtool.app.runs.job import read_captured
from govtool.cli.main import main
from govtool.spark.live.plans.sink_log import logged_files

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

FILES, ROWS, TAGS = 5, 12, ("a", "b", "c")
NAMES = [(0, "zero"), (1, "one"), (1, "uno"), (None, "none")]
COLUMNS = {
    "kept": ("k", "v"), "sums": ("k", "n", "v"), "joined": ("v", "title"), "tags": ("tag",), "twice": ("v",),
    "pairs": ("v", "w"), "sink": ("k", "v", "title"),
}  # fmt: skip
"""The columns of each target."""
STREAM = "v IS NULL OR v <> 0"
"""The condition that the query itself has, before any batch."""


@pytest.fixture(scope="module")
def stream(spark, tmp_path_factory):
    """Three batches of a stream of files, each written to several targets: the store, inputs and runs."""
    folder = tmp_path_factory.mktemp("foreach")
    draw, inputs = random.Random(2), {}
    (folder / "in").mkdir()
    for number in range(FILES):
        rows = [
            (draw.choice((0, 1, 2, None)), draw.choice((0, 1, 2, None)), draw.sample(TAGS, draw.randrange(3)))
            for _ in range(ROWS)
        ]
        names = {"k": pa.int64(), "v": pa.int64(), "tags": pa.list_(pa.string())}
        columns = [pa.array(cells, kind) for cells, kind in zip(zip(*rows, strict=True), names.values(), strict=True)]
        file = folder / "in" / f"{number}.parquet"
        pq.write_table(pa.table(columns, names=[*names]), file)
        os.utime(file, (1_700_000_000 + number,) * 2)  # a stream takes the oldest first
        inputs[file.name] = rows
    (folder / "names").mkdir()
    keys, titles = zip(*NAMES, strict=True)
    pq.write_table(pa.table({"key": pa.array(keys, pa.int64()), "title": [*titles]}), folder / "names" / "n.parquet")
    assert main(["init", "--store", str(folder / "store")]) == 0
    with own_recorder():
        capture = govtool.spark.attach(
            spark, source="run:foreach", store=str(folder / "store"), spool=str(folder / "spool"), records=True
        )
        _run(spark, folder)
        assert capture.commit(identify=0) is not None
        runs = {
            run.output.rpartition("/")[2]: [] for run in read_captured(folder / "spool", None).records.runs.values()
        }
        for run in read_captured(folder / "spool", None).records.runs.values():
            runs[run.output.rpartition("/")[2]].append(run.run)
    return folder, inputs, runs


def _run(spark, folder):
    from pyspark.sql.functions import expr

    names = spark.read.parquet(f"{folder}/names")
    schema = "k long, v long, tags array<string>"
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(f"{folder}/in")

    def each(batch, number):
        batch.where("v > 1").select("k", "v").write.mode("append").parquet(f"{folder}/kept")
        batch.groupBy("k").agg({"v": "sum", "*": "count"}).toDF("k", "v", "n").select("k", "n", "v").write.parquet(
            f"{folder}/sums{number}"
        )
        joined = batch.join(names, batch["k"] == names["key"]).select("v", "title")
        joined.write.parquet(f"{folder}/joined{number}")
        batch.selectExpr("explode(tags) AS tag").distinct().write.parquet(f"{folder}/tags{number}")
        twice = batch.where("k = 1").select("v").union(batch.where("v = 1").select("k"))
        twice.write.parquet(f"{folder}/twice{number}")
        pairs = batch.alias("l").join(batch.alias("r"), expr("l.k = r.k AND l.v < r.v"))
        pairs.selectExpr("l.v AS v", "r.v AS w").write.parquet(f"{folder}/pairs{number}")

    query = source.where(STREAM).writeStream.foreachBatch(each)
    query = query.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", 2)  # the second batch has the log of the first
    joined = source.where(STREAM).join(names, source["k"] == names["key"]).select("k", "v", "title")
    sink = joined.writeStream.partitionBy("k").option("checkpointLocation", f"{folder}/sink_checkpoint")
    sink.trigger(availableNow=True).start(f"{folder}/sink").awaitTermination()
    spark.conf.unset("spark.sql.streaming.fileSink.log.compactInterval")


def defined(batch):
    """By target, each output row with the input rows behind it; rows that equal each other have those of all of them.

    Args:
        batch: ``(file, row), (k, v, tags)`` of the rows that the batch got.
    """
    found = {name: defaultdict(set) for name in COLUMNS}
    groups = defaultdict(list)
    for place, (k, v, tags) in batch:
        groups[k].append((place, v))
        if v is not None and v > 1:
            found["kept"][k, v].add(place)
        for row, (key, title) in enumerate(NAMES):
            if k is not None and k == key:
                found["joined"][v, title] |= {place, ("n.parquet", row)}
                found["sink"][k, v, title] |= {place, ("n.parquet", row)}
        for tag in tags:
            found["tags"][tag,].add(place)
        for other, (key, more, _) in batch:
            if None not in (k, v, more) and k == key and v < more:
                found["pairs"][v, more] |= {place, other}
        for value in ([v] if k == 1 else []) + ([k] if v == 1 else []):
            found["twice"][value,].add(place)
    for k, rows in groups.items():
        values = [v for _, v in rows if v is not None]
        found["sums"][k, len(rows), sum(values) if values else None] = {place for place, _ in rows}
    return found


def _condition(names, values):
    tests = [
        f"{name} IS NULL" if value is None else f"{name} = {value!r}" for name, value in zip(names, values, strict=True)
    ]
    return " AND ".join(tests)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("target", COLUMNS)
def test_each_output_row_is_traced_to_the_rows_of_its_batch(stream, target, number):
    folder, inputs, runs = stream
    files = [f"{file}.parquet" for file in range(2 * number, min(2 * number + 2, FILES))]
    rows = [((file, at), row) for file in files for at, row in enumerate(inputs[file]) if row[1] != 0]
    expected = defined(rows)[target]
    assert expected
    is_one = target in ("kept", "sink")
    name = target if is_one else f"{target}{number}"
    run = sorted(runs[name], key=lambda each: int(each.rpartition("/")[2]))[number if is_one else 0]
    records = govtool.open(str(folder / "store")).records(run=run)
    assert {*map(tuple, zip(*records.arrow().to_pydict().values(), strict=True))} == expected.keys()
    for values, places in expected.items():
        answer = records.where(_condition(COLUMNS[target], values)).go_back_all().answer(1000)
        found = {(row["_file"].rpartition("/")[2], row["_row"]) for group in answer.inputs for row in group.rows}
        assert (found, {group.exactness for group in answer.inputs}) == (places, {"exact"}), values
        assert not answer.against


def test_files_that_no_batch_of_a_sink_logged_are_no_rows_of_it(stream):
    folder, _, runs = stream
    assert (folder / "sink" / "_spark_metadata" / "1.compact").is_file()
    listed = [govtool.open(str(folder / "store")).records(run=run).arrow().num_rows for run in runs["sink"]]
    logged = logged_files(folder / "sink" / "_spark_metadata")
    assert logged == {f"file:{each}" for each in (folder / "sink").rglob("*.parquet")}
    assert sum(listed) == sum(pq.ParquetFile(each.removeprefix("file:")).metadata.num_rows for each in logged)


def test_a_damaged_log_of_a_sink_tells_nothing(tmp_path):
    assert logged_files(tmp_path / "none") is None
    (tmp_path / "0").write_text('v1\n{"path":"file:///a/b%20c","size":1,"modificationTime":2,"action":"add"}')
    (tmp_path / ".0.crc").write_bytes(b"crc")
    assert logged_files(tmp_path) == {"file:/a/b c"}
    (tmp_path / "1.compact").write_text('v1\n{"path":"file:/x","size":1,"modificationTime":2,"action":"add"}')
    assert logged_files(tmp_path) == {"file:/x"}
    (tmp_path / "2").write_text("v2\n")
    assert logged_files(tmp_path) is None
