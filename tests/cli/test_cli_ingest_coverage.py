"""Coverage where people look: in every ingest's summary, where nothing is new, and before a log is committed."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

BAD = "create table t (a text);\ncreate view w as selec a frm t;\ninsert into d selct 1;\ninsert into d selct 2;\n"


def log(path: str = "q.jsonl", bad: int = 1) -> str:
    rows = [{"ts": "2026-01-01T10:00:00Z", "sql": "CREATE TABLE mart.a AS SELECT e FROM crm.u"}]
    rows += [{"ts": "2026-01-01T10:00:01Z", "sql": "SELECT FROM WHERE AND ("}] * bad
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_summary_of_sql_says_what_cost_most(govtool, project):
    govtool("init")
    Path("w.sql").write_text(BAD)
    done = govtool("ingest", "sql", "w.sql")
    for words in ("fully", "partly", "not at all", "reasons for incomplete coverage"):
        assert words in done.out
    again = govtool("ingest", "sql", "w.sql")
    assert "nothing new" in again.out
    assert "reasons for incomplete coverage" in again.out


@pytest.mark.parametrize(
    ("kind", "place", "partly", "reasons"),
    [
        ("prov", "prov", 5, {"the document names datasets and no columns": 5}),
        ("spark", "spark/logs/spark-3.5.9.gz", 2, {"an RDD: what it was made of": 1, "a write failed": 1}),
        (
            "openlineage",
            "openlineage",
            3,
            {"the event does not name all columns": 2, "the event names inputs and outputs and no columns": 1},
        ),
    ],
)
def test_the_summary_of_runs_and_events_says_what_cost_most(govtool, project, kind, place, partly, reasons):
    govtool("init")
    fixture = Path(__file__).parents[2] / "fixtures" / place
    for done in (govtool("ingest", kind, str(fixture)), govtool("ingest", kind, str(fixture))):
        assert done.code == 0, done.err
        lines = [line.split() for line in done.out.splitlines()]
        assert next(line for line in lines if line[:1] == ["partly"])[1] == str(partly)
        for reason, number in reasons.items():
            assert next(line for line in done.out.splitlines() if reason in line).split()[:2] == [str(number)] * 2
    assert next(iter(reasons)) in govtool("log", "-v").out


def test_what_is_understood_has_no_reasons(govtool, project):
    govtool("init")
    Path("w.sql").write_text("create view w as select a from t;")
    assert "reasons for incomplete" not in govtool("ingest", "sql", "w.sql").out


def test_failures_are_explained_where_nothing_is_new(govtool, project):
    govtool("init")
    Path("w.sql").write_text(BAD)
    first = govtool("ingest", "sql", "w.sql", "--explain-failures").out
    again = govtool("ingest", "sql", "w.sql", "--explain-failures").out
    assert "selct" in first
    assert [line for line in again.splitlines() if "selct" in line] == [
        line for line in first.splitlines() if "selct" in line
    ]
    assert "nothing new" in again


def test_failures_of_a_log_are_explained_where_nothing_is_new(govtool, project):
    govtool("init")
    govtool("ingest", "log", log())
    assert "SELECT FROM WHERE" not in govtool("ingest", "log", "q.jsonl").out
    again = govtool("ingest", "log", "q.jsonl", "--explain-failures")
    assert "SELECT FROM WHERE" in again.out
    assert "nothing new" in again.out
    assert len(govtool("log", "-f", "jsonl").out.splitlines()) == 1


def test_a_log_of_which_too_little_is_understood_is_not_committed(govtool, project):
    govtool("init")
    refused = govtool("ingest", "log", log(), "--min-coverage", "60")
    assert refused.code == 3
    assert "nothing was committed" in refused.err
    assert govtool("ingest", "log", "q.jsonl", "--strict").code == 3
    assert govtool("log", "-f", "jsonl").out == ""
    assert govtool("ingest", "log", "q.jsonl", "--min-coverage", "50").code == 0
    assert len(govtool("log", "-f", "jsonl").out.splitlines()) == 1
    assert govtool("ingest", "log", "q.jsonl", "--strict").code == 3  # what is there already is judged, too


def test_a_log_that_became_worse_leaves_the_head_as_it_was(govtool, project):
    govtool("init")
    govtool("ingest", "log", log(bad=0))
    assert govtool("ingest", "log", log(bad=3), "--min-coverage", "60").code == 3
    assert len(govtool("log", "-f", "jsonl").out.splitlines()) == 1
    assert "mart.a.e" in govtool("impact", "crm.u.e").out


def test_a_doubtful_column_is_shown_once_whatever_it_reaches(govtool, project):
    govtool("init")
    Path("w.sql").write_text("create view v as select x, x + 1 as y, upper(x) as z from t join u on t.id = u.id")
    done = govtool("ingest", "sql", "w.sql")
    assert done.err.count("x may be any of 2 columns") == 1
    again = govtool("ingest", "sql", "w.sql")
    assert "nothing new" in again.out
    assert again.err.count("x may be any of 2 columns") == 1
    assert govtool("lineage", "w.sql").err.count("x may be any of 2 columns") == 1
    details = govtool("coverage", "--details").out
    assert details.count("w.sql:1:25") == 1
    assert details.splitlines()[-1] == "1 ambiguous"
    kept = json.loads(govtool("coverage", "-f", "json").out)["diagnostics"]
    assert sorted(note["target"] for note in kept) == ["v.x", "v.y", "v.z"]  # of each output it is known


EMPTY = {
    "sql": ("a.sql", "-- a note\n", "create view w as select a from t;"),
    "log": ("a.jsonl", "\n", '{"sql": "create view w as select a from t"}\n'),
    "openlineage": ("a.json", "[]", None),
    "prov": ("a.json", "{}", None),
    "spark": ("a", '{"Event":"SparkListenerLogStart","Spark Version":"4.0.0"}\n', None),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_what_holds_nothing_is_not_committed(govtool, project, kind):
    if kind == "prov":
        pytest.importorskip("prov", reason="prov is not installed: pip install govtool[prov]")
    name, empty, earlier = EMPTY[kind]
    govtool("init")
    if earlier is not None:
        Path(name).write_text(earlier)
        assert govtool("ingest", kind, name).code == 0
    before = govtool("log", "-f", "jsonl").out
    Path(name).write_text(empty)
    done = govtool("ingest", kind, name)
    assert done.code == 3
    assert "there is nothing in what was read; nothing was committed" in done.err
    assert (f"govtool sources drop {kind}:{name}" in done.err) == (earlier is not None)
    assert ("check the path" in done.err) == (earlier is None)
    assert govtool("log", "-f", "jsonl").out == before
    if earlier is not None:
        assert govtool("impact", "t.a").out.count("w.a") == 1


def test_a_database_without_tables_is_not_committed(govtool, project):
    govtool("init")
    sqlite3.connect("e.sqlite").executescript("create table a(x); drop table a;")
    assert govtool("ingest", "catalog", "sqlite:///e.sqlite").code == 3


def test_statements_without_lineage_are_something(govtool, project):
    govtool("init")
    Path("a.sql").write_text("grant select on t to ann;")
    assert govtool("ingest", "sql", "a.sql").code == 0
    Path("q.jsonl").write_text('{"sql": "select a from t", "status": "failed"}\n')
    assert govtool("ingest", "log", "q.jsonl").code == 0


def test_sql_that_is_to_be_dropped_may_be_empty(govtool, project):
    govtool("init")
    Path("a.sql").write_text("")
    assert govtool("ingest", "sql", "a.sql", "--drop-unreadable").code == 0


def test_a_reason_of_several_sources_is_one_row(govtool, project):
    govtool("init")
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "v.sql").write_text(
            "create view v as select {{ helper('x') }} from t;\ncreate view w as select 1 as a;\n"
        )
        govtool("ingest", "sql", folder)
    Path("w.sql").write_text("create view w as select y from t1, t2;")
    govtool("ingest", "sql", "w.sql")
    shown = govtool("coverage", "-f", "plain").out
    (row,) = [line for line in shown.splitlines() if "macro helper is not known" in line]
    assert row.split()[:2] == ["2", "2"]
    assert "ambiguous" in shown
    assert sum("macro helper" in line for line in govtool("log", "-v").out.splitlines()) == 3  # once a commit
