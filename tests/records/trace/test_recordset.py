"""Record sets: selecting rows, stepping over boundaries, tokens, raw rows and the ``trace/1`` answer."""

from __future__ import annotations

import json

import pytest
from duck import Duck

from govtool.errors import EvidenceError, UnknownNameError, UsageError
from govtool.model.token import KeyToken, PositionToken
from govtool.records.cells import column_key, json_value
from govtool.records.lineage import Lineage
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import LocalRows, Relation

VIEWS = [("ann", 1, 10), ("ann", 2, 20), ("bob", 1, 30), ("bob", 1, 30), (None, 3, None), ("eve", 9, 5)]
USERS = [("ann", "fr"), ("bob", "de"), ("zoe", "fr"), (None, "uk")]


def struct(*fields: tuple[str, t.Type]) -> t.Struct:
    return t.Struct(tuple(t.Field(name, kind) for name, kind in fields))


RELATIONS = {
    "views": table("views", struct(("user", t.STRING), ("page", t.INTEGER), ("spent", t.INTEGER))),
    "users": table("users", struct(("name", t.STRING), ("land", t.STRING))),
}


@pytest.fixture
def duck():
    duck = Duck()
    duck.load("views", [("user", "VARCHAR"), ("page", "INTEGER"), ("spent", "INTEGER")], VIEWS)
    duck.load("users", [("name", "VARCHAR"), ("land", "VARCHAR")], USERS)
    return duck


def lineage(duck, sql, **more):
    return Lineage.of(from_sql(sql, RELATIONS), duck, **more)


def records(found, dataset=None):
    return [token.row for token in found.ids(dataset)]


JOINED = """
    SELECT land, sum(spent) AS total, count(*) AS n
    FROM views JOIN users ON views.user = users.name
    GROUP BY land HAVING sum(spent) > 20
"""


def test_back_from_a_group_to_the_rows_of_both_sides(duck):
    found = lineage(duck, JOINED).where("land = 'de'").go_back_all()
    assert records(found, "views") == [2, 3]
    assert records(found, "users") == [1]
    assert found.arrow("views").to_pylist() == [{"user": "bob", "page": 1, "spent": 30}] * 2
    assert found.df("users").to_dict("records") == [{"name": "bob", "land": "de"}]


def test_a_step_stops_at_each_boundary(duck):
    start = lineage(duck, JOINED).where("land = 'de'")
    assert start.arrow().to_pylist() == [{"land": "de", "total": 60, "n": 2}]
    below = start.go_back()
    assert [row["spent"] for row in below.arrow().to_pylist()] == [30, 30]
    assert {row["land"] for row in below.arrow().to_pylist()} == {"de"}
    inputs = below.go_back()
    assert records(inputs, "views") == [2, 3]
    assert inputs.go_back().ids() == inputs.ids()


def test_a_step_can_be_narrowed_on_the_way(duck):
    pairs = lineage(duck, JOINED).where("land = 'fr'").go_back()
    assert records(pairs.where("page = 2").go_back_all(), "views") == [1]


def test_forward_from_an_input_step_by_step(duck):
    chosen = lineage(duck, JOINED).input("views", "page = 1")
    assert chosen.count() == 3
    pairs = chosen.go_next()
    assert sorted(row["name"] for row in pairs.arrow().to_pylist()) == ["ann", "bob", "bob"]
    assert sorted(row["land"] for row in pairs.go_next().arrow().to_pylist()) == ["de", "fr"]
    assert chosen.go_next_all().arrow().to_pylist() == pairs.go_next().arrow().to_pylist()


def test_forward_from_what_no_result_has(duck):
    assert lineage(duck, JOINED).input("views", "user = 'eve'").go_next_all().count() == 0


def test_rows_of_an_input_are_chosen_by_id(duck):
    found = lineage(duck, JOINED).where("land = 'de'").go_back_all()
    assert records(found.rows([(0, 3), (0, 0)], "views")) == [3]
    assert found.rows([(0, 3)], "views").go_next_all().arrow().to_pylist() == [{"land": "de", "total": 60, "n": 2}]


def test_back_and_forward_come_to_the_same_rows(duck):
    start = lineage(duck, JOINED).all()
    assert start.go_back_all().go_next_all().arrow().to_pylist() == start.arrow().to_pylist()


def test_definitions_are_one_input_read_twice(duck):
    sql = "WITH v AS (SELECT user, page FROM views) SELECT a.user, b.page FROM v a JOIN v b ON a.user = b.user"
    found = lineage(duck, sql).where("page = 2").go_back_all()
    assert records(found) == [0, 1]


def test_what_stands_against_a_row_stands_apart(duck):
    sql = "SELECT user FROM views EXCEPT ALL SELECT name FROM users"
    answer = lineage(duck, sql).where("user = 'bob'").go_back_all().answer()
    assert [(each.dataset, each.count) for each in answer.inputs] == [("views", 2)]
    assert [(each.dataset, [row["name"] for row in each.rows]) for each in answer.against] == [("users", ["bob"])]


