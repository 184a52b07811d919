"""Columns that are not known: a * over a table without a schema may copy whatever ``classify`` names."""

from __future__ import annotations

import pytest
from policy_samples import TODAY, checked, policy, reported, sql

from govtool.policy.classes.dataset_facts import ToolFact
from govtool.policy.classes.governed import govern
from govtool.policy.classes.unknown_columns import possible_classes

RULES = """
classes: {personal: {}, personal.email: {}, other: {}}
classify:
  - {class: personal.email, columns: [%s]%s}
  - {class: other, columns: ["x.y.z"]}
zones:
  share: {datasets: ["share.**"], optional: true}
rules:
  - {id: F, title: none in share, deny: {flow: {class: personal, to: {zone: share}%s}}}
"""
STAR = "create table share.a as select * from crm.u"


def rules(pattern: str = '"crm.u.email"', more: str = "", via: str = ""):
    return policy(RULES % (pattern, more, via))


@pytest.mark.parametrize(
    ("pattern", "told_of"),
    [
        ('"crm.u.email"', True),
        ('"crm.*.email"', True),
        ('"**.email"', True),
        ('"crm.**.email"', True),
        ('"**.u.e*"', True),
        ('"crm.u.*"', True),
        ('"crm.**"', True),
        ('"/mail$/"', True),
        ('"crm.u.contact.email"', True),
        ('"crm.v.email"', False),
        ('"crm.email"', False),
        ('"u.email"', False),
        ('"crm.u"', False),
    ],
)
@pytest.mark.parametrize("via", ["", ", via: indirect", ", via: any"])
def test_a_pattern_that_may_name_a_column_which_is_not_known(pattern, told_of, via):
    found = reported(checked(sql(STAR), rules(pattern, via=via)))
    assert found == ([("F", "share.a.?", "unknown")] if told_of else [])


def test_the_finding_says_what_is_not_known_and_what_to_do():
    (finding,) = checked(sql(f"create table stg.x as select * from crm.u; {STAR.replace('crm.u', 'stg.x')}"), rules()).findings  # fmt: skip
    assert finding.path == ("crm.u.?", "stg.x.?", "share.a.?")
    assert finding.why == "not all columns of crm.u are known: personal.email may be among them"
    assert "the schema of crm.u" in finding.fix
    assert (finding.classes, finding.state) == (("personal.email",), "unknown")


@pytest.mark.parametrize(
    ("select", "found"),
    [
        ("select * from crm.u", []),
        ("select * from crm.v", [("F", "share.a.?", "unknown")]),
        ("select id, name from crm.v", []),
        ("select id, n from (select *, name as n from crm.v) q", []),
        ("select u.id, v.* from crm.u u join crm.v v using (id)", [("F", "share.a.?", "unknown")]),
    ],
)
def test_only_where_columns_are_not_known(select, found):
    schema = {"crm.u": {"id": "int", "name": "text"}}
    assert reported(checked(sql(f"create table share.a as {select}", schema), rules('"crm.*.email"'))) == found


def test_a_column_that_is_known_is_told_for_certain_and_not_looked_for_again():
    text = "create table share.a as select * from crm.u; create table stg.b as select email from crm.u"
    assert reported(checked(sql(text), rules())) == [("F", "share.a.email", "violated")]
    assert reported(checked(sql(text), rules('"crm.u.e*"'))) == [
        ("F", "share.a.email", "violated"),
        ("F", "share.a.?", "unknown"),
    ]


@pytest.mark.parametrize("pattern", ['"crm.u.email"', '"**.email"'])
def test_what_a_star_leaves_out_is_not_among_them(pattern):
    def found(text):
        return reported(checked(sql(text, dialect="bigquery"), rules(pattern)))

    assert found("create table share.a as select * except (email, phone) from crm.u") == []
    assert found("create table share.a as select * except (phone) from crm.u") == [("F", "share.a.?", "unknown")]
    assert (
        found("create table stg.a as select * except (email) from crm.u; create table share.a as select * from stg.a")
        == []
    )


def test_what_comes_by_another_name_passes_a_star_that_leaves_the_name_out():
    text = (
        "create table stg.a as select email as secret, v.* from crm.u join ext.v as v using (id);"
        "create table stg.b as select * from stg.a join ext.w using (id);"
        "create table share.a as select * except (email) from stg.b"
    )
    verdicts = reported(checked(sql(text, {"crm.u": {"id": "int", "email": "text"}}, "bigquery"), rules()))
    assert ("F", "share.a.secret", "violated") in verdicts or ("F", "share.a.?", "unknown") in verdicts


def test_except_of_a_classification():
    assert reported(checked(sql(STAR), rules('"**.email"', ', except: ["crm.**"]'))) == [("F", "share.a.?", "unknown")]
    assert reported(checked(sql(STAR), rules('"**.email"', ', except: ["crm.**", "share.*.email"]'))) == []


def test_tags_of_columns_that_the_graph_does_not_show():
    policies = rules('"no.such.column"', ', tags: ["pii"]')
    for stated, count in (
        (ToolFact("crm.u", "email", "tag", "pii"), 1),
        (ToolFact("crm.u", None, "tag", "pii"), 1),
        (ToolFact("crm.u", "email", "tag", "gold"), 0),
        (ToolFact("crm.v", "email", "tag", "pii"), 0),
    ):
        governed = govern(sql(STAR), policies, TODAY, tool_facts=[stated])
        assert len(governed.possible[0]) == count
    meta = policy((RULES % ('"a.b.c"', ", tags: [pii]", "")) + 'metadata: [{columns: ["crm.u.email"], tags: [pii]}]\n')
    assert reported(checked(sql(STAR), meta)) == [("F", "share.a.?", "unknown")]


def test_other_forms_of_rules_do_not_take_it_for_absent():
    text = """
  - {id: O, title: opaque, deny: {opaque: {class: personal, to: {zone: share}}}}
  - {id: J, title: join, deny: {join: {classes: [personal, other], in: ["share.**"]}}}
  - {id: P, title: purpose, require: {purpose: {class: personal, any_of: [care]}}}
  - {id: G, title: region, deny: {flow: {class: personal, from: {region: eu}, to: {zone: share}}}}
"""
    found = reported(checked(sql("create table share.a as select u.*, z from crm.u u join x.y using (id)"), rules(more="") if False else policy(RULES % ('"crm.u.email"', "", "") + text)))  # fmt: skip
    assert {(rule, verdict) for rule, _, verdict in found} == {(rule, "unknown") for rule in "FOJPG"}


def test_a_circle_of_columns_that_are_not_known():
    text = "create table share.a as select * from share.b; create table share.b as select * from share.a"
    assert {v for _, _, v in reported(checked(sql(text), rules('"**.email"')))} == {"unknown"}


def test_nothing_is_guessed_at_where_everything_is_known():
    schema = {"crm.u": {"id": "int"}}
    index = sql(STAR, schema)
    governed = govern(index, rules('"**.email"'), TODAY)
    assert not governed.possible[0]
    assert not possible_classes(index, [c.value for c in governed.policies.classify], (), governed.places).stops
