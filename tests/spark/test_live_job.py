"""`govtool run` on a real job: what its listener, its event log and the truth say of it agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import govtool
from govtool.app.runs.job import read_captured

ROOT = Path(__file__).parents[2]
JOB = ROOT / "fixtures" / "spark" / "jobs" / "shop.py"

COLUMNS = {
    "raw/users": {"id": set(), "email": set(), "country": set()},
    "raw/orders": {"id": set(), "user": set(), "amount": set(), "tags": set()},
    "stage/users": {
        "id": {"raw/users.id identity"},
        "email": {"raw/users.email transformation"},
        "country": {"raw/users.country identity"},
    },
    "default.totals": {
        "user": {"raw/orders.user identity"},
        "total": {"raw/orders.amount aggregation"},
        "n": set(),
    },
    "default.best": {
        "email": {"stage/users.email identity", "stage/users.email transformation"},
        "total": {"default.totals.total identity"},
    },
    "out/loud": {"email": {"default.best.email transformation"}, "total": {"default.best.total identity"}},
    "out/domains": {"id": {"stage/users.id identity"}, "domain": {"stage/users.email opaque"}},
    "out/ranked": {
        "id": {"raw/orders.id identity"},
        "twice": {"raw/orders.amount opaque"},
        "nth": {"raw/orders.amount window", "raw/orders.user window"},
    },
    "out/tags": {"id": {"raw/orders.id identity"}, "tag": {"raw/orders.tags transformation"}},
    "out/names": {
        "id": {"raw/users.id identity", "stage/users.id identity"},
        "name": {"raw/users.country identity", "stage/users.email identity"},
    },
    "out/sizes": {
        "id": {"raw/orders.user transformation", "stage/users.id transformation"},
        "country": {"stage/users.country identity"},
        "size": {"raw/orders.amount conditional"},
    },
    "out/cents": {"id": {"raw/orders.id identity"}, "cents": {"raw/orders.amount transformation"}},
    "out/batches": {
        "id": {"raw/orders.id identity"},
        "cents": {"raw/orders.amount transformation"},
        "batch": set(),
    },
    "out/rdd": {
        name: {f"raw/orders.{source} opaque" for source in ("id", "user", "amount", "tags")}
        for name in ("id", "amount")
    },
    "out/most": {"m": {"out/loud.total aggregation"}},
}
"""By hand: what flows into each column, views seen through."""

ROWS = {"raw/users": 3, "raw/orders": 3, "stage/users": 3, "default.totals": 2, "out/loud": 2, "out/domains": 3,
        "out/ranked": 3, "out/tags": 3, "out/names": 6, "out/sizes": 4, "out/batches": 2, "out/rdd": 3, "out/most": 1}  # fmt: skip


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The job, run once under `govtool run`: its process, its folder."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "events").mkdir()
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    govtool = [sys.executable, "-c", "import sys; from govtool.cli.main import main; sys.exit(main())"]
    subprocess.run([*govtool, "init", "-q"], cwd=folder, check=True, env=environment)
    done = subprocess.run(
        [*govtool, "run", "--spool", str(folder / "spool"), "--", str(JOB), str(folder / "data"), str(folder / "events")],
        cwd=folder, env=environment, input="hello\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, folder


def of(derivations, folder):
    """Edges into columns by target and column, as the truth writes them; views and aliases apart."""
    stated = {}
    data = f"file://{folder}/data/"
    for derivation in derivations:
        if derivation.statement.kind in ("alias", "dataset", "select", "create_view"):
            continue
        columns = stated.setdefault(derivation.target.removeprefix(data), {})
        for column in derivation.columns:
            columns.setdefault(column.path, set())
        for edge in derivation.edges:
            if edge.target_path in columns:
                columns[edge.target_path].add(f"{edge.source.text.removeprefix(data)} {edge.kind.label}")
    return stated


@pytest.mark.slow
def test_the_job_keeps_its_streams_and_its_exit_code(job):
    done, _ = job
    assert done.returncode == 3, done.stderr
    assert done.stdout == "failed: SparkRuntimeException\ninput: hello\n"
    assert "run:shop.py: commit 1" in done.stderr
    assert "Traceback" not in done.stderr


def committed(folder):
    from govtool.app.project.project import open_store
    from govtool.model.columnar import DERIVATIONS, decode
    from govtool.model.run import RUNS, decode_runs

    store = open_store(str(folder / ".govtool"))
    refs = store.fragments(store.head("main"))
    derivations = [d for ref in refs if ref.table == DERIVATIONS for d in decode(store.read(ref))]
    return derivations, [run for ref in refs if ref.table == RUNS for run in decode_runs(store.read(ref))]


@pytest.mark.slow
def test_the_listener_says_what_is_true(job):
    _, folder = job
    derivations, _ = committed(folder)
    found = of(derivations, folder)
    assert found.pop("out/failed")
    through = {"email": {"default.loud.email identity"}, "total": {"default.loud.total identity"}}
    assert found == {**COLUMNS, "out/loud": through}
    (view,) = {d for d in derivations if d.target == "default.loud" and d.statement.kind == "create_view" and d.edges
               and d.statement.text.startswith("create_view")}  # fmt: skip
    assert {(e.source.text, e.target_path, e.kind.label) for e in view.edges if e.target_path != "*"} == {
        ("default.best.email", "email", "transformation"),
        ("default.best.total", "total", "identity"),
    }


@pytest.mark.slow
def test_rows_software_settings_and_breaks(job):
    _, folder = job
    _, runs = committed(folder)
    data = f"file://{folder}/data/"
    rows = {output.dataset.removeprefix(data): output.rows for run in runs for output in run.outputs if output.rows}
    assert {target: rows.get(target) for target in ROWS} == ROWS
    assert {run.status for run in runs} == {"complete", "failed"}
    (failed,) = (run for run in runs if run.status == "failed")
    assert (failed.job, failed.outputs[0].dataset) == (f"shop.py:{data}out/failed", f"{data}out/failed")
    assert failed.error.endswith("[USER_RAISED_EXCEPTION]")  # its text may be a value of a row
    assert [note.code for run in runs for note in run.breaks] == ["break.rdd"]
    versions = dict(failed.software)
    assert versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"spark", "java", "scala", "pandas", "pyspark", "script:shop.py"} <= set(versions)
    assert "hunter2" not in json.dumps([dict(run.config) for run in runs])
    read = next(item for run in runs for item in run.inputs if item.dataset == f"{data}raw/users" and item.rows)
    assert (read.rows, dict(read.fields)["email"]) == (3, "string")
    assert read.identity is not None
    written = next(item for run in runs for item in run.outputs if item.dataset == f"{data}out/tags")
    assert written.identity is not None
    assert written.identity.kind == "listing"


@pytest.mark.slow
def test_coverage_names_what_was_not_understood(job):
    _, folder = job
    answer = govtool.open(str(folder / ".govtool")).coverage()
    reasons = answer.to_dict()["reasons"]
    named = {(reason["code"], reason["message"]) for reason in reasons}
    assert ("python-udf", "domain is not understood") in named
    assert sum(reason["statements"] for reason in reasons) == answer.version.coverage.partial


@pytest.mark.slow
def test_the_event_log_says_the_same(job):
    _, folder = job
    from bench import programs

    _, runs = committed(folder)
    logged = [each for each in programs.logged(folder / "events") if each.derivation is not None]
    data = f"file://{folder}/data/"
    found = of([each.derivation for each in logged], folder)
    unheard = {"out/cents", "out/batches", "raw/users", "raw/orders", "out/failed", "out/rdd"}
    for target, columns in COLUMNS.items():
        if target not in unheard:
            assert found.get(target) == columns, target
    live = {(o.dataset, run.id): o.rows for run in runs for o in run.outputs if run.status == "complete" and o.rows}
    for each in logged:
        for output in each.run.outputs:
            if output.rows and (output.dataset, each.run.id) in live:
                assert live[output.dataset, each.run.id] == output.rows, output.dataset.removeprefix(data)
    ids = {each.run.id for each in logged if each.run.outputs}
    assert len(ids & {run.id for run in runs if run.outputs}) >= 10


@pytest.mark.slow
def test_the_spool_is_removed_once_committed(job):
    _, folder = job
    assert not (folder / "spool").exists() or not list((folder / "spool").iterdir())
    assert read_captured(folder / "spool").processes == 0


SLOW = """
import sys, time
from pyspark.sql import SparkSession
from govtool.spark.live.listener import Recorder

looked = Recorder._identified
Recorder._identified = lambda *given: (time.sleep(1.5), looked(*given))[1]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for name in ("first", "last"):
    spark.range(3).write.parquet(f"{sys.argv[1]}/{name}")
spark.stop()
"""


@pytest.mark.slow
def test_what_a_slow_recorder_still_has_to_look_up_is_known_when_the_context_stops(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW, encoding="utf-8")
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    govtool = [sys.executable, "-c", "import sys; from govtool.cli.main import main; sys.exit(main())"]
    subprocess.run([*govtool, "init", "-q"], cwd=tmp_path, check=True, env=environment)
    done = subprocess.run(
        [*govtool, "run", "--", "slow.py", str(tmp_path / "out")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _, runs = committed(tmp_path)
    assert sorted(run.id.rpartition("/")[2] for run in runs) == ["0", "1"]
