"""dbt's artifacts, whole, in part and damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.capture.dbt.artifacts import read_project, relation_parts
from govtool.errors import UsageError

TARGET = Path(__file__).parents[3] / "fixtures" / "dbt" / "shop" / "target"


def test_the_shop():
    project = read_project(TARGET)
    assert (project.name, project.dialect, project.diagnostics) == ("shop", "postgres", ())
    users = project.nodes["source.shop.crm.users"]
    assert [(c.name, c.type) for c in users.columns] == [("id", "integer"), ("email", "text"), ("country", "text")]
    assert ("owner", "dana") in users.facts
    audience = project.nodes["model.shop.audience"]
    assert (audience.relation, audience.schema, audience.materialized) == (
        "dwh.mart.audience_v2",
        "mart",
        "incremental",
    )
    assert ("owner", "Growth <growth@example.org>") in audience.facts
    assert project.runs["model.shop.stg_users"].completed_at == "2026-11-20T22:09:02Z"
    assert "test.shop.unique_email" not in project.nodes


@pytest.mark.parametrize(
    ("written", "dialect", "parts"),
    [
        ('"dwh"."Mart"."a.b"', "postgres", ["dwh", '"Mart"', '"a.b"']),
        ("DWH.MART.Orders", "snowflake", ["dwh", "mart", "orders"]),
        ('DWH.MART."orders"', "snowflake", ["dwh", "mart", '"orders"']),
        ("`proj-x`.`ds`.`T`", "bigquery", ['"proj-x"', "ds", '"T"']),
        ("`proj-x.ds.t`", "bigquery", ['"proj-x"', "ds", "t"]),
        ("[dbo].[T 1]", "tsql", ["dbo", '"t 1"']),
        ('"open', "postgres", ["open"]),
        ("", "", []),
    ],
)
def test_relations_as_adapters_write_them(written, dialect, parts):
    assert relation_parts(written, dialect) == parts


def test_names_without_a_relation_come_from_database_schema_alias(tmp_path):
    manifest = json.loads((TARGET / "manifest.json").read_text())
    for node in manifest["nodes"].values():
        node["relation_name"] = None
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert read_project(tmp_path).nodes["model.shop.audience"].relation == "dwh.mart.audience_v2"


def test_compiled_sql_is_found_where_dbt_leaves_it(tmp_path):
    manifest = json.loads((TARGET / "manifest.json").read_text())
    audience, users = (manifest["nodes"][f"model.shop.{name}"] for name in ("audience", "stg_users"))
    target = tmp_path / "target"
    target.mkdir()
    (target / "compiled.sql").write_text("select 1 as a")
    (tmp_path / "secret.sql").write_text("select 2 as b")
    del audience["compiled_code"], users["compiled_code"]
    audience["compiled_path"], users["compiled_path"] = "target/compiled.sql", "target/../secret.sql"
    (target / "manifest.json").write_text(json.dumps(manifest))
    nodes = read_project(tmp_path).nodes
    assert nodes["model.shop.audience"].sql == "select 1 as a"
    assert nodes["model.shop.stg_users"].sql is None, "only below target"


def test_damaged_artifacts_are_said(tmp_path):
    with pytest.raises(UsageError, match="no manifest"):
        read_project(tmp_path)
    (tmp_path / "dbt_project.yml").touch()
    with pytest.raises(UsageError) as refused:
        read_project(tmp_path)
    assert "without dbt: govtool ingest sql" in str(refused.value.hint)
    for text in ("{", "[]", "{}", '{"nodes": []}', "[" * 100_000):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(UsageError):
            read_project(tmp_path)
    shutil.copy(TARGET / "manifest.json", tmp_path)
    (tmp_path / "catalog.json").write_text("{")
    assert [d.code for d in read_project(tmp_path).diagnostics] == ["unreadable", "dbt-catalog"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
_KEYS = [
    "columns",
    "config",
    "meta",
    "tags",
    "depends_on",
    "compiled_code",
    "relation_name",
    "alias",
    "owner",
    "language",
]


@settings(max_examples=examples(80), deadline=None)
@given(
    st.dictionaries(st.sampled_from(_KEYS), _JSON), st.sampled_from(["model", "source", "seed", "exposure", "snapshot"])
)
def test_wrong_types_cost_only_their_node(tmp_path_factory, values, kind):
    folder = tmp_path_factory.mktemp("dbt")
    nodes = {
        "good": {"resource_type": "model", "name": "good"},
        "odd": {"resource_type": kind, "name": "odd", **values},
    }
    (folder / "manifest.json").write_text(
        json.dumps({"metadata": 5, "nodes": nodes, "sources": {"x": 5}, "exposures": []})
    )
    project = read_project(folder)
    assert project.nodes["good"].relation == "good"
    assert {"reject", "dbt-catalog"} >= {d.code for d in project.diagnostics}
