"""``log -v``: what was understood of each commit, and why not all; who reads a temporary table's sources."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

import govtool as package

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "log-1.json"


def test_log_lists_the_coverage_of_each_commit_and_the_costliest_reasons(govtool, project):
    file = project / "a.sql"
    govtool("init")
    file.write_text("create table t (a int);\n")
    govtool("ingest", "sql", "a.sql")
    file.write_text("create table t (a int);\ninsert into d selct 1;\ninsert into d selct 2;\n")
    govtool("ingest", "sql", "a.sql")
    rows = [line.split() for line in govtool("log", "-v").out.splitlines()]
    assert ["2", "1", "0", "2", "2", "parse-error:", "Invalid", "expression", "/", "Unexpected", "token"] in rows
    assert ["1", "1", "0", "0"] in rows
    assert "parse-error" not in govtool("log").out
    answer = json.loads(govtool("log", "-v", "-f", "json").out)
    jsonschema.validate(answer, json.loads(SCHEMA.read_text()))
    newest, first = answer["commits"]
    assert (newest["coverage"]["opaque"], newest["reasons"][0]["statements"]) == (2, 2)
    assert (first["coverage"]["opaque"], first["reasons"]) == (0, [])
    assert "reasons" not in json.loads(govtool("log", "-f", "json").out)["commits"][0]
    assert package.open().log(coverage=True).to_dict()["commits"] == answer["commits"]


def test_a_file_that_was_not_read_is_among_the_shares_and_the_reasons(govtool, project):
    govtool("init")
    (project / "s").mkdir()
    (project / "s" / "a.sql").write_text("create table t (a int);\ncreate view v as select a from t;\n")
    (project / "s" / "b.sql").write_bytes(b"\0\1\2")
    done = govtool("ingest", "sql", "s")
    assert ["not", "at", "all", "1", "33.3%", "1", "33.3%"] in [line.split() for line in done.out.splitlines()]
    assert "cannot be read as text: a binary file" in done.out
    rows = [line.split() for line in govtool("log", "-v").out.splitlines()]
    assert ["1", "2", "0", "1", "1", "not-sql:", *"cannot be read as text: a binary file".split()] in rows  # noqa: SIM905
    (only,) = json.loads(govtool("log", "-v", "-f", "json").out)["commits"]
    assert [reason["code"] for reason in only["reasons"]] == ["not-sql"]


def test_a_broken_create_has_a_hint(govtool, project):
    govtool("init")
    (project / "a.sql").write_text("create view v as select 1 as a;\ncreate view w as select a b c from t;\n")
    done = govtool("ingest", "sql", "a.sql")
    assert "--> a.sql:2:29" in done.err
    assert "near 'c'" in done.err
    assert "hint: is the statement complete, and the dialect right (--dialect)?" in done.err
    (project / "a.sql").write_text("create view v as select 1 as a;\ncreate or replace veiw w as select 1 as a;\n")
    assert "VEIW may be meant as VIEW" in govtool("ingest", "sql", "a.sql").err
    (project / "a.sql").write_text("create or replace table w.c as selec a from w.b;\n")
    broken = govtool("ingest", "sql", "a.sql").err
    assert "may be meant as" not in broken
    assert "--> a.sql:1:40" in broken


def test_a_temporary_table_is_no_reader(govtool, project):
    (project / "a.sql").write_text(
        "create table c (e text);\ncreate temp table q as select e from c;\n"
        "create temp table r as select e from q;\ncreate table m as select e from r;\n"
    )
    govtool("init")
    govtool("ingest", "sql", "a.sql", "--dialect", "postgres")
    for name in ("c", "c.e"):
        readers = [line.split() for line in govtool("explain", name).out.splitlines() if "read by" in line]
        assert readers == [["read", "by", "m"]]


def test_a_store_in_memory_is_announced_to_end(govtool, project):
    assert "a store in memory is gone when this command ends" in govtool("init", "--store", "memory://x").err


def test_details_show_where_a_parser_gave_up_while_the_file_still_says_so(govtool, project):
    govtool("init")
    (project / "s").mkdir()
    file = project / "s" / "a.sql"
    file.write_text("create table t (a int);\n\ncreate view w as selec b frm u;\ninsert into d selct 1;\n")
    govtool("ingest", "sql", "s")
    done = govtool("coverage", "--details")
    lines = done.out.splitlines()
    at = lines.index(" 3 | create view w as selec b frm u;")
    assert lines[at + 1] == "   |                          ^"
    assert lines[at - 2] == "  --> a.sql:3:26"
    assert lines[lines.index(" 4 | insert into d selct 1;") + 1] == "   |               ^"
    assert "is the dialect right (--dialect, or dialect in govtool.toml)?" in done.err
    file.write_text("create table t (a int);\n\ncreate view w as select b from u;\ninsert into d selct 1;\n")
    later = govtool("coverage", "--details").out.splitlines()
    assert not any("create view w as select" in line for line in later)  # the line is another one now
    assert " 4 | insert into d selct 1;" in later
    file.unlink()
    assert not any(" | " in line for line in govtool("coverage", "--details").out.splitlines())


def test_who_ran_a_statement_and_when_is_said_with_edges_and_texts(govtool, project):
    runs = [
        {"statement": text, "user": user, "start_time": f"2026-01-0{day}T00:00:00Z"}
        for day, (text, user) in enumerate(
            [
                *[("insert into d.t select b.a as x from s.a b", u) for u in ("ann", "bob")],
                ("select x from d.t", "kim"),
            ],
            1,
        )
    ]
    (project / "q.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    govtool("init")
    govtool("ingest", "log", "q.jsonl", "--map", "text=statement")
    shown = govtool("explain", "d.t.x", "-v").out
    assert "append, 2 runs by ann, bob, 2026-01-01 to 2026-01-02" in shown
    assert "-- q.jsonl:1 · 2 runs by ann, bob, 2026-01-01 to 2026-01-02" in shown
    assert "copy, 1 run by kim, 2026-01-03" in shown
    answer = json.loads(govtool("explain", "d.t.x", "-f", "json").out)
    assert answer["made_of"][0]["evidence"]["users"] == ["ann", "bob"]
    assert answer["goes_to"][0]["evidence"]["users"] == ["kim"]
    jsonschema.validate(answer, json.loads(SCHEMA.with_name("explain-1.json").read_text()))
    impact = json.loads(govtool("impact", "s.a.a", "-f", "json").out)
    assert impact["columns"][0]["evidence"][0]["users"] == ["ann", "bob"]
