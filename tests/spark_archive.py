"""An archive of the classes that Spark's driver loads: with it, a JVM of the tests takes half the CPU to start.

    python tests/spark_archive.py      makes it under build/, once for a Java and a Spark

It is a dynamic archive of Java's class-data sharing (JEP 350). A JVM for which it does not fit, because its class path
is another one, starts as without it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).parents[1]
# Sessions of tests are short: what the JVM's optimizing compiler and its collector's threads cost, they never earn back.
# Without that compiler a JVM keeps 48 MB for compiled code, too little for a session of Spark with Delta Lake.
SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

_JOB = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession, functions as F

folder = Path(sys.argv[1])
settings = {
    "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.sql.warehouse.dir": folder / "warehouse",
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": folder,
}
builder = SparkSession.builder.master("local[1]")
for name, value in settings.items():
    builder.config(name, str(value))
spark = builder.getOrCreate()
rows = spark.range(100).withColumn("k", F.col("id") % 7).withColumn("s", F.concat(F.lit("a"), "id"))
rows.createOrReplaceTempView("v")
for kind in ("parquet", "csv", "json", "orc"):
    rows.write.format(kind).save(str(folder / kind))
    read = spark.read.format(kind).schema(rows.schema).load(str(folder / kind))
    read.join(rows, "k").groupBy("k").agg(F.sum("k"), F.collect_list("k")).collect()
spark.sql("CREATE TABLE t USING parquet AS SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) AS n, s FROM v")
spark.sql("INSERT INTO t SELECT DISTINCT k, 1, s FROM v WHERE id IN (SELECT n FROM t) UNION SELECT k, id, s FROM v LIMIT 3")
spark.sql("SELECT k, count(DISTINCT s), grouping(k) FROM t GROUP BY CUBE (k)").toPandas()
rows.select(F.udf(lambda number: number, "long")("id")).collect()
pairs = spark.sparkContext.parallelize(range(10), 2).map(lambda number: (number % 2, number))
pairs.reduceByKey(lambda one, other: one + other).collect()
stream = spark.readStream.schema(rows.schema).parquet(str(folder / "parquet")).writeStream
stream = stream.foreachBatch(lambda batch, number: batch.count()).trigger(availableNow=True)
stream.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
spark.createDataFrame([(1, "a")], "a int, b string").explain("formatted")
spark.stop()
"""


def options() -> str:
    """Options for the JVMs of tests."""
    found = place()
    if found is None or not found.exists():
        return SHORT
    return f"{SHORT} -Xlog:disable -XX:SharedArchiveFile={found}"


def place() -> Path | None:
    """Where the archive for this Java and this Spark is, or will be; None where one of them is missing."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    spark = importlib.util.find_spec("pyspark")
    if java is None or spark is None or spark.origin is None:
        return None
    program, package = Path(java).resolve(), Path(spark.origin).resolve().parent
    facts = [f"{program}:{program.stat().st_mtime_ns}:{package}", _JOB, SHORT]
    facts += sorted(f"{jar.name}:{jar.stat().st_size}" for jar in (package / "jars").glob("*.jar"))
    return _ROOT / "build" / f"spark-{hashlib.sha256(' '.join(facts).encode()).hexdigest()[:16]}.jsa"


def make() -> None:
    """Run a job that takes many ways through Spark, and keep the classes that it loaded."""
    archive = place()
    if archive is None or archive.exists() or " " in str(archive):
        return
    archive.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        part = Path(folder, "classes.jsa")
        environment = {
            **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
            "SPARK_LAUNCHER_OPTS": SHORT, "SPARK_SUBMIT_OPTS": f"{SHORT} -Xlog:disable -XX:ArchiveClassesAtExit={part}",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", _JOB, folder],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0 and part.exists():
            part.replace(archive)
        else:
            print(f"no archive of Spark's classes, the tests take longer: {done.stderr[-2000:]}", file=sys.stderr)


if __name__ == "__main__":
    make()
