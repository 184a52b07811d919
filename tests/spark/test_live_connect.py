"""Spark Connect: writes by the plan text that the server explains."""

from __future__ import annotations

import subprocess
import sys

import pytest

from govtool.app.records.writes import CONNECT, untraceable

pytest.importorskip("grpc", reason="pyspark[connect] is not installed: pip install govtool[test]")

JOB = """
import sys
from pyspark.sql import SparkSession, functions as F
folder = sys.argv[1]
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2")
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
    from govtool.app.runs.job import environment, read_captured

    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "spool").mkdir()
    done = subprocess.run(
        [sys.executable, str(tmp_path / "job.py"), str(tmp_path)],
        cwd=tmp_path,
        env={**environment(tmp_path / "spool", records=True), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "4\nfailed\n"), done.stderr
    captured = read_captured(tmp_path / "spool")
    data = f"file://{tmp_path}/"
    stated = {}
    for derivation in captured.gathered.derivations():
        if derivation.statement.kind in ("alias", "dataset") or not derivation.edges:
            continue
        edges = {
            f"{edge.target_path} <- {edge.source.text.removeprefix(data)} {edge.kind.label}"
            for edge in derivation.edges
            if edge.target_path != "*"
        }
        stated[derivation.target.removeprefix(data), derivation.mode] = edges
        assert derivation.statement.how == "plan-text"
    assert stated["out", "replace"] == {"id <- users.id identity", "mail <- users.email transformation"}
    assert stated["default.counts", "replace"] == {"email <- users.email identity"}
    assert stated["default.counts", "append"] == {
        "email <- users.email transformation",
        "count <- users.id identity",
    }
    assert {run.status for run in captured.gathered.runs} == {"complete", "failed"}
    complete = {run.id for run in captured.gathered.runs if run.status == "complete" and run.outputs}
    assert {run.run for run in captured.records.runs.values()} == complete
    assert {run.breaks for run in captured.records.runs.values()} == {(CONNECT,)}
    assert sorted(captured.warnings) == sorted(untraceable(run, CONNECT) for run in complete)


SERVED = """
import os, subprocess, sys
from pyspark.sql import SparkSession
folder = sys.argv[1]
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.warehouse.dir", folder + "/warehouse").getOrCreate()
spark.sql("CREATE DATABASE served COMMENT 'people'")
spark.sql("CREATE TABLE served.users (id INT COMMENT 'a key', email STRING) USING parquet")
spark.sql("CREATE VIEW served.mails AS SELECT lower(email) AS mail FROM served.users")
# A client that has a token speaks TLS to all but localhost, which this server does not: that has to end, too.
# What makes a client start a server of its own is not handed on, but the word that lets it in is.
kept = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_") or k.endswith("_TOKEN")}
for address in ("sc://localhost:15002", "sc://127.0.0.1:15002", "sc://127.0.0.1:1"):
    command = [sys.executable, "-m", "govtool", "ingest", "catalog", address, "--store", folder + "/store"]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    print(done.returncode, done.stderr.strip().splitlines()[-2:] if done.returncode else "")
"""


@pytest.mark.long
def test_a_catalog_is_read_over_connect(tmp_path):
    import os
    from pathlib import Path

    import govtool
    from govtool.app.versions.index import open_index
    from govtool.model import ColumnRef
    from govtool.store import Store

    store = Store.init(str(tmp_path / "store"))
    (tmp_path / "served.py").write_text(SERVED)
    root = str(Path(govtool.__file__).parents[1])
    environment = {k: v for k, v in os.environ.items() if k not in ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE")}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "served.py"), str(tmp_path)],
        cwd=tmp_path,
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": root,
             "GOVTOOL_CACHE": str(tmp_path / "cache")},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    *_, first, second, third = done.stdout.strip().splitlines()
    assert first.strip().endswith("0"), done.stdout + done.stderr
    assert second.startswith("4 "), done.stdout
    assert third.startswith("4 "), done.stdout
    assert "Connection refused" in third
    head = store.head()
    assert head is not None
    index = open_index(store, head)
    (mails,) = [d for d in index.datasets() if index.dataset_name(d).endswith("served.mails")]
    mail = index.find(ColumnRef(index.dataset_name(mails), "mail"))
    assert mail is not None
    assert [index.name(index.edge_source[e]).rpartition(".served.")[2] for e in index.in_edges(mail)] == ["users.email"]
