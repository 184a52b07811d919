"""Replays by a script: the user's edited program over the traced rows, compared with what was written."""

from __future__ import annotations

import json

import pytest
from recorded import shop

import govtool
from govtool.cli.main import main
from govtool.errors import UsageError

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install govtool[spark]")

JOB = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.master("local[1]").getOrCreate()
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
    shop(tmp_path)
    return tmp_path


def script(place, text=JOB, **parts):
    path = place / "edited.py"
    named = {"folder": place, "total": 'F.sum("spent")', "target": f"{place}/report", **parts}
    for name, value in named.items():
        text = text.replace("{" + name + "}", str(value))
    path.write_text(text, encoding="utf-8")
    return path


def test_an_edited_script_changes_the_chosen_rows_and_nothing_is_written(house, capsys):
    before = sorted((file.name, file.stat().st_mtime_ns) for file in house.rglob("*.parquet"))
    path = script(house, total='F.sum("spent") * 2')
    assert main(["replay", "app-1/0", "--script", f"{path} 20", "--where", "land = 'de'", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["recorded"] is True
    assert answer["script"] == [str(path), "20"]
    assert [(row["before"]["total"], row["after"]["total"], row["columns"]) for row in answer["changed"]["rows"]] == [
        (60, 120, ["total"])
    ]
    assert (answer["gone"]["count"], answer["new"]["count"], answer["before"], answer["after"]) == (0, 0, 1, 1)
    assert sorted((file.name, file.stat().st_mtime_ns) for file in house.rglob("*.parquet")) == before


def test_the_program_as_it_was_changes_nothing_and_a_stricter_one_loses_rows(house):
    rows = govtool.open().records("report")
    path = script(house)
    same = rows.replay(script=[str(path), "20"])
    assert (same.gone, same.changed, same.new, same.doubts) == ((), (), (), ())
    assert same.before == same.after == 2
    fewer = rows.where("land = 'fr'").replay(script=[str(path), "30"])
    assert fewer.gone == (("fr", 30, 2),)


def test_a_script_that_reads_something_else_is_refused(house):
    rows = govtool.open().records("report")
    with pytest.raises(UsageError, match="which run app-1/0 did not read"):
        rows.replay(script=[str(script(house, folder="/elsewhere")), "20"])
    reads = 'spark.sql("SELECT * FROM parquet.`{folder}/views/part-0.parquet`")'
    with pytest.raises(UsageError, match=r"the script reads .*part-0\.parquet"):
        rows.replay(script=script(house, JOB.replace('spark.read.parquet("views")', reads)))


def test_mistakes_are_stated(house, capsys):
    rows = govtool.open().records("report")
    with pytest.raises(UsageError, match="no such script"):
        rows.replay(script="gone.py")
    with pytest.raises(UsageError, match="as they are"):
        rows.replay(exclude={"views": "true"}, script=str(script(house)))
    with pytest.raises(UsageError, match="rows of the output"):
        rows.go_back().replay(script=str(script(house)))
    assert main(["replay", "app-1/0", "--script", "edited.py", "--with", "users=x.parquet"]) == 2
    assert main(["replay", "app-1/0", "--script", "edited.py", "--where", "land = 'xx'"]) == 2
    assert main(["replay", "app-1/0", "--script", "'open"]) == 2


def test_a_script_that_fails_or_writes_elsewhere_is_stated(house):
    rows = govtool.open().records("report")
    with pytest.raises(UsageError, match="the script failed: IndexError"):
        rows.replay(script=script(house))
    with pytest.raises(UsageError, match="wrote nothing to"):
        rows.replay(script=[str(script(house, target=f"{house}/other")), "20"])
