"""A program that ran in another process, with tasks that failed and were retried, traced from what it saved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import govtool.spark
from govtool.errors import EvidenceError, FormatError

JOB = """
import os
import sys
from operator import add

from pyspark import TaskContext
from pyspark.sql import SparkSession

import govtool.spark

STOP = {"the"}


def clean(word):
    return word.strip(".,").lower()


def words(line):
    if TaskContext.get().attemptNumber() == 0 and "RETRY" in os.environ:
        raise RuntimeError("a task fails at first")
    return [clean(word) for word in line.split()]


def main():
    builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    lc = govtool.spark.lineage_context(session)
    lines = lc.textFile(sys.argv[1] + "/in")
    kept = lines.flatMap(words).filter(lambda word: word not in STOP).map(lambda word: (word, 1))
    counts = kept.reduceByKey(add)
    counts.join(lc.parallelize([("fox", "animal"), ("dog", "animal")])).saveAsTextFile(sys.argv[1] + "/out")
    bound = 1
    counts.filter(lambda pair: pair[1] > bound).saveAsTextFile(sys.argv[1] + "/closure")
    fox = counts.get_lineage().where(lambda pair: pair[0] == "fox").go_back_all()
    modules = session.sparkContext.parallelize(range(8), 4).map(lambda _: "govtool" in sys.modules)
    print(sorted(each.record for each in fox.ids()), fox.exactness, any(modules.collect()))
    lc.save(sys.argv[1] + "/log.json")


if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory, spark):
    """The folder of a job that has run in a process of its own, and what it printed."""
    folder = tmp_path_factory.mktemp("rdd")
    (folder / "in").write_text("The quick fox\njumps over the dog.\nA dog, a fox\n")
    script = folder / "job.py"
    script.write_text(JOB)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "RETRY": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, done.stdout.splitlines()[-1]


def test_tasks_that_are_retried_trace_the_same(job):
    assert job[1] == "[0, 2] exact False"  # and the workers of Python needed nothing of govtool


def test_a_new_process_traces_what_was_written(job, spark):
    folder, _ = job
    lc = govtool.spark.lineage_context(spark)
    assert lc.load(folder / "log.json", [folder / "job.py"]) == [f"{folder}/out"]
    back = lc.get_lineage(f"{folder}/out").where(lambda line: line.startswith("('dog'")).go_back_all()
    assert back.collect() == ["jumps over the dog.", "A dog, a fox", ("dog", "animal")]
    assert (back.exactness, back.reasons) == ("exact", [])
    assert sorted(back.go_next_all().collect()) == ["('dog', (2, 'animal'))", "('fox', (2, 'animal'))"]


def test_a_closure_over_data_is_a_stated_break(job, spark):
    folder, _ = job
    lc = govtool.spark.lineage_context(spark)
    lc.load(folder / "log.json", [folder / "job.py"])
    with pytest.raises(EvidenceError, match="closes over bound") as caught:
        lc.get_lineage(f"{folder}/closure")
    assert "--records=eager" in caught.value.hint


def test_a_function_that_changed_is_a_stated_break(job, spark, tmp_path):
    folder, _ = job
    for changed in (JOB.replace('.strip(".,")', '.strip(".")'), JOB.replace('STOP = {"the"}', 'STOP = {"a"}')):
        (tmp_path / "job.py").write_text(changed)
        lc = govtool.spark.lineage_context(spark)
        assert lc.load(folder / "log.json", [tmp_path / "job.py"]) == []
        with pytest.raises(EvidenceError, match=r"is not in job\.py as it was"):
            lc.get_lineage(f"{folder}/out")


def test_no_code_lies_in_a_log_and_none_is_taken_from_it(job, spark, tmp_path):
    folder, _ = job
    text = (folder / "log.json").read_text()
    assert "strip" not in text
    assert "lambda" not in text
    document = json.loads(text)
    document["nodes"][1] |= {"name": "pipe", "arguments": {"command": {"value": "'touch /tmp/x'"}}}
    (tmp_path / "log.json").write_text(json.dumps(document))
    lc = govtool.spark.lineage_context(spark)
    assert lc.load(tmp_path / "log.json", [folder / "job.py"]) == []
    (tmp_path / "log.json").write_text("[]")
    with pytest.raises(FormatError):
        lc.load(tmp_path / "log.json", [])
