"""Real event logs of three versions of Spark, and what happens to logs: cut off, out of order, twice, in pieces."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from spark_logs import (
    LOGS,
    SHOP,
    edges_of,
    ended,
    event,
    expected,
    gathered,
    lines_of,
    lz4_blocks,
    snappy_stream,
    started,
    write_plan,
    zstd,
)

from govtool.capture.spark.eventlog.application import script_of
from govtool.capture.spark.eventlog.files import find
from govtool.capture.spark.eventlog.gathered import EventLogFindings
from govtool.errors import UsageError
from govtool.model import EdgeKind

EXPECTED = expected(LOGS / "shop_nightly.expected")

OTHERWISE = {
    # Spark 3.3 and 3.5 keep `id + 0`, which later ones simplify; and know no recursion.
    "spark-3.5.9.gz": {
        "/wide insert replace": {"c0 <- /orders.id transformation": "c0 <- /orders.id identity"},
        "/failed insert append": {"e <- /orders.customer transformation concat.raise_error": "e <- /orders.customer transformation concat.map.raise_error"},
    },
    "spark-3.3.4.gz": {
        "/wide insert replace": {"c0 <- /orders.id transformation": "c0 <- /orders.id identity"},
        "/failed insert append": {"e <- /orders.customer transformation concat.raise_error": "e <- /orders.customer transformation concat.map.raise_error"},
        # It writes out the casts by which an INSERT fits types, also where they change nothing.
        "default.names insert append": {
            "id <- default.sales.id transformation cast": "id <- default.sales.id transformation",
            "name <- default.sales.customer transformation concat.cast": "name <- default.sales.customer transformation concat",
        },
    },
}  # fmt: skip
NOT_RUN = {
    "spark-3.5.9.gz": {"/loop insert replace"},
    "spark-3.3.4.gz": {"/loop insert replace", "/from_rdd insert replace"},
}


@pytest.mark.parametrize("log", ["spark-4.3.0.gz", "spark-3.5.9.gz", "spark-3.3.4.gz"])
def test_the_same_job_says_the_same_on_every_spark(log: str) -> None:
    stated = edges_of(gathered(LOGS / log))
    for head, changes in OTHERWISE.get(log, {}).items():
        stated[head] = sorted(changes.get(edge, edge) for edge in stated[head])
    assert stated == {head: edges for head, edges in EXPECTED.items() if head not in NOT_RUN.get(log, ())}


@pytest.mark.parametrize("log", ["delta-3.3.2", "iceberg-1.9.2", "sources-4.3.0"])
def test_connectors_streams_and_python(log: str) -> None:
    assert edges_of(gathered(LOGS / f"{log}.gz")) == expected(LOGS / f"{log}.expected")


def test_a_delta_table_is_known_by_its_name_its_path_and_its_version() -> None:
    found = gathered(LOGS / "delta-3.3.2.gz")
    (merged,) = [r for r in found.runs if r.outputs and r.outputs[0].mode == "update"]
    assert merged.outputs[0].dataset == "default.dt"
    assert [(i.dataset, i.identity.version if i.identity else None) for i in merged.inputs] == [("default.dt", 1)]
    assert "file:///tmp/shop3/warehouse/dt" in {alias.id for alias in found.places["default.dt"].aliases}


def test_breaks_are_counted_by_kind() -> None:
    found = gathered(LOGS / "sources-4.3.0.gz")
    assert {
        "break.streaming-sink",
        "break.map-in-pandas",
        "break.apply-in-pandas",
        "break.rdd",
    } <= set(found.breaks)


def run_of(found: EventLogFindings, target: str) -> object:
    (run,) = [r for r in found.runs if r.outputs and r.outputs[0].dataset == target]
    return run


def test_runs_have_rows_files_and_bytes_and_no_secret() -> None:
    found = gathered(SHOP)
    figures = {r.outputs[0].dataset.removeprefix("file:///tmp/shop"): r for r in found.runs if r.outputs}
    # 3 rows in two partitions; CREATE TABLE AS is two executions, saveAsTable three: each is one run.
    assert [(o.rows, o.files) for o in figures["/orders"].outputs] == [(3, 2)]
    assert [(i.dataset, i.rows, i.files) for i in figures["default.names"].inputs] == [("default.sales", 2, 2)]
    # 3 names + 2 inserted, 3 sales: an adaptive plan that registered its scans several times over.
    report = figures["/report"]
    assert {i.dataset: i.rows for i in report.inputs} == {"default.names": 5, "default.sales": 3}
    assert (report.outputs[0].rows, report.outputs[0].mode) == (4, "append")
    assert report.job == "shop_nightly.py:file:///tmp/shop/report"
    assert dict(report.software)["spark"] == "4.3.0"
    assert dict(report.software)["helper-lib"] == "1.2.3"
    assert report.host == "Linux-x86_64"
    assert report.config["spark.sql.shuffle.partitions"] == "2"
    assert report.started == "2026-11-21T15:05:24.312Z" or report.started
    assert len({r.id for r in found.runs}) == len(found.runs) == 19
    assert "hunter2" not in repr(found.runs) + repr(found.derivations())


def test_a_failed_write_adds_nothing_it_cannot_have_added() -> None:
    found = gathered(SHOP)
    failed = run_of(found, "file:///tmp/shop/failed")
    assert (failed.status, failed.error[:23]) == ("failed", "[USER_RAISED_EXCEPTION]")
    (stated,) = [d for d in found.derivations() if d.target == "file:///tmp/shop/failed" and d.mode != "declare"]
    assert (stated.mode, stated.status) == ("append", "partial")


def test_an_rdd_is_a_break_and_no_guess() -> None:
    found = gathered(SHOP)
    run = run_of(found, "file:///tmp/shop/from_rdd")
    assert [note.code for note in run.breaks] == ["break.rdd"]
    assert found.breaks["break.rdd"] == 1
    (stated,) = [d for d in found.derivations() if d.target == "file:///tmp/shop/from_rdd" and d.mode != "declare"]
    assert not [edge for edge in stated.edges if edge.kind is not EdgeKind.OPAQUE]
    assert stated.status == "partial"


def test_a_table_and_its_path_are_one() -> None:
    aliases = {
        (d.target, e.source.dataset)
        for d in gathered(SHOP).derivations()
        if d.statement.kind == "alias"
        for e in d.edges
    }
    assert ("file:///tmp/shop/warehouse/sales", "default.sales") in aliases
    assert ("default.sales", "file:///tmp/shop/warehouse/sales") in aliases


def test_columns_that_were_read_are_declared_with_their_types() -> None:
    declared = {d.target: dict(d.columns) for d in gathered(SHOP).derivations() if d.mode == "declare"}
    assert declared["default.sales"] == {"id": "int", "customer": "string", "amount": "double", "day": "date"}


# ---- what happens to logs --------------------------------------------------------------------------------


def write(folder: Path, name: str, lines: list[bytes]) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(lines))
    return file


@pytest.mark.parametrize("pack", [zstd, lz4_blocks, snappy_stream, gzip.compress, bytes])
def test_codecs_and_layouts_read_the_same(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    file = tmp_path / "local-1.inprogress"
    file.write_bytes(pack(b"".join(lines_of())))
    assert edges_of(gathered(file)) == EXPECTED


def test_a_rolling_log_with_a_compacted_part(tmp_path: Path) -> None:
    lines = lines_of()
    folder = tmp_path / "eventlog_v2_local-1795277505329"
    third = len(lines) // 3
    # What was compacted away says nothing more; parts come in the order of their numbers, not of their names.
    write(folder, "events_1_local-1795277505329", [b'{"Event":"SparkListenerLogStart","Spark Version":"9.9"}\n'])
    write(folder, "events_9_local-1795277505329.zstd.compact", [zstd(b"".join(lines[:third]))])
    write(folder, "events_9_local-1795277505329.zstd", [zstd(b"")])
    write(folder, "events_10_local-1795277505329.zstd", [zstd(b"".join(lines[third : 2 * third]))])
    write(folder, "events_11_local-1795277505329", lines[2 * third :])
    (folder / "appstatus_local-1795277505329").touch()
    for path in (folder, tmp_path):
        found = gathered(path)
        assert edges_of(found) == EXPECTED
        assert not found.notes
        assert found.runs[0].id.startswith("local-1795277505329/")


def test_a_part_that_is_missing_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app"
    lines = lines_of()
    write(folder, "events_1_app", lines[:20])
    write(folder, "events_3_app", lines[20:])
    assert [log.missing for log in find(folder)] == [(2,)]
    assert any("part 2" in note.message for note in gathered(folder).notes)


@pytest.mark.parametrize("seed", range(5))
def test_events_out_of_order_and_twice(tmp_path: Path, seed: int) -> None:
    lines = lines_of()
    rng = random.Random(seed)
    shuffled = sorted(lines * 2, key=lambda _: rng.random())
    found = gathered(write(tmp_path, "log", shuffled))
    assert {head: set(edges) for head, edges in edges_of(found).items()} == {h: set(e) for h, e in EXPECTED.items()}
    assert found.outcomes["understood"] == 17


def test_a_log_and_its_copy_count_once(tmp_path: Path) -> None:
    write(tmp_path, "a", lines_of())
    write(tmp_path, "b.zstd", [zstd(b"".join(lines_of()))])
    found = gathered(tmp_path)
    assert len(found.runs) == 19
    assert edges_of(found) == EXPECTED


def test_every_cut_is_a_log(tmp_path: Path) -> None:
    whole = zstd(b"".join(lines_of()))
    rng = random.Random(3)
    for number in range(15):
        found = gathered(write(tmp_path, f"log{number}", [whole[: rng.randrange(len(whole))]]))
        for head, edges in edges_of(found).items():
            target = head.split(" ")[0]
            assert any(set(edges) <= set(e) for h, e in EXPECTED.items() if h.startswith(target))
        assert found.notes


def test_a_run_that_never_completes(tmp_path: Path) -> None:
    head = event("SparkListenerApplicationStart", **{"App Name": "a", "App ID": "app-1", "Timestamp": 1, "User": "u"})
    found = gathered(write(tmp_path, "log.inprogress", [head, started(0, write_plan())]))
    assert [run.status for run in found.runs] == ["running"]
    assert [note.code for note in found.notes] == ["unfinished-application"]
    over = event("SparkListenerApplicationEnd", Timestamp=5)
    assert [r.status for r in gathered(write(tmp_path, "log2", [head, started(0, write_plan()), over])).runs] == [
        "aborted"
    ]


def test_a_signature_in_the_name_of_an_application_is_not_kept(tmp_path: Path) -> None:
    name = "load https://h/x.csv?X-Amz-Signature=tops3cret"
    head = event("SparkListenerApplicationStart", **{"App Name": name, "App ID": "app-1", "Timestamp": 1, "User": "u"})
    begun = started(0, write_plan()).replace(b"job.py:1", b"x")  # no script: the name is that of the job
    found = gathered(write(tmp_path, "log", [head, begun, ended(0)]))
    kept = repr([*found.runs, *found.notes])
    assert "load https" in kept
    assert "tops3cret" not in kept


def test_an_end_without_a_start_is_a_break(tmp_path: Path) -> None:
    found = gathered(write(tmp_path, "log", [ended(7), started(8, write_plan()), ended(8)]))
    assert found.breaks["break.start"] == 1
    assert [run.status for run in found.runs] == ["complete"]


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "nonsense",
        "== Physical Plan ==\n",
        "(" * 5000,
        "\n(1) Scan",
        "== Physical Plan ==\nExecute Insert (1)\n\n\n(1) x",
    ],
)
def test_a_plan_that_is_none_is_opaque_and_costs_only_itself(tmp_path: Path, plan: str) -> None:
    found = gathered(write(tmp_path, "log", [started(0, plan), ended(0), started(1, write_plan()), ended(1)]))
    assert found.outcomes["understood"] == 1
    assert len(found.runs) in (1, 2)


def test_lines_of_the_wrong_shape_are_counted_and_passed_over(tmp_path: Path) -> None:
    bad = [
        b'{"Event":"SparkListenerSQLExecutionStart"}\n',
        b'{"Event":"SparkListenerSQLExecutionEnd","executionId":"x"}\n',
        b'{"Event":"SparkListenerLogStart"\n',
        b'["Event"]\n',
        b'{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":[["a"],3],"JVM Information":7}\n',
        b'{"Event":"SparkListenerDriverAccumUpdates","executionId":0,"accumUpdates":[[1],["a","b"],4]}\n',
        b'{"Event":"SparkListenerJobEnd","Job ID":null,"Job Result":[]}\n',
        b'{"Event":"SparkListenerApplicationStart","App ID":4,"Timestamp":"x"}\n',
        b'{"Event":"SparkListenerLogStart","x":' + b"[" * 50_000 + b"\n",
    ]
    found = gathered(write(tmp_path, "log", [*bad, started(1, write_plan()), ended(1)]))
    assert found.outcomes["understood"] == 1
    assert found.broken == 5


def test_what_is_no_log_is_said(tmp_path: Path) -> None:
    assert [note.code for note in gathered(write(tmp_path, "empty", [])).notes] == ["not-a-log"]
    found = gathered(write(tmp_path, "noise", [bytes(random.Random(1).randbytes(10_000))]))
    assert "not-a-log" in [note.code for note in found.notes]
    assert found.unread == 1
    with pytest.raises(UsageError, match="no such file"):
        find(tmp_path / "nowhere")
    (tmp_path / "void").mkdir()
    with pytest.raises(UsageError, match="no event log"):
        find(tmp_path / "void")


def test_equal_work_is_said_once_and_counted(tmp_path: Path) -> None:
    log = []
    for number in range(40):
        log += [started(number, write_plan(), time=1_600_000_000_000 + number * 1000), ended(number)]
    found = gathered(write(tmp_path, "log", log))
    (stated,) = [d for d in found.derivations() if d.statement.kind == "insert"]
    assert (stated.statement.count, stated.statement.run) == (40, "log/39")
    assert (stated.statement.first_seen, stated.statement.last_seen) == (
        "2020-09-13T12:26:40.000Z",
        "2020-09-13T12:27:19.000Z",
    )
    assert len(found.runs) == 40
    assert len({id(run.plan) for run in found.runs}) == 1


def test_what_was_put_in_the_place_of_something_else_is_said_again(tmp_path: Path) -> None:
    log = []
    for number, source in enumerate(["/in/a", "/in/b", "/in/a"]):
        log += [started(number, write_plan(source=source), time=1_600_000_000_000 + number * 1000), ended(number)]
    stated = [d for d in gathered(write(tmp_path, "log", log)).derivations() if d.statement.kind == "insert"]
    assert [e.source.dataset for d in stated for e in d.edges if e.target_path == "*"] == [
        "file:///in/a",
        "file:///in/b",
        "file:///in/a",
    ]


def test_jobs_of_one_name_are_told_apart_by_their_targets(tmp_path: Path) -> None:
    log = [started(0, write_plan("/out/a")), ended(0), started(1, write_plan("/out/b")), ended(1)]
    assert [r.job for r in gathered(write(tmp_path, "log", log)).runs] == [
        "job.py:file:///out/a",
        "job.py:file:///out/b",
    ]


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("org.apache.spark.deploy.SparkSubmit --master yarn --py-files a.zip /jobs/etl.py --date x", "etl.py"),
        ("org.apache.spark.deploy.SparkSubmit --class com.shop.Main --jars b.jar s3://x/app.jar arg", "Main"),
        ("org.apache.spark.deploy.SparkSubmit --conf spark.x=1 pyspark-shell", ""),
        ("org.apache.spark.repl.Main", ""),
        ("*********(redacted)", ""),
    ],
)
def test_the_script_of_a_command_line(command: str, script: str) -> None:
    assert script_of(command) == script


def test_events_of_streams_are_json_of_any_spacing(tmp_path: Path) -> None:
    loose = [json.dumps(json.loads(line)).encode() + b"\n" for line in lines_of()]
    found = gathered(write(tmp_path, "log", loose))
    assert edges_of(found) == EXPECTED
