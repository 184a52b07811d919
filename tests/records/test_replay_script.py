"""Replays by a script: the user's edited program over the traced rows, compared with what was written."""

from __future__ import annotations

import json
import tempfile

import pyarrow as pa
import pytest
from recorded import shop

import govtool
from govtool.cli.main import main
from govtool.errors import UsageError
from govtool.records.plan import types as t
from govtool.records.replay.process import as_written, is_output
from govtool.spark.live.replay.places import ReplayPlaces

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")

JOB = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
views = spark.read.parquet("views")
users = spark.read.format("parquet").load("file:{folder}/users")
joined = views.join(users, views.user == users.name)
report = joined.groupBy("land").agg(({total}).alias("total"), F.count("*").alias("n"))
report.where("total > " + sys.argv[1]).write.mode("overwrite").parquet("{target}")
spark.stop()
"""


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A recorded report over views and users."""
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    shop(tmp_path)
    return tmp_path


def script(place, text=JOB, **parts):
    path = place / "edited.py"
    named = {"folder": place, "total": 'F.sum("spent")', "target": f"{place}/report", **parts}
    for name, value in named.items():
        text = text.replace("{" + name + "}", str(value))
    path.write_text(text, encoding="utf-8")
    return path


MORE = """
import govtool.spark
from pyspark import SparkContext

govtool.spark.attach(spark, records=True)
land = F.udf(lambda text: text, "string")
again = spark.read.option("path", "{folder}/views/*.parquet").format("parquet").load()
again.select(land("user")).write.option("path", "{folder}/views").mode("overwrite").saveAsTable("d.kept")
spark.sql("INSERT INTO d.other SELECT * FROM d.kept WHERE 1 = 1")
spark.sql("CREATE TABLE d.third USING parquet AS WITH x AS (SELECT * FROM d.kept) SELECT * FROM x")
assert spark.table("d.kept").count() == again.count() == 2, "the rows of de"
report.write.mode("append").insertInto("e.elsewhere")
report.write.format("noop").mode("overwrite").save()
report.coalesce(1).write.mode("overwrite").csv("{folder}/users")
assert spark.read.csv("{folder}/users").count() == 1, "what the script wrote"
"""


