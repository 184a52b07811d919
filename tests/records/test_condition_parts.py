"""Conditions over parts of nested columns, and over names that differ by case."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import SESSION, Warehouse

from govtool.errors import UnknownNameError, UsageError
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call
from govtool.records.plan.from_sql import condition_from_sql
from govtool.records.plan.nodes import Filter
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
from govtool.records.execute.duckdb import DuckExecutor


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("place.city = 'a'", [1]),
        ("nested.PLACE.City = 'b' and nested.place.no = 2", [2]),
        ("nested.place.no is null", [3]),
        ("tags[0] = 'x'", [1]),
        ("tags[9] is null", [1, 2, 3]),
        ("prices['k'] > 1", [2]),
        ("prices['none'] is null and k = 'small'", [1, 2, 3]),
    ],
)
def test_parts_of_nested_columns(tmp_path, where, ids):
    place = [{"city": "a", "no": 1}, {"city": "b", "no": 2}, {"city": "c", "no": None}]
    table = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "place": pa.array(place),
            "nested": pa.array([{"place": each} for each in place]),
            "tags": pa.array([["x", "y"], ["z"], []], pa.list_(pa.string())),
            "prices": pa.array([[("k", 1)], [("k", 2)], []], pa.map_(pa.string(), pa.int64())),
            "k": pa.array(["small"] * 3),
        }
    )
    (tmp_path / "odd").mkdir()
    pq.write_table(table, tmp_path / "odd" / "part-0.parquet")
    leaf = Warehouse(tmp_path, Store.init(str(tmp_path / "store"))).relation(tmp_path / "odd")
    rows = DuckExecutor(SESSION).fetch(Filter(leaf, condition_from_sql(where, leaf.columns)))
    assert [row[0] for row in rows] == ids


def test_mistakes_in_nested_columns_name_the_part():
    columns = (Attribute(0, "place", t.Struct((t.Field("city", t.STRING),))), Attribute(1, "n", t.LONG))
    with pytest.raises(UnknownNameError, match="unknown field 'citi'") as found:
        condition_from_sql("place.citi = 'a'", columns)
    assert found.value.nearest == ("city",)
    with pytest.raises(UsageError, match="does not cover the field x of"):
        condition_from_sql("n.x = 1", columns)
    with pytest.raises(UnknownNameError, match="unknown column 'x'"):
        condition_from_sql("other.x = 1", columns)


def test_of_names_that_differ_by_case_the_exact_one_is_meant():
    columns = (Attribute(0, "k", t.LONG), Attribute(1, "K", t.LONG))
    small, large = (condition_from_sql(f"{name} = 1", columns) for name in ("k", "K"))
    assert isinstance(small, Call)
    assert isinstance(large, Call)
    assert (columns[0] in small.arguments, columns[1] in large.arguments) == (True, True)
    assert columns[1] not in small.arguments
    with pytest.raises(UsageError, match="ambiguous"):
        condition_from_sql("key = 1", (Attribute(0, "Key", t.LONG), Attribute(1, "KEY", t.LONG)))
