"""CPU that recording a Spark job costs, over all of its processes: a part that is fixed, and a part in proportion.

A job is a sequence of equal writes, with a Python function in each, so that driver, JVM and Python workers all work. It
runs as ``python job.py`` and as ``govtool run -- job.py``, in a session of processes of its own whose orphans come back
to this program: what they took together is exact, whoever outlived whom. Jobs of two sizes separate the two parts:

    recorded - plain = fixed + share x plain

A round holds both sizes, each plain, plain again, and recorded, in an order that moves on from round to round. The
intervals are bootstrap percentiles over rounds. Plain against plain again is what the method itself shows for nothing.

    python -m bench.spark_cost run --state DIR [--rounds 10]      resumable: a round that is there is not run again
    python -m bench.spark_write_cost DIR/writes.json              within one session; the section has it, too
    python -m bench spark-cost --state DIR                        the section of docs/benchmarks.md, from what is there
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.page import table
from bench.spark_write_cost import sentence

ROUNDS = 10
SIZES = (3, 50)
"""Writes in a small job and in a large one: about 20 and 60 seconds of CPU with what a session takes by itself."""
HOWS = ("plain", "again", "recorded")
WRITES = "writes.json"
"""What ``bench.spark_write_cost`` found."""
_DRAWS = 4000
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""

_JOB = """
import json, os, sys
from pyspark.sql import SparkSession, functions as F
count, folder, after = int(sys.argv[1]), sys.argv[2], sys.argv[3]

def taken():
    found, session, tick = {}, os.getsid(0), os.sysconf("SC_CLK_TCK")
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
            is_daemon = b"pyspark.daemon" in open(f"/proc/{name}/cmdline", "rb").read()
        except OSError:
            continue
        if int(fields[3]) == session:
            found[int(name)] = int(fields[1]), sum(map(int, fields[11:15])) / tick, is_daemon
    workers = sum(cpu for parent, cpu, daemon in found.values() if daemon and found.get(parent, (0, 0, False))[2])
    return {"last": sum(cpu for _, cpu, _ in found.values()), "workers": workers}

spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
even = F.udf(lambda value: value % 2, "long")
for number in range(count):
    base = spark.range(60_000).withColumn("k", F.col("id") % 500).withColumn("even", even("id"))
    (base.withColumn("w", F.sha2(F.col("id").cast("string"), 256)).groupBy("k", "even").agg(F.max("w").alias("w"))
     .write.mode("overwrite").parquet(f"{folder}/out{number % 3}"))
with open(after, "w") as file:
    json.dump(taken(), file)
spark.stop()
"""


def main() -> None:
    """The command line of the runs."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark_cost", description=__doc__)
    parser.add_argument("command", choices=["run", "one"])
    parser.add_argument("--state", type=Path)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("job", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.command == "one":
        how, size, folder = arguments.job
        print(json.dumps(_measured(how, int(size), Path(folder))))
        return
    arguments.state.mkdir(parents=True, exist_ok=True)
    for number in range(arguments.rounds):
        _round(number, arguments.state)


def _round(number: int, state: Path) -> None:
    """Run what is not there yet of a round."""
    jobs = [(size, how) for size in SIZES for how in HOWS]
    for size, how in jobs[number % len(jobs) :] + jobs[: number % len(jobs)]:
        file = state / f"{number:02}-{size}-{how}.json"
        if file.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "bench.spark_cost", "one", how, str(size), folder]
            output = _in_session(command)
        file.write_text(output)
        print(file.name, output.strip(), flush=True)


def _in_session(command: list[str]) -> str:
    """The output of a command in a session of processes of its own, which ends with this one."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            output, errors = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise RuntimeError(f"the job failed: {errors[-2000:]}")
    return output


def _measured(how: str, size: int, folder: Path) -> dict[str, float]:
    """CPU seconds of a job: until its last write has ended, and in all. Runs in a process of its own."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    script, after = folder / "job.py", folder / "after"
    script.write_text(_JOB)
    arguments = [str(script), str(size), str(folder / "data"), str(after)]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "GOVTOOL_CACHE": str(folder / "cache")}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[1]), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, *arguments]
    if how == "recorded":
        govtool = [sys.executable, "-m", "govtool"]
        subprocess.run([*govtool, "init"], env=environment, cwd=folder, check=True, capture_output=True)
        command = [*govtool, "run", "--", *command]
    before, own = _children(), _own()
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    while _reaped():
        pass
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    taken = json.loads(after.read_text())
    # PySpark's daemon ignores the end of its workers: their CPU is in nobody's account once they are gone.
    return {"last": taken["last"] - before - own, "all": _children() - before + taken["workers"]}


