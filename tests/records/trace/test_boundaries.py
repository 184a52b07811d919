"""Boundaries by name: chosen, traced from, left out of replays."""

from __future__ import annotations

import pytest
from boundary_cases import run
from depth import LONG
from duck import Duck
from test_recordset import RELATIONS, USERS, VIEWS

from govtool.errors import UnknownNameError, UsageError
from govtool.records.lineage import Lineage
from govtool.records.plan.from_sql import from_sql

PIVOT = """
    SELECT user, sum(total) FILTER (WHERE page = 1) AS one, sum(total) FILTER (WHERE page = 2) AS two
    FROM (SELECT user, page, sum(spent) AS total FROM views GROUP BY user, page) GROUP BY user
"""
SIDES = """
    SELECT user AS a, count(*) AS n FROM views GROUP BY user
    UNION ALL SELECT land AS a, count(*) AS n FROM users GROUP BY land
"""
RANKED = "SELECT user, page, rank() OVER (PARTITION BY user ORDER BY page) AS r FROM views"


@pytest.fixture
def rows():
    """Every row of the output of a query."""
    duck = Duck()
    duck.load("views", [("user", "VARCHAR"), ("page", "INTEGER"), ("spent", "INTEGER")], VIEWS)
    duck.load("users", [("name", "VARCHAR"), ("land", "VARCHAR")], USERS)
    return lambda sql: Lineage.of(from_sql(sql, RELATIONS), duck).all()


def changes(answer):
    return answer.gone, [(row.before, row.after) for row in answer.changed], answer.new


@pytest.mark.parametrize("first", range(0, 160 if LONG else 40, 40))
def test_boundaries_are_those_of_the_reference(first):
    report = run(range(first, first + 40))
    assert report.wrong == []
    assert report.counts["boundaries"] > 15
    assert report.counts["different"] > 5


def test_rows_that_a_pivot_reads_for_each_sum_are_one_place(rows):
    found = rows(PIVOT).where("user = 'ann'").go_back()
    assert (len(found.parts), found.names(), found.count()) == (3, ["aggregate"], 2)
    assert sorted(found.df()["page"]) == [1, 2]
    assert found.where("page = 2").count() == 1
    assert found.where("page = 2").go_next_all().df()["user"].tolist() == ["ann"]
    assert changes(found.replay(exclude={"views": "page = 2"})) == ((("ann", 2, 20),), [], ())


def test_of_several_boundaries_one_is_named(rows):
    found = rows(SIDES).go_back()
    with pytest.raises(UsageError, match="several places: aggregate, aggregate-2") as caught:
        found.replay(exclude={"users": "name = 'zoe'"})
    assert caught.value.nearest == ("aggregate (user, page, spent)", "aggregate-2 (name, land)")
    assert changes(found.at("aggregate-2").replay(exclude={"users": "name = 'zoe'"})) == ((("zoe", "fr"),), [], ())
    assert found.where("land = 'de'", "Aggregate-2").go_back_all().names() == ["users"]
    with pytest.raises(UnknownNameError, match="no boundary is called 'agregate-2'") as caught:
        rows(SIDES).boundary("agregate-2")
    assert caught.value.nearest[0] == "aggregate-2 (name, land)"


def test_a_replay_leaves_out_rows_of_a_boundary(rows):
    every = rows(PIVOT)
    assert changes(every.replay(exclude={"aggregate": "page = 2"})) == (
        (),
        [(("ann", 10, 20), ("ann", 10, None))],
        (),
    )
    both = every.replay(exclude={"views": "page = 2", "aggregate": "page = 1"})
    assert (both.groups, both.gone) == (None, (("ann", 10, 20), ("bob", 60, None)))
    with pytest.raises(UsageError, match="unknown column 'pge'"):
        every.replay(exclude={"aggregate": "pge = 2"})
    with pytest.raises(UnknownNameError) as caught:
        every.replay(exclude={"veiws": "page = 2"})
    assert caught.value.nearest == ("views",)
    with pytest.raises(UnknownNameError, match="no boundary is called 'agregate'"):
        every.replay(exclude={"agregate": "page = 2"})


def test_rows_that_a_window_gives_on_are_not_traced_forward_from_there(rows):
    window = rows(RANKED).boundary("window").where("user = 'ann'")
    assert [token.row for token in window.go_back_all().ids()] == [0, 1]
    with pytest.raises(UsageError, match="rows at a window are not traced forward"):
        window.go_next_all()