def test_an_edited_script_changes_the_chosen_rows_and_nothing_is_written(house, capsys):
    """One run of a program that writes in many ways: over inputs, into tables, by SQL."""
    before = sorted((str(file), file.stat().st_mtime_ns) for file in house.rglob("*.parquet"))
    head, _, tail = JOB.partition("spark.stop()")
    path = script(house, head + MORE + "spark.stop()" + tail, total='F.sum("spent") * 2')
    assert main(["replay", "app-1/0", "--script", f"{path} 20", "--where", "land = 'de'", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["recorded"] is True
    assert answer["script"] == [str(path), "20"]
    assert [(row["before"]["total"], row["after"]["total"], row["columns"]) for row in answer["changed"]["rows"]] == [
        (60, 120, ["total"])
    ]
    assert (answer["gone"]["count"], answer["new"]["count"], answer["before"], answer["after"]) == (0, 0, 1, 1)
    path.unlink()
    left = {file.name for file in house.iterdir()}
    assert left <= {".govtool", "cache", "views", "users", "report", "edited.py", "temporary"}
    assert sorted((str(file), file.stat().st_mtime_ns) for file in house.rglob("*.parquet")) == before
    assert not list((house / "temporary").glob("govtool-replay-*"))


def test_a_stricter_script_loses_rows_and_more_columns_are_named(house):
    rows = govtool.open().records("report")
    text = JOB.replace('F.count("*").alias("n")', 'F.max("page").alias("last")')
    fewer = rows.replay(script=[str(script(house, text)), "30"])
    assert fewer.columns == ("land", "total")
    assert fewer.gone == (("fr", 30),)
    assert (fewer.changed, fewer.new) == ((), ())
    assert fewer.doubts == ("the script writes no column n", "column last is new and is not compared")


@pytest.mark.parametrize("where", [None, "land = 'fr'"])
def test_a_script_that_keeps_more_rows_gets_whole_inputs_or_is_not_certain(house, capsys, where):
    """bob's views are not behind fr, and eve's behind no land."""
    text = JOB.replace("views.user == users.name)", 'views.user == users.name, "left")').replace(
        'report.where("total > " + sys.argv[1])', 'report.where("total > 1")'
    )
    words = ["replay", "app-1/0", "--script", str(script(house, text))]
    code = main([*words, *(["--where", where, "--format", "json"] if where else [])])
    out = capsys.readouterr().out
    if where is None:
        assert (code, "NOT CERTAIN" in out, "not given" in out) == (0, False, False)
        assert "new  NULL  5      2" in out
        assert "0 gone, 0 changed, 1 new" in out
        assert "run again over the whole inputs" in out
    else:
        assert code == 3
        (doubt,) = json.loads(out)["doubts"]
        assert "were not given to it: a condition of the run is gone or another one; a left join is new" in doubt


TRIES = """
import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
views = spark.read.parquet("views")
views.createOrReplaceTempView("v")
found = {}
for text in json.load(open("tries.json")):
    try:
        eval(text)
    except BaseException as error:
        found[text] = type(error).__name__
json.dump(found, open("found.json", "w"))
"""


def test_what_a_script_reads_and_writes_elsewhere_is_refused(house):
    rows = govtool.open().records("report")
    (house / "lines.txt").write_text("a line", encoding="utf-8")
    tries = [
        f"spark.read.parquet('{house}/elsewhere')",
        f"spark.read.parquet('{house}')",
        "spark.read.format('jdbc').option('url', 'jdbc:x').load()",
        "spark.read.jdbc('jdbc:x', 't')",
        "spark.readStream",
        "views.writeStream",
        "views.writeTo('t')",
        f"spark.sparkContext.textFile('{house}/lines.txt')",
        f"views.rdd.saveAsTextFile('{house}/out')",
        f"spark.sql('SELECT * FROM parquet.`{house}/views/part-0.parquet`')",
        f"spark.sql(\"INSERT OVERWRITE DIRECTORY '{house}/out' USING parquet SELECT * FROM v\")",
        f"spark.sql(\"FROM v INSERT OVERWRITE DIRECTORY '{house}/out' USING parquet SELECT * \")",
        f"spark.sql(\"CREATE TABLE t USING parquet LOCATION '{house}/out' AS SELECT * FROM v\")",
        f"spark.sql(\"CREATE TABLE t USING parquet OPTIONS ('path' '{house}/out') AS SELECT * FROM v\")",
        f"spark.sql('INSERT INTO parquet.`{house}/report` SELECT * FROM v')",
        f"spark.sql(\"CREATE TABLE t (n INT) USING parquet LOCATION '{house}/out'\")",
        f"spark.sql(\"CREATE DATABASE d LOCATION '{house}/out'\")",
        f"spark.sql(\"CREATE TEMPORARY VIEW w USING parquet OPTIONS (path '{house}/report')\")",
        f"spark.sql(\"INSERT OVERWRITE DIRECTORY '{house}/out' USING parquet SELECT * FROM {{x}}\", x=views)",
        "spark.sql(\"EXECUTE IMMEDIATE 'CREATE TABLE t AS SELECT 1'\")",
        "spark.sql('SET spark.sql.catalog.lake=x.Lake')",
        f"spark.catalog.createTable('t', '{house}/report', 'parquet')",
    ]
    (house / "tries.json").write_text(json.dumps(tries), encoding="utf-8")
    with pytest.raises(UsageError, match=r"the script reads .*/elsewhere, which run app-1/0 did not read"):
        rows.replay(script=script(house, TRIES))
    found = json.loads((house / "found.json").read_text(encoding="utf-8"))
    assert found == dict.fromkeys(tries, "ReadRefused")
    assert not (house / "out").exists()


def test_mistakes_are_stated(house, capsys):
    rows = govtool.open().records("report")
    with pytest.raises(UsageError, match="no such script"):
        rows.replay(script="gone.py")
    with pytest.raises(UsageError, match="no Python"):
        rows.replay(script=script(house, "1 +"))
    with pytest.raises(UsageError, match="as they are"):
        rows.replay(exclude={"views": "true"}, script=str(script(house)))
    with pytest.raises(UsageError, match="rows of the output"):
        rows.go_back().replay(script=str(script(house)))
    assert main(["replay", "app-1/0", "--script", "edited.py", "--with", "users=x.parquet"]) == 2
    assert main(["replay", "app-1/0", "--script", "edited.py", "--where", "land = 'xx'"]) == 2
    assert main(["replay", "app-1/0", "--script", "'open"]) == 2


def read_at(names, *places):
    inputs = [{"name": name, "files": files, "table": False} for name, files in names.items()]
    found, problem = ReplayPlaces(inputs).inputs_at(places)
    return [one["name"] for one in found], problem


def test_paths_mean_the_inputs_whose_files_they_hold():
    days = {"file:///d/v/day=1": ["file:///d/v/day=1/a"], "file:///d/v/day=2": ["file:///d/v/day=2/b"]}
    assert read_at(days, "/d/v/day=1/") == (["file:///d/v/day=1"], "")
    assert read_at(days, "file:/d/v/day=*") == (list(days), "")
    assert read_at(days, "/d/v") == ([], "/d/v")  # the run read two days of it
    assert read_at(days, "/d") == ([], "/d")
    assert read_at({"file:///d/v": ["file:///d/v/a"], "file:///d/w": ["file:///d/w/b"]}, "/d") == ([], "/d")
    assert read_at(days, "/d/v/day=3") == ([], "/d/v/day=3")
    assert read_at({"file:///d/v": ["file:///d/v/a", "file:///d/v/b"]}, "/d/v/a") == ([], "/d/v/a")  # in part
    assert read_at({"file:///d/a,file:///d/b": ["file:///d/a", "file:///d/b"]}, "/d/{a,b}") == (
        ["file:///d/a,file:///d/b"],
        "",
    )
    versions = {"file:///d/v": ["file:///d/v/a"], "/d/v": ["file:///d/v/a", "file:///d/v/b"]}
    assert read_at(versions, "/d/v") == ([], "/d/v")
    assert read_at({"s3://b/k": ["s3a://b/k/a"]}, "s3a://b/k/") == (["s3://b/k"], "")


def test_places_that_are_written_are_datasets_of_the_graph():
    assert is_output("/d/out", "file:///d/out")
    assert is_output("/d/out/day=1", "file:///d/out")
    assert not is_output("/e/d/out", "file:///d/out")
    assert is_output("s3://b/k", "s3://b/k")
    assert is_output("shop.rich", "shop.rich")
    assert not is_output("other.rich", "shop.rich")


def test_timestamps_within_structs_are_instants():
    kind = t.Struct((t.Field("at", t.TIMESTAMP), t.Field("days", t.Array(t.TIMESTAMP_NTZ))))
    naive = pa.struct([("at", pa.timestamp("us")), ("days", pa.list_(pa.timestamp("ns")))])
    wanted = pa.struct([("at", pa.timestamp("us", "UTC")), ("days", pa.list_(pa.timestamp("us")))])
    assert as_written(naive, kind) == wanted
