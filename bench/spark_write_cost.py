"""CPU that recording adds to one write of a Spark job, within one session: writes with and without it, in turn.

Two runs of the same job differ by more than recording costs: each time, the JVM compiles and collects garbage in other
places. Here the recorder's listener is taken off a session and put back, block by block, and the CPU of all processes
of the job is read between the blocks. A turn is three blocks in random order: plain, plain again, and recorded. What
happens once a session (its start, the commit at its end) is not in it: see ``bench/spark_cost.py``.

    python -m bench.spark_write_cost FILE [--turns 40]      writes FILE, a JSON list of turns
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

TURNS = 40
BLOCK = 4
"""Writes in a block."""
_WARM = 40
"""Writes before the first block."""
_DRAWS = 4000

_JOB = """
import json, os, random, sys, time
from pyspark.sql import SparkSession, functions as F
turns, block, warm, folder, out = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
even = F.udf(lambda value: value % 2, "long")

def write(number):
    base = spark.range(60_000).withColumn("k", F.col("id") % 500).withColumn("even", even("id"))
    (base.withColumn("w", F.sha2(F.col("id").cast("string"), 256)).groupBy("k", "even").agg(F.max("w").alias("w"))
     .write.mode("overwrite").parquet(f"{folder}/out{number % 3}"))

def taken():
    found = 0.0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(name)) == os.getsid(0):
                found += time.clock_gettime((~int(name) << 3) | 2)  # the clock of a process, all its threads
        except OSError:
            continue
    return found

from govtool.spark.live import process
manager = spark._jsparkSession.listenerManager()
ours = next(each for each in manager.listListeners() if each.toString() == "govtool")
is_on = True

def block_of(recorded):
    global is_on
    if recorded != is_on:
        manager.register(ours) if recorded else manager.unregister(ours)
        is_on = recorded
    settled()
    before = taken()
    for number in range(block):
        write(number)
    settled()
    return (taken() - before) / block

def settled():
    if not process._recorder.drain(60):
        raise SystemExit("the recorder did not come to rest")

for number in range(warm):
    write(number)
found, drawn = [], random.Random(7)
for _ in range(turns):
    turn = {}
    for how in drawn.sample(["plain", "again", "recorded"], 3):
        turn[how] = block_of(how == "recorded")
    found.append(turn)
block_of(True)
with open(out, "w") as file:
    json.dump(found, file)
spark.stop()
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark_write_cost", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--turns", type=int, default=TURNS)
    arguments = parser.parse_args()
    arguments.file.write_text(json.dumps(_measured(arguments.turns)))
    print(sentence(json.loads(arguments.file.read_text())))


def _measured(turns: int) -> list[dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        script, out = Path(folder, "job.py"), Path(folder, "turns.json")
        script.write_text(_JOB)
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "GOVTOOL_CACHE": f"{folder}/cache"}
        environment |= {"PYTHONPATH": str(Path(__file__).parents[1]), "PYSPARK_PYTHON": sys.executable}
        words = [str(script), str(turns), str(BLOCK), str(_WARM), f"{folder}/data", str(out)]
        for command in (["init"], ["run", "--", sys.executable, *words]):
            subprocess.run(
                [sys.executable, "-m", "govtool", *command],
                env=environment, cwd=folder, check=True, capture_output=True, start_new_session=True,
            )  # fmt: skip
        found: list[dict[str, float]] = json.loads(out.read_text())
        return found


def sentence(turns: Sequence[Mapping[str, float]]) -> str:
    """What the turns say, for the page."""
    plain = statistics.fmean(turn["plain"] for turn in turns)
    more = {how: _interval([turn[how] - turn["plain"] for turn in turns]) for how in ("again", "recorded")}
    ms = {how: [1000 * each for each in ends] for how, ends in more.items()}
    low, middle, high = ms["recorded"]
    return (
        f"Within one session, the recorder taken off and put back in turn ({len(turns)} turns of {BLOCK} writes each\n"
        f"way, `bench/spark_write_cost.py`): a write of {plain * 1000:.0f} ms takes **{middle:+.1f}** ms more when it\n"
        f"is recorded ({low:+.1f} to {high:+.1f}), that is {middle / 1000 / plain:.2%}; plain against plain\n"
        f"{ms['again'][1]:+.1f} ms ({ms['again'][0]:+.1f} to {ms['again'][2]:+.1f})."
    )


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, between the ends of its 95% bootstrap interval."""
    drawn = random.Random(7)
    means = sorted(statistics.fmean(drawn.choices(values, k=len(values))) for _ in range(_DRAWS))
    return means[int(0.025 * _DRAWS)], statistics.fmean(values), means[int(0.975 * _DRAWS)]


if __name__ == "__main__":
    main()
