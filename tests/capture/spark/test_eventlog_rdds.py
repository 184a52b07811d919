"""What an event log knows of RDDs, and of rows that went through the driver: runs and breaks, never nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spark_logs import ended, event, gathered, started

LOCAL = """== Physical Plan ==
Execute InsertIntoHadoopFsRelationCommand (2)
+- LocalTableScan (1)


(1) LocalTableScan
Output [1]: [a#1]
Arguments: [a#1]

(2) Execute InsertIntoHadoopFsRelationCommand
Input: []
Arguments: file:/out/t, false, Parquet, [path=/out/t], Overwrite, [a]
"""
SCAN = """== Physical Plan ==
Scan parquet (1)


(1) Scan parquet
Output [1]: [a#1]
Location: InMemoryFileIndex [file:/in/t]
ReadSchema: struct<a:int>
"""
WRITER = "org.apache.spark.internal.io.SparkHadoopWriter$.write(SparkHadoopWriter.scala:85)\n"
COLLECT = "org.apache.spark.sql.classic.Dataset.collectToPython(Dataset.scala:2139)\njava.lang.reflect.Method"
SAVE = "org.apache.spark.sql.DataFrameWriter.parquet(DataFrameWriter.scala:383)\njava.lang.reflect.Method"
SQL = "org.apache.spark.sql.classic.SparkSession.sql(SparkSession.scala:567)\njava.lang.reflect.Method"


def job(number: int, *names: str, details: str = "", **properties: str) -> bytes:
    stages = [{"Stage ID": n, "Stage Name": name, "Details": details} for n, name in enumerate(names)]
    return event(
        "SparkListenerJobStart",
        **{"Job ID": number, "Submission Time": 1_600_000_000_000, "Stage Infos": stages, "Properties": properties},
    )


def job_end(number: int, **result: Any) -> bytes:
    return event(
        "SparkListenerJobEnd",
        **{"Job ID": number, "Completion Time": 1_600_000_001_000, "Job Result": result or {"Result": "JobSucceeded"}},
    )


def write(folder: Path, *events: bytes) -> Path:
    log = folder / "app-7"
    start = event("SparkListenerApplicationStart", **{"App ID": "app-7", "App Name": "j", "User": "u"})
    log.write_bytes(b"".join([event("SparkListenerLogStart", **{"Spark Version": "4.3.0"}), start, *events]))
    return log


def test_jobs_of_rdds_that_write_or_hand_rows_on_are_runs_with_a_break(tmp_path: Path) -> None:
    log = write(
        tmp_path,
        job(1, "map at job.py:2", "runJob at SparkHadoopWriter.scala:85", details=WRITER),
        job_end(1),
        job(2, "foreachPartition at /home/u/job.py:9"),
        job_end(2, Result="JobFailed", Exception={"Message": "boom\nat x"}),
        job(3, "foreach at /home/u/job.py:11"),
        job(4, "count at job.py:12"),
        job_end(4),
        job(5, "runJob at SparkHadoopWriter.scala:85", details=WRITER, **{"spark.sql.execution.id": "9"}),
        job_end(5),
    )
    runs = {run.id: run for run in gathered(log).runs}
    assert {name: run.status for name, run in runs.items()} == {
        "app-7/job-1": "complete", "app-7/job-2": "failed", "app-7/job-3": "running",
    }  # fmt: skip
    assert all([each.code for each in run.breaks] == ["break.rdd"] for run in runs.values())
    assert "it writes files" in runs["app-7/job-1"].breaks[0].message
    assert "/home/u/job.py:9" in runs["app-7/job-2"].breaks[0].message
    assert runs["app-7/job-2"].error.startswith("boom")
    assert runs["app-7/job-1"].started is not None


def test_actions_on_rdds_in_a_batch_of_a_stream_are_runs_with_a_break(tmp_path: Path) -> None:
    batch = "\nid = 4b5fee29-214f-4ac5-accf-b7b822d52df0\nrunId = 8c1b5c5e-0b8e-4d5c-9a52-1f0f5f3b7a11\nbatch = 0"
    root = started(9, SCAN).replace(b"save at job.py:1", batch.encode("unicode_escape"))
    within = {"spark.sql.execution.id": "9"}
    log = write(
        tmp_path,
        root,
        job(1, "runJob at SparkHadoopWriter.scala:85", details=SAVE, **within),
        job(2, "call at /py4j/clientserver.py:644", **within),
        job(3, "parquet at NativeMethodAccessorImpl.java:0", **within),
        job(4, "call at /py4j/clientserver.py:644"),
        *(job_end(number) for number in (1, 2, 3, 4)),
        ended(9),
    )
    runs = {run.id: [each.code for each in run.breaks] for run in gathered(log).runs if "job-" in run.id}
    assert runs == {"app-7/job-1": ["break.rdd"], "app-7/job-2": ["break.rdd"]}


def test_rows_of_the_driver_that_a_batch_of_a_stream_writes_are_a_break(tmp_path: Path) -> None:
    batch = "\nid = 4b5fee29-214f-4ac5-accf-b7b822d52df0\nrunId = 8c1b5c5e-0b8e-4d5c-9a52-1f0f5f3b7a11\nbatch = 0"
    events = [started(9, SCAN), ended(9), started(10, LOCAL, root=9), ended(10)]
    events = [each.replace(b"save at job.py:1", batch.encode("unicode_escape")) for each in events]
    runs = {
        run.id: [each.code for each in run.breaks] for run in gathered(write(tmp_path, *events)).runs if run.outputs
    }
    assert runs == {"app-7/10": ["break.driver"]}


def test_the_same_job_twice_and_more_than_are_kept(tmp_path: Path) -> None:
    jobs = [job(n, "foreach at job.py:1") for n in range(1_003)]
    found = gathered(write(tmp_path, *jobs, jobs[0]))
    assert len(found.runs) == 1_000
    assert [note.message for note in found.notes if note.code == "break.rdd"] == [
        "3 more jobs of RDDs write or hand rows on"
    ]


def test_a_job_of_another_shape_is_no_run(tmp_path: Path) -> None:
    shapes = [{"Stage Infos": 7}, {"Stage Infos": [7, {"Stage Name": None}]}, {"Stage Infos": [{"Stage Name": "x"}]}]
    lines = [event("SparkListenerJobStart", **{"Job ID": n, "x": "foreach at ", **s}) for n, s in enumerate(shapes)]
    assert gathered(write(tmp_path, *lines)).runs == []


def breaks(folder: Path, *details: tuple[str, str]) -> list[list[str]]:
    """The breaks of the writes among executions, each with its plan and its call stack."""
    events = []
    for number, (plan, stack) in enumerate(details):
        events += [
            started(number, plan).replace(b'"details":""', b'"details":"' + stack.encode("unicode_escape") + b'"')
        ]
        events += [ended(number)]
    found = gathered(write(folder, *events))
    return [[each.code for each in run.breaks] for run in found.runs if run.outputs]


def test_rows_of_the_driver_after_it_collected_some_are_a_break(tmp_path: Path) -> None:
    assert breaks(tmp_path, (SCAN, COLLECT), (LOCAL, SAVE)) == [["break.driver"]]


def test_so_it_is_with_frames_of_pandas_through_arrow(tmp_path: Path) -> None:
    stack = "org.apache.spark.sql.classic.Dataset.$anonfun$collectAsArrowToPython$1$adapted(Dataset.scala:2241)"
    assert breaks(tmp_path, (SCAN, stack), (LOCAL, SAVE)) == [["break.driver"]]


def test_so_it_is_in_texts_of_an_operator_a_line(tmp_path: Path) -> None:
    arguments = LOCAL.rpartition("Arguments: ")[2].strip()
    command = f"InsertIntoHadoopFsRelationCommand {arguments}"
    plan = f"== Physical Plan ==\nExecute {command}\n+- WriteFiles\n   +- LocalTableScan [a#1]\n"
    assert breaks(tmp_path, (SCAN, COLLECT), (plan, SAVE)) == [["break.driver"]]


def test_rows_of_the_driver_before_that_and_values_of_a_statement_are_none(tmp_path: Path) -> None:
    assert breaks(tmp_path, (LOCAL, SAVE), (SCAN, COLLECT), (LOCAL, SQL)) == [[], []]
