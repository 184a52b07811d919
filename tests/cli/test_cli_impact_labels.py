"""Classes, owners and diagnostics in the answers of ``impact``, and what a mistaken policy does to it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from answers import check

import govtool as package
from govtool.errors import UsageError
from govtool.model.fact import FACTS, Fact, encode_facts
from govtool.store import Changes, Fragment, Store

SQL = """
create table crm.users (id int, email text, secret text);
create view stg.users as select id, lower(email) as email, md5(email) as code from crm.users;
create table mart.audience as
select u.email, u.code, count(*) as orders from stg.users u join shop.orders o on o.user_id = u.id
group by u.email, u.code;
create view mart.odd as select name from stg.users u join shop.orders o on o.user_id = u.id join shop.carts c on c.id = u.id;
"""
POLICY = """
version: 1
name: own
classes:
  personal: {}
  personal.email: {}
  coded: {}
classify:
  - {class: personal.email, columns: [crm.users.email]}
declassify:
  - {name: digest, kind: mask, functions: [md5], from: [personal.email], to: coded}
zones:
  marts: {datasets: ["mart.**"], owner: growth}
metadata:
  - {datasets: [stg.users], owner: core}
"""
DROP = ("impact", "crm.users.email", "--change", "drop")


@pytest.fixture
def warehouse(ingested, project):
    """The command line on ``SQL``, with ``POLICY`` in own.yml, which is not where policies are looked for."""
    (project / "own.yml").write_text(POLICY)
    return ingested(SQL)


def entries(done) -> dict[str, dict[str, object]]:
    """The columns of an answer by name."""
    assert done.code == 0, done.err
    return {entry["column"]: entry for entry in check(done.out, "impact-1")["columns"]}


def test_the_classes_of_columns_are_those_of_govtool_classes(warehouse):
    found = entries(warehouse(*DROP, "-f", "json", "--policy", "own.yml"))
    listed = json.loads(warehouse("classes", "**", "--direct", "--policy", "own.yml", "-f", "json").out)["columns"]
    expected: dict[str, set[str]] = {}
    for one in listed:
        expected.setdefault(one["column"], set()).update(one["classes"])
    assert {name: set(entry["classes"]) for name, entry in found.items()} == {
        name: set() if entry.get("rows") else expected.get(name, set()) for name, entry in found.items()
    }
    assert found["mart.audience.email"]["classes"] == ["personal.email"]
    assert found["mart.audience.code"]["classes"] == ["coded"]
    assert found["mart.audience.*"]["classes"] == []


def test_the_classes_of_columns_are_those_that_the_selector_finds(warehouse):
    found = entries(warehouse(*DROP, "-f", "json", "--policy", "own.yml"))
    selected = json.loads(warehouse("ls", "class:personal.email", "--policy", "own.yml", "-f", "json").out)["items"]
    names = {item["name"] for item in selected} - {"crm.users.email"}
    assert {name for name, entry in found.items() if "personal.email" in entry["classes"]} == names


def test_owners_are_those_of_zones_and_metadata(warehouse):
    found = entries(warehouse(*DROP, "-f", "json", "--policy", "own.yml"))
    assert {name.split(".")[0]: entry["owner"] for name, entry in found.items()} == {"stg": "core", "mart": "growth"}


def test_the_table_shows_the_subjects_class_and_a_column_of_owners(warehouse):
    lines = warehouse(*DROP, "--policy", "own.yml").out.splitlines()
    assert lines[0].startswith("crm.users.email · personal.email · ")
    assert lines[0].endswith(" · change: drop")
    assert lines[2].split() == ["verdict", "column", "hops", "via", "owner", "evidence"]
    (row,) = [line for line in lines if " stg.users.* " in line]
    assert row.split()[-2:] == ["core", "all.sql:3:60"]
    markdown = warehouse(*DROP, "--policy", "own.yml", "-f", "markdown").out
    assert "| verdict | column | hops | via | owner | evidence |" in markdown


def test_without_policies_and_facts_nothing_is_shown(warehouse):
    lines = warehouse(*DROP).out.splitlines()
    assert lines[0].split(" · ")[0::2] == ["crm.users.email", "change: drop"]
    assert "owner" not in lines[2]
    found = entries(warehouse(*DROP, "-f", "json"))
    assert {(tuple(entry["classes"]), entry["owner"]) for entry in found.values()} == {((), None)}


def test_policies_in_their_folder_count_unasked(warehouse, project):
    (project / "policies").mkdir()
    (project / "policies" / "own.yml").write_text(POLICY)
    assert entries(warehouse(*DROP, "-f", "json"))["stg.users.email"]["classes"] == ["personal.email"]
    answer = package.open().impact("crm.users.email", change="drop")
    assert answer.subject_classes == ("personal.email",)
    assert {(entry.owner, entry.classes) for entry in answer.columns if entry.column == "stg.users.email"} == {
        ("core", ("personal.email",))
    }


@pytest.mark.parametrize("extra", [(), ("--upstream",), ("-f", "json")])
def test_a_given_policy_that_cannot_be_read_is_an_error(warehouse, extra):
    done = warehouse("impact", "crm.users.email", "--policy", "/nonexistent.yml", *extra)
    assert (done.code, done.out) == (2, "")
    assert "policy.unreadable" in done.err


@pytest.mark.parametrize(
    "question",
    [
        ("impact", "crm.users.email"),
        ("path", "crm.users.email", "mart.audience.email"),
        ("explain", "crm.users.email"),
        ("ls",),
        ("whatif", "drop", "crm.users.email"),
    ],
)
def test_a_given_policy_with_a_mistake_is_an_error_of_every_question(warehouse, project, question):
    (project / "broken.yml").write_text("version: 1\nname: broken\nclassify:\n  - {class: nowhere, columns: [a]}\n")
    done = warehouse(*question, "--policy", "broken.yml")
    assert (done.code, done.out) == (2, "")
    assert "nowhere" in done.err
    assert "broken.yml:4" in done.err


def test_a_mistaken_policy_in_the_folder_is_an_error(warehouse, project):
    (project / "policies").mkdir()
    (project / "policies" / "broken.yml").write_text("version: 1\nname: broken\nclases: {}\n")
    done = warehouse(*DROP)
    assert done.code == 2
    assert "policies/broken.yml" in done.err
    with pytest.raises(UsageError, match="clases"):
        package.open().impact("crm.users.email")


def test_the_owner_that_was_recorded_as_a_fact_is_shown_without_policies(ingested):
    govtool = ingested("create table a (x int); create table b as select x from a; create table c as select x from b;")
    facts = [
        Fact("c", None, "owner", "finance", "dbt", "schema.yml", "dbt"),
        Fact("c", "x", "owner", "nobody", "dbt", "schema.yml", "dbt"),
        Fact("elsewhere", None, "meta.owner", "someone", "dbt", "schema.yml", "dbt"),
    ]
    Store.open(".govtool").commit(
        Changes(add=(Fragment("dbt", FACTS, encode_facts(facts), len(facts)),)), message="", author="", batch="facts"
    )
    for _ in range(2):  # read from the store, then from the cache
        found = entries(govtool("impact", "a.x", "-f", "json"))
        assert {(name[0], entry["owner"]) for name, entry in found.items()} == {("b", None), ("c", "finance")}
    assert "owner" in govtool("impact", "a.x").out.splitlines()[2]


def test_diagnostics_are_those_of_the_statements_given_as_evidence(warehouse):
    answer = check(warehouse("impact", "stg.users", "-f", "json").out, "impact-1")
    shown = {(item["file"], item["line"]) for entry in answer["columns"] for item in entry["evidence"]}
    assert ("all.sql", 7) in shown
    (remark,) = answer["diagnostics"]
    explained = json.loads(warehouse("explain", "mart.odd", "-f", "json").out)["diagnostics"]
    assert remark in explained
    assert remark["code"] == "ambiguous"
    assert remark["target"] == "mart.odd.name"
    # What is not shown gives no remarks.
    limited = check(warehouse("impact", "crm.users.email", "--limit", "1", "-f", "json").out, "impact-1")
    assert limited["diagnostics"] == []


def test_csv_and_rows_end_with_classes_and_owner(warehouse):
    header, *rows = warehouse(*DROP, "-f", "csv", "--policy", "own.yml").out.splitlines()
    assert header == "verdict,column,dataset,kinds,hops,via,evidence,classes,owner"
    (code,) = (row for row in rows if row.startswith("breaks,mart.audience.code,"))
    assert code.endswith(",coded,growth")


def test_classes_that_could_not_be_decided_are_possible(ingested, project):
    (project / "own.yml").write_text(POLICY.split("zones:")[0])
    govtool = ingested(
        "create table crm.users (id int, email text);\n"
        "create view odd.v as select email || x from crm.users u, other.t o;\n"
        "create view odd.w as select thing from crm.users u, other.t o;\n"
    )
    found = entries(govtool("impact", "crm.users", "-f", "json", "--policy", "own.yml"))
    listed = json.loads(govtool("classes", "odd.**", "--policy", "own.yml", "-f", "json").out)["columns"]
    unknown = {one["column"] for one in listed if one["mode"] == "unknown"}
    possible = {name for name, entry in found.items() if "personal.email" in entry.get("possible_classes", ())}
    assert {name for name in found if not found[name].get("rows")} & unknown == possible


def test_without_policies_nothing_that_reads_or_applies_them_is_imported(warehouse):
    assert warehouse(*DROP).code == 0  # the index and the owners are in the cache from now on
    code = (
        "import sys; from govtool.cli.main import main; main(sys.argv[1:]); "
        "print('LOADED', *({'numpy', 'pyarrow', 'yaml', 'govtool.policy.files.load', 'govtool.policy.rules.check'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *DROP], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED"
