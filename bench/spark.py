"""Spark: how much of the hard set is understood, and what recording a job costs it.

Accuracy: programs of ``fixtures/spark/programs`` of which every output column has exactly the edges that were written
down by hand, from the analyzed plan of a live session and from its event log. Cost: one job, run in turns plain, plain
again (the control) and recorded; the time of its actions as the job itself measures it, and that of the whole process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import programs

ROUNDS = 5
ACTIONS = 12

_JOB = """
import json, sys, time
from pyspark.sql import SparkSession, functions as F
rows, actions, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "4").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
base = spark.range(rows).withColumn("k", F.col("id") % 1000).withColumn("v", F.rand(7))
base.limit(1000).write.mode("overwrite").parquet(folder + "/warm")
spark.read.parquet(folder + "/warm").groupBy("k").agg(F.sum("v")).collect()
times = []
for i in range(actions):
    start = time.perf_counter()
    (base.withColumn("w", F.sha2(F.col("id").cast("string"), 256)).groupBy("k")
     .agg(F.sum("v").alias("s"), F.max("w").alias("w")).write.mode("overwrite").parquet(folder + "/out" + str(i % 3)))
    times.append(time.perf_counter() - start)
print(json.dumps(times))
"""


def section(rounds: int = ROUNDS, rows: int = 2_000_000) -> str:
    """Measure, and return the section of the page."""
    return "\n".join([_accuracy(), "", _overhead(rounds, rows)])


def _session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    (folder / "events").mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.sql.codegen.wholeStage": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("govtool-bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _accuracy() -> str:
    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.spool import Spool

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spool").mkdir()
        session = _session(folder)
        recorder = Recorder(Spool(str(folder / "spool")))
        programs.prepare(session)
        recorder.attach(session)
        heard = programs.run_all(session, recorder, programs.load())
        recorder.finish(60)
        version = session.version
        session.stop()
        sources = {
            "analyzed plan, live": programs.live(folder / "spool"),
            "event log": programs.logged(folder / "events"),
        }
    lines = [
        f"Spark {version}, {len(heard)} programs, "
        f"{sum('spark.sql(' not in each.program.code for each in heard)} of them without SQL text.",
        "",
        "| source | programs, columns right | programs, rows right too | not right |",
        "|---|---|---|---|",
    ]
    for source, executed in sources.items():
        columns, both, wrong = 0, 0, []
        for each in heard:
            derivations = programs.said(executed, each.numbers)
            if programs.differences(each.program, derivations, rows=False):
                wrong.append(each.program.title)
            else:
                columns += 1
                both += not programs.differences(each.program, derivations)
        lines.append(
            f"| {source} | {columns} ({columns / len(heard):.1%}) | {both} ({both / len(heard):.1%})"
            f" | {'; '.join(wrong) or 'none'} |"
        )
    return "\n".join(lines)


def _overhead(rounds: int, rows: int) -> str:
    per_action: dict[str, list[float]] = {"plain": [], "control": [], "recorded": []}
    ratios: dict[str, list[float]] = {"control": [], "recorded": []}
    whole: list[float] = []
    for number in range(rounds):
        order = ["plain", "control", "recorded"]
        order = order[number % 3 :] + order[: number % 3]
        times = {how: _run(how == "recorded", rows) for how in order}
        for how in order:
            per_action[how].append(sum(times[how][0]))
        for how in ("control", "recorded"):
            ratios[how].append(sum(times[how][0]) / sum(times["plain"][0]))
        whole.append(times["recorded"][1] - times["plain"][1])
    load = os.getloadavg()[0]
    length = statistics.median(per_action["plain"])
    return "\n".join(
        [
            f"A job of {ACTIONS} actions, {length:.1f} s of actions plain (median), {rounds} rounds in turns, "
            f"load {load:.1f}.",
            "",
            "| | time of the actions against plain, median | lowest to highest |",
            "|---|---|---|",
            *(
                f"| {name} | {statistics.median(ratios[how]):.3f} | {min(ratios[how]):.3f} to {max(ratios[how]):.3f} |"
                for how, name in (("control", "plain again"), ("recorded", "recorded"))
            ),
            "",
            f"The whole process took {statistics.median(whole):+.1f} s longer (median), start and end included.",
        ]
    )


def _run(recorded: bool, rows: int) -> tuple[list[float], float]:
    """One run: the seconds of each action, and of the process."""
    import time

    from govtool.app.run import environment

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "job.py"
        script.write_text(_JOB)
        spool = folder / "spool"
        spool.mkdir()
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(script), str(rows), str(ACTIONS), str(folder / "data")],
            env=environment(spool) if recorded else {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            check=True,
        )
        took = time.perf_counter() - start
        if recorded and not any(spool.iterdir()):
            raise RuntimeError("nothing was recorded")
    return json.loads(done.stdout.strip().splitlines()[-1]), took
