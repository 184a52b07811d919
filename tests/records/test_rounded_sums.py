"""Outputs with sums of floats that the run added in another order than any later evaluation does."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
import recorded
from recorded import Warehouse

import govtool
from govtool.records.execute.duckdb import DuckExecutor
from govtool.records.plan.nodes import Aggregate
from govtool.records.plan.tree import walk_nodes
from govtool.store import Store

SALES = [(1, "de", 0.1), (2, "de", 0.2), (3, "de", 0.3), (4, "fr", 7.0), (5, None, 0.3)]


class OtherOrder(DuckExecutor):
    """Evaluates a run; its floats are the next ones after those that another evaluation gives."""

    def arrow(self, node, *more):
        """The rows."""
        table = super().arrow(node, *more)
        if not any(isinstance(each, Aggregate) for each in walk_nodes(node)):
            return table
        for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
            if column.type == pa.float64():
                values = [None if value is None else math.nextafter(value, math.inf) for value in column.to_pylist()]
                table = table.set_column(place, name, pa.array(values, pa.float64()))
        return table


@pytest.fixture
def graph(tmp_path, monkeypatch):
    """sales → sums (with keys) → most; sales → bare (without)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    monkeypatch.setattr(recorded, "DuckExecutor", OtherOrder)
    warehouse = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    warehouse.table("sales", {"id": pa.int64(), "land": pa.string(), "x": pa.float64()}, SALES[:2], SALES[2:])
    warehouse.commit(warehouse.run("SELECT land, sum(x) AS s FROM sales GROUP BY land", "sums", "sales", run="a/0"))
    warehouse.commit(warehouse.run("SELECT land, s FROM sums WHERE s > 0.5", "most", "sums", run="b/0"))
    warehouse.commit(warehouse.run("SELECT sum(x) AS s FROM sales GROUP BY land", "bare", "sales", run="c/0"))
    return govtool.open()


def ids(group):
    return sorted(row["id"] for row in group["rows"])


def written(graph, name, land):
    (value,) = [row["s"] for row in graph.records(name).arrow().to_pylist() if row["land"] == land]
    return math.nextafter(value, math.inf)


def test_a_trace_goes_on_through_the_run_that_added_them(graph):
    answer = graph.trace_back("most", "land = 'de'", all_runs=True).to_dict()
    (hop,) = answer["hops"]
    assert (ids(hop["inputs"][0]), hop["inputs"][0]["exactness"]) == ([1, 2, 3], "exact")


def test_a_trace_forward_finds_them_in_the_written_files(graph):
    answer = graph.trace_forward("sales", "id = 2", all_runs=True).to_dict()
    outputs = [*answer["outputs"], *(group for hop in answer["hops"] for group in hop["outputs"])]
    assert {group["dataset"].rpartition("/")[2]: group["exactness"] for group in outputs} == {
        "sums": "exact",
        "most": "exact",
        "bare": "exact",
    }
    assert all("_row" in row for group in outputs for row in group["rows"])


def test_a_condition_is_about_what_the_run_wrote(graph):
    value = written(graph, "sums", "de")
    answer = graph.trace_back("sums", f"s = {value!r}").to_dict()
    assert (ids(answer["inputs"][0]), answer["steps"][0]["exactness"]) == ([1, 2, 3], "exact")
    chosen = graph.records("sums").where(f"s = {value!r}")
    assert chosen.count() == 1
    assert sorted(row["id"] for row in chosen.go_back_all().arrow().to_pylist()) == [1, 2, 3]
    assert sorted(row["id"] for row in graph.trace_back("bare", f"s = {value!r}").to_dict()["inputs"][0]["rows"]) == [
        1,
        2,
        3,
    ]
