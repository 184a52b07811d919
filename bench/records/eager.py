"""An eager baseline: the ids of records are packed, carried through the job, and collected at its groups.

What a job costs that keeps its lineage itself, beside the same job without: as systems do that write associations
while the job runs. One session, in turns; CPU of all processes, and the bytes that are written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.records.cpu import tree_cpu
from bench.records.data import made
from bench.records.results import Results
from bench.records.workloads import WORKLOADS, Read, opener

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("L2", "L6", "L7")
ROW_BITS = 33


def measure(rows: int, folder: Path, rounds: int, results: Results) -> None:
    """Measure what is missing: an entry a workload."""
    for name in NAMES:
        entry = results.entry(f"eager/{name}/{rows}")
        entry["input bytes"] = made(folder / "data", WORKLOADS[name].reads, rows)
        if len(entry.get("rounds", ())) < rounds:
            print(f"eager/{name}/{rows} …", file=sys.stderr)
            command = [sys.executable, "-m", "bench.records.eager", name, str(folder / "data"), str(rows), str(rounds)]
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"the eager baseline of {name}: {done.stderr[-2000:]}")
            entry["rounds"] = json.loads(done.stdout.splitlines()[-1])
            results.save()


# ---- within the process of the session -------------------------------------------------------------------------------


def _with_ids(read: Read) -> Read:
    """Tables whose rows have their ids: bits of a hash of the file, and the row."""
    return lambda name: read(name).selectExpr(
        "*", f"(xxhash64(_metadata.file_path) << {ROW_BITS}) | _metadata.row_index AS {name}_id"
    )


def _carried(name: str, read: Read) -> DataFrame:
    """A workload whose results have the ids of the rows behind them."""
    from pyspark.sql import functions as F

    views = _with_ids(read)("page_views")
    if name == "L2":
        power = _with_ids(read)("power_users").select("name", "power_users_id")
        return views.select("user", "estimated_revenue", "page_views_id").join(power, views["user"] == power["name"])
    ids = F.collect_list("page_views_id").alias("ids")
    if name == "L6":
        keys = ("user", "query_term", "ip_addr", "timestamp")
        return views.groupBy(*keys).agg(F.sum("timespent").alias("spent"), ids)
    early, late = (F.when(F.col("timestamp") < 43_200, 1), F.when(F.col("timestamp") >= 43_200, 1))
    return views.groupBy("user").agg(F.count(early).alias("morning"), F.count(late).alias("afternoon"), ids)


def turn_about(name: str, data: str, rows: int, rounds: int) -> None:
    """Write the results with and without ids, in turns; the first of each is not counted."""
    from bench.records.job import session

    spark = session(spark_master="local[1]")
    read = opener(spark, data, rows)
    builds = {"plain": lambda: WORKLOADS[name].build(read), "eager": lambda: _carried(name, read)}
    found = []
    for number in range(rounds + 1):
        each: dict[str, Any] = {}
        for kind in ("plain", "eager") if number % 2 else ("eager", "plain"):
            place = f"eager-{kind}"
            cpu, start = tree_cpu(os.getpid()), time.perf_counter()
            builds[kind]().write.mode("overwrite").parquet(place)
            spent = {"wall": time.perf_counter() - start, "cpu": tree_cpu(os.getpid()) - cpu}
            each[kind] = {**spent, "bytes": sum(file.stat().st_size for file in Path(place).glob("*.parquet"))}
        found += [each] if number else []
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    turn_about(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
