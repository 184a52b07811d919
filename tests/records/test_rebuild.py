"""Exact plans, captured from a live session, rebuilt: the same columns and the same rows, or a stated break."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import hostile
import pytest
from rebuild import outcome

from govtool.records.execute import duckdb
from govtool.records.plan import catalyst, codec
from govtool.records.spooled_plans import read_spool

BREAKS = {
    "a sample": "a random sample",
    "current time within": "current_timestamp, which depends on when the query runs",
    "session windows": "Alias: a session window",
    "random": "rand, which is drawn at random or by partition",
    "collation": "ResolvedCollation: not on the list of functions",
    "a subquery in case": "Aggregate: column k is neither grouped by nor aggregated",
}
"""Programs that cannot be rebuilt in Spark, and the reason that is stated."""
DUCK_BREAKS_AT_MOST = 45
"""Programs that DuckDB leaves to Spark."""


EVERY = int(os.environ.get("GOVTOOL_EVERY_PROGRAM", "9"))
"""One in so many programs is run; 1 for all of them, which takes minutes."""
ALWAYS = {
    "current time",
    "current time within",
    "windows",
    "rows of the driver",
    "partitioned",
    "timestamps around daylight saving",
    "scalar subqueries",
    "session windows",
}


def chosen(titles):
    """The programs of a run."""
    return [title for i, title in enumerate(titles) if i % EVERY == 0 or title in ALWAYS]


@pytest.fixture(scope="module")
def captured(spark, tmp_path_factory):
    """All programs, run in a recorded session: plans by title, with the spool and the file of results."""
    import pyarrow as pa

    from govtool.spark.live.listener import Recorder
    from govtool.spark.live.records import exact
    from govtool.spark.live.spool import Spool

    folder = tmp_path_factory.mktemp("records")
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.session.timeZone", "Europe/Amsterdam")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    tables(session, folder)
    (folder / "spool").mkdir()
    recorder = Recorder(Spool(str(folder / "spool")))
    recorder.replay = exact.PlanRecorder(Spool(str(folder / "private")))
    recorder.attach(session)
    programs = {}
    for title in chosen(hostile.SQL):
        programs[title] = session.sql(hostile.SQL[title], args=["!"] if "marker" in title else None)
    made = hostile.frames(session)
    programs.update({title: made[title] for title in chosen(made)})
    recorder.drain(60)
    results = {}
    for title, frame in programs.items():
        recorder.drain(60)
        before = recorder._number
        table = frame.toArrow()
        recorder.drain(60)
        assert recorder._number == before + 1, title
        file = folder / f"{before + 1}.arrow"
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        results[before + 1] = (title, str(file), table)
    recorder.finish(60)
    known = folder / "results.json"
    known.write_text(json.dumps({number: each[:2] for number, each in results.items()}), encoding="utf-8")
    plans = {each.number: each for each in read_spool(folder / "private")}
    return folder, known, {title: (plans[number], table) for number, (title, _, table) in results.items()}


def tables(session, folder: Path) -> None:
    hostile.write_tables(session, folder)
    for name, path in {"t": "t", "u": "u", "parted": "parted table", "empty_table": "empty"}.items():
        session.read.parquet(str(folder / path)).createOrReplaceTempView(name)
    csv = session.read.csv(str(folder / "c"), sep=";", header=True, schema="a int, b string, c date")
    csv.createOrReplaceTempView("csv")
    session.sql("create or replace temp view v as select k, s as z from t where k is not null")


def test_every_action_has_a_plan_that_reads_back(captured):
    _, _, programs = captured
    for title, (each, _) in programs.items():
        assert each.plan is not None, (title, each.reason)
        text = codec.dumps(each.plan)
        assert codec.dumps(codec.loads(text)) == text, title


def test_a_plan_that_is_read_wrongly_costs_its_own_rows_alone(captured, monkeypatch):
    folder, _, programs = captured
    read, broken = catalyst.read, next(iter(programs.values()))[0].number

    def fails(exact, *rest):
        if next(numbers) == broken:
            raise AttributeError("a bug")
        return read(exact, *rest)

    numbers = iter([each.number for each in read_spool(folder / "private")])
    monkeypatch.setattr(catalyst, "read", fails)
    lost = [(each.number, each.reason) for each in read_spool(folder / "private") if each.plan is None]
    assert lost == [(broken, "the plan cannot be read: AttributeError: a bug")]


def test_duckdb_gives_the_same_rows_or_a_reason(captured):
    _, _, programs = captured
    found = {
        title: outcome(each.plan, table, lambda plan: duckdb.run(plan, 1)) for title, (each, table) in programs.items()
    }
    wrong = {title: why for title, (status, why) in found.items() if status == "wrong"}
    assert wrong == {}
    breaks = {title: why for title, (status, why) in found.items() if status == "break"}
    assert all(breaks.values())
    assert len(breaks) <= DUCK_BREAKS_AT_MOST, breaks


@pytest.mark.slow
def test_a_new_process_gives_the_same_rows_or_a_reason(captured):
    folder, known, programs = captured
    titles = list(programs)
    root = Path(__file__).parents[2]
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.records.rebuild",
        str(folder / "private"),
        str(known),
    ]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=600, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = {line["title"]: line for line in map(json.loads, run.stdout.splitlines())}
    assert set(found) == set(titles)
    assert {title: each["why"] for title, each in found.items() if each["status"] == "wrong"} == {}
    assert {title: each["why"] for title, each in found.items() if each["status"] == "break"} == {
        title: why for title, why in BREAKS.items() if title in titles
    }
