"""CPU of capture per warm action: one JVM, the same action in turns in plain and in recorded sessions."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.records.results import Results

ROOT = Path(__file__).resolve().parents[2]
SHAPES = ("5 operators", "100 operators", "1,000 operators", "500 withColumn")
SLOW = {"1,000 operators": 10, "500 withColumn": 10}
"""Spark itself takes seconds for these: fewer turns."""
KINDS = ("plain", "control", "lineage", "records")


def measure(results: Results, turns: int) -> None:
    """Measure what is missing: an entry a shape of plan."""
    for shape in SHAPES:
        key, count = f"actions/{shape}", min(turns, SLOW.get(shape, turns))
        if len(results.entry(key).get("plain", ())) < count:
            print(f"{key} …", file=sys.stderr)
            results.entries[key] = _turns(shape, count)
            results.save()


def _turns(shape: str, count: int) -> Any:
    with tempfile.TemporaryDirectory() as name:
        result = Path(name, "result.json")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
        command = [sys.executable, "-m", "bench.records.actions", shape, str(count), name, str(result)]
        done = subprocess.run(command, env=environment, cwd=name, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{shape}: {done.stderr[-2000:]}")
        return json.loads(result.read_text())


# ---- within the process of the sessions ----------------------------------------------------------------------------


def turn_about(shape: str, count: int, folder: str, result: str) -> None:
    """Run the action in each session, in turns, and write down its CPU, that of what follows it included."""
    from bench.records.cpu import process_cpu
    from bench.records.job import session

    spark = session(spark_driver_extraJavaOptions="-Xss64m")  # Spark itself needs it for 1,000 operators
    spark.range(1000).selectExpr("id", "id % 10 AS k", "rand(7) AS v").write.parquet(f"{folder}/input")
    sessions = {kind: spark.newSession() for kind in KINDS}
    recorders = [
        recorder_of(sessions["lineage"], f"{folder}/lineage", ""),
        recorder_of(sessions["records"], f"{folder}/records", f"{folder}/records/private"),
    ]
    own, jvm = os.getpid(), java_of(os.getpid())
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    after: dict[str, list[float]] = {kind: [] for kind in KINDS}
    warm = max(3, count // 3)
    for turn in range(count + warm):
        shift = turn % len(KINDS)
        for kind in KINDS[shift:] + KINDS[:shift]:
            before = process_cpu(own) + process_cpu(jvm)
            act(sessions[kind], shape, folder, kind)
            ended = process_cpu(own) + process_cpu(jvm)
            for recorder in recorders:
                if not recorder.drain(120) or recorder.lost:
                    raise SystemExit("an execution was lost")
            if turn >= warm:
                drained = process_cpu(own) + process_cpu(jvm)
                spent[kind].append(drained - before)
                after[kind].append(drained - ended)
    private = next(Path(folder, "records", "private").iterdir()).read_text().splitlines()
    last = json.loads(private[-1])
    stated = {"bytes": statistics.median(map(len, private)), "break": last.get("break", "")}
    Path(result).write_text(json.dumps({**spent, "after": after, **stated}))


def act(spark: Any, shape: str, folder: str, kind: str) -> None:
    """One action."""
    from pyspark.sql import functions as F

    frame = spark.read.parquet(f"{folder}/input")
    if shape == "500 withColumn":
        for number in range(500):
            frame = frame.withColumn(f"c{number}", F.col("id") + number)
    else:
        steps = int(shape.split()[0].replace(",", "")) - 5
        for number in range(steps):
            frame = frame.where(F.col("id") >= -number) if number % 2 else frame.selectExpr("id", "k", "v")
        frame = frame.groupBy("k").agg(F.sum("v").alias("v"))
    frame.write.mode("overwrite").parquet(f"{folder}/{kind}-out")


def recorder_of(spark: Any, spool: str, private: str) -> Any:
    """A recorder of a session; with a folder for private values exact plans are recorded as well."""
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import RECORDS, Spool

    Path(spool).mkdir(parents=True)
    os.environ[RECORDS] = private
    recorder = Recorder(Spool(spool))
    recorder.attach(spark)
    return recorder


def java_of(parent: int) -> int:
    """The JVM of this process."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(words[1]) == parent and (folder / "comm").read_text().strip() == "java":
                return int(folder.name)
    raise RuntimeError("no JVM")


if __name__ == "__main__":
    turn_about(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
