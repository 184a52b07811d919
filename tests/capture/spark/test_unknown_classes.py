"""Classes of Catalyst that nobody has heard of, among them those that are called like a part of a reader."""

from __future__ import annotations

import pytest

from govtool.capture.spark import plan as p
from govtool.capture.spark.analyzed.relations import RelationReader
from govtool.capture.spark.analyzed.tree import tree_of

COLUMN = {"c": "AttributeReference", "n": 0, "name": "a", "exprId": 7, "dataType": "long"}
NAMES = ["Node", "Leaf", "Outputs", "Handed", "Expression", "Relation", "Computed", "InitSubclass", "Unheard"]


def reader():
    return RelationReader({}, {}, frozenset())


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_relation_is_a_break(name):
    read = reader().relation(tree_of([{"c": name, "n": 0, "output": [[COLUMN]]}]))
    assert isinstance(read, p.LineageBreak)
    assert [output.name for output in read.outputs] == ["a"]


@pytest.mark.parametrize("name", [*NAMES, "Replaceable", "XCast"])
def test_an_unknown_expression_is_made_of_its_children(name):
    read = reader().expression(tree_of([{"c": name, "n": 1}, COLUMN]))
    assert isinstance(read, p.Apply)
    assert read.arguments == (p.Attribute(7, "a"),)
