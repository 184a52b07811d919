"""``ingest --dry-run``: says what the ingest would change, exactly, and leaves the store as it is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from answers import check

POLICY = """
version: 1
name: marts
classes:
  personal: {}
classify:
  - class: personal
    columns: ["**.email"]
zones:
  mart: {datasets: ["mart.**"]}
rules:
  - id: M1
    title: Personal data must not reach marts
    deny: {flow: {class: personal, to: {zone: mart}, via: any}}
"""


def write(path: str, text: str) -> str:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return path


def objects(root: str = ".govtool") -> dict[str, str]:
    """Everything in the store, with digests."""
    files = (path for path in sorted(Path(root).rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def warehouse(govtool):
    """A store with two sources, of which the first is about to change."""
    govtool("init")
    write("etl/a.sql", "create table mart.a as select id, name from crm.users")
    write("etl/b.sql", "create view mart.b as select id from mart.a")
    write("other/c.sql", "create table mart.c as select id from mart.b")
    govtool("ingest", "sql", "etl")
    govtool("ingest", "sql", "other")
    write("etl/a.sql", "create table mart.a as select id, lower(email) as email from crm.users")
    Path("etl/b.sql").unlink()
    return govtool


def plan(govtool, *arguments: str) -> dict:
    done = govtool("ingest", "sql", *arguments, "--dry-run", "--format", "json")
    assert done.code == 0, done.err
    return check(done.out, "ingest-plan-1")


def test_a_dry_run_lists_what_diff_lists_after_the_ingest(warehouse):
    before = objects()
    answer = plan(warehouse, "etl")
    assert objects() == before
    warehouse("ingest", "sql", "etl")
    after = json.loads(warehouse("diff", "HEAD~1", "HEAD", "--format", "json").out)
    assert answer["changes"] == after["changes"] != []
    assert answer["summary"] == after["summary"]
    assert answer["base"] == after["from"]
    assert answer["replaces"] == ["sql:etl"]


def test_nothing_new_is_no_change_and_no_commit(warehouse):
    answer = plan(warehouse, "other")
    assert answer["commits"] is False
    assert answer["changes"] == []
    assert answer["coverage"]["before"] == answer["coverage"]["after"]


def test_classes_and_findings_are_those_of_diff_under_the_same_policies(warehouse):
    write("rules/p.yaml", POLICY)
    before = objects()
    answer = plan(warehouse, "etl", "--policy", "rules/p.yaml")
    assert objects() == before
    warehouse("ingest", "sql", "etl")
    after = json.loads(warehouse("diff", "HEAD~1", "HEAD", "--policy", "rules/p.yaml", "--format", "json").out)
    assert answer["changes"] == after["changes"]
    assert answer["policies"] == ["rules/p.yaml"]
    assert {each["what"] for each in answer["changes"]} >= {"class", "finding"}
    found = next(each for each in answer["changes"] if each["what"] == "finding")
    assert (found["change"], found["name"], found["kind"]) == ("added", "mart.a.email", "M1")


def test_policies_of_the_folder_are_applied_unasked(warehouse):
    write("policies/p.yaml", POLICY)
    assert plan(warehouse, "etl")["summary"]["findings"]["added"] == 1


def test_the_first_ingest_of_a_store_can_be_planned(govtool):
    govtool("init")
    write("etl/a.sql", "create table mart.a as select id from crm.users")
    write("policies/p.yaml", POLICY)
    before = objects()
    answer = plan(govtool, "etl")
    assert objects() == before
    assert answer["base"] is None
    assert answer["coverage"]["before"] is None
    assert answer["summary"]["datasets"]["added"] == 2
    assert govtool("ls").code != 0  # the store is still empty


def test_what_would_be_refused_is_refused(warehouse):
    before = objects()
    write("bad/x.sql", "selekt !!")
    assert warehouse("ingest", "sql", "bad", "--dry-run").code == 3
    refused = warehouse("ingest", "sql", "other", "--source", "sql:etl", "--dry-run")
    assert refused.code == 2
    assert "usage.source-replaced" in refused.err
    assert warehouse("ingest", "sql", "other", "--source", "sql:etl", "--replace", "--dry-run").code == 0
    assert objects() == before


def test_the_text_says_what_and_that_nothing_was_committed(warehouse):
    done = warehouse("ingest", "sql", "etl", "--dry-run", "--format", "plain")
    assert "dry run of sql:etl" in done.out
    assert "nothing was committed" in done.out
    assert "mart.a.email" in done.out
    assert "datasets -" in done.out or "columns +" in done.out


def test_formats_and_policies_are_for_dry_runs(warehouse):
    before = objects()
    for arguments in (("--format", "json"), ("-o", "x.json"), ("--policy", "pack:gdpr")):
        done = warehouse("ingest", "sql", "etl", *arguments)
        assert done.code == 2
        assert "--dry-run" in done.err
    assert objects() == before


def test_a_branch_is_compared_with_its_own_head(warehouse):
    warehouse("branch", "create", "pr")
    warehouse("ingest", "sql", "etl", "--branch", "pr")
    assert plan(warehouse, "etl", "--branch", "pr")["commits"] is False
    assert plan(warehouse, "etl")["commits"] is True


def test_other_kinds_of_ingest_leave_nothing_either(warehouse):
    columns = {"fields": {"id": {"inputFields": [{"namespace": "n", "name": "raw.u", "field": "id"}]}}}
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "run": {"runId": "0190f9a0-0000-7000-8000-000000000001"},
        "job": {"namespace": "n", "name": "j"},
        "inputs": [{"namespace": "n", "name": "raw.u"}],
        "outputs": [{"namespace": "n", "name": "mart.u", "facets": {"columnLineage": columns}}],
        "producer": "https://example.org",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }
    write("events.jsonl", json.dumps(event) + "\n")
    before = objects()
    done = warehouse("ingest", "openlineage", "events.jsonl", "--dry-run", "--format", "json")
    answer = check(done.out, "ingest-plan-1")
    assert objects() == before
    assert answer["source"] == "openlineage:events.jsonl"
    assert answer["summary"]["runs"]["added"] == 1
    assert any(each["what"] == "edge" for each in answer["changes"])


def test_from_python_the_plan_is_in_the_result(warehouse):
    import govtool

    before = objects()
    result = govtool.ingest_sql("etl", dry_run=True)
    assert result.plan is not None
    assert result.plan.differs
    assert {row[2] for row in result.plan.rows()} >= {"mart.a.email", "mart.b"}
    assert len(result.plan.head(1).changes) == 1
    assert result.plan.head(1).truncated == len(result.plan.changes) - 1
    assert objects() == before
    assert govtool.ingest_sql("etl").plan is None
