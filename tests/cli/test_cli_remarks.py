"""Hints, notes and remarks lead to what works next."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import govtool as package

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
SQL = "create table t as select a, b from s; create view v as select a from t"


@pytest.mark.parametrize("command", [("export", "graph"), ("graph", "export", "--run", "r")])
def test_a_suffix_of_no_format_is_a_mistake_where_there_is_no_table(ingested, project, command):
    done = ingested(SQL)(*command, "-o", "g.xyz")
    assert (done.code, "usage.unknown-format" in done.err, ".graphml" in done.err) == (2, True, True)
    assert not (project / "g.xyz").exists()


def test_a_suffix_of_no_format_is_a_mistake_where_there_is_a_table_too(ingested, project):
    govtool = ingested(SQL)
    done = govtool("ls", "-o", "names.xlsx")
    assert (done.code, "usage.unknown-format" in done.err, ".csv" in done.err) == (2, True, True)
    assert not (project / "names.xlsx").exists()


def test_a_table_goes_to_a_file_of_text_and_a_format_to_any_suffix(ingested, project):
    govtool = ingested(SQL)
    assert govtool("ls", "-o", "names.log").code == 0
    assert govtool("ls", "-o", "names").code == 0
    assert govtool("ls", "-f", "table", "-o", "names.xlsx").code == 0
    assert govtool("export", "graph", "-f", "csv", "-o", "g.xyz").code == 0
    assert (project / "g.xyz").read_text().startswith("source,")


def test_a_revert_names_the_commit_by_its_number(ingested):
    govtool = ingested(SQL)
    assert "undoes commit 1 in 1 source" in govtool("revert", "HEAD").err
    assert "nothing of commit 1 is left" in govtool("revert", "HEAD~1").err


def test_reverts_of_reverts_have_messages_of_one_verb(ingested):
    govtool = ingested(SQL)
    first = package.open().log().commits[0].message
    for _ in range(3):
        assert govtool("revert", "HEAD").code == 0
    messages = [commit.message for commit in package.open().log().commits]
    assert messages == [f"revert 1: {first}", f"reapply 1: {first}", f"revert 1: {first}", first]


def test_a_message_of_the_user_is_kept_in_that_of_its_revert(ingested):
    govtool = ingested(SQL)
    govtool("revert", "HEAD", "-m", "wrong dialect")
    govtool("revert", "HEAD")
    assert package.open().log().commits[0].message == "revert 2: wrong dialect"


def test_help_of_whatif_shows_the_form_without_a_word_of_its_own(govtool, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "\n$ govtool whatif --drop A --rename B=C\n" in govtool("whatif", "--help").out
    assert max(map(len, govtool("whatif", "several", "--help").out.splitlines())) <= 80


def test_a_file_that_was_not_read_is_no_statement(govtool, project):
    (project / "etl").mkdir()
    (project / "etl" / "a.sql").write_text(SQL)
    (project / "etl" / "gone.sql").symlink_to("nowhere")
    govtool("init")
    govtool("ingest", "sql", "etl")
    answer = govtool("impact", "s.a")
    assert "1 file not read could read it" in answer.out
    assert "(2/3 statements, counting 1 file not read)" in answer.out
    assert "is known: 1 file not read" in govtool("impact", "s.a", "--strict").err


def test_outside_of_a_notebook_the_page_is_offered(ingested):
    ingested(SQL)
    with pytest.raises(package.errors.UsageError) as caught:
        package.show()
    assert "graph.report().to_html()" in str(caught.value.hint)
    assert package.open().report().to_html().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(("kind", "asks"), [("prov", False), ("sql", True)])
def test_the_dialect_is_asked_about_where_there_is_one(govtool, project, kind, asks):
    (project / "a").mkdir()
    (project / "a" / ("x.provn" if kind == "prov" else "x.sql")).write_text("document\nentity(((\n")
    govtool("init", "--no-sources")
    done = govtool("ingest", kind, "a", "--strict")
    assert done.code == 3
    assert ("is the dialect right (--dialect, or dialect in govtool.toml)?" in done.err) is asks


NOWHERE = {
    "impact": ("impact", "nothing.*"),
    "path": ("path", "nothing.*", "v.a"),
    "explain": ("explain", "nothing.*"),
    "whatif": ("whatif", "--drop", "nothing.*"),
    "whatif drop": ("whatif", "drop", "nothing.*"),
    "whatif delete": ("whatif", "delete", "nothing.*"),
    "export": ("export", "graph", "nothing.*"),
    "ls": ("ls", "nothing.*"),
}


@pytest.mark.parametrize("command", NOWHERE.values(), ids=NOWHERE)
def test_an_empty_answer_is_a_document_of_its_format(ingested, project, command):
    govtool = ingested(SQL)
    refused = govtool(*command, "-f", "json")
    assert (refused.code, "--allow-empty" in refused.err) == (2, True)
    done = govtool(*command, "--allow-empty", "-f", "json")
    assert (done.code, "nothing is selected" in done.err) == (0, True)
    answer = json.loads(done.out)
    schema = json.loads((SCHEMAS / f"{answer['schema'].replace('/', '-')}.json").read_text())
    jsonschema.validate(answer, schema)
    entries = govtool(*command, "--allow-empty", "-f", "csv").out
    one = govtool(
        command[0],
        *(word.replace("nothing.*", "**.a" if "explain" in command else "s.a") for word in command[1:]),
        "-f",
        "csv",
    ).out
    assert entries.splitlines() == one.splitlines()[:1]
    assert govtool(*command, "--allow-empty", "-f", "json", "-o", "x.json").code == 0
    assert json.loads((project / "x.json").read_text()) == json.loads(done.out)


@pytest.mark.parametrize(("form", "begins"), [("dot", "digraph"), ("mermaid", "flowchart"), ("graphml", "<?xml")])
def test_an_empty_picture(ingested, form, begins):
    done = ingested(SQL)("export", "graph", "nothing.*", "--allow-empty", "-f", form)
    assert (done.code, done.out.startswith(begins)) == (0, True)


def test_an_empty_page(ingested, project):
    govtool = ingested(SQL)
    assert govtool("report", "html", "nothing.*", "-o", "x.html").code == 2
    assert govtool("report", "html", "nothing.*", "--allow-empty", "-o", "x.html").code == 0
    assert "Nothing is selected" in (project / "x.html").read_text()


def test_whatif_without_a_change_is_a_mistake_all_the_same(ingested):
    assert ingested(SQL)("whatif", "--allow-empty", "-f", "json").code == 2


def test_the_csv_of_the_log_has_the_files_and_what_was_understood(ingested):
    lines = ingested(SQL)("log", "-f", "csv").out.splitlines()
    commit = dict(zip(lines[0].split(","), lines[1].split(","), strict=True))
    assert [commit[name] for name in ("files", "statements", "understood", "unread")] == ["1", "2", "2", "0"]
