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
    assert "hint: is the statement complete and the --dialect right?" in done.err
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
