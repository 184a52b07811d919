"""``doctor``: what is in order, and which names may be one dataset."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from answers import check

from govtool.app.upkeep import doctor


def requested(govtool, code=0):
    done = govtool("doctor", "-f", "json")
    assert done.code == code, done.err
    return check(done.out, "doctor-1")


def states(body):
    return {one["what"]: one["state"] for one in body["checks"]}


def ingest(govtool, sql, namespace="default"):
    assert govtool("ingest", "sql", "-", "--source", namespace, "--namespace", namespace, stdin=sql).code == 0


def test_no_store_is_no_illness(govtool, project):
    body = requested(govtool)
    assert body["healthy"]
    assert states(body)["store"] == "note"


@pytest.mark.parametrize(("variable", "value"), [("GOVTOOL_CACHE_SIZE", "much"), ("GOVTOOL_STORE", "ftp://x/y")])
def test_what_is_wrong_is_told(govtool, project, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    body = requested(govtool, code=1)
    assert "wrong" in states(body).values()


def test_mistaken_settings(govtool, project):
    (project / "govtool.toml").write_text("storage = 1\n")
    assert states(requested(govtool, code=1))["settings"] == "wrong"


TABLES = b"create table crm.users(id int, email text); create table crm.orders(id int, total int, at date);"


def test_names_that_may_be_one_are_proposed_as_settings_that_work(govtool, project):
    govtool("init")
    ingest(govtool, TABLES)
    ingest(govtool, TABLES + b"create table crm.other(id int);", "postgres://dw:5432")
    (proposal,) = requested(govtool)["aliases"]
    assert {pair[1] for pair in proposal["datasets"]} == {"crm.users", "crm.orders"}
    assert proposal["columns_agreeing"] == 1.0
    lines = govtool("doctor").out
    settings = tomllib.loads(lines[lines.index("\n[aliases]\n") :])
    assert settings == {"aliases": {proposal["pattern"]: proposal["name"]}}
    (project / "govtool.toml").write_text(lines[lines.index("\n[aliases]\n") :])
    ingest(govtool, TABLES + b"create table crm.other(id int);", "postgres://dw:5432")
    assert requested(govtool)["aliases"] == []


def test_other_columns_or_several_candidates_are_no_proposal(govtool, project):
    govtool("init")
    ingest(govtool, b"create table crm.users(id int, email text)")
    ingest(govtool, b"create table crm.users(a int, b text, c int)", "postgres://dw:5432")
    assert requested(govtool)["aliases"] == []
    ingest(govtool, b"create table users(id int, email text); create table x.users(id int, email text)", "mysql://h:1")
    assert all("crm.users" not in pair[0] for p in requested(govtool)["aliases"] for pair in p["datasets"])


def test_a_mistake_in_the_settings_is_one_mistake(govtool):
    govtool("init")
    Path("govtool.toml").write_text("stor = 'x'\n")
    checks = {each["what"]: each for each in requested(govtool, code=1)["checks"]}
    assert [what for what, each in checks.items() if each["state"] == "wrong"] == ["settings"]
    assert "did you mean store?" in checks["settings"]["detail"]
    assert checks["settings"]["hint"] == f"edit {Path.cwd() / 'govtool.toml'}"
    assert checks["store"]["state"] == "note"


def test_a_library_of_another_version_than_asked_for_is_told(govtool, project, monkeypatch):
    installed = doctor.version
    monkeypatch.setattr(doctor, "version", lambda name: "2.0.1" if name == "duckdb" else installed(name))
    checks = [each for each in requested(govtool, code=1)["checks"] if each["state"] == "wrong"]
    assert [(each["what"], each["detail"].partition(",")[0]) for each in checks] == [("library", "duckdb 2.0.1")]
    assert "duckdb" in checks[0]["hint"]
