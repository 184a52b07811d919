"""``govtool ingest dbt`` from the outside."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

TARGET = Path(__file__).parents[2] / "fixtures" / "dbt" / "shop" / "target"


def test_a_project_becomes_a_graph(govtool, project):
    govtool("init")
    done = govtool("ingest", "dbt", TARGET)
    assert done.code == 0
    assert "coverage 50.0% (2/4 statements)" in done.out
    answer = json.loads(govtool("impact", "crm.users.email", "-f", "json").out)
    verdicts = {entry["column"]: entry["verdict"] for entry in answer["columns"]}
    assert verdicts["dwh.stg.stg_users.email"] == "changes"
    assert verdicts["dwh.mart.audience_v2.email"] == "changes"
    assert verdicts["dwh.mart.scores.score"] == "unknown"
    assert verdicts["exposure:weekly.*"] == "unknown"
    users = json.loads(govtool("explain", "stg.stg_users", "-f", "json").out)
    assert users["dataset_kind"] == "view"
    assert users["definitions"][0]["run"] == "11111111-2222-3333-4444-555555555555"


def test_what_is_said_of_datasets_and_columns_is_shown(govtool, project):
    govtool("init")
    govtool("ingest", "dbt", TARGET)
    column = json.loads(govtool("explain", "stg_users.email", "-f", "json").out)
    assert {(f["name"], f["value"]) for f in column["facts"]} == {
        ("description", "Where we write to."),
        ("tag", "pii"),
        ("meta.class", "personal.contact.email"),
    }
    assert "Growth <growth@example.org>" in govtool("explain", "audience_v2").out
    assert "https://bi.example.org/weekly" in govtool("explain", "exposure:weekly").out


def test_the_same_artifacts_again_make_no_commit(govtool, project):
    govtool("init")
    shutil.copytree(TARGET, "target")
    assert "commit 1" in govtool("ingest", "dbt", "target").out
    assert "nothing new" in govtool("ingest", "dbt", "target").out
    Path("target/catalog.json").unlink()
    assert "commit 2" in govtool("ingest", "dbt", ".").out


def test_literals_do_not_reach_the_store(govtool, project):
    govtool("init")
    govtool("ingest", "dbt", TARGET)
    assert "country <> '?'" in govtool("explain", "stg_users", "-v").out


def test_no_project_is_a_usage_error(govtool, project):
    govtool("init")
    done = govtool("ingest", "dbt", ".")
    assert done.code == 2
    assert "dbt compile" in done.err
    assert govtool("ingest", "dbt", TARGET, "--min-coverage", "90").code == 3


def test_a_waiver_in_compiled_sql_is_a_fact_of_the_model(govtool, project):
    govtool("init")
    shutil.copytree(TARGET, "target")
    manifest = json.loads(Path("target/manifest.json").read_text())
    (key,) = [key for key in manifest["nodes"] if key.endswith(".stg_users")]
    node, waiver = manifest["nodes"][key], "allow GDPR-ART44 until 2099-03-31 because legal approved it"
    node["compiled_code"] = f"\n\n-- govtool: {waiver}\n{node['compiled_code']}"
    Path("target/manifest.json").write_text(json.dumps(manifest))
    assert govtool("ingest", "dbt", "target").code == 0
    facts = json.loads(govtool("explain", "stg_users", "-f", "json").out)["facts"]
    assert [(f["value"], f["file"]) for f in facts if f["name"] == "waiver"] == [(waiver, "models/stg/stg_users.sql:3")]
