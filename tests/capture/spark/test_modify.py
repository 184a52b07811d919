"""UPDATE, DELETE and MERGE in analyzed plans, and what commands do to the catalog, without a Spark."""

from __future__ import annotations

import pytest

from govtool.capture.spark.analyzed.read import read_plan
from govtool.capture.spark.definitions import RESTORED, definition
from govtool.capture.spark.flow import derivation, flow_of
from govtool.capture.spark.live.definitions import PROCEDURE, defined_by
from govtool.model import Statement
from govtool.spark.live.streams import call_facts

STATEMENT = Statement("f", "merge", "spark", "", how="plan")


def node(kind, /, *children, **fields):
    """A tree in preorder, as the spool has it."""
    return [{"c": kind, "n": len(children), **fields}, *(each for child in children for each in child)]


def column(name, number, type_="string"):
    return node("AttributeReference", name=name, exprId=number, dataType=type_)


def table(leaf, *columns):
    return node("DataSourceV2Relation", output=[column(name, number) for name, number in columns], leaf=leaf)


T = table("0", ("id", 1), ("email", 2), ("address", 3))
S = table("1", ("id", 11), ("email", 12), ("note", 13))
LEAVES = {"0": {"table": ["spark_catalog", "crm", "t"]}, "1": {"table": ["spark_catalog", "crm", "s"]}}
ON = node("EqualTo", column("id", 1), column("id", 11))


def edges(*plan):
    read = read_plan({"plan": [each for part in plan for each in part], "leaves": LEAVES})
    made = derivation(flow_of(read.root), "crm.t", STATEMENT, target_kind="table", mode="update")
    return read.kind, {f"{e.target_path} <- {e.source.text} {e.kind.label}{e.arm or ''}" for e in made.edges}


def assignment(key, value):
    return node("Assignment", key, value)


def action(name, *assignments, condition=None):
    children = [*([condition] if condition is not None else []), *assignments]
    first = len(children) - len(assignments)
    fields = {"assignments": list(range(first, len(children)))}
    if condition is not None:
        fields["condition"] = condition
    return node(name, *children, **fields)


def test_merge_of_spark_s_own():
    kind, stated = edges(
        [
            {
                "c": "MergeIntoTable", "n": 2, "targetTable": 0, "sourceTable": 1, "mergeCondition": ON,
                "matchedActions": [
                    action("DeleteAction", condition=node("EqualTo", column("note", 13), node("Literal"))),
                    action("UpdateAction", assignment(column("email", 2), node("Lower", column("email", 12))),
                           assignment(column("id", 1), column("id", 1))),
                ],
                "notMatchedActions": [action("InsertAction", assignment(column("id", 1), column("id", 11)))],
                "notMatchedBySourceActions": [],
            }
        ],
        T, S,
    )  # fmt: skip
    assert kind == "merge"
    assert stated == {
        "* <- crm.s.* read",
        *(f"* <- crm.{c} join{arm}" for c in ("t.id", "s.id") for arm in (1, 3)),
        "* <- crm.s.note filter1",
        "email <- crm.s.email transformation2",
        "email <- crm.t.id conditional2",
        "email <- crm.s.id conditional2",
        "id <- crm.s.id identity3",
    }


def test_stars_that_are_left_take_the_columns_of_both_tables():
    _, stated = edges(
        [
            {
                "c": "MergeIntoTable", "n": 2, "targetTable": 0, "sourceTable": 1, "mergeCondition": ON,
                "matchedActions": [], "notMatchedActions": [node("InsertStarAction")], "notMatchedBySourceActions": [],
            }
        ],
        T, S,
    )  # fmt: skip
    assert {line for line in stated if "identity" in line} == {
        "id <- crm.s.id identity1",
        "email <- crm.s.email identity1",
    }


def test_update_of_a_field():
    key = node("GetStructField", column("address", 3), name="zip")
    condition = node("GreaterThan", column("id", 1), node("Literal"))
    kind, stated = edges([{"c": "UpdateTable", "n": 1, "table": 0, "assignments": [assignment(key, column("email", 2))],
                         "condition": condition}], T)  # fmt: skip
    assert (kind, stated) == ("update", {"address.zip <- crm.t.email identity", "address.zip <- crm.t.id conditional"})


