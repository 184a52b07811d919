"""Suggested classes: what names, types, descriptions and datasets speak for, and what they do not."""

from __future__ import annotations

import pytest
import yaml

from govtool.app.versions.index import index_of
from govtool.capture.sql.extract import Options, extract
from govtool.capture.sql.files import Script
from govtool.policy.suggest import CLASSES, suggestions
from govtool.query.selection.select import select

SQL = """
create table crm.customers (
  id int, name text, e_mail text, email_opt_in boolean, phone_count int, dob date, note text, home_address text,
  password_hash text, "Last Name" text, salary numeric, created_at timestamp);
create table shop.products (id int, name text, passport_cover text, age int);
create view mart.people as select e_mail, name as full_name, upper(e_mail) as upper_email from crm.customers;
"""


@pytest.fixture(scope="module")
def index():
    return index_of(extract([Script("a.sql", SQL)], Options(dialect="postgres")).derivations)


def suggested(index, least=0.5, classified=(), **described):
    nodes = range(index.node_count)
    texts = {select(index, name.replace("__", ".")).node: text for name, text in described.items()}
    known = {select(index, name).node for name in classified}
    return {one.column: one for one in suggestions(index, nodes, texts, known, least)}


def test_the_roots_of_personal_data_are_suggested(index):
    found = suggested(index)
    assert {name: one.class_ for name, one in found.items()} == {
        "crm.customers.e_mail": "personal.contact.email",
        "crm.customers.name": "personal.name",
        "crm.customers.dob": "personal.birth",
        "crm.customers.home_address": "personal.contact.address",
        "crm.customers.password_hash": "secret",
        "crm.customers.salary": "personal.financial",
        'crm.customers."Last Name"': "personal.name",
        "mart.people.upper_email": "personal.contact.email",
    }
    assert "mart.people.e_mail" not in found  # a copy inherits the class
    assert found["crm.customers.e_mail"].confidence > found["crm.customers.name"].confidence >= 0.5
    assert all(0 < one.confidence <= 1 and one.class_ in CLASSES for one in found.values())


def test_a_type_that_cannot_hold_it_takes_the_belief_away(index):
    found = suggested(index, least=0.0)
    assert found["crm.customers.email_opt_in"].confidence < 0.2
    assert found["crm.customers.phone_count"].confidence < 0.2


def test_a_name_counts_for_more_where_people_are(index):
    found = suggested(index, least=0.0)
    assert found["crm.customers.name"].confidence > found["shop.products.name"].confidence
    assert "dataset" in found["crm.customers.name"].reasons


def test_a_description_speaks_too(index):
    assert "crm.customers.note" not in suggested(index)
    one = suggested(index, crm__customers__note="Free text; PII: e-mail address of the caller")["crm.customers.note"]
    assert (one.class_, one.reasons[0]) == ("personal.contact.email", "marked as personal")
    assert one.confidence >= 0.8


def test_what_is_classified_and_its_copies_are_left_out(index):
    found = suggested(index, classified=["crm.customers.name"])
    assert not {"crm.customers.name", "mart.people.full_name"} & found.keys()


def test_of_columns_that_copy_each_other_the_first_is_suggested():
    text = "insert into p.a (email) select email from p.b; insert into p.b (email) select email from p.a;"
    index = index_of(extract([Script("q.sql", text)], Options(dialect="postgres")).derivations)
    assert list(suggested(index)) == ["p.a.email"]


def test_the_suggested_policy_is_one_and_classifies_what_it_names(tmp_path, monkeypatch):
    import govtool

    monkeypatch.chdir(tmp_path)
    (tmp_path / "etl").mkdir()
    (tmp_path / "etl" / "a.sql").write_text(SQL + 'create table odd.people ("it\'s: #1 \n*email" text, email text);')
    govtool.init()
    govtool.ingest_sql("etl", dialect="postgres")
    from govtool.render.suggestions import policy

    graph = govtool.open()
    answer = graph.suggest_classes(min_confidence=0.3)
    text = "\n".join(policy(answer))
    assert yaml.safe_load(text)["classes"].keys() >= {one.class_ for one in answer.entries}
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "suggested.yml").write_text(text)
    columns = {one.column for one in graph.classes(direct=True).entries}
    assert columns >= {one.column for one in answer.entries if '"' not in one.column}
    assert not graph.suggest_classes(min_confidence=0.3).entries or all(
        '"' in one.column for one in graph.suggest_classes(min_confidence=0.3).entries
    )
