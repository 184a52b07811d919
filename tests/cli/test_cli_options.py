"""Values of options: completed, and refused where they say nothing; and where errors point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from govtool.app.questions.completion_selectors import complete_selectors
from govtool.cli.commands import COMMANDS
from govtool.cli.main import main
from govtool.cli.shared.complete import formats_of

CODE = "import sys; from govtool.cli.main import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def store(govtool, project):
    (project / "v.sql").write_text("create view stg.users as select id, email from crm.users")
    govtool("init")
    assert govtool("ingest", "sql", "v.sql", "--dialect", "postgres").code == 0
    return project / ".govtool"


def complete(words: str) -> list[str]:
    """What bash offers for the last word."""
    command = words.split(" ")
    environment = {
        "_GOVTOOL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(command) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("govtool impact a --format j", ["json", "jsonl"]),
        ("govtool lineage a.sql -f m", ["markdown", "mermaid"]),
        ("govtool whatif drop a -f js", ["json", "jsonl"]),
        ("govtool policy test -f j", ["json"]),
        ("govtool impact a --kind trans", ["transformation"]),
        ("govtool path a b --kind group", ["group_by"]),
        ("govtool impact a --change re", ["rename:", "retype:"]),
        ("govtool lineage --dialect snow", ["snowflake"]),
        ("govtool ingest log a.csv --from red", ["redshift", "redshift-text"]),
        ("govtool ingest log a.csv --engine s", ["spark"]),
        ("govtool impact a --at HEAD~", ["HEAD~1"]),
        ("govtool impact a --at rel", ["release-1"]),
    ],
)
def test_values_complete(govtool, store, words, offered):
    govtool("tag", "create", "release-1")
    assert complete(words) == offered


POLICY = """version: 1
name: privacy
classes: {personal.contact: {}, personal.name: {}, health: {}}
classify: [{class: personal.contact, columns: ["**.email"]}]
zones: {marketing: {datasets: ["stg.**"], owner: Growth Team}, mart: {datasets: ["mart.**"], optional: true}}
metadata: [{datasets: ["crm.**"], owner: crm-team, tags: ["pii:email", gold]}]
rules: [{id: R, titel: a mistake elsewhere}]
"""
RUNS = """{"eventType": "COMPLETE", "eventTime": "2026-11-20T01:00:00Z", "run": {"runId": "0190-1"},
 "job": {"namespace": "n", "name": "nightly_load"}, "producer": "p", "inputs": [],
 "outputs": [{"namespace": "n", "name": "mart.t"}]}"""


@pytest.fixture
def governed(govtool, store, project):
    """A store with a run, and policies, one of which is mistaken."""
    (project / "policies").mkdir()
    (project / "policies" / "privacy.yml").write_text(POLICY)
    (project / "policies" / "torn.yml").write_text("classes: {")
    (project / "run.json").write_text(RUNS.replace("\n", ""))
    assert govtool("ingest", "openlineage", "run.json").code == 0
    return govtool


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("cla", ["class:", "class:health", "class:personal", "class:personal.contact", "class:personal.name"]),
        ("class:p", ["class:personal", "class:personal.contact", "class:personal.name"]),
        ("zone:mar", ["zone:marketing", "zone:mart"]),
        ("@zone:marke", ["@zone:marketing"]),
        ("2+class:h", ["2+class:health"]),
        ("+zone:mart", ["+zone:mart"]),
        ("stg.users,class:h", ["stg.users,class:health"]),
        ("class:health,@zone:mark", ["class:health,@zone:marketing"]),
        ("stg.** own", ["stg.** owner:", "stg.** owner:Growth?Team", "stg.** owner:crm-team"]),
        ("tag:pii", ["tag:pii:email"]),
        ("class:health,stg.us", ["class:health,stg.users"]),
        ("kind:v", ["kind:view"]),
        ("job:n", ["job:n/nightly_load", "job:nightly_load"]),
        ("job:v", ["job:v"]),
        ("run:01", ["run:0190-1"]),
        ("unused:", ["unused:dataset"]),
        ("changed:HEAD..HEAD~", ["changed:HEAD..HEAD~1"]),
        ("software:zzz", []),
        ("class:zzz", []),
        ("nomethod:x", []),
        ("/(", []),
        ('"', []),
        (",,", None),
    ],
)
def test_selectors_complete(governed, typed, offered):
    governed("index")
    found = complete_selectors(None, None, typed)
    if offered is None:
        assert len(found) > 10
    else:
        assert found == offered


def test_what_is_offered_can_be_selected(governed, project):
    governed("index")
    (project / "policies" / "torn.yml").unlink()
    (project / "policies" / "privacy.yml").write_text(
        POLICY.replace("rules: [{id: R, titel: a mistake elsewhere}]\n", "")
    )
    methods = ("class:", "zone:", "tag:", "owner:", "kind:", "job:", "run:", "changed:", "unused:", "software:")
    offered = [one for method in methods for one in complete_selectors(None, None, method)]
    assert len(offered) > 15
    for text in offered:
        assert governed("ls", text, "--allow-empty").code == 0, text


def test_temporary_tables_are_neither_listed_nor_offered(govtool, project):
    govtool("init")
    (project / "all.sql").write_text(
        "create temporary table tmp_users as select id, email from crm.users;"
        "create table mart.a as select email from tmp_users;"
        "create table stg.work as select id from crm.users; drop table stg.work;"
    )
    (project / "scratch.sql").write_text("create temporary table t2 as select id from crm.users;")
    for file in ("all.sql", "scratch.sql"):
        assert govtool("ingest", "sql", file, "--dialect", "postgres").code == 0
    govtool("index")
    for arguments in (("ls",), ("ls", "-c"), ("ls", "**")):
        shown = govtool(*arguments).out
        assert "mart.a" in shown
        assert not any(name in shown for name in ("tmp_users", "t2", "work"))
    assert complete_selectors(None, None, "kind:") == ["kind:external", "kind:query", "kind:table"]  # what was dropped
    for typed in ("t", "tmp", "temp", "stg", "work", "tmp_users."):
        assert not any("t2" in one or "work" in one or "users" in one for one in complete_selectors(None, None, typed))
    for text in complete_selectors(None, None, "job:"):
        assert govtool("ls", text, "--allow-empty").code == 0, text


def test_without_an_index_only_what_the_policies_say(governed):
    assert complete_selectors(None, None, "class:h") == ["class:health"]
    assert complete_selectors(None, None, "run:") == []
    assert complete_selectors(None, None, "kind:") == []
    assert complete_selectors(None, None, "stg") == []
    assert complete_selectors(None, None, "owner:c") == ["owner:crm-team"]


def test_a_store_that_is_none_is_no_failure(project):
    assert complete_selectors("nowhere", ["nothing.yml"], "class:") == []
    assert complete_selectors("nowhere", None, "ow") == ["owner:"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("govtool ls class : pers", ["personal", "personal.contact", "personal.name"]),
        ("govtool ls @ zone : marke", ["marketing"]),
        ("govtool ls tag : pii : em", ["email"]),
        ("govtool ls class :", ["health", "personal", "personal.contact", "personal.name"]),
        ("govtool ls class:hea", ["class:health"]),
        ("govtool explain class : hea", ["health"]),
        ("govtool path x zone : marke", ["marketing"]),
        ("govtool impact class : health,zone : marke", ["marketing"]),
        ("govtool whatif drop class : hea", ["health"]),
        ("govtool ls x --exclude class : hea", ["health"]),
        ("govtool ls x --exclude = class : hea", ["health"]),
        ("govtool classes zone : marke", ["marketing"]),
        ("govtool erase plan --subject a.b --key class : hea", ["health"]),
        ("govtool impact a --format = j", ["json", "jsonl"]),
    ],
)
def test_bash_takes_selectors_apart(governed, words, offered):
    assert complete(words) == offered


def _leaves(entries, path=()):
    for name, entry in entries.items():
        yield from (_leaves(entry, (*path, name)) if isinstance(entry, dict) else [((*path, name), entry.load())])


@pytest.mark.parametrize(
    ("command", "function"), list(_leaves(COMMANDS)), ids=lambda value: getattr(value, "__name__", str(value))
)
def test_the_formats_that_complete_are_those_that_the_command_takes(govtool, command, function):
    has_format = "--output" in govtool(*command, "--help").out
    assert bool(formats_of(function)) == has_format


@pytest.mark.parametrize("command", [["impact", "a"], ["init"], ["ingest", "sql", "v.sql"], ["log"]])
@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_store_is_refused(govtool, store, command, value):
    done = govtool(*command, "--store", value)
    assert done.code == 2
    assert "error[usage.store] --store is empty" in done.err


@pytest.mark.parametrize("command", [["impact", "a"], ["init"], ["ingest", "sql", "v.sql"], ["log"]])
def test_a_store_of_a_newer_format_is_named(govtool, store, command):
    marker = store / "govtool.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "format": 99}))
    done = govtool(*command)
    assert done.code == 4
    assert "error[store.format]" in done.err
    assert "has format 99" in done.err
    assert str(store) in done.err
    assert "pip install --upgrade" in done.err


def test_nobody_who_reads_the_remarks_changes_no_exit_code(project):
    (project / "bad.sql").write_text("select from where;\n" * 3)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", CODE, "lineage", "bad.sql"], stdout=subprocess.PIPE, stderr=writing, check=False
    )
    os.close(writing)
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{"t": 5}', "the columns of t are a list or an object, not the number 5"),
        ('{"t": null}', "the columns of t are a list or an object, not null"),
        ('{"t": [["a", "int"], 7]}', "a column is a name or an object with a name, not the number 7"),
        ('"text"', "is no schema"),
        ("[1]", "a schema is an object of tables, not a list"),
        ('{"": ["a"]}', "a table has an empty name"),
        ('{"t": ["a", ""]}', "a column has an empty name"),
        ('{"t": {"": "int"}}', "a table or column has an empty name"),
    ],
)
def test_errors_about_a_schema_are_for_people(govtool, project, schema, message):
    (project / "s.json").write_text(schema)
    done = govtool("lineage", "-", "--schema", "s.json", stdin=b"select 1")
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("schema", [{"": ["a"]}, {"t": [""]}, {"t": {"": "int"}}, {"s": {"": ["a"]}}])
def test_empty_names_in_the_batch_protocol_are_refused(govtool, schema):
    line = json.dumps({"id": 1, "sql": "select a from t", "schema": schema}).encode()
    answer = json.loads(govtool("lineage", "--batch", stdin=line).out)
    assert answer["error"]["code"] == "usage.schema"
    assert "empty name" in answer["error"]["message"]


@pytest.mark.parametrize(
    "sql", ["select (", "select a from t where", "select -", "select cast( as int)", "select {a: }"]
)
def test_parse_errors_name_no_classes(govtool, sql):
    done = govtool("lineage", "-", "--dialect", "duckdb", stdin=sql.encode())
    assert "something is missing in" in done.err
    assert "class" not in done.err
    assert "sqlglot" not in done.err


def test_the_nearest_name_is_found_among_very_many(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    names = [f"schema_{i % 70}.table_of_{word}_{i}" for i in range(4_000) for word in ("orders", "users")]
    script = "".join(f"create table {name} (id int, column_{i} int);\n" for i, name in enumerate(names))
    (tmp_path / "w.sql").write_text(script)
    store = ["--store", str(tmp_path / "store")]
    assert main(["init", *store]) == 0
    assert main(["ingest", "sql", str(tmp_path / "w.sql"), *store]) == 0
    capsys.readouterr()
    for typed, meant in [
        ("schema_7.table_of_user_77", "schema_7.table_of_users_77"),
        ("table_of_odrers_2001", "schema_41.table_of_orders_2001"),
        ("schema_41.table_of_orders_2001.ide", "schema_41.table_of_orders_2001.id"),
        ("colunm_7999", "schema_9.table_of_users_3999.column_7999"),
    ]:
        assert main(["impact", typed, *store]) == 2
        assert meant in capsys.readouterr().err, typed