def test_rows_of_the_trace_are_not_against_it(duck):
    sql = "SELECT user FROM views INTERSECT ALL SELECT name FROM users"
    found = lineage(duck, sql).where("user = 'bob'").go_back_all()
    assert records(found) == [2, 3]
    assert {each.dataset: each.count for each in found.answer().against} == {"users": 1}


def test_recorded_rows_are_matched_by_all_their_values(duck):
    lin = lineage(duck, "SELECT user, page FROM views")
    columns = (Attribute(900, "user", t.STRING), Attribute(901, "page", t.INTEGER))
    one = lin.recorded(LocalRows(0, columns, (("eve", 9),))).go_back_all()
    assert (records(one), one.answer().inputs[0].exactness) == ([5], "exact")
    twice = lin.recorded(LocalRows(0, columns, (("bob", 1),))).go_back_all()
    assert records(twice) == [2, 3]
    assert twice.answer().inputs[0].exactness == "superset"
    assert "duplicates" in twice.answer().inputs[0].why
    both = lin.recorded(LocalRows(0, columns, (("bob", 1), ("bob", 1)))).go_back_all()
    assert both.answer().inputs[0].exactness == "exact"
    mixed = lin.recorded(LocalRows(0, columns, (("bob", 1), ("eve", 9), ("ann", 1))))
    assert mixed.go_back_all().answer().inputs[0].exactness == "superset"
    with pytest.raises(EvidenceError, match="does not give these rows again"):
        lin.recorded(LocalRows(0, columns, (("bob", 1), ("eve", 9), ("eve", 9))))
    null = lin.recorded(LocalRows(0, columns, ((None, 3),))).go_back_all()
    assert records(null) == [4]
    (position,) = lin.recorded(LocalRows(0, columns, (("eve", 9),))).parts
    assert isinstance(
        position.rows, Relation
    )  # what was compared is traced: rows that tie may come out otherwise again


def test_keys_that_the_output_drops_are_carried(duck):
    found = lineage(duck, "SELECT sum(spent) AS s FROM views GROUP BY upper(user)").where("s = 60").go_back_all()
    assert records(found) == [2, 3]


def test_the_answer_in_json(duck):
    answer = lineage(duck, JOINED, run="r1", output="out").where("land = 'de'").go_back_all().answer(limit=1)
    assert json.loads(json.dumps(answer.to_dict())) == {
        "schema": "trace/1",
        "run": "r1",
        "output": "out",
        "selected": 1,
        "steps": [
            {"operator": "output", "exactness": "exact", "why": "", "rows": 1},
            {"operator": "aggregate", "exactness": "exact", "why": "", "rows": 2},
        ],
        "inputs": [
            {
                "dataset": "views", "version": "", "exactness": "exact", "why": "", "count": 2, "truncated": True,
                "rows": [{"_id": "views@current:0/2", "_file": 0, "_row": 2, "user": "bob", "page": 1, "spent": 30}],
            },
            {
                "dataset": "users", "version": "", "exactness": "exact", "why": "", "count": 1, "truncated": False,
                "rows": [{"_id": "users@current:0/1", "_file": 0, "_row": 1, "name": "bob", "land": "de"}],
            },
        ],
        "against": [],
        "refused": [],
    }  # fmt: skip


def test_explain_in_words(duck):
    found = lineage(duck, "SELECT land FROM users ORDER BY land LIMIT 2").all().go_back_all()
    assert found.explain().splitlines() == [
        "output: 2 rows, exact",
        "limit: 2 rows, superset (rows tie across a limit)",
        "users: 3 rows, superset (rows tie across a limit)",
    ]


@pytest.mark.parametrize(
    ("sql", "where", "rows", "exactness"),
    [
        ("SELECT land FROM users ORDER BY land LIMIT 1", "true", [1], "exact"),
        ("SELECT land FROM users ORDER BY land LIMIT 2", "land = 'de'", [1], "exact"),
        ("SELECT land FROM users ORDER BY land LIMIT 2", "land = 'fr'", [0, 2], "superset"),
        ("SELECT land FROM users ORDER BY land LIMIT 3", "land = 'fr'", [0, 2], "exact"),
        ("SELECT land FROM users ORDER BY land LIMIT 1 OFFSET 1", "true", [0, 2], "superset"),
        ("SELECT land FROM users LIMIT 9", "land = 'de'", [1], "exact"),
        ("SELECT land FROM users LIMIT 1", "true", [0, 1, 2, 3], "superset"),
        ("SELECT count(*) AS n FROM (SELECT * FROM users ORDER BY land LIMIT 2)", "true", [0, 1, 2], "superset"),
        ("SELECT count(*) AS n FROM (SELECT * FROM users ORDER BY land, name LIMIT 2)", "true", [0, 1], "exact"),
    ],
)
def test_a_limit_is_exact_unless_rows_tie_across_it(duck, sql, where, rows, exactness):
    found = lineage(duck, sql).where(where).go_back_all()
    assert records(found) == rows
    assert found.answer().inputs[0].exactness == exactness


