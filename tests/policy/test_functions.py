"""Functions of declassifiers by the names that users write, whatever parsers make of them."""

from __future__ import annotations

import pytest
from policy_samples import TODAY, checked, policy, reported, sql

from govtool.functions.facts import REAL
from govtool.functions.names import ALIASES, is_same, squashed
from govtool.policy.classes.masking import keeps_a_value, named
from govtool.policy.rules.lint import in_graph

RULES = """
classes: {personal: {}, hidden: {}}
classify: [{class: personal, columns: ["crm.u.email"]}]
declassify:
  - {name: m, kind: mask, functions: [%s], from: [personal], to: hidden}
rules:
  - {id: F, title: t, deny: {flow: {class: personal, to: {datasets: ["share.**"]}}}, unless: [{declassified: [m]}]}
"""


@pytest.mark.parametrize(
    ("dialect", "call", "written"),
    [
        ("postgres", "substr(email, 1, 2)", "substr"),
        ("postgres", "substr(email, 1, 2)", "substring"),
        ("bigquery", "substr(email, 1, 2)", "substr"),
        ("postgres", "date_trunc('month', email)", "date_trunc"),
        ("postgres", "date_trunc('month', email)", "timestamp_trunc"),
        ("snowflake", "date_trunc('month', email)", "DATE_TRUNC"),
        ("spark", "trunc(email, 'month')", "trunc"),
        ("snowflake", "sha2_hex(email)", "sha2_hex"),
        ("clickhouse", "sha256(email)", "sha256"),
        ("bigquery", "sha512(email)", "sha512"),
        ("postgres", "strpos(email, 'a')", "strpos"),
        ("tsql", "charindex('a', email)", "charindex"),
        ("tsql", "len(email)", "len"),
        ("tsql", "datepart(year, email)", "datepart"),
        ("oracle", "nvl(email, 'x')", "nvl"),
        ("postgres", "to_char(email, 'x')", "to_char"),
        ("spark", "char_length(email)", "char_length"),
        ("postgres", "dbo.mask_email(email)", "dbo.mask_email"),
        ("postgres", "dbo.mask_email(email)", "mask_email"),
        ("tsql", "[dbo].[mask_email](email)", "dbo.mask_email"),
        ("bigquery", "`p.d.mask_email`(email)", "mask_email"),
        ("bigquery", "`p.d.mask_email`(email)", "d.mask_email"),
        ("bigquery", "`p.d.mask_email`(email)", "p.d.mask_email"),
        ("oracle", "dbms_crypto.hash(email, 1)", "dbms_crypto.hash"),
    ],
)
def test_a_function_by_the_name_that_is_written(dialect, call, written):
    index = sql(f"create table share.t as select {call} as v from crm.u", dialect=dialect)
    assert reported(checked(index, policy(RULES % f'"{written}"'))) == []


@pytest.mark.parametrize(
    ("dialect", "call", "written"),
    [
        ("postgres", "substr(email, 1, 2)", "sub*"),  # a glob never means what keeps a value
        ("postgres", "md5(email)", "sha256"),
        ("tsql", "hashbytes('MD5', email)", "sha1"),
        ("bigquery", "`p.d.mask_email`(email)", "x.mask_email"),
        ("postgres", "strpos(email, 'a')", "substr"),
    ],
)
def test_another_function_is_another(dialect, call, written):
    index = sql(f"create table share.t as select {call} as v from crm.u", dialect=dialect)
    assert reported(checked(index, policy(RULES % f'"{written}"'))) == [("F", "share.t.v", "violated")]


def test_what_never_counts_by_a_glob_does_not_by_another_name():
    for name, parsed in ALIASES.items():
        never = {squashed(n) for n in REAL}
        if name in never or parsed & never:
            assert not any(named(["*"], one) for one in (name, *parsed) if one in never or ALIASES.get(one, frozenset()) & never)  # fmt: skip


def test_an_aggregate_that_is_listed_by_its_name_counts_although_it_hands_on_a_value():
    rules = """
classes: {personal: {}}
classify: [{class: personal, columns: ["crm.u.email"]}]
declassify:
  - {name: k, kind: aggregate, functions: [%s], from: [personal], to: none, min_group_size: 5}
rules:
  - {id: F, title: t, deny: {flow: {class: personal, to: {datasets: ["share.**"]}}}, unless: [{declassified: [k]}]}
"""
    text = "create table share.t as select team, collect_list(email) v from crm.u group by team having count(*) >= 5"
    index = sql(text, dialect="spark")
    assert keeps_a_value("collect_list")
    assert reported(checked(index, policy(rules % "collect_list"))) == []
    assert reported(checked(index, policy(rules % '"collect*"'))) == [("F", "share.t.v", "violated")]


def test_names_are_the_same_both_ways():
    for one, other in (("substr", "substring"), ("a.f", "f"), ("sha256", "sha2"), ("approx_count_distinct", "uniq")):
        assert is_same(one, other) == is_same(other, one)


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("sha265", "sha256"),
        ("date_trunk", "date_trunc"),
        ("our_mask_emial", "our_mask_email"),
        ("zzzzzz*", None),
        ("sha256", ""),
        ("substr", ""),
        ("dbo.our_mask_email", ""),
        ("our_*", ""),
        ("@hash", ""),
    ],
)
def test_lint_tells_of_functions_that_nothing_has(written, near):
    index = sql("create table share.t as select our_mask_email(email) as v from crm.u")
    found = [r.message for r in in_graph(policy(RULES % f'"{written}"'), index, TODAY) if r.code == "function-unknown"]
    assert len(found) == (near != "")
    assert all(written in message for message in found)
    if near:
        assert f"nearest: {near}" in found[0]
