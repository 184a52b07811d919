"""Aggregates whose HAVING counts rows that are no members: the verdict is unknown, never held."""

from __future__ import annotations

from pathlib import Path

import pytest
from policy_samples import checked, policy, sql

from govtool.policy.files.load import load

SCHEMA = {
    "crm.users": {"id": "int", "email": "text", "country": "text", "pay": "int"},
    "crm.orders": {"id": "int", "user_id": "int", "total": "int"},
    "ref.names": {"k": "int", "n": "text"},
}
RULES = """
classes: {personal: {}}
classify: [{class: personal, columns: ["crm.users.email"]}]
declassify:
  - {name: k, kind: aggregate, functions: [count, sum, avg], from: [personal], to: none, min_group_size: 10%s}
rules:
  - {id: F, title: t, deny: {flow: {class: personal, to: {datasets: ["share.**"]}}}, unless: [{declassified: [k]}]}
"""
GUESS = ', entity: ["**.users.id", "**.user_id"], entity_known: false'
PACKS = Path(__file__).parents[2] / "policies"
HAVING = "having count(*) >= 20"

JOINED = {
    "orders of one person": f"sum(ascii(u.email)) w from crm.users u join crm.orders o on o.user_id = u.id group by u.id {HAVING}",
    "a crossing with itself": f"sum(ascii(x.email)) w from crm.users x, crm.users y where x.id = 42 {HAVING}",
    "a crossing in subqueries": f"sum(ascii(x.email)) w from (select email from crm.users where id = 42) x cross join crm.users y {HAVING}",
    "a condition of each side": f"sum(ascii(s.email)) w from crm.users s join ref.names n on s.id = s.id and n.k = n.k where s.id = 42 {HAVING}",
    "is not null": f"sum(ascii(s.email)) w from crm.users s join ref.names n on s.id is not null and n.k is not null {HAVING}",
    "an inequality": f"sum(ascii(s.email)) w from crm.users s join ref.names n on n.k <> s.id where s.id = 42 {HAVING}",
    "a union with itself": f"sum(ascii(e)) w from (select email e from crm.users where id = 42 union all select email from crm.users where id = 42) x {HAVING}",
    "a union with others": f"sum(ascii(e)) w from (select email e from crm.users where id = 42 union all select n from ref.names) x {HAVING}",
    "a lateral": f"sum(ascii(u.email)) w from crm.users u, lateral (select total from crm.orders o where o.user_id = u.id) q where u.id = 42 {HAVING}",
    "in a CTE": f"sum(ascii(email)) w from c {HAVING}",
    "in an earlier view": f"sum(ascii(email)) w from stg.v {HAVING}",
    "in a view of a view": f"sum(ascii(email)) w from stg.v2 {HAVING}",
    "other people's orders": "sum(ascii(u.email)) w from crm.users u join crm.orders o on o.user_id = u.id where u.id = 42 having count(distinct o.id) >= 20",
}
ARITHMETIC = {
    "a power of nought": "sum(ascii(email) * power(0, abs(id - 42)))",
    "a least": "sum(ascii(email) * (1 - least(abs(id - 42), 1)))",
    "a division of whole numbers": "sum(ascii(email) * ((42 / id) * (id / 42)))",
    "a product": "sum(length(email) * pay)",
}
SHOWN = {
    "rows of one dataset": f"count(email) w from crm.users group by country {HAVING}",
    "through a CTE": f"count(email) w from d group by country {HAVING}",
    "chosen by others": f"count(email) w from crm.users where id in (select user_id from crm.orders) group by country {HAVING}",
    "distinct people": "count(u.email) w from crm.users u join crm.orders o on o.user_id = u.id group by u.country having count(distinct u.id) >= 20",
    "distinct values of what is aggregated": "count(distinct email) w from stg.v2 having count(distinct email) >= 20",
    "a ratio": f"sum(length(email)) / count(pay) w from crm.users group by country {HAVING}",
}