def test_frames_over_ties_are_the_whole_partition(duck):
    sql = "SELECT user, sum(spent) OVER (ORDER BY page ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM views"
    found = lineage(duck, sql).where("user = 'eve'").go_back_all()
    assert (records(found), found.answer().inputs[0].exactness) == ([0, 1, 2, 3, 5], "superset")
    sql = "SELECT user, sum(spent) OVER (ORDER BY page RANGE BETWEEN CURRENT ROW AND CURRENT ROW) AS s FROM views"
    found = lineage(duck, sql).where("user = 'eve'").go_back_all()
    assert (records(found), found.answer().inputs[0].exactness) == ([5], "exact")


def test_black_boxes_give_whole_inputs():
    from govtool.records.plan.nodes import Sample

    duck = Duck()
    duck.load("users", [("name", "VARCHAR"), ("land", "VARCHAR")], USERS)
    duck._sample = lambda node: duck.sql(node.child)
    plan = Sample(from_sql("SELECT name FROM users WHERE land = 'fr'", RELATIONS), 0.0, 0.5, False, 1)
    found = Lineage.of(plan, duck).where("name = 'ann'").go_back_all()
    assert (records(found), found.answer().inputs[0].exactness) == ([0, 1, 2, 3], "coarse")
    assert found.answer().inputs[0].why == "sample is a black box"


def test_one_of_several_rows_by_key_is_a_superset(duck):
    from govtool.records.plan.nodes import Deduplicate, outputs

    plan = from_sql("SELECT user, spent FROM views", RELATIONS)
    duck._deduplicate = lambda node: (
        "SELECT "
        + ", ".join(f"first(c{c.id}) AS c{c.id}" for c in outputs(node))
        + f" FROM {duck.source(node.child)} GROUP BY c{node.keys[0].id}"
    )
    found = Lineage.of(Deduplicate(plan, outputs(plan)[:1]), duck).where("user = 'ann'").go_back_all()
    assert (records(found), found.answer().inputs[0].exactness) == ([0, 1], "superset")


def test_declared_keys_make_the_tokens(duck):
    lin = lineage(duck, "SELECT name FROM users", keys={"users": ("name",)})
    assert lin.where("name = 'zoe'").go_back_all().ids() == (KeyToken("users", (("name", "zoe"),)),)
    assert lineage(duck, "SELECT name FROM users").where("name = 'zoe'").go_back_all().ids() == (
        PositionToken("users", "current", 0, 2),
    )


def test_wrong_use_is_refused_with_what_helps(duck):
    lin = lineage(duck, JOINED)
    inputs = lin.all().go_back_all()
    with pytest.raises(UsageError, match="several places: views, users"):
        inputs.arrow()
    with pytest.raises(UnknownNameError) as caught:
        lin.input("view")
    assert caught.value.nearest == ("views",)
    with pytest.raises(UnknownNameError, match="unknown column 'landd'") as caught:
        lin.where("landd = 'de'")
    assert caught.value.nearest == ("land",)
    assert caught.value.location == "1:1"
    with pytest.raises(UsageError, match="does not parse") as caught:
        lin.where("land = ")
    assert caught.value.code == "usage.sql-syntax"
    with pytest.raises(UsageError, match="a condition is expected"):
        lin.where("land = 'de' ORDER BY land")
    with pytest.raises(UsageError, match="a condition is expected"):
        lin.where("total")
    with pytest.raises(UsageError, match="go_back_all"):
        lin.all().ids()
    with pytest.raises(UsageError, match="chosen by id"):
        lin.all().rows([(0, 0)])


def test_a_selection_of_nothing_comes_to_nothing(duck):
    found = lineage(duck, JOINED).where("land = 'nowhere'").go_back_all()
    assert found.answer().selected == 0
    assert [each.count for each in found.answer().inputs] == []


@pytest.mark.parametrize(
    ("column", "key"),
    [("a", "a"), ("_id", "__id"), ("__id", "___id"), ("_row", "__row"), ("_rows", "_rows"), ("_file", "__file"), ("id", "id")],
)  # fmt: skip
def test_columns_named_like_ids_get_one_more_underscore(column, key):
    assert column_key(column) == key


def test_values_that_json_has_no_form_for():
    import datetime
    import decimal

    assert json_value(decimal.Decimal("1E+2")) == "100"
    assert json_value(datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)) == "2024-01-01T00:00:00+00:00"
    assert json_value([float("nan"), b"\x01", {"a": (1, None)}]) == ["nan", "01", {"a": [1, None]}]
