"""Sums of floats, whose last digits differ from one evaluation to the next: rows are told by what is the same."""

from __future__ import annotations

import math

import pytest
from duck import Duck

from govtool.errors import EvidenceError
from govtool.records.lineage import DUPLICATES, Lineage
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.from_sql import from_sql, table
from govtool.records.plan.nodes import LocalRows, Project, outputs
from govtool.records.trace.rounding import is_close, rounded_columns
from govtool.records.trace.segment import EXACT

SALES = [("de", 0.1), ("de", 0.2), ("de", 0.3), ("fr", 7.0), (None, 0.3), (None, 0.3), ("it", 1e300), ("uk", math.inf)]
RELATIONS = {
    "sales": table("sales", t.Struct((t.Field("land", t.STRING), t.Field("x", t.DOUBLE)))),
    "pairs": table("pairs", t.Struct((t.Field("a", t.DOUBLE), t.Field("b", t.DOUBLE)))),
}
OTHER_SUM = 0.6
"""What 0.1 + (0.2 + 0.3) is; (0.1 + 0.2) + 0.3 is 0.6000000000000001."""


@pytest.fixture
def duck():
    duck = Duck()
    duck.load("sales", [("land", "VARCHAR"), ("x", "DOUBLE")], SALES)
    return duck


def lineage(duck, sql):
    return Lineage.of(from_sql(sql, RELATIONS), duck)


def behind(lineage, *rows):
    """The ids of the sales behind rows as a run wrote them, and the grade of the rows."""
    columns = tuple(Attribute(1000 + i, c.name, c.type) for i, c in enumerate(lineage.stage.segment.visible))
    found = lineage.recorded(LocalRows(0, columns, rows))
    return [token.row for token in found.go_back_all().ids("sales")], found.parts[0].grade


@pytest.mark.parametrize(
    ("value", "is_rounded"),
    [
        ("sum(x)", True),
        ("avg(x) + 1", True),
        ("abs(sum(x))", True),
        ("cast(sum(x) AS string)", True),
        ("stddev(x)", True),
        ("max(x)", False),
        ("count(x)", False),
        ("sum(x) > 3", False),
        ("sum(cast(x AS decimal(10, 2)))", False),
    ],
)
def test_columns_that_show_the_order_of_a_sum(value, is_rounded):
    root = from_sql(f"SELECT land, {value} AS v FROM sales GROUP BY land", RELATIONS)
    above = from_sql(f"SELECT v FROM (SELECT land, {value} AS v FROM sales GROUP BY land) UNION ALL SELECT v FROM "
                     f"(SELECT {value} AS v FROM sales)", RELATIONS)  # fmt: skip
    assert [column.id in rounded_columns(root) for column in outputs(root)] == [False, is_rounded]
    assert [column.id in rounded_columns(above) for column in outputs(above)] == [is_rounded]


def test_rows_are_told_by_their_keys_whatever_the_sum_is(duck):
    by_land = lineage(duck, "SELECT land, sum(x) AS s FROM sales GROUP BY land")
    assert behind(by_land, ("de", OTHER_SUM)) == ([0, 1, 2], EXACT)
    assert behind(by_land, (None, 0.6), ("fr", 7.0)) == ([3, 4, 5], EXACT)
    with pytest.raises(EvidenceError, match="does not give these rows again"):
        behind(by_land, ("es", 1.0))


def test_rows_without_keys_are_told_by_sums_that_are_close(duck):
    sums = lineage(duck, "SELECT sum(x) AS s FROM sales WHERE land IS NOT NULL GROUP BY land")
    assert behind(sums, (OTHER_SUM,)) == ([0, 1, 2], EXACT)
    assert behind(sums, (7.0,), (1e300,)) == ([3, 6], EXACT)


def test_rows_that_only_the_last_digits_tell_apart_are_duplicates(duck):
    sums = lineage(duck, "SELECT sum(x) AS s FROM sales GROUP BY land")
    assert behind(sums, (OTHER_SUM,)) == ([0, 1, 2, 4, 5], DUPLICATES)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (0.6, 0.6000000000000001, True),
        (1.0, 1.001, False),
        (None, None, True),
        (None, 0.0, False),
        (0.0, 1e-20, False),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (math.inf, math.inf, True),
        (math.inf, 1.0, False),
        (-math.inf, math.inf, False),
        (-5.0, 5.0, False),
        (1e308, -1e308, False),
    ],
)
def test_floats_are_close_by_their_relative_difference(a, b, expected):
    duck = Duck()
    duck.load("pairs", [("a", "DOUBLE"), ("b", "DOUBLE")], [(a, b), (b, a)])
    read = from_sql("SELECT a, b FROM pairs", RELATIONS)
    left, right = outputs(read)
    from govtool.records.plan.expressions import Named

    found = duck.fetch(Project(read, (Named(is_close(left, right), 99, "close"),)))
    assert [bool(value) for (value,) in found] == [expected] * 2
