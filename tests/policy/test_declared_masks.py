"""Masking that is declared and not called: masking policies of columns, and what a tool flags as masked."""

from __future__ import annotations

import pytest
from policy_samples import TODAY, policy, sql

from govtool.app.versions.index import index_of
from govtool.errors import UsageError
from govtool.model import ColumnRef, Derivation, Edge, EdgeKind, OutputColumn, Statement
from govtool.policy.classes.dataset_facts import ToolFact
from govtool.policy.classes.governed import govern
from govtool.policy.rules.check import check

RULES = """
classes: {personal: {}, hidden: {}}
classify: [{class: personal, columns: ["crm.users.*"]}]
declassify:
  - {name: declared, kind: mask, DECLASSIFY, from: [personal], to: hidden}
rules:
  - id: R
    title: t
    deny: {flow: {class: personal, to: {datasets: ["mart.**"]}}}
    unless: [{declassified: [declared]}]
"""
WAREHOUSE = """create table crm.users (email text, phone text, address struct<street text>);
create view stg.u as select email, phone, lower(email) low from crm.users;
create view mart.m as select email, phone, low from stg.u;
create view mart.n as select count(email) n, max(phone) p from crm.users"""
MASKED = [ToolFact("crm.users", "email", "masking_policy", "PII.Mask_Email")]


def violated(index, text: str, facts=()) -> set[str]:
    policies = policy(RULES.replace("DECLASSIFY", text))
    return {f.column for f in check(govern(index, policies, TODAY, tool_facts=facts), TODAY).findings}


@pytest.fixture(scope="module")
def warehouse():
    return sql(WAREHOUSE, dialect="duckdb")


def test_what_leaves_a_masked_column_is_masked_on_all_ways(warehouse):
    every = {"mart.m.email", "mart.m.phone", "mart.m.low", "mart.n.n", "mart.n.p"}
    accepted = 'masking_policies: ["pii.*"]'
    assert violated(warehouse, accepted) == every
    assert violated(warehouse, accepted, MASKED) == {"mart.m.phone", "mart.n.p"}


@pytest.mark.parametrize("globs", ['["hr.*"]', '["mask_email"]'])
def test_a_policy_that_no_declassifier_names_hides_nothing(warehouse, globs):
    assert "mart.m.email" in violated(warehouse, f"masking_policies: {globs}", MASKED)


def test_functions_and_policies_count_side_by_side():
    index = sql("create view mart.m as select sha2(phone) h, email e, email || phone b from crm.users",
                {"crm": {"users": {"email": "text", "phone": "text"}}}, "spark")  # fmt: skip
    assert violated(index, 'functions: ["@hash"], masking_policies: ["pii.*"], low_entropy: true', MASKED) == {
        "mart.m.b"
    }


def flagged(*edges: Edge):
    statement = Statement("insert", "job", "", "job", source="ol", how="openlineage")
    made = Derivation(
        "mart.m", "table", "replace", statement, (OutputColumn("a", None), OutputColumn("b", None)), edges=edges
    )
    return index_of([made])


def test_a_flag_counts_where_a_declassifier_accepts_flags_and_no_function_is_named():
    edge = Edge(ColumnRef("crm.users", "email"), "a", EdgeKind.TRANSFORMATION, masking=True)
    index = flagged(edge, edge._replace(source=ColumnRef("crm.users", "phone"), target_path="b", masking=False))
    assert violated(index, "flagged: true") == {"mart.m.b"}
    assert violated(index, 'functions: ["@mask"]') == {"mart.m.a", "mart.m.b"}
    named = flagged(edge._replace(functions=("lower",)))
    assert violated(named, "flagged: true") == {"mart.m.a"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("to: hidden", "needs functions"),
        ("kind: aggregate, min_group_size: 5, functions: [count], flagged: true", "are for masks"),
        ("masking_policies: []", "needs functions"),
    ],
)
def test_mistakes(text, message):
    fields = {"name": "d", "kind": "mask", "from": "[personal]", "to": "hidden"}
    fields |= dict(part.split(": ", 1) for part in text.split(", "))
    written = ", ".join(f"{name}: {value}" for name, value in fields.items())
    with pytest.raises(UsageError, match=message):
        policy(f"classes: {{personal: {{}}, hidden: {{}}}}\ndeclassify: [{{{written}}}]\n")
