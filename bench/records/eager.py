"""An eager baseline: the ids of records are packed, carried through the job, and collected at its groups.

It measures what a job costs that writes its lineage while it runs, beside the same job without. Both run in one
session, in turns. Counted are the CPU of all processes and the bytes that are written.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.records.cpu import tree_cpu
from bench.records.workloads import WORKLOADS, Read, opener

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW_BITS = 33


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
