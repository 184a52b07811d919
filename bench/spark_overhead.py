"""What recording costs a Spark job: its actions one by one in one session, and whole jobs.

Actions are the fine measure. One JVM holds three sessions of one application: two that nothing listens to and one that
is recorded. The same action runs in each, in turns, so that what drifts (the compiler, the heap, the machine) drifts
for all three, and every recorded action has a plain one right beside it. What is written down after an action ended is
waited for outside of its time and told apart. Whole jobs are what a user sees: processes, start and end included.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.page import table

ROUNDS = 3
"""Of whole jobs."""
ACTIONS = 12
TURNS = 80
"""Of the three sessions, after some that are not counted."""

_ACTION = """
def act(spark, rows, folder):
    from pyspark.sql import functions as F
    base = spark.range(rows).withColumn("k", F.col("id") % 1000).withColumn("v", F.rand(7))
    (base.withColumn("w", F.sha2(F.col("id").cast("string"), 256)).groupBy("k")
     .agg(F.sum("v").alias("s"), F.max("w").alias("w")).write.mode("overwrite").parquet(folder))
"""

_SESSION = """
import json, sys, time
from pyspark.sql import SparkSession
rows, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "4").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
"""

_JOB = f"""{_SESSION}{_ACTION}
act(spark, 1000, folder + "/warm")
times = []
for i in range(count):
    start = time.perf_counter()
    act(spark, rows, folder + "/out" + str(i % 3))
    times.append(time.perf_counter() - start)
print(json.dumps(times))
"""

_TURNS = f"""{_SESSION}{_ACTION}
from govtool.spark.live.listener import Recorder
from govtool.spark.live.spool import Spool
recorder = Recorder(Spool(sys.argv[4]))
sessions = [("plain", spark.newSession()), ("control", spark.newSession()), ("recorded", spark.newSession())]
recorder.attach(sessions[2][1])
times, after, warm = {{name: [] for name, _ in sessions}}, [], 6
for turn in range(count + warm):
    shift = turn % 3
    for name, session in sessions[shift:] + sessions[:shift]:
        start = time.perf_counter()
        act(session, rows, folder + "/" + name)
        ended = time.perf_counter()
        if not recorder.drain(60) or recorder.lost:
            raise SystemExit("an execution was lost")
        if turn >= warm:
            times[name].append(ended - start)
            if name == "recorded":
                after.append(time.perf_counter() - ended)
print(json.dumps({{"times": times, "after": after}}))
"""


def section(rounds: int = ROUNDS, rows: int = 2_000_000) -> str:
    """Measure, and write the part of the section."""
    turns = _turns(rows)
    times = turns["times"]
    plain = times["plain"]
    compared = []
    for name, label in (("control", "plain again"), ("recorded", "recorded")):
        ratios = [there / here for there, here in zip(times[name], plain, strict=True)]
        low, high = _interval(ratios)
        total = sum(times[name]) / sum(plain)
        compared.append([label, f"**{statistics.median(ratios):.3f}**", f"{low:.3f} to {high:.3f}", f"{total:.3f}"])
    jobs, whole = _jobs(rounds, rows)
    left = statistics.median(turns["after"]) * 1000
    return "\n".join(
        [
            f"One write over {rows:,} rows, {statistics.median(plain):.2f} s plain (median), {TURNS} times in each of",
            "three sessions of one application, in turns. Goal: less than 3%. What is left to write down when an",
            f"action has ended takes {left:.0f} ms (median) of a thread beside the job.",
            "",
            table(["an action", "against plain beside it, median", "95% interval of it", "all actions"], compared),
            "",
            f"Whole jobs of {ACTIONS} such actions as processes, {rounds} rounds in turns, {jobs:.1f} s of actions "
            f"plain (median):",
            "",
            table(["a job", "its actions against plain, median", "lowest to highest", "the process, median"], whole),
            "",
            "A few rounds of processes show differences that are larger than the control's range, and no smaller ones:",
            "the goal is met for certain only where the interval of the actions ends below 1.03.",
        ]
    )


def _interval(values: list[float]) -> tuple[float, float]:
    """The 95% interval of the median, by order statistics."""
    ordered, half = sorted(values), 0.98 * math.sqrt(len(values))
    middle = len(values) / 2
    return ordered[max(0, math.floor(middle - half))], ordered[min(len(values) - 1, math.ceil(middle + half))]


def _turns(rows: int) -> Any:
    with tempfile.TemporaryDirectory() as name:
        spool = Path(name, "spool")
        spool.mkdir()
        stated = _python(_TURNS, Path(name), [str(rows), str(TURNS), f"{name}/data", str(spool)], _plain())
        if not any(spool.iterdir()):
            raise RuntimeError("nothing was recorded")
    return json.loads(stated)


def _jobs(rounds: int, rows: int) -> tuple[float, list[list[str]]]:
    """Seconds of the actions of a plain job, and rows of the table."""
    actions: dict[str, list[float]] = {"plain": [], "control": [], "recorded": []}
    processes: dict[str, list[float]] = {"plain": [], "control": [], "recorded": []}
    for number in range(rounds):
        order = [*actions][number % 3 :] + [*actions][: number % 3]
        for how in order:
            inside, process = _job(how == "recorded", rows)
            actions[how].append(inside)
            processes[how].append(process)
    rows_of = []
    for how, label in (("control", "plain again"), ("recorded", "recorded by `govtool run`")):
        ratios = [there / here for there, here in zip(actions[how], actions["plain"], strict=True)]
        longer = statistics.median(p - q for p, q in zip(processes[how], processes["plain"], strict=True))
        span = f"{min(ratios):.3f} to {max(ratios):.3f}"
        rows_of.append([label, f"{statistics.median(ratios):.3f}", span, f"{longer:+.1f} s"])
    return statistics.median(actions["plain"]), rows_of


def _job(recorded: bool, rows: int) -> tuple[float, float]:
    """Seconds of the actions, and of the process."""
    from govtool.app.runs.job import environment

    with tempfile.TemporaryDirectory() as name:
        spool = Path(name, "spool")
        spool.mkdir()
        start = time.perf_counter()
        around = environment(spool) if recorded else _plain()
        stated = _python(_JOB, Path(name), [str(rows), str(ACTIONS), f"{name}/data"], around)
        took = time.perf_counter() - start
        if recorded and not any(spool.iterdir()):
            raise RuntimeError("nothing was recorded")
    return sum(json.loads(stated)), took


def _plain() -> dict[str, str]:
    return {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}


def _python(text: str, folder: Path, arguments: list[str], environment: dict[str, str]) -> str:
    script = folder / "job.py"
    script.write_text(text)
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise RuntimeError(f"the job failed: {done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1]