def test_a_struct_that_is_built_again_is_assigned_by_its_fields():
    built = node(
        "CreateNamedStruct",
        node("Literal", value="zip"), node("Upper", column("email", 2)),
        node("Literal", value="city"), node("GetStructField", column("address", 3), name="city"),
    )  # fmt: skip
    _, stated = edges(node("UpdateCommand", target=T, updateExpressions=[column("id", 1), column("email", 2), built]))
    assert stated == {"address.zip <- crm.t.email transformation"}


def test_delete_without_a_condition_says_nothing_of_columns():
    assert edges([{"c": "DeleteFromTable", "n": 1, "table": 0}], T) == ("delete", set())


def test_an_update_that_sets_more_than_there_is_is_a_break():
    values = [column("id", 1)] * 4
    read = read_plan({"plan": node("UpdateCommand", target=T, updateExpressions=values), "leaves": LEAVES})
    assert [note.code for note in flow_of(read.root).breaks] == ["break.operator"]


def test_a_replacement_without_its_table_is_a_break():
    plan = node("ReplaceData", node("LocalRelation", output=[]), table=[*T], query=0)
    read = read_plan({"plan": plan, "leaves": LEAVES})
    assert [note.code for note in flow_of(read.root).breaks] == ["break.operator"]


@pytest.mark.parametrize(
    ("facts", "stated"),
    [
        ({"does": "create", "table": ["a", "t"], "columns": [["Id", "bigint"]]}, ("a.t", "declare", ["id"], [])),
        ({"does": "drop", "table": ["a", "t"]}, ("a.t", "drop", [], [])),
        ({"does": "add", "table": ["a", "t"], "columns": [["x", "int"]]}, ("a.t", "declare", ["x"], [])),
        (
            {"does": "rename", "table": ["a", "t"], "to": ["a", "u"], "columns": [["id", "int"]]},
            ("a.u", "rename", ["id"], ["id <- a.t.id identity", "* <- a.t.* read"]),
        ),
        (
            {"does": "rename", "table": ["a", "t"], "to": ["a", "u"]},
            ("a.u", "rename", [], ["* <- a.t.* read", "? <- a.t.? opaque"]),
        ),
        (
            {"does": "rename_column", "table": ["a", "t"], "column": ["s", "x"], "to": "y"},
            ("a.t", "update", ["s.y"], ["s.y <- a.t.s.x identity"]),
        ),
        (
            {"does": "clone", "table": ["a", "t"], "from": ["a", "b"], "columns": [["id", "int"]]},
            ("a.t", "replace", ["id"], ["id <- a.b.id identity", "* <- a.b.* read"]),
        ),
    ],
)
def test_definitions_are_the_facts_of_sql(facts, stated):
    defined = defined_by(facts)
    made = definition(defined, STATEMENT)
    found = [f"{edge.target_path} <- {edge.source.text} {edge.kind.label}" for edge in made.edges]
    assert (made.target, made.mode, [c.path for c in made.columns], found) == stated


def test_truncate_says_nothing_of_columns():
    assert defined_by({"does": "truncate", "table": ["a", "t"]}).mode == ""


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"does": "restore", "path": "/lake/t"}, RESTORED),
        ({"does": "restore"}, RESTORED),
        (call_facts("CALL lake.system.rollback_to_snapshot('db.users', 12)"), RESTORED),
        (call_facts("-- back\n/* to */ call lake.system.set_current_snapshot(table => 'db.t', ref => 'x')"), RESTORED),
        (call_facts("CALL lake.system.add_files('db.users', '`parquet`.`/x`')"), PROCEDURE),
    ],
)
def test_what_brings_data_from_where_the_plan_does_not_tell_is_a_break(facts, code):
    assert [found for found, _ in defined_by(facts).breaks] == [code]


def test_procedures_that_move_no_data_say_nothing():
    facts = call_facts("CALL lake.system.rewrite_data_files(table => 'db.users')")
    assert facts == {"does": "call", "procedure": "lake.system.rewrite_data_files", "table": ["lake", "db", "users"]}
    assert defined_by(facts) is None
    assert call_facts("SELECT 1 -- CALL") is None
    assert call_facts(None) is None
