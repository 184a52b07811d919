"""What a dbt project runs beside its models, and models that are links to others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from govtool.capture.dbt.files import yaml_mapping
from govtool.capture.dbt.hooks import hook_sql

PROJECT = """\
name: p
profile: p
on-run-start: "insert into audit.log select c from raw.s"
on-run-end: ["{{ do_it() }}", {sql: "insert into audit.ends select k from raw.s"}]
models:
  p:
    staging:
      +post-hook: "insert into audit.copies select c from {{ this }}"
"""


@pytest.fixture
def ingested(govtool, project):
    (project / "models").mkdir()
    (project / "models" / "a.sql").write_text("select c, k from raw.s")
    (project / "models" / "b.sql").symlink_to("a.sql")
    (project / "models" / "c.sql").write_text("select k from {{ ref('b') }}")
    (project / "dbt_project.yml").write_text(PROJECT)
    assert govtool("init").code == 0
    govtool("ingest", "sql", ".", "--dialect", "postgres")
    return govtool


def test_hooks_of_the_project_file_are_read_and_what_they_hide_is_said(ingested):
    answer = json.loads(ingested("impact", "raw.s.c", "--change", "drop", "-f", "json").out)
    places = {entry["column"]: entry["evidence"][0] for entry in answer["columns"]}
    assert {"audit.log.*", "a.*", "b.*"} <= set(places)
    assert (places["audit.log.*"]["file"], places["audit.log.*"]["line"]) == ("dbt_project.yml", 3)
    assert "unaffected" not in answer["summary"]  # do_it may do anything, and so may the hook of any model
    assert "audit.ends.k" in ingested("impact", "raw.s.k", "--change", "logic").out
    assert "dbt_project.?" not in ingested("ls").out


def test_a_link_with_another_name_is_another_model(ingested, project: Path):
    found = json.loads(ingested("impact", "raw.s.k", "-f", "json").out)
    assert {"a.k", "b.k", "c.k"} <= {entry["column"] for entry in found["columns"]}


@pytest.mark.parametrize(
    ("settings", "sql"),
    [
        ({}, ""),
        ({"on-run-start": None, "models": {"p": {"+tags": ["x"]}}}, ""),
        ({"on-run-start": ["a b", ""]}, "a b;"),
        ({"seeds": {"p": {"post-hook": {"sql": "delete from x;", "transaction": False}}}}, "delete from x;"),
        ({"on-run-end": ["delete from a -- old", "delete from b"]}, "delete from a -- old\n;delete from b;"),
        ({"models": {"p": {"+pre-hook": "analyze {{ this }}"}}}, "analyze {{ each_model() }};"),
    ],
)
def test_hooks_are_found_in_every_form(settings, sql):
    assert hook_sql(settings, "").strip() == sql


@pytest.mark.parametrize("text", ["on-run-end: &a {sql: *a}", "on-run-end: &a [*a, {sql: *a}]", "models: &a {m: *a}"])
def test_hooks_that_hold_themselves_are_none(text):
    assert hook_sql(yaml_mapping(text), text) == ""
