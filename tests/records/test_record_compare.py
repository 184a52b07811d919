"""Equal rows, whatever engine gave them, in large tables too."""

from __future__ import annotations

import pyarrow as pa
import pytest

from govtool.records.execute import compare
from govtool.records.plan import types as t
from govtool.records.plan.from_sql import from_sql
from govtool.records.plan.from_sql import table as bound_table
from govtool.records.plan.nodes import outputs
from govtool.records.trace.list_order import unordered_lists


@pytest.fixture(params=["python", "duckdb"])
def same(request, monkeypatch):
    """Compare small tables in Python, or as large ones are."""
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
        monkeypatch.setattr(compare, "MANY", 0)
    return compare.same_rows


def table(**columns):
    """A table; columns of other names are the same columns."""
    return pa.table(columns)


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (table(a=[1, 2, 2]), table(b=[2, 1, 2]), True),
        (table(a=[1, 2, 2]), table(a=[1, 1, 2]), False),
        (table(a=[1, None]), table(a=[None, 1]), True),
        (table(a=[1, None]), table(a=[1, 0]), False),
        (table(a=["x", "y"], b=[1.0, 2.0]), table(a=["x", "y"], b=[2.0, 1.0]), False),
        (table(a=[0.0, float("nan"), float("inf")]), table(a=[float("inf"), -0.0, float("nan")]), True),
        (table(a=[float("inf")]), table(a=[float("-inf")]), False),
        (table(a=[1.000000005, 5.0]), table(a=[1.00000000499999, 5.0]), True),  # on both sides of a rounding
        (table(a=["k", "k"], b=[1.000000005, 7.0]), table(a=["k", "k"], b=[7.0, 1.00000000499999]), True),
        (table(a=["k", "k"], b=[1.000000005, 7.0]), table(a=["k", "l"], b=[7.0, 1.00000000499999]), False),
        (table(a=[1.0]), table(a=[1.0000001]), False),
        (table(a=[1, 2]), table(a=[1, 2, 2]), False),
        (table(a=[[1, 2], None]), table(a=[None, [1, 2]]), True),
        (table(a=[[1, 2]]), table(a=[[2, 1]]), False),
        (table(a=[b"\x00", b"\xff"]), table(a=[b"\xff", b"\x00"]), True),
    ],
)
def test_rows(same, first, second, equal):
    assert same(first, second) is equal
    assert same(second, first) is equal


def test_maps_have_no_order(same):
    kind = pa.map_(pa.string(), pa.int64())
    first = pa.table({"m": pa.array([[("a", 1), ("b", 2)]], kind)})
    second = pa.table({"m": pa.array([[("b", 2), ("a", 1)]], kind)})
    assert same(first, second)


def test_names_may_repeat(same):
    both = pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    assert same(both, both)
    assert not same(both, pa.table([pa.array([2, 1]), pa.array([3, 4])], names=["a", "a"]))


def test_collected_lists_are_compared_without_their_order(same):
    one = pa.table({"k": [1, 2], "l": [[1, 2, 2], None]})
    other = pa.table({"k": [2, 1], "l": [None, [2, 1, 2]]})
    less = pa.table({"k": [2, 1], "l": [None, [2, 1, 1]]})
    assert not same(one, other)
    assert same(one, other, {1})
    assert not same(one, less, {1})


def test_columns_that_are_collected_lists():
    relation = bound_table("t", t.Struct((t.Field("a", t.LONG), t.Field("b", t.LONG))))
    text = "SELECT k, l AS m, array(k) AS n FROM (SELECT a AS k, collect_list(b) AS l FROM t GROUP BY a)"
    plan = from_sql(text, {"t": relation})
    assert [column.name for column in outputs(plan) if column.id in unordered_lists(plan)] == ["m"]


def test_times_and_days_beyond_the_years_of_python_are_compared():
    far = [(8_000 * 365 + 2_000) * 86_400 * 1_000_000 + n for n in (0, 1)]
    tables = [
        pa.table(
            {
                "at": pa.array([moment, None], pa.timestamp("us", "UTC")),
                "local": pa.array([moment, None], pa.timestamp("us")),
                "day": pa.array([3_000_000, None], pa.int32()).cast(pa.date32()),
            }
        )
        for moment in far
    ]
    assert compare.same_rows(tables[0], tables[0])
    assert not compare.same_rows(*tables)
