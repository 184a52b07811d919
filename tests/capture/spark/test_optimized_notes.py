"""What an optimized plan does not tell is stated, and nothing else is."""

from __future__ import annotations

import pytest

from govtool.capture.spark.plantext.optimized import optimized_notes
from govtool.capture.spark.plantext.read import read_plan
from govtool.capture.spark.plantext.tree import Operator, PlanTree

KEYS = {"Left keys": "[id#1]", "Right keys": "[k#2]", "Join condition": "None"}
SCAN = Operator(9, "Scan parquet t")


def notes(*operators, writes=False):
    tree = PlanTree(operators[0], {each.id: each for each in operators}, {})
    return [note.message.split(": ")[1].split(",")[0] for note in optimized_notes(tree, writes=writes)]


def join(kind, right=SCAN, **fields):
    return Operator(1, "BroadcastHashJoin", [SCAN, right], {**KEYS, "Join type": kind, **fields})


@pytest.mark.parametrize("kind", ["Inner", "LeftSemi", "LeftAnti"])
def test_joins_that_may_have_been_conditions(kind):
    assert len(notes(join(kind))) == 1


@pytest.mark.parametrize("kind", ["LeftOuter", "FullOuter", "RightOuter", "ExistenceJoin(exists#3)"])
def test_joins_that_are_none(kind):
    assert notes(join(kind)) == []


def test_a_join_with_an_aggregate_may_have_been_a_scalar_subquery():
    grouped = Operator(3, "Exchange", [Operator(4, "HashAggregate", [SCAN])])
    assert len(notes(join("LeftOuter", grouped))) == 1


def test_a_product_of_all_rows_is_what_it_is():
    assert notes(Operator(1, "CartesianProduct", [SCAN, SCAN], {"Join condition": "None"})) == []


def test_casts_of_analysis_rename_or_widen():
    def select(item):
        return Operator(2, "Project", [SCAN], {"Output": f"[{item}]"})

    wider, named, narrower = (
        select(item)
        for item in ("cast(age#1 as bigint) AS n#2L", "cast(age#1 as bigint) AS age#2L", "cast(id#1L as int) AS n#2")
    )
    assert [len(notes(each, writes=True)) for each in (wider, named, narrower)] == [1, 0, 0]
    assert notes(wider) == []
    assert len(notes(Operator(1, "Union", [wider]), wider)) == 1


def test_the_note_is_one_of_the_plan():
    text = (
        "== Physical Plan ==\n* BroadcastHashJoin LeftSemi BuildRight (3)\n:- Scan parquet a (1)\n+- Scan parquet b (2)\n\n"
        "\n(1) Scan parquet a\nOutput [1]: [id#1]\n\n(2) Scan parquet b\nOutput [1]: [k#2]\n\n"
        "(3) BroadcastHashJoin\nLeft keys [1]: [id#1]\nRight keys [1]: [k#2]\nJoin type: LeftSemi\nJoin condition: None\n"
    )
    assert [(note.code, note.severity) for note in read_plan(text).notes] == [("plan.optimized", "info")]
