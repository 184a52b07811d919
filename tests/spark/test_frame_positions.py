"""Positions of the rows that DataFrames wrote, where the plan alone does not determine them: random choices, clocks, limits."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
import pytest
from recorders import own_recorder

import govtool.spark
from govtool.app.records.frame_positions import _PART, _SORTED_PART
from govtool.app.runs.job import read_captured
from govtool.cli.main import main
from govtool.spark.live.records.eager import EagerWrite
from govtool.spark.live.records.file_numbers import xxhash64

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")

TABLES = {
    "eager_parts": "PARTITIONED BY (k)",
    "eager_buckets": "CLUSTERED BY (k) INTO 2 BUCKETS",
    "eager_plain": "",
    "eager_both": "PARTITIONED BY (k) CLUSTERED BY (id) INTO 3 BUCKETS",
}
"""Tables by their layouts."""
SORTED = ("eager_sorted",)
BY_PLAN = {"eager_sql": "spark.sql", "eager_second": "writeTo(…).create"}
"""Tables that are written in ways of which no positions are kept."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings with which small queries are not compiled, which would take most of their time."""
PARTED = {
    "parted": (["id", "k"], ["k"]),
    "parted text": (
        ["id", "case id % 5 when 0 then null when 1 then '' when 2 then 'a/b=é %' else 'x' end as k"],
        ["k"],
    ),
    "parted twice": (
        ["id", "cast(id % 2 as string) as j", "date_add(date'2026-11-24', cast(k as int)) as k"],
        ["K", "j"],
    ),
}
"""Columns and partitions of writes."""
LANDS = [(0, "fr"), (1, "de"), (1, "de"), (7, "zz")]


@contextmanager
def lost_cache(spark):
    """Lose all cached rows between the evaluation of a query and its write, as with their executor."""
    prepare = EagerWrite.prepare

    def prepared(self, settings):
        spark.catalog.clearCache()
        prepare(self, settings)

    EagerWrite.prepare = prepared
    try:
        yield
    finally:
        EagerWrite.prepare = prepare


