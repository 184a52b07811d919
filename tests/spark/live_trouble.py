"""A job whose records are hindered in every way: what it prints and how it ends must not change."""

from __future__ import annotations

import os
import resource
import shutil
import sys

from pyspark.sql import SparkSession

how = sys.argv[1]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
spool = os.environ.get("GOVTOOL_SPARK_SPOOL", "")
print(spark.range(5).filter("id > 2").count())
if how == "trouble":
    from govtool.spark.live import listener
    from govtool.spark.live.plans import catalyst

    def fail(*_: object) -> None:
        """What a listener may do at its worst."""
        raise RuntimeError("no")

    kept, catalyst.captured = catalyst.captured, fail
    print(spark.range(5).selectExpr("sum(id) AS s").collect()[0].s)
    catalyst.captured = kept
    heard, listener.Listener.onSuccess = listener.Listener.onSuccess, fail
    print(spark.range(5).selectExpr("max(id) AS m").collect()[0].m)
    listener.Listener.onSuccess = heard
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(30000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))  # the disk is full
    print(spark.range(5).selectExpr("min(id) AS m").collect()[0].m)
    shutil.rmtree(spool)
    print(spark.range(7).count())
else:
    for value in (10, 4, 0, 7):
        print(spark.range(value).count() if value == 7 else value)
spark.stop()
sys.exit(7)
