"""Signatures of plans: operators by name, a digest for each literal, nothing that a session numbers anew."""

from __future__ import annotations

import json

from govtool.spark.live.job.digest_key import Digests
from govtool.spark.live.plans.signature import may_be_unstable, signature, unstable_functions

CATALYST = "org.apache.spark.sql.catalyst."
KEYED = Digests(b"secret").of


def node(class_, children=0, /, **fields):
    return {"class": f"{CATALYST}expressions.{class_}", "num-children": children, **fields}


def attribute(name, number, type_="long"):
    return node("AttributeReference", name=name, dataType=type_, exprId={"id": number, "jvmId": "j"})


def literal(value, type_="integer"):
    return node("Literal", value=value, dataType=type_)


def filtered(operator="GreaterThan", value="10", number=7):
    return [
        node("Filter", 1, condition=[node(operator, 2), attribute("amount", number), literal(value)]),
        node("LogicalRelation", output=[[attribute("amount", number)]]),
    ]


def test_operators_have_names_and_literals_none():
    drawn = signature(filtered(), KEYED)
    assert drawn.startswith(f"filter [(amount > ‹{KEYED('integer 10')}›)]")
    assert drawn.endswith("\n  logical_relation [amount]")
    assert signature(filtered("LessThan"), KEYED) != drawn != signature(filtered(value="11"), KEYED)


def test_ids_of_a_session_do_not_count():
    assert signature(filtered(number=1), KEYED) == signature(filtered(number=900), KEYED)


def test_without_a_key_literals_are_one():
    plain = Digests(b"").of
    assert signature(filtered(value="1"), plain) == signature(filtered(value="2"), plain)


def projected(*tree, name="r"):
    return [node("Project", 1, projectList=[[node("Alias", 1, name=name), *tree]]), node("OneRowRelation")]


def unstable(plan, digest):
    """What is found; a look at the text alone must not pass it by."""
    found = unstable_functions(plan, digest)
    assert may_be_unstable(json.dumps(plan, separators=(",", ":"))) or not found
    return found


def test_a_function_that_says_so_is_unstable():
    plan = [node("Project", 1, projectList=[[node("PythonUDF", name="f", udfDeterministic=False)]])]
    assert unstable(plan, KEYED) == ["f()"]
    assert not may_be_unstable(json.dumps(filtered(), separators=(",", ":")))


def test_a_seed_is_no_part_of_the_work():
    plans = [
        projected(node("Rand", 1), literal(seed, "long"), name=f"rand({seed})")
        for seed in ("123456789012", "99999999999")
    ]
    assert signature(plans[0], KEYED) == signature(plans[1], KEYED)
    drawn = [unstable(plan, KEYED) for plan in plans]
    assert drawn[0] != drawn[1]
    assert drawn[0][0].startswith("rand(")


def test_what_may_answer_otherwise_the_random_first():
    plan = [
        node("GlobalLimit", 1, limitExpr=[literal("5")]),
        node("Aggregate", 1, aggregateExpressions=[
            [node("Sum", 1), attribute("x", 1, "double")], [node("CollectList", 1), attribute("y", 2)],
            [node("CurrentTimestamp")], [node("Uuid", randomSeed=5)],
        ]),
        node("LogicalRelation"),
    ]  # fmt: skip
    found = unstable(plan, KEYED)
    assert found[0].startswith("uuid(")
    assert found[1:] == ["current_timestamp()", "collect_list()", "limit without an order", "sum of floats"]


def deduplicated(*keys):
    table = node("LogicalRelation", output=[[attribute("k", 1)], [attribute("v", 2)]])
    named = {"k": 1, "v": 2}
    return [node("Deduplicate", 1, keys=[[attribute(key, named[key])] for key in keys]), node("Filter", 1), table]


def test_one_row_of_several_that_share_some_columns_is_any_of_them():
    assert unstable(deduplicated("k"), KEYED) == ["dropDuplicates of some columns"]
    assert unstable(deduplicated("k", "v"), KEYED) == []


def test_ties_may_be_told_apart_otherwise():
    plan = [
        node("Window", 1, windowExpressions=[[node("RowNumber")]]),
        node("Aggregate", 1, aggregateExpressions=[[node("MaxBy", 2), attribute("x", 1), attribute("y", 2)]]),
        node("LogicalRelation"),
    ]
    assert unstable(plan, KEYED) == ["max_by()", "row_number()"]


def test_a_limit_on_a_sort_is_stable():
    plan = [node("GlobalLimit", 1), node("LocalLimit", 1), node("Project", 1), node("Sort", 1), node("LogicalRelation")]
    assert unstable(plan, KEYED) == []


def test_sums_of_whole_numbers_are_stable():
    plan = [node("Aggregate", 1, aggregateExpressions=[[node("Sum", 1), attribute("x", 1)]]), node("LogicalRelation")]
    assert unstable(plan, KEYED) == []


def test_parameters_beside_expressions_count():
    ranges = [[node("Range", start=0, end=end, step=1, output=[[attribute("id", 1)]])] for end in (50, 60)]
    assert signature(ranges[0], KEYED) != signature(ranges[1], KEYED)
    lags = [projected(node("Lag", 1, ignoreNulls=flag), attribute("x", 1)) for flag in (True, False)]
    assert signature(lags[0], KEYED) != signature(lags[1], KEYED)
    options = [projected(node("JsonToStructs", 1, options={"mode": mode}), attribute("x", 1)) for mode in "ab"]
    assert signature(options[0], KEYED) != signature(options[1], KEYED)
