"""``govtool erase plan``: formats, the schema, what is never shown."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "erase-1.json").read_text())
SQL = """
CREATE TABLE crm.users (id int, email text);
CREATE TABLE mart.mail AS SELECT id, email FROM crm.users;
CREATE TABLE mart.odd AS SELECT x.id FROM crm.users u JOIN x USING (id) JOIN y USING (id);
"""


@pytest.fixture
def warehouse(govtool, project):
    (project / "etl").mkdir()
    (project / "etl" / "all.sql").write_text(SQL)
    assert govtool("init").code == 0
    assert govtool("ingest", "sql", "etl", "--dialect", "postgres").code == 0
    return govtool


def test_the_value_is_in_no_format_unless_asked_for(warehouse):
    for form in ("table", "plain", "json", "csv", "markdown"):
        done = warehouse("erase", "plan", "--subject", "crm.users.id=4711", "-f", form)
        assert done.code == 0
        assert "4711" not in done.out + done.err
        assert "mart.mail" in done.out
    assert "4711" in warehouse("erase", "plan", "--subject", "crm.users.id=4711", "--show-values").out
    wrong = warehouse("erase", "plan", "--subject", "crm.userz.id=4711")
    assert wrong.code == 2
    assert "4711" not in wrong.out + wrong.err


def test_json_keeps_to_its_schema(warehouse):
    answer = json.loads(warehouse("erase", "plan", "--subject", "crm.users.id", "-f", "json").out)
    jsonschema.validate(answer, SCHEMA)
    assert [(t["order"], t["dataset"], t["action"]) for t in answer["tasks"]] == [
        (1, "crm.users", "delete"),
        (2, "mart.mail", "rebuild"),
        (1, "x", "unknown"),
        (1, "y", "unknown"),
        (2, "mart.odd", "unknown"),
    ]
    assert answer["values"] is None


def test_exit_codes(warehouse):
    assert warehouse("erase", "plan", "--subject", "crm.users.id", "--strict").code == 3
    assert warehouse("erase", "plan", "--subject", "crm.users").code == 2
    assert warehouse("erase", "plan", "--subject", "=4").code == 2
    assert warehouse("erase", "plan", "--subject", "crm.users.id", "--within", "soon").code == 2
    assert warehouse("erase", "plan", "--subject", "mart.mail.email", "--strict").code == 0


def test_a_key_that_someone_knows_of(warehouse):
    done = warehouse("erase", "plan", "--subject", "crm.users.id", "--key", "x.id", "-f", "json")
    assert {t["dataset"]: t["action"] for t in json.loads(done.out)["tasks"]}["x"] == "delete"
