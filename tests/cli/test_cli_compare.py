"""``compare static runtime``, ``--evidence`` and ``[aliases]``."""

from __future__ import annotations

import json

import pytest
from answers import check

SQL = """create view v as select id, email from crm.users where active;
create table mart.a as select v.email, o.total, o.old from v join shop.orders o on o.user_id = v.id;
create table mart.dead as select id from crm.users;
"""


def event(run, inputs, output, fields):
    lineage = {
        name: {"inputFields": [{"namespace": "default", "name": table, "field": field}]}
        for name, (table, field) in fields.items()
    }
    facets = (
        {"schema": {"fields": [{"name": n} for n in fields]}, "columnLineage": {"fields": lineage}} if fields else {}
    )
    return json.dumps(
        {
            "eventType": "COMPLETE", "eventTime": "2026-11-20T01:00:00Z", "run": {"runId": run},
            "job": {"namespace": "n", "name": run}, "inputs": [{"namespace": "default", "name": i} for i in inputs],
            "outputs": [{"namespace": "default", "name": output, "facets": facets}],
        }
    )  # fmt: skip


@pytest.fixture
def both(project, govtool):
    (project / "etl.sql").write_text(SQL)
    events = [
        event("one", ["crm.users", "shop.orders"], "spark_catalog.mart.a",
              {"email": ("crm.users", "email"), "extra": ("crm.users", "x")}),
        event("two", ["crm.users"], "spark_catalog.mart.dyn", {}),
    ]  # fmt: skip
    (project / "events.jsonl").write_text("\n".join(events))
    (project / "govtool.toml").write_text('[aliases]\n"spark_catalog.*" = "*"\n')
    govtool("init")
    assert govtool("ingest", "sql", "etl.sql").code == 0
    assert govtool("ingest", "openlineage", "events.jsonl").code == 0
    return project


def test_compare(govtool, both):
    done = govtool("compare", "static", "runtime", "-f", "json")
    assert done.code == 0, done.err
    body = check(done.out, "compare-1")
    values = {(o["side"], o["target"], o["source"]) for o in body["only"] if o["kind"] == "value"}
    assert values == {
        ("static", "mart.a.old", "shop.orders.old"),
        ("static", "mart.a.total", "shop.orders.total"),
        ("runtime", "mart.a.extra", "crm.users.x"),
    }
    assert {(u["dataset"], u["reason"]) for u in body["unmatched"]} == {
        ("mart.dead", "never ran"), ("mart.dyn", "no text"),
    }  # fmt: skip
    assert govtool("compare", "static", "--exit-code").code == 1
    assert "never ran" in govtool("compare", "static", "runtime").out


def test_aliases_rename_lineage_runs_and_leave_a_fact(govtool, both):
    assert "mart.a" in govtool("runs", "n/one").out
    assert "spark_catalog" not in govtool("runs").out
    assert "spark_catalog.mart.a" in govtool("explain", "mart.a").out
    assert "nothing new" in govtool("ingest", "openlineage", "events.jsonl").out
    (both / "govtool.toml").write_text('[aliases]\n"spark_catalog.*" = "lake.*"\n')
    assert "nothing new" not in govtool("ingest", "openlineage", "events.jsonl").out
    assert "lake.mart.a" in govtool("runs", "n/one").out


@pytest.mark.parametrize("line", ['"a.*" = "b"', '"a" = ""', '"a.*" = 3', '"" = "b"'])
def test_mistaken_aliases(govtool, both, line):
    (both / "govtool.toml").write_text(f"[aliases]\n{line}\n")
    done = govtool("config", "show")
    assert done.code == 2
    assert "govtool.toml" in done.err


def test_evidence(govtool, both):
    def reached(*arguments):
        done = govtool("impact", "crm.users.email", "-f", "json", *arguments)
        assert done.code == 0, done.err
        return {c["column"] for c in json.loads(done.out)["columns"]}

    assert "v.email" in reached("--evidence", "sql")
    assert "v.email" not in reached("--evidence", "runtime")
    assert reached("--evidence", "sql", "--evidence", "openlineage") == reached()
    done = govtool("impact", "crm.users.email", "--evidence", "plan")
    assert done.code == 2
    assert "usage.unknown-evidence" in done.err


def test_one_side_only(govtool, project):
    (project / "etl.sql").write_text(SQL)
    govtool("init")
    govtool("ingest", "sql", "etl.sql")
    done = govtool("compare", "static", "runtime")
    assert done.code == 2
    assert "govtool ingest spark" in done.err
    assert govtool("compare", "static", "other").code == 2


def test_columns_that_are_only_named_go_by_the_alias_too(govtool, project):
    (project / "govtool.toml").write_text('[aliases]\n"raw.*" = "lake.*"\n')
    (project / "a.sql").write_text("insert into raw.t (a, b) select x, y from raw.s;")
    govtool("init")
    govtool("ingest", "sql", "a.sql")
    assert "breaks" in govtool("impact", "lake.t.a", "--change", "drop").out
    assert "raw." not in govtool("ls").out