def verdicts(query: str, rules) -> list[str]:
    text = f"""
create view stg.v as select u.email, o.total from crm.users u join crm.orders o on o.user_id = u.id;
create view stg.v2 as select email, total from stg.v;
create table share.t as with c as (select u.email from crm.users u join crm.orders o on o.user_id = u.id),
  d as (select country, email from crm.users) select {query}
"""
    found = checked(sql(text, SCHEMA), rules).findings
    own = {"F", "START001", "GDPR-ART5-SHARE"}
    return [f"{f.verdict.label} {f.why}" for f in found if f.column == "share.t.w" and f.rule in own]


@pytest.mark.parametrize("query", JOINED.values(), ids=JOINED)
def test_rows_of_a_join_are_not_known_to_be_members(query):
    (found,) = verdicts(query, policy(RULES % ""))
    assert found.startswith("unknown")
    assert "join" in found


@pytest.mark.parametrize("value", ARITHMETIC.values(), ids=ARITHMETIC)
@pytest.mark.parametrize("entity", ["", ", entity: [crm.users.country]"])
def test_arithmetic_with_other_columns_may_choose_one_member(value, entity):
    counted = "distinct country" if entity else "*"
    (found,) = verdicts(f"{value} w from crm.users having count({counted}) >= 20", policy(RULES % entity))
    assert found.startswith("unknown")
    assert "may decide what of a group is taken in" in found


@pytest.mark.parametrize("query", SHOWN.values(), ids=SHOWN)
def test_groups_that_are_shown_are_held(query):
    assert verdicts(query, policy(RULES % "")) == []


@pytest.mark.parametrize("query", [*JOINED.values(), SHOWN["rows of one dataset"]], ids=[*JOINED, "rows"])
def test_with_an_entity_that_is_a_guess_rows_are_unknown_and_with_a_known_one_violated(query):
    (guessed,) = verdicts(query, policy(RULES % GUESS))
    assert guessed.startswith("unknown")
    (known,) = verdicts(query, policy(RULES % ", entity: [crm.users.id]"))
    assert known.startswith("violated")


def test_a_guess_that_is_counted_is_held():
    query = "count(u.email) w from crm.users u join crm.orders o on o.user_id = u.id having count(distinct u.id) >= 20"
    assert verdicts(query, policy(RULES % GUESS)) == []


@pytest.mark.parametrize("pack", ["starter", "gdpr"])
@pytest.mark.parametrize(
    ("query", "verdict"),
    [
        *((query, "unknown") for query in JOINED.values()),
        (SHOWN["rows of one dataset"], "unknown"),
        (SHOWN["distinct people"], None),
        ("count(email) w from crm.users group by country", "violated"),
    ],
)
def test_packs_mean_people(pack, query, verdict):
    rules = load([(PACKS / f"{pack}.yml", f"{pack}.yml")])
    assert [found.split()[0] for found in verdicts(query, rules)] == ([] if verdict is None else [verdict])


def test_a_shorter_way_that_may_be_declassified_does_not_hide_a_longer_one_in_clear():
    text = f"""
create table tmp.a as select email as e from crm.users;
create table tmp.b as select e from tmp.a;
create table share.t as select sum(ascii(u.email)) w from crm.users u join crm.orders o on o.user_id = u.id {HAVING};
insert into share.t (w) select ascii(e) from tmp.b;
"""
    findings = [f for f in checked(sql(text, SCHEMA), policy(RULES % "")).findings if f.column == "share.t.w"]
    assert [f.verdict.label for f in findings] == ["violated"]


def test_a_finding_names_how_many_patterns_count_people_and_where_they_are_listed():
    text = f"create table share.t as select sum(ascii(email)) as w from crm.users {HAVING}"
    findings = checked(sql(text, SCHEMA), load([(PACKS / "starter.yml", "pack:starter")])).findings
    (why,) = {f.why for f in findings if f.rule == "START001"}
    assert "any of 9 patterns of columns (govtool policy explain START001 lists them)" in why
    assert "(?i)" not in why
