"""Spark Connect: writes by the plan text that the server explains."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("grpc", reason="pyspark[connect] is not installed: pip install govtool[test]")

JOB = """
import sys
from pyspark.sql import SparkSession, functions as F
folder = sys.argv[1]
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.warehouse.dir", folder + "/warehouse").config("spark.driver.bindAddress", "127.0.0.1")
spark = builder.getOrCreate()
spark.sql("SELECT 1L AS id, 'A@x' AS email UNION ALL SELECT 2L, 'b@y'").write.parquet(folder + "/users")
users = spark.read.parquet(folder + "/users")
users.filter("id > 1").select("id", F.lower("email").alias("mail")).write.mode("overwrite").json(folder + "/out")
users.groupBy("email").count().write.saveAsTable("counts")
spark.sql("INSERT INTO counts SELECT upper(email), id FROM parquet.`" + folder + "/users`")
print(spark.table("counts").count())
try:
    users.select(F.raise_error(F.lit("no"))).write.parquet(folder + "/failed")
except Exception as error:
    print("failed")
"""


@pytest.mark.slow
def test_writes_over_connect(tmp_path):
    from govtool.app.run import environment, read_captured

    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "spool").mkdir()
    done = subprocess.run(
        [sys.executable, str(tmp_path / "job.py"), str(tmp_path)],
        cwd=tmp_path,
        env={**environment(tmp_path / "spool"), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "4\nfailed\n"), done.stderr
    captured = read_captured(tmp_path / "spool")
    data = f"file/{tmp_path}/"
    said = {}
    for derivation in captured.gathered.derivations():
        if derivation.statement.kind in ("alias", "dataset") or not derivation.edges:
            continue
        edges = {
            f"{edge.target_path} <- {edge.source.text.removeprefix(data)} {edge.kind.label}"
            for edge in derivation.edges
            if edge.target_path != "*"
        }
        said[derivation.target.removeprefix(data), derivation.mode] = edges
        assert derivation.statement.how == "plan-text"
    assert said["out", "replace"] == {"id <- users.id identity", "mail <- users.email transformation"}
    assert said["default.counts", "replace"] == {"email <- users.email identity"}
    assert said["default.counts", "append"] == {
        "email <- users.email transformation",
        "count <- users.id identity",
    }
    assert {run.status for run in captured.gathered.runs} == {"complete", "failed"}
    assert captured.warnings == []
