"""A job: one workload, its action repeated, as a script of its own, run plain or under ``govtool run --records``.

    python bench/records/job.py WORKLOAD DATA ROWS OUTPUT ACTIONS RESULT

A first, small action warms the JVM and is not counted. The CPU of the counted actions is that of all processes, and
what a recorder still writes down when they ended belongs to it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.records.cpu import tree_cpu
from bench.records.workloads import WORKLOADS, opener

WARM = 20_000
"""Rows of the tables of the first action."""


def main(name: str, data: str, rows: int, output: str, actions: int, result: str) -> None:
    """Run a workload, and write down what its actions cost."""
    spark = session(spark_master="local[1]")  # the other core is for the JVM's own threads, and the recorder's
    build = WORKLOADS[name].build
    build(opener(spark, data, WARM)).write.mode("overwrite").parquet(f"{output}/warm")
    drain()
    cpu, start = tree_cpu(os.getpid()), time.perf_counter()
    for number in range(actions):
        build(opener(spark, data, rows)).write.mode("overwrite").parquet(f"{output}/out{number}")
    wall = time.perf_counter() - start
    drain()
    Path(result).write_text(json.dumps({"wall": wall, "cpu": tree_cpu(os.getpid()) - cpu}))
    spark.stop()


def session(**more: str) -> Any:
    """A quiet session on two cores, with further settings: ``spark_driver_memory`` is ``spark.driver.memory``."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.driver.memory": os.environ.get("BENCH_SPARK_MEMORY", "4g"),
        "spark.log.level": "ERROR",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def drain() -> None:
    """Wait until the recorder, if there is one, has written down what it heard."""
    hook = sys.modules.get("govtool.spark.live.process")
    folder = os.environ.get("GOVTOOL_SPARK_SPOOL")
    if hook is not None and folder and not hook.recorder(folder).drain(120):
        raise SystemExit("an execution was lost")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), sys.argv[6])
