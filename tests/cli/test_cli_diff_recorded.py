"""``diff`` of what is recorded beside lineage: facts, runs, versions of datasets, classes and findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answers import check

import govtool as api
from govtool.answers.diff import DiffAnswer

ROOT = Path(__file__).parents[2]
POLICY = """
version: 1
name: house
classes: {personal: {}, personal.email: {}}
classify:
  - class: personal.email
    tags: ["pii:email"]
rules:
  - id: HOUSE1
    title: no personal data in the mart
    severity: error
    deny: {flow: {class: personal, to: {datasets: ["mart.**"]}}}
"""


@pytest.fixture
def warehouse(project, govtool):
    folder = project / "s"
    folder.mkdir()
    govtool("init")
    ingest(govtool, folder, "create table t (a text, b int)")
    return folder


def ingest(govtool, folder, *statements):
    (folder / "t.sql").write_text(";\n".join(statements))
    done = govtool("ingest", "sql", str(folder), "-d", "snowflake")
    assert done.code == 0, done.err


def changes(govtool, *arguments):
    done = govtool("diff", *arguments, "-f", "json")
    assert done.code == 0, done.err
    answer = check(done.out, "diff-1")
    return [tuple(c[key] for key in ("change", "what", "name", "kind", "before", "after")) for c in answer["changes"]]


def test_a_statement_that_changes_nothing_else_is_a_difference(govtool, warehouse):
    table, view = "create table t (a text, b int)", "create view v as select a from t where b > 10 and a = 'ann'"
    ingest(govtool, warehouse, table, view)
    ingest(govtool, warehouse, table, "-- the same\n" + view.replace(" from", "\n  FROM"))
    ingest(govtool, warehouse, table, view.replace("10", "20"))
    ingest(govtool, warehouse, table, view.replace("> 10", "< 20"))
    ingest(govtool, warehouse, table, view.replace("select a", "select a, b"))
    assert changes(govtool, "2", "3") == []
    said = "…lect a from t where b > ? and a = '?'"
    assert changes(govtool, "3", "4") == [("changed", "statement", "v", "create_view", said, "other literals")]
    assert govtool("diff", "3", "4", "--exit-code").code == 1
    (found,) = changes(govtool, "4", "5")
    assert found[:4] == ("changed", "statement", "v", "create_view")
    assert "b > ?" in found[4]
    assert "b < ?" in found[5]
    # A statement that is the cause of another difference is not listed again.
    assert {what for _, what, *_ in changes(govtool, "5", "6")} == {"column", "edge"}


def test_a_literal_that_a_fingerprint_keeps_is_told_as_one(govtool, warehouse):
    table, view = "create table t (a text, b int)", "create view v as select a, 'x' as k from t where a = 'ann'"
    ingest(govtool, warehouse, table, view)
    ingest(govtool, warehouse, table, view.replace("'x'", "'y'"))
    ((*_, after),) = changes(govtool, "2", "3")
    assert after == "other literals"


def test_a_difference_beyond_the_text_that_is_kept_is_stated(govtool, warehouse):
    table, long = "create table t (a text, b int)", " or ".join(f"b > a{i}" for i in range(600))
    for condition in ("b < 1", "b <= 1"):
        ingest(govtool, warehouse, table, f"create view v as select a from t where {long} or {condition}")
    ((*_, before, after),) = changes(govtool, "2", "3")
    assert (before, after) == ("the first 4,000 characters are the same", "the text after them differs")


def test_a_query_is_listed_with_its_place(govtool, warehouse):
    ingest(govtool, warehouse, "create table t (a text, b int)", "select a from t")
    items = json.loads(govtool("ls", "-f", "json").out)["items"]
    assert [(item["kind"], item["place"]) for item in items] == [("query", "t.sql:2"), ("table", None)]


TAGGED = "create table t (a text with tag (pii = 'email'), b int)"


def test_a_tag_between_two_ingests_is_a_difference(govtool, warehouse):
    ingest(govtool, warehouse, TAGGED)
    assert changes(govtool, "1", "2") == [("added", "fact", "t.a", "tag", None, "pii:email")]
    assert changes(govtool, "2", "1") == [("removed", "fact", "t.a", "tag", "pii:email", None)]
    assert govtool("diff", "1", "2", "--exit-code").code == 1
    assert govtool("diff", "1", "1", "--exit-code").code == 0
    assert govtool("diff").out.splitlines()[-1] == "facts +1"
    assert "| + | fact | t.a | tag: pii:email | t.sql |" in govtool("diff", "-f", "markdown").out
    assert govtool("diff", "-f", "csv").out.splitlines()[1] == "added,fact,t.a,,tag,,pii:email,t.sql"
    summary = json.loads(govtool("diff", "-f", "json").out)["summary"]
    assert summary["facts"] == {"added": 1, "removed": 0, "changed": 0}
    assert summary["edges"] == {"added": 0, "removed": 0, "changed": 0}


def test_another_value_changes_a_fact_beside_lineage(govtool, warehouse):
    ingest(govtool, warehouse, "create table t (a text comment 'mail', b int)")
    ingest(govtool, warehouse, "create table t (a text comment 'address', b int, c int)")
    assert changes(govtool) == [
        ("added", "column", "t.c", None, None, "INT"),
        ("changed", "fact", "t.a", "description", "mail", "address"),
    ]


def test_what_another_source_states_too_is_no_difference(govtool, warehouse, project):
    other = project / "other"
    other.mkdir()
    ingest(govtool, warehouse, TAGGED)
    ingest(govtool, other, TAGGED)
    ingest(govtool, warehouse, "create table t (a text, b int)")
    assert changes(govtool) == []
    ingest(govtool, other, "create table t (a text, b int)")
    assert changes(govtool) == [("removed", "fact", "t.a", "tag", "pii:email", None)]


def test_a_record_more_of_a_known_run_is_no_run_more(govtool, project):
    log = ROOT / "fixtures/spark/logs/spark-3.5.9.gz"
    govtool("init")
    assert govtool("ingest", "spark", str(log)).code == 0
    runs = json.loads(govtool("runs", "-f", "json").out)["runs"]
    starts = [run["started"] for run in runs]
    run = next(each for each in runs if each["status"] == "complete" and starts.count(each["started"]) == 1)
    details = {"applicationId": run["application"], "_producer": "https://x.test", "_schemaURL": "https://x.test"}
    event = {
        "eventType": "START",
        "eventTime": run["started"],
        "producer": "https://x.test",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "0193400a-0000-7000-8000-00000000aaaa", "facets": {"spark_applicationDetails": details}},
        "job": {"namespace": "spark", "name": "other"},
    }
    other = {
        **event,
        "run": {"runId": "0193400a-0000-7000-8000-00000000bbbb"},
        "job": {"namespace": "n", "name": "new"},
    }
    (project / "events.jsonl").write_text("\n".join(map(json.dumps, (event, other))))
    assert govtool("ingest", "openlineage", "events.jsonl").code == 0
    assert len(json.loads(govtool("runs", "-f", "json").out)["runs"]) == len(runs) + 1
    found = sorted(row for row in changes(govtool) if row[1] == "run")
    assert [row[:4] for row in found] == [
        ("added", "run", "0193400a-0000-7000-8000-00000000bbbb", "n/new"),
        ("changed", "run", run["id"], run["job"]),
    ]
    assert found[1][4:] == ("complete", "complete, with other records")
    back = sorted(row for row in changes(govtool, "2", "1") if row[1] == "run")
    assert [row[:3] for row in back] == [
        ("changed", "run", run["id"]),
        ("removed", "run", "0193400a-0000-7000-8000-00000000bbbb"),
    ]


def test_runs_and_versions_of_datasets(govtool, warehouse, project):
    govtool("ingest", "prov", str(ROOT / "fixtures/prov"))
    found = changes(govtool)
    runs = [row for row in found if row[1] == "run"]
    assert {row[0] for row in runs} == {"added"}
    assert len(runs) == len(json.loads(govtool("runs", "-f", "json").out)["runs"])
    assert ("changed", "run") not in {row[:2] for row in found}
    data = project / "orders"
    data.mkdir()
    for content in ("1", "2"):
        (data / "part.csv").write_text(content)
        assert govtool("snapshot", "orders", "--run", f"load-{content}").code == 0
    ((change, what, name, _, before, after),) = changes(govtool)
    assert (change, what, name) == ("changed", "version", f"file://{data}")
    assert None not in (before, after)
    assert before != after
    assert "load-2" in govtool("diff").out


def test_classes_and_findings_of_policies(govtool, warehouse, project):
    (project / "house.yml").write_text(POLICY)
    view = "create view mart.v as select a from t"
    ingest(govtool, warehouse, "create table t (a text, b int)", view)
    ingest(govtool, warehouse, TAGGED, view)
    assert changes(govtool, "--policy", "house.yml") == [
        ("added", "fact", "t.a", "tag", None, "pii:email"),
        ("added", "class", "mart.v.a", None, None, "personal.email"),
        ("added", "class", "t.a", None, None, "personal.email"),
        ("added", "finding", "mart.v.a", "HOUSE1", None, "violated"),
    ]
    last = govtool("diff", "--policy", "house.yml").out.splitlines()[-1]
    assert last == "facts +1 · classes +2 · findings +1"
    answer = api.open().diff(policy="house.yml", today="2026-11-21")
    assert isinstance(answer, DiffAnswer)
    assert [change.what for change in answer.changes] == ["fact", "class", "class", "finding"]
    assert [e.place for e in answer.changes[-1].evidence] == ["t.sql:2"]
    back = changes(govtool, "HEAD", "HEAD~1", "--policy", "house.yml")
    assert {row[0] for row in back} == {"removed"}


def test_rules_about_changes_are_judged_of_the_change(govtool, warehouse, project):
    rule = """
version: 1
name: house
classes: {personal: {}, personal.email: {}}
classify:
  - class: personal.email
    columns: ["t.a"]
rules:
  - id: HOUSE2
    title: personal columns stay
    deny: {change: {kinds: [drop], class: personal}}
"""
    (project / "house.yml").write_text(rule)
    ingest(govtool, warehouse, "create table t (b int)")
    found = changes(govtool, "--policy", "house.yml")
    assert ("removed", "class", "t.a", None, "personal.email", None) in found
    assert ("added", "finding", "t.a", "HOUSE2", None, "violated") in found


def test_mistakes_in_policies(govtool, warehouse, project):
    ingest(govtool, warehouse, TAGGED)
    assert govtool("diff", "--policy", "none.yml").code == 2
    govtool("ingest", "prov", str(ROOT / "fixtures/prov"))
    done = govtool("diff", "parse-19", "parse-20", "--policy", "pack:starter")
    assert done.code == 2
    assert "--policy compares commits" in done.err
