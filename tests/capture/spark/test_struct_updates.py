"""``withField`` and ``dropFields``: each field of the struct has its own sources."""

from __future__ import annotations

import pytest

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.relations import RelationReader
from govtool.capture.spark.analyzed.tree import tree_of

TYPE = {"type": "struct", "fields": [{"name": "Id", "type": "long"}, {"name": "name", "type": "string"}]}
COLUMN = {"c": "AttributeReference", "n": 0, "name": "s", "exprId": 7, "dataType": TYPE}
OTHER = {"c": "AttributeReference", "n": 0, "name": "o", "exprId": 8, "dataType": "long"}
S, O_ = p.Attribute(7, "s"), p.Attribute(8, "o")


def read(*nodes):
    return RelationReader({}, {}, frozenset()).expression(tree_of(nodes))


def updated(*updates):
    changes = [
        node
        for name, is_set in updates
        for node in (
            [{"c": "WithField", "n": 1, "name": name}, OTHER] if is_set else [{"c": "DropField", "n": 0, "name": name}]
        )
    ]
    return {"c": "UpdateFields", "n": 1 + len(updates)}, COLUMN, *changes


@pytest.mark.parametrize(
    ("updates", "fields"),
    [
        ([("z", True)], {"id": p.Field(S, "id"), "name": p.Field(S, "name"), "z": O_}),
        ([("NAME", True), ("id", False)], {"name": O_}),
        ([("gone", False)], {"id": p.Field(S, "id"), "name": p.Field(S, "name")}),
    ],
)
def test_fields_that_are_set_and_dropped(updates, fields):
    assert read(*updated(*updates)) == p.StructValue("struct", tuple(fields.items()))


def test_a_field_by_its_position_is_that_of_the_changed_struct():
    found = read({"c": "GetStructField", "n": 1, "ordinal": 2}, *updated(("z", True)))
    assert isinstance(found, p.Field)
    assert found.step == "z"


def test_of_a_struct_of_an_unknown_type_all_counts():
    made = {"c": "Udf", "n": 1}
    found = read({"c": "UpdateFields", "n": 2}, made, COLUMN, {"c": "WithField", "n": 1, "name": "z"}, OTHER)
    assert isinstance(found, p.Apply)
    assert found.arguments[1:] == (O_,)