@pytest.fixture(scope="module")
def job(spark, tmp_path_factory):
    """The folder of a job whose writes kept positions, and what was noted of them."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    folder = tmp_path_factory.mktemp("positions of rows")
    kept = spark.sparkContext._jsc.getPersistentRDDs().size()  # other tests share the session
    spark.range(0, 60, 1, 3).selectExpr(
        "id", "id % 4 as k", "if(id % 7 = 0, null, concat('n', id % 5)) as name"
    ).write.parquet(f"{folder}/rows é")
    same = spark.range(0, 40).selectExpr("id % 2 as v")
    same.coalesce(1).write.parquet(f"{folder}/same")
    for name, layout in TABLES.items():
        spark.sql(f"CREATE TABLE {name} (id LONG, name STRING, k LONG) USING parquet {layout}")
    assert main(["init", "--store", str(folder / "store")]) == 0
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    with own_recorder():
        capture = govtool.spark.attach(
            spark, source="run:eager", store=str(folder / "store"), spool=str(folder / "spool"), records="eager"
        )
        try:
            rows, same = spark.read.parquet(f"{folder}/rows é"), spark.read.parquet(f"{folder}/same")
            lands = spark.createDataFrame(LANDS, "key long, land string")
            some = rows.where(F.rand(5) < 0.6)
            bound = "!"
            mark = F.udf(lambda text: (text or "") + bound)
            writes = {
                "picked": same.where(F.rand() < 0.5).withColumn("r", F.rand()),
                "groups": some.groupBy("name").agg(F.collect_list("id").alias("ids")),
                "twice": some.groupBy("k", "name").agg(F.collect_list("id").alias("i")).groupBy("k").agg(
                    F.flatten(F.collect_list("i")).alias("ids")
                ),
                "pairs": some.alias("a").join(some.alias("b"), F.expr("a.k = b.k and a.id < b.id")).selectExpr(
                    "a.id as x", "b.id as y", "array(a.id, b.id) as ids"
                ),
                "any": rows.select("id", "name").limit(7),
                "first": rows.dropDuplicates(["k"]),
                "windows": some.select("id", F.collect_list("id").over(Window.partitionBy("k")).alias("ids")),
                "timed": rows.select("id", F.current_timestamp().alias("t"), mark("name").alias("marked")),
                "lands": rows.join(lands, rows.k == lands.key, "left").select("id", "land", F.expr("uuid()").alias("u")),
            }  # fmt: skip
            for name, frame in writes.items():
                frame.write.parquet(f"{folder}/{name}")
            with lost_cache(spark):
                writes["picked"].write.parquet(f"{folder}/again")
            some.join(lands, some.k == lands.key, "left_semi").write.parquet(f"{folder}/semi")
            for name, (columns, by) in PARTED.items():
                some.selectExpr(*columns, "rand() as r").write.partitionBy(*by).parquet(f"{folder}/{name}")
            some.selectExpr("id", "if(id % 3 = 0, null, k) as k").write.partitionBy("k").parquet(f"{folder}/swapped")
            some.select("id", "k").write.partitionBy("k").option("maxRecordsPerFile", 2).json(f"{folder}/parted json")
            some.select("id", "k").write.bucketBy(3, "k").sortBy("id").saveAsTable("eager_sorted")
            for name in TABLES:
                some.select("id", "name", "k").write.insertInto(name)
            some.createOrReplaceTempView("some")
            spark.sql("CREATE TABLE eager_sql USING parquet AS SELECT id FROM some")
            spark.sql("INSERT INTO eager_sql SELECT id FROM VALUES (1L) AS t(id)")  # exact by its plan
            some.writeTo("eager_second").using("parquet").create()
            cached = some.cache()
            cached.write.parquet(f"{folder}/cached")
            cached.unpersist()
            rows.where("id = 3").write.parquet(f"{folder}/lazy")
            spark.read.parquet(f"{folder}/groups").select("name").write.parquet(f"{folder}/names")
            captured = read_captured(folder / "spool", None)
            assert capture.commit(identify=0) is not None
        finally:
            capture._recorder.replay.eager = False
            for name in INTERPRETED:
                spark.conf.unset(name)
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= kept
    yield folder, captured
    for name in (*TABLES, *BY_PLAN, *SORTED):
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def trace(job, capsys):
    """Runs a trace; returns the exit code and the answer."""
    folder = job[0]

    def run(way, name, where, *words):
        capsys.readouterr()
        words = ["trace", way, name if "." in name else str(folder / name), "--where", where, *words]
        code = main([*words, "--store", str(folder / "store"), "--format", "json"])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out.startswith("{") else err

    return run


def _rows(answer, dataset):
    return [row for each in answer["inputs"] if each["dataset"].endswith(dataset) for row in each["rows"]]


def _file(row):
    return pq.ParquetFile(unquote(urlparse(row["_file"]).path)).read().to_pylist()


@pytest.mark.parametrize(("name", "by"), [("groups", "name"), ("twice", "k"), ("pairs", "x y"), ("windows", "id")])
def test_every_result_comes_from_the_rows_that_it_collected(job, trace, name, by):
    written = pq.read_table(job[0] / name).to_pylist()
    assert len(written) > 3
    for row in (written[0], written[-1]):
        where = " and ".join(f"{each} <=> {row[each]!r}".replace("None", "null") for each in by.split())
        code, answer = trace("back", name, where, "--show", "1000")
        found = {each["id"] for each in _rows(answer, "rows é")}
        assert (code, answer["engine"], found) == (0, "kept positions", set(row["ids"]))
        assert {each["exactness"] for each in answer["inputs"]} == {"exact"}


def test_rows_that_equal_each_other_are_distinguished(job, trace):
    """Half of the rows were chosen by chance; all have one of two values, and no plan knows which were chosen."""
    written = pq.read_table(job[0] / "picked").to_pylist()
    code, answer = trace("back", "picked", "r < 2")
    found = _rows(answer, "same")
    assert (code, len(found), len({row["_row"] for row in found})) == (0, len(written), len(written))
    assert Counter(row["v"] for row in found) == Counter(row["v"] for row in written)
    (one,) = [row for row in written if row["r"] == min(each["r"] for each in written)]
    code, answer = trace("back", "picked", f"r = {one['r']!r}")
    (row,) = _rows(answer, "same")
    assert _file(row)[row["_row"]] == {"v": one["v"]}


@pytest.mark.parametrize("name", ["any", "first", "timed"])
def test_a_row_that_was_chosen_is_the_one(job, trace, name):
    written = pq.read_table(job[0] / name).to_pylist()
    code, answer = trace("back", name, "id >= 0", "--show", "1000")
    assert (code, {row["id"] for row in _rows(answer, "rows é")}) == (0, {row["id"] for row in written})
    code, answer = trace("back", name, f"id = {written[0]['id']}")
    (row,) = {row["_id"]: row for row in _rows(answer, "rows é")}.values()
    assert (code, _file(row)[row["_row"]]["id"]) == (0, written[0]["id"])


def test_rows_of_the_driver_have_their_place(trace):
    code, answer = trace("back", "lands", "id = 5")
    (driver,) = [each for each in answer["inputs"] if each["dataset"].startswith("rows-")]
    assert (code, [row["_row"] for row in driver["rows"]], driver["exactness"]) in [
        (0, [n], "exact") for n in (1, 2)
    ] + [(0, [1, 2], "exact")]
    assert [row["id"] for row in _rows(answer, "rows é")] == [5]
    code, answer = trace("back", "lands", "id = 3")
    assert [each["count"] for each in answer["inputs"] if each["dataset"].startswith("rows-")] in ([], [0])


def test_the_way_on_and_through_two_runs(job, trace):
    written = pq.read_table(job[0] / "groups").to_pylist()
    one = next(row for row in written if row["name"] == "n1")
    code, answer = trace("forward", "rows é", f"id = {one['ids'][0]}", "--run", _run(trace, "groups"))
    (group,) = answer["outputs"]
    assert (code, [row["ids"] for row in group["rows"]], group["exactness"]) == (0, [one["ids"]], "exact")
    code, answer = trace("back", "names", "name = 'n1'", "--all-runs")
    (hop,) = answer["hops"]
    assert (code, {row["id"] for row in _rows(hop, "rows é")}) == (0, set(one["ids"]))


def _run(trace, name):
    return trace("back", name, "true")[1]["run"]


def test_step_stops_at_the_groups(trace):
    code, answer = trace("back", "twice", "k = 1", "--step")
    assert (code, [step["operator"] for step in answer["steps"]], answer["inputs"]) == (0, ["output"], [])
    code, answer = trace("back", "twice", "k = 1")
    steps = [(step["operator"], step["exactness"]) for step in answer["steps"]]
    assert steps == [("output", "exact"), ("kept positions", "exact"), ("aggregate", "exact"), ("aggregate", "exact")]


def test_what_is_written_is_what_would_be(job, spark):
    """No choice by chance is in these: as they are without positions."""
    folder = job[0]
    rows = spark.read.parquet(f"{folder}/rows é")
    expected = Counter((row.id, f"{row.name or ''}!") for row in rows.collect())
    written = pq.read_table(folder / "timed").to_pylist()
    assert Counter((row["id"], row["marked"]) for row in written) == expected
    assert pq.read_table(folder / "timed").column_names == ["id", "t", "marked"]
    assert len(list((folder / "timed").glob("part-*"))) == rows.rdd.getNumPartitions()


def test_what_cannot_carry_ids_is_written_and_named(job, spark_home):
    folder, captured = job
    reasons = {
        "again": "Spark may have evaluated some rows again",
        "semi": "a join of type LeftSemi cannot carry the ids of records",
        "swapped": "Spark swaps rows where a partition is NULL",
        "parted json": "do not have the rows of the tasks",
        "eager_sorted": "sortBy sorts the rows of a bucket again",
        "cached": "it reads cached rows",
    }
    for name, reason in reasons.items():
        run = next(run.run for run in captured.records.runs.values() if run.output.endswith((f"/{name}", f".{name}")))
        assert any(run in warning and reason in warning for warning in captured.warnings), captured.warnings
        assert list(_place(folder, spark_home, name).rglob("part-*"))
    for name in TABLES:  # names of files say that rows were sorted, too
        files = list(_place(folder, spark_home, name).rglob("part-*"))
        assert files
        assert all(bool(_PART.match(file.name)) is (name == "eager_plain") for file in files)
        assert all(bool(_SORTED_PART.match(file.name)) is (name != "eager_plain") for file in files)
    kept = {run.output.rpartition("/")[2] for run in captured.records.runs.values() if run.positions}
    assert kept.isdisjoint({*reasons, "lazy", "names"})
    assert len(kept) == len(captured.costs) == 16
    assert "pairs in" in captured.costs[0]


def test_show_has_what_the_positions_of_a_run_cost(job, capsys):
    folder, captured = job
    for name, run in captured.records.runs.items():
        assert main(["show", name, "--store", str(folder / "store"), "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)["run"].get("positions")
        assert (found is not None) is bool(run.positions)
        if found is not None:
            line = (
                f"positions of {name}: {found['pairs']:,} pairs in {found['bytes']:,} bytes; the query ran with them for "
                f"{found['seconds']} s, and its rows were then written in {found['write_seconds']} s"
            )
            assert line in captured.costs


def test_statements_and_the_second_writer_are_named_as_traced_by_their_plans(job):
    captured = job[1]
    for name, way in BY_PLAN.items():
        runs = [run.run for run in captured.records.runs.values() if run.output.endswith(f".{name}")]
        found = [warning for warning in captured.warnings if way in warning and "by its plan" in warning]
        assert len(found) == 1, captured.warnings
        assert runs[0] in found[0]
        assert "not deterministic" in found[0]


def _place(folder, spark_home, name):
    return spark_home / "warehouse" / name if name.startswith("eager_") else folder / name


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long) if name in ("parted", "eager_parts", "eager_buckets") else name
        for name in (*PARTED, *TABLES)
        if name != "eager_plain"
    ],
)
def test_rows_of_partitions_and_buckets_have_their_places(job, trace, spark_home, name):
    folder, captured = job
    (run,) = (one for one in captured.records.runs.values() if one.output.endswith((f"/{name}", f".{name}")))
    assert run.positions
    files = sorted(file for file in _place(folder, spark_home, name).rglob("part-*"))
    assert len(files) > 3
    place = str(folder / name) if name in PARTED else f"default.{name}"
    rows = [row["id"] for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    assert len(rows) > 20
    for number in rows:
        code, answer = trace("back", place, f"id = {number}", "--run", run.run)
        assert code == 0, answer
        assert [row["id"] for row in _rows(answer, "rows é")] == [number]


def test_rows_of_a_plain_table_have_their_places(job, trace, spark_home):
    run = next(r.run for r in job[1].records.runs.values() if r.output.endswith("eager_plain"))
    written = pq.read_table(spark_home / "warehouse" / "eager_plain").to_pylist()
    code, answer = trace("back", "default.eager_plain", f"id = {written[-1]['id']}", "--run", run)
    assert (code, [row["id"] for row in _rows(answer, "rows é")]) == (0, [written[-1]["id"]])


def test_numbers_of_files_are_those_of_spark(spark):
    for text in ("", "file:/a b/é", "x" * 31, "x" * 32, "file:/tmp/part-00000-0123456789.c000.snappy.parquet" * 3):
        (row,) = spark.range(1).selectExpr(f"xxhash64('{text}', 3) AS v").collect()
        value = xxhash64((3).to_bytes(4, "little"), xxhash64(text.encode(), 42))
        assert value == row.v % (1 << 64)


def test_a_file_that_changed_is_refused(job, trace):
    """Last: the file is not what it was any more."""
    first = sorted((job[0] / "rows é").glob("part-*"))[0]
    lost = {row["id"] for row in pq.ParquetFile(first).read().to_pylist()}
    first.unlink()
    code, answer = trace("back", "timed", "id >= 0", "--show", "1000")
    assert (code, {row["id"] for row in _rows(answer, "rows é")}) == (3, set(range(60)) - lost)
    assert {each["exactness"] for each in answer["inputs"]} == {"incomplete"}
