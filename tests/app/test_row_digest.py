"""The digest of rows: blind to order, files and names; never to values, duplicates, nulls, columns or partitions."""

from __future__ import annotations

import gzip
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from govtool.app.datasets.row_digest import digest_rows

ROWS = {
    "id": pa.array([1, 2, 2, None], pa.int64()),
    "name": pa.array(["a", "", None, "N"], pa.string()),
    "x": pa.array([0.1, -0.0, float("nan"), None], pa.float64()),
    "at": pa.array([1, 2, None, 4], pa.timestamp("us")),
    "tags": pa.array([["a", "b"], [], None, ["a, b"]], pa.list_(pa.string())),
    "price": pa.array([None, "1.10", "2.00", "3.00"], pa.string()).cast(pa.decimal128(10, 2)),
}


def write(folder, *tables):
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for table in tables:
        files.append(folder / f"part-{random.randrange(10**9)}.parquet")
        pq.write_table(table, files[-1])
    return files


def digest(root, *tables):
    return digest_rows(write(root, *tables), root)


@pytest.fixture
def table():
    return pa.table(ROWS)


def test_order_and_files_do_not_count(tmp_path, table):
    whole = digest(tmp_path / "a", table)
    assert whole.startswith("rows-1:4:")
    assert digest(tmp_path / "b", table.take([3, 1, 0, 2])) == whole
    assert digest(tmp_path / "c", table.slice(2), table.slice(0, 2), table.slice(0, 0)) == whole


def test_few_rows_count_as_many_do(tmp_path):
    """Files of few rows of plain types are read in another way than larger ones."""
    chance = random.Random(5)
    number = [None, 0, -1, 1 << 62, -(1 << 63)]
    rows = {
        "n": pa.array(chance.choices(number, k=200), pa.int64()),
        "small": pa.array(chance.choices([None, -128, 0, 127], k=200), pa.int8()),
        "text": pa.array(chance.choices([None, "", "N", "\x00N", "1:a", "ä€"], k=200), pa.string()),
        "bytes": pa.array(chance.choices([None, b"", b"\xff\x00"], k=200), pa.binary()),
    }
    whole = pa.table(rows)
    assert digest(tmp_path / "few", *(whole.slice(at, 7) for at in range(0, 200, 7))) == digest(tmp_path / "all", whole)


def test_the_writers_choices_do_not_count(tmp_path, table):
    other = table.set_column(1, "name", table["name"].dictionary_encode())
    other = other.set_column(3, "at", other["at"].cast(pa.timestamp("ns")))
    other = other.set_column(2, "x", pa.array([0.1, 0.0, -float("nan"), None]))
    assert digest(tmp_path / "b", other) == digest(tmp_path / "a", table)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.slice(0, 3),
        lambda t: pa.concat_tables([t, t.slice(1, 1)]),
        lambda t: t.set_column(1, "name", pa.array(["a", None, None, "N"])),
        lambda t: t.set_column(1, "name", pa.array(["a", "", "", "N"])),
        lambda t: t.set_column(0, "id", pa.array([2, 1, 2, None])),
        lambda t: t.set_column(2, "x", pa.array([0.1 + 1e-16, 0.0, float("nan"), None])),
        lambda t: t.set_column(4, "tags", pa.array([["a, b"], [], None, ["a", "b"]])),
        lambda t: t.rename_columns(["id", "name", "x", "at", "tags", "cost"]),
        lambda t: t.select(["name", "id", "x", "at", "tags", "price"]),
    ],
    ids=["fewer", "twice", "null-for-empty", "empty-for-null", "swapped", "last-bit", "lists", "name", "columns"],
)
def test_every_change_of_the_rows_counts(tmp_path, table, change):
    assert digest(tmp_path / "b", change(table)) != digest(tmp_path / "a", table)


def test_neighbouring_cells_are_not_confused(tmp_path):
    one = pa.table({"a": ["x\0" + "1:y"], "b": ["z"]})
    other = pa.table({"a": ["x"], "b": ["y\0" + "1:z"]})
    assert digest(tmp_path / "a", one) != digest(tmp_path / "b", other)


def test_a_row_belongs_to_its_partition(tmp_path):
    table = pa.table({"a": [1]})
    days = [digest_rows(write(tmp_path / root / day, table), tmp_path / root) for root, day in
            (("one", "day=1"), ("two", "day=2"), ("three", "day=1"))]  # fmt: skip
    assert days[0] == days[2] != days[1]


def test_lines_of_text_plain_and_compressed(tmp_path):
    (tmp_path / "a.csv").write_text("1,x\n2,y\n")
    (tmp_path / "b").mkdir()
    with gzip.open(tmp_path / "b" / "part-0.csv.gz", "wb") as file:
        file.write(b"2,y\r\n1,x")
    plain = digest_rows([tmp_path / "a.csv"], tmp_path)
    assert plain == digest_rows([tmp_path / "b" / "part-0.csv.gz"], tmp_path / "b")


def test_other_formats_and_torn_files_have_none(tmp_path):
    (tmp_path / "a.avro").write_bytes(b"Obj")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    assert digest_rows([tmp_path / "a.avro"], tmp_path) is None
    assert digest_rows([tmp_path / "b.parquet"], tmp_path) is None