def _reaped() -> bool:
    """Wait for a process that came back to this one; False if there is none left."""
    try:
        os.wait()
    except ChildProcessError:
        return False
    return True


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _own() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# ---- the section ----------------------------------------------------------------------------------------------------

Rounds = Sequence[Mapping[tuple[int, str], Mapping[str, float]]]


def section(state: Path | None) -> str:
    """The section of the page, from the rounds that are whole.

    Raises:
        SystemExit: There are none.
    """
    rounds = _whole(state) if state is not None else []
    if len(rounds) < 2:
        raise SystemExit("no rounds: python -m bench.spark_cost run --state DIR")
    small, large = ([each[size, "plain"]["all"] for each in rounds] for size in SIZES)
    rows = [_row(rounds, how, label) for how, label in (("again", "plain again"), ("recorded", "`govtool run`"))]
    head = ["against plain", "in proportion", "fixed", "of it after the last write"]
    turns = state / WRITES if state is not None else None
    within = ["", sentence(json.loads(turns.read_text()))] if turns is not None and turns.exists() else []
    return "\n".join(
        [
            "## CPU that recording a Spark job takes",
            "",
            f"Jobs of {SIZES[0]} and {SIZES[1]} writes on local[1], {statistics.median(small):.1f} and "
            f"{statistics.median(large):.1f} s of CPU plain (median), over driver, JVM and Python workers, orphans",
            f"included (`bench/spark_cost.py`); {len(rounds)} interleaved rounds. 95% bootstrap intervals in brackets.",
            "",
            table(head, rows),
            *within,
        ]
    )


def _whole(state: Path) -> list[dict[tuple[int, str], dict[str, float]]]:
    """The rounds of which every job was measured."""
    found: dict[str, dict[tuple[int, str], dict[str, float]]] = {}
    for file in sorted(state.glob("*-*-*.json")):
        number, size, how = file.stem.split("-")
        found.setdefault(number, {})[int(size), how] = json.loads(file.read_text())
    return [each for each in found.values() if len(each) == len(SIZES) * len(HOWS)]


def _row(rounds: Rounds, how: str, label: str) -> list[str]:
    drawn = random.Random(7)
    draws = [_parts([drawn.choice(rounds) for _ in rounds], how) for _ in range(_DRAWS)]
    cells = []
    for number, value in enumerate(_parts(rounds, how)):
        ordered = sorted(draw[number] for draw in draws)
        low, high = ordered[int(0.025 * _DRAWS)], ordered[int(0.975 * _DRAWS)]
        ends = (1 + low, 1 + high, 1 + value) if number == 0 else (low, high, value)
        unit = "" if number == 0 else " s"
        form = "{:.3f}" if number == 0 else "{:+.2f}"
        cells.append(f"**{form.format(ends[2])}**{unit} ({form.format(ends[0])} to {form.format(ends[1])})")
    return [label, *cells]


def _parts(rounds: Rounds, how: str) -> tuple[float, float, float]:
    """The share of a job's own CPU, the fixed seconds, and those of them after its last write."""
    means: dict[tuple[int, str], dict[str, Any]] = {
        key: {name: statistics.fmean(each[key][name] for each in rounds) for name in ("all", "last")}
        for key in rounds[0]
    }
    small, large = SIZES
    more = {size: means[size, how]["all"] - means[size, "plain"]["all"] for size in SIZES}
    plain = {size: means[size, "plain"]["all"] for size in SIZES}
    share = (more[large] - more[small]) / (plain[large] - plain[small])
    late = {key: value["all"] - value["last"] for key, value in means.items()}
    after = statistics.fmean(late[size, how] - late[size, "plain"] for size in SIZES)
    return share, more[small] - share * plain[small], after


if __name__ == "__main__":
    main()
