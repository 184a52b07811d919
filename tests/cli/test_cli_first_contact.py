"""What a new user meets: nothing is dropped from an answer without a word, help that reads well, exit codes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest


@pytest.fixture
def partly(govtool):
    """A store with a statement that nobody understands, and one of which the columns are not known."""
    govtool("init")
    Path("x.sql").write_text(
        "create table t as select a from s;\nselekt !!;\ncreate table u as select v.* from v join w on true;"
    )
    govtool("ingest", "sql", "x.sql")
    return govtool


@pytest.mark.parametrize("form", ["table", "plain", "markdown", "csv", "jsonl", "json"])
def test_every_format_has_the_details_of_the_coverage(partly, form):
    done = partly("coverage", "--details", "--format", form)
    assert done.code == 0, done.err
    assert "parse-error" in done.out
    assert "its columns are not all known" in done.out
    assert "x.sql" in done.out


def test_details_as_data_are_those_of_the_json(partly):
    answer = json.loads(partly("coverage", "--details", "--format", "json").out)["diagnostics"]
    lines = partly("coverage", "--details", "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == answer
    rows = list(csv.DictReader(io.StringIO(partly("coverage", "--details", "--format", "csv").out)))
    assert [(r["code"], r["line"], r["message"]) for r in rows] == [
        (d["code"], str(d["line"]), d["message"]) for d in answer
    ]
    assert len(partly("coverage", "--details", "--limit", "1", "--format", "jsonl").out.splitlines()) == 1


def test_a_file_has_what_the_terminal_has(partly):
    partly("coverage", "--details", "-f", "table", "-o", "c.txt")
    assert Path("c.txt").read_text() == partly("coverage", "--details", "-f", "plain").out


def test_without_details_csv_and_jsonl_have_a_row_a_source(partly):
    assert partly("coverage", "--format", "csv").out.splitlines()[0].startswith("source,dialect,files")
    assert json.loads(partly("coverage", "--format", "jsonl").out)["source"] == "sql:x.sql"


def test_a_second_init_is_a_mistake_of_the_command_line(govtool):
    govtool("init")
    again = govtool("init")
    assert again.code == 2
    assert "store.exists" in again.err


def test_show_says_that_there_is_no_run_either(partly):
    done = partly("show", "nosuchrun")
    assert done.code == 2
    assert "no commit 'nosuchrun', and the graph has no runs" in done.err


@pytest.mark.parametrize("command", [("diff", "1", "99"), ("show", "99")])
def test_a_commit_that_is_no_more_is_named_with_the_newest(partly, command):
    done = partly(*command)
    assert done.code == 2
    newest = partly("log", "-f", "csv").out.splitlines()[1].split(",")
    assert f"there is no commit '99': the newest is {newest[0]} ({newest[1][:7]})" in done.err
    assert "runs" not in done.err


def test_the_name_of_a_schema_leads_to_its_pattern(govtool):
    govtool("init")
    Path("x.sql").write_text("create view mart.t as select a from raw.s")
    govtool("ingest", "sql", "x.sql")
    done = govtool("ls", "mart")
    assert done.code == 2
    assert "'mart.**' selects all that begins with mart" in done.err
    assert govtool("ls", "mart.**").code == 0
    assert "mart.**" not in govtool("ls", "mar").err


def test_path_guards_a_script(partly):
    assert partly("path", "s.a", "t.a").code == 0
    assert partly("path", "s.a", "t.a", "--exit-code").code == 1
    assert partly("path", "t.a", "s.a", "--exit-code").code == 0
    assert partly("path", "t.a", "s.a", "--exit-code", "--strict").code == 3


@pytest.mark.parametrize("command", [("coverage",), ("log",), ("sources", "drop"), ("branch", "create"), ("ls",)])
def test_help_has_an_example_a_line_and_no_types_of_flags(govtool, command):
    shown = govtool(*command, "--help").out
    examples = [line.strip() for line in shown.splitlines() if line.strip().startswith("$ govtool")]
    assert len(examples) >= 2
    assert all(line.count("govtool ") == 1 for line in examples)
    assert "<bool>" not in shown
    assert "<list[str]>" not in shown


def test_a_strict_check_in_which_no_rule_judged_anything_is_no_pass(store, project):
    (project / "a.sql").write_text("create view v as select p from t")
    assert store("ingest", "sql", "a.sql").code == 0
    assert "5 not applicable" in store("check", "--policy", "pack:starter").out
    done = store("check", "--policy", "pack:starter", "--strict")
    assert (done.code, "evidence.nothing-judged" in done.err) == (3, True)
    (project / "b.sql").write_text("create view w as select email from u")
    assert store("ingest", "sql", "b.sql").code == 0
    assert store("check", "--policy", "pack:starter", "--strict").code == 0


def test_an_unknown_region_is_not_mended_by_a_declassifier(store, project):
    (project / "a.sql").write_text("create view v as select customer_name from t")
    assert store("ingest", "sql", "a.sql").code == 0
    shown = store("check", "--policy", "pack:gdpr").out
    assert "zones with a region" in shown.partition("GDPR-ART44")[2].partition("\n\n")[0]
    assert "gdpr.name" in store("classes", "v.customer_name", "--policy", "pack:gdpr").out
