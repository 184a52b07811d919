"""``govtool erase plan``: formats, the schema, what is never shown."""

from __future__ import annotations

import json

import pytest
from answers import check

SQL = """
CREATE TABLE crm.users (id int, email text);
CREATE TABLE mart.mail AS SELECT id, email FROM crm.users;
CREATE TABLE mart.odd AS SELECT x.id FROM crm.users u JOIN x USING (id) JOIN y USING (id);
"""


@pytest.fixture
def warehouse(ingested):
    return ingested(SQL)


def test_the_value_is_in_no_format_unless_asked_for(warehouse):
    for form in ("table", "plain", "json", "jsonl", "csv", "markdown"):
        done = warehouse("erase", "plan", "--subject", "crm.users.id=4711", "-f", form)
        assert done.code == 0
        assert "4711" not in done.out + done.err
        assert "mart.mail" in done.out
    assert "4711" in warehouse("erase", "plan", "--subject", "crm.users.id=4711", "--show-values").out
    wrong = warehouse("erase", "plan", "--subject", "crm.userz.id=4711")
    assert wrong.code == 2
    assert "4711" not in wrong.out + wrong.err


def test_json_keeps_to_its_schema(warehouse):
    answer = check(warehouse("erase", "plan", "--subject", "crm.users.id", "-f", "json").out, "erase-1")
    lines = warehouse("erase", "plan", "--subject", "crm.users.id", "-f", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == answer["tasks"]
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


@pytest.mark.parametrize(
    ("key", "stated"),
    [("nosuch.**", "selects no column"), ("mart.mial*", "mart.mail"), ("crm.users", "as a whole"), ("", "empty")],
)
def test_a_key_that_names_no_column_is_a_mistake(key, stated, warehouse):
    done = warehouse("erase", "plan", "--subject", "crm.users.id", "--key", key)
    assert done.code == 2
    assert stated in done.err


def test_what_is_not_understood_may_hold_the_subject_too(ingested):
    govtool = ingested("create table a.u (id int); do $$ begin execute current_setting('job.text'); end $$")
    done = govtool("erase", "plan", "--subject", "a.u.id")
    assert "1 statement not understood could read it: govtool coverage --details" in done.out
