"""``-o FILE.parquet`` of traces: every row of every dataset and run, in the types of the data."""

from __future__ import annotations

import csv
import decimal
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from govtool.cli.main import main
from govtool.store import Store

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install govtool[records]")
from recorded import Warehouse

ORDERS = [(1, "ann", 10), (2, "bob", 20), (3, "ann", 30)]
PEOPLE = [("ann", 7), ("bob", 8)]


@pytest.fixture
def house(tmp_path, monkeypatch):
    """orders → clean → totals (with people, whose key is a number there)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOVTOOL_STORE", raising=False)
    warehouse = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    warehouse.table("orders", {"id": pa.int64(), "name": pa.string(), "spent": pa.decimal128(9, 2)}, ORDERS)
    warehouse.table("people", {"person": pa.string(), "id": pa.string()}, [(name, f"p{n}") for name, n in PEOPLE])
    warehouse.commit(warehouse.run("SELECT id, name, spent FROM orders WHERE id < 9", "clean", "orders", run="a/0"))
    totals = "SELECT name, sum(spent) AS total FROM clean JOIN people ON name = person GROUP BY name"
    warehouse.commit(warehouse.run(totals, "totals", "clean", "people", run="b/0"))
    return warehouse


def written(file, *words):
    assert main([*words, "-o", str(file)]) == 0
    return pq.read_table(file)


def listed(capsys, *words):
    """The rows of the CSV: what, dataset and place."""
    capsys.readouterr()
    assert main([*words, "--format", "csv"]) == 0
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    return sorted((row["part"], row["dataset"], row["_id"]) for row in rows)


@pytest.mark.parametrize(
    ("direction", "dataset", "runs"), [("back", "totals", ["a/0", "b/0"]), ("forward", "orders", ["a/0", "b/0"])]
)
def test_rows_of_all_runs_are_in_it(house, tmp_path, capsys, direction, dataset, runs):
    words = ("trace", direction, dataset, "--where", "name = 'ann'", "--all-runs")
    table = written(tmp_path / "rows.parquet", *words)
    assert sorted(set(table["run"].to_pylist())) == runs
    rows = [(row["part"], row["dataset"], row["_id"]) for row in table.to_pylist()]
    assert sorted(rows) == listed(capsys, *words)


def test_columns_keep_their_types_and_those_that_have_none_in_common_are_text_with_a_word(house, tmp_path, capsys):
    table = written(tmp_path / "rows.parquet", "trace", "back", "totals", "--where", "name = 'ann'")
    assert table.schema.field("spent").type == pa.decimal128(9, 2)
    assert table.schema.field("_row").type == pa.int64()
    rows = {(row["person"] or row["name"], row["id"], row["spent"]) for row in table.to_pylist()}
    assert rows == {("ann", "1", decimal.Decimal(10)), ("ann", "3", decimal.Decimal(30)), ("ann", "p7", None)}
    assert "written as text" in (err := capsys.readouterr().err)
    assert err.rstrip().endswith(": id")
    table = written(tmp_path / "rows.parquet", "trace", "back", "clean", "--where", "name = 'ann'")
    assert table.schema.field("id").type == pa.int64()
    assert capsys.readouterr().err == ""


def test_rows_beyond_a_limit_and_rows_against_are_in_it(house, tmp_path):
    table = written(tmp_path / "rows.parquet", "trace", "back", "clean", "--where", "true", "--limit", "1")
    assert table["_row"].to_pylist() == [0, 1, 2]
    house.table("gone", {"name": pa.string()}, [("ann",), ("eve",)])
    others = "SELECT name FROM orders EXCEPT ALL SELECT name FROM gone"
    house.commit(house.run(others, "others", "orders", "gone", run="c/0"))
    table = written(tmp_path / "rows.parquet", "trace", "back", "others", "--where", "name = 'ann'")
    assert [(row["part"], row["name"], row["id"]) for row in table.to_pylist()] == [
        ("input", "ann", 1),
        ("input", "ann", 3),
        ("against", "ann", None),
    ]


def test_columns_of_the_data_never_take_the_place_of_those_about_rows(house, tmp_path, capsys):
    house.table("odd", {"run": pa.int64(), "dataset": pa.string(), "_id": pa.int64()}, [(5, "x", 6)])
    house.commit(house.run("SELECT * FROM odd", "copy", "odd", run="d/0"))
    (row,) = written(tmp_path / "rows.parquet", "trace", "back", "copy", "--where", "run = 5").to_pylist()
    assert (row["run"], row["_run"], row["_dataset"], row["__id"]) == ("d/0", 5, "x", 6)
    assert row["_id"].endswith(":0/0")
    assert main(["trace", "back", "copy", "--where", "run = 5", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "part,dataset,_id,_file,_row,run,_dataset,__id"


def test_boundaries_and_nothing_at_all(house, tmp_path):
    table = written(tmp_path / "rows.parquet", "trace", "back", "totals", "--where", "name = 'ann'", "--step")
    assert set(table["part"].to_pylist()) == {"between"}
    assert table.num_rows == 2
