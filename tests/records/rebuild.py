"""A new process: rebuilds the plans of a spool of records in Spark and compares them with recorded results.

    python -m tests.records.rebuild SPOOL RESULTS.json [title …]

RESULTS names for each number of an execution its title and the Arrow file of its result. Prints one JSON line a plan.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from govtool.records.execute import spark as executor
from govtool.records.execute.compare import multiset
from govtool.records.spooled_plans import read_spool
from govtool.records.sql.dialect import NotExact


def outcome(plan, want, run):
    """``ok``, ``wrong``, or ``break`` with the reason."""
    try:
        got = run(plan)
    except NotExact as why:
        return "break", str(why)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {str(error)[:500]}"
    if got.schema.names != want.schema.names:
        return "wrong", f"columns {got.schema.names} instead of {want.schema.names}"
    have, expected = multiset(got), multiset(want)
    if have == expected:
        return "ok", ""
    return "wrong", f"{list((have - expected).items())[:3]} instead of {list((expected - have).items())[:3]}"


def session():
    """A session as plain as they come: everything that matters comes from the record."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "Asia/Tokyo")
    made = builder.config("spark.sql.codegen.wholeStage", "false").getOrCreate()
    made.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    made.conf.set("spark.sql.ansi.enabled", "false")
    made.sparkContext.setLogLevel("OFF")
    return made


def main(spool, results, *titles):
    import pyarrow as pa

    known = json.loads(Path(results).read_text(encoding="utf-8"))
    spark = session()
    for captured in read_spool(Path(spool)):
        title, file = known.get(str(captured.number), (None, None))
        if title is None or (titles and title not in titles):
            continue
        with pa.memory_map(file) as source:
            want = pa.ipc.open_file(source).read_all()
        if captured.plan is None:
            status, why = "break", captured.reason
        else:
            status, why = outcome(captured.plan, want, lambda plan: executor.run(plan, spark).toArrow())
        print(json.dumps({"title": title, "status": status, "why": why}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
