"""What an edited program may take in of rows that it was not given: plans compared by what decides rows."""

from __future__ import annotations

import pytest

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Call, Literal, Named
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import Filter, Project, outputs
from govtool.records.replay.gains import gains


def struct(*fields):
    return t.Struct(tuple(t.Field(name, kind) for name, kind in fields))


INPUTS = {
    "views": table("views", struct(("user", t.STRING), ("page", t.LONG), ("spent", t.LONG))),
    "users": table("users", struct(("name", t.STRING), ("land", t.STRING))),
}
RUN = """
    SELECT land, sum(spent) AS total FROM views JOIN users ON views.user = users.name
    WHERE page > 1 GROUP BY land HAVING sum(spent) > 20
"""


def found(edited, run=RUN, **more):
    plans = (from_sql(text, INPUTS) for text in (run, edited))
    return gains(*plans, **{"of_some": True, **more})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("page > 1", "page > 5"),  # stricter
        ("page > 1", "page > 1 AND land <> 'de'"),
        ("sum(spent) AS total", "sum(spent) * 2 AS total, max(page) AS last"),
        ("sum(spent) > 20", "sum(spent) > 1"),  # other groups, which were not chosen
        ("views JOIN users", "(SELECT * FROM views) AS views JOIN users"),
    ],
)
def test_edits_that_read_no_other_rows(old, new):
    assert found(RUN.replace(old, new) if old else RUN) == ()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("page > 1", "page > 0", "condition"),
        ("page > 1", "page >= 1", "condition"),
        ("page > 1", "true", "condition"),
        ("page > 1", "page + 1 > 1", "condition"),
        ("JOIN users", "LEFT JOIN users", "left join is new"),
        ("JOIN users", "LEFT JOIN users", "condition"),
        ("GROUP BY land", "GROUP BY land, page", "groups by other"),
        ("WHERE page > 1", "WHERE page > 1 AND user NOT IN (SELECT name FROM users)", "subquery"),
        (
            "users ON views.user = users.name",
            "users ON views.user = users.name CROSS JOIN (SELECT name AS other FROM users) AS v",
            "join is new",
        ),
        ("FROM views", "FROM (SELECT * FROM views UNION ALL SELECT * FROM views) AS views", "unites more"),
    ],
)
def test_edits_that_may_read_others(old, new, why):
    assert any(why in reason for reason in found(RUN.replace(old, new)))


def test_of_all_results_a_looser_condition_on_totals_matters():
    looser = RUN.replace("sum(spent) > 20", "sum(spent) > 1")
    assert found(looser, of_some=False) == found(looser, by_computed=True) != ()
    assert found(RUN.replace("GROUP BY land", "GROUP BY land, page"), of_some=False) == ()


def test_outer_joins_of_the_run():
    outer = "SELECT name, page FROM users LEFT JOIN views ON name = user"
    assert found(outer.replace("LEFT JOIN", "JOIN"), outer) == ()
    assert found(outer.replace("LEFT", "FULL"), outer) != ()
    limited = outer + " ORDER BY name, page LIMIT 2"
    assert found(outer, limited) != ()


def test_a_value_of_many_steps_is_followed():
    node = from_sql("SELECT page FROM views", INPUTS)
    for number in range(300):
        (column,) = outputs(node)
        node = Project(node, (Named(Call("+", (column, Literal(1, t.LONG)), t.LONG, "ansi"), 1000 + number, "page"),))
    (column,) = outputs(node)
    over = [Filter(node, Call(">", (column, Literal(limit, t.LONG)), t.BOOLEAN)) for limit in (5, 4)]
    assert gains(over[0], over[0], of_some=True) == gains(over[1], over[0], of_some=True) == ()
    assert gains(over[0], over[1], of_some=True) != ()
