"""Key sidecars: the same answers with them as without, whatever is in the data and whatever became of the files."""

from __future__ import annotations

import os
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import Warehouse

import govtool
from govtool.app.records.sidecars import sidecar_folder
from govtool.cli.main import main
from govtool.records.sidecar import keyfile, lookup
from govtool.records.sidecar.folder import SidecarFolder
from govtool.records.sidecar.keyfile import KeySet
from govtool.store import Store

COLUMNS = {"name": pa.string(), "number": pa.int64(), "value": pa.int64()}
NAMES = ["a", "a ", " a", "A", "ä", "a\u0308", "", None, "it's", "0", "x" * 200]
BY_BOTH = "SELECT name, number, sum(value) AS total FROM data GROUP BY name, number"
BY_NAME = "SELECT name, count(*) AS n FROM data GROUP BY name"


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    warehouse = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    rng = random.Random(7)
    parts = [
        [(rng.choice(NAMES), rng.choice([None, 0, 1, -1, 2**62]), rng.randrange(100)) for _ in range(60)]
        for _ in range(3)
    ]
    warehouse.table("data", COLUMNS, *parts, [])
    warehouse.commit(warehouse.run(BY_BOTH, "both", "data", run="app-1/0"))
    warehouse.commit(warehouse.run(BY_NAME, "names", "data", run="app-2/0"))
    return warehouse


def rows(output, where, sidecars):
    report = govtool.open().trace_back(output, where, sidecars=sidecars)
    assert report.engine == "DuckDB"
    return report.trace, report.opened.sidecars.used


def test_a_write_that_cannot_be_traced_leaves_the_others_indexed(house, capsys):
    house.commit(*(house.run(BY_NAME.replace("*", str(n)), f"names-{n}", "data", run=f"app-4/{n}") for n in (1, 2)))
    assert main(["store", "forget", "--run", "app-4/1", "-q"]) == 0
    assert main(["index", "app-4", "--records"]) == 0
    out = capsys.readouterr().err
    assert "by name: 4 files" in out
    assert "names-1: the private values of this write were removed" in out
    assert main(["index", "app-4/1", "--records"]) == 2


CASES = [
    ("both", "name = 'a' AND number = 1"),
    ("both", "name IS NULL"),
    ("both", "name <=> NULL AND number IS NULL"),
    ("both", "(name = 'a ' AND number = 0) OR (name = 'A' AND number = -1) OR (number = 1 AND name = '')"),
    ("both", "number IN (1, 4611686018427387904) AND total > 50"),
    ("both", "true"),
    ("names", "name = 'a'"),
    ("names", "name IN ('a', 'a ', ' a', 'A', 'ä', 'a\u0308', 'it''s')"),
    ("names", "name = 'a' AND name = 'a'"),
    ("names", "n > 1"),
]
ALONE = ("both", "number IN (1, 4611686018427387904) AND total > 50")
"""No sidecar is by the number alone: the rows are scanned for it once, and then found among these."""


@pytest.mark.parametrize("bits", [32, 3, 0])
def test_answers_with_sidecars_are_those_without(house, monkeypatch, bits):
    """With 3 bits every hash is that of many keys, with none it is that of all."""
    monkeypatch.setattr(lookup, "HASH", f"(hash({{columns}}) & {(1 << bits) - 1})")
    monkeypatch.setattr("govtool.records.sidecar.build.HASH", lookup.HASH)
    with monkeypatch.context() as plain:
        plain.setattr(lookup.SidecarExecutor, "narrowed", lambda self, node: node)
        expected = [rows(*case, False)[0] for case in CASES]
    assert [rows(*case, False)[0] for case in CASES] == expected
    graph = govtool.open()
    assert [(each.columns, each.built, each.rows) for each in graph.index_records("app-1")] == [
        (("name", "number"), 4, 180)
    ]
    assert [(each.columns, each.built) for each in graph.index_records("app-2")] == [(("name",), 4)]
    for case, plain in zip(CASES, expected, strict=True):
        found, used = rows(*case, True)
        assert found == plain, case
        assert used or case == ALONE, case


def test_a_second_index_builds_nothing_and_removing_leaves_nothing(house):
    graph = govtool.open()
    graph.index_records("app-1")
    (again,) = graph.index_records("app-1")
    assert (again.built, again.present) == (0, 4)
    (gone,) = graph.index_records("app-1", remove=True)
    assert gone.built == 4
    assert list(sidecar_folder().path.iterdir()) == []
    assert rows("both", "name = 'a'", True)[1] == 0


def test_the_command_builds_and_removes(house, capsys):
    assert main(["index", "app-2/0", "--records"]) == 0
    assert "by name: 4 files" in capsys.readouterr().err
    assert rows("names", "name = 'a'", True)[1]
    assert main(["index", "app-2/0", "--records", "--remove"]) == 0
    assert "4 files removed" in capsys.readouterr().err
    assert main(["index", "app-2/0"]) == 2
    assert main(["index", "--records"]) == 2
    assert main(["index", "app-9", "--records"]) == 2


def test_files_that_are_not_those_that_were_read_are_named(house, capsys):
    files = sorted((house.folder / "data").glob("*.parquet"))
    files[0].unlink()
    assert main(["index", "app-2/0", "--records"]) == 0
    out = capsys.readouterr().err
    assert "by name: 3 files" in out
    assert f"no keys for {files[0].as_uri()}: is gone" in out
    for each in files[1:]:
        each.unlink()
    assert main(["index", "app-2/0", "--records"]) == 0
    out = capsys.readouterr().err
    assert out.count("is gone") == 4
    assert "no trace of" not in out


def test_at_most_eight_bytes_a_row(tmp_path):
    keys = KeySet((("a", "BIGINT"),), "test 1")
    data = tmp_path / "data"
    data.write_bytes(b"data")
    packed = np.sort(np.random.default_rng(1).integers(0, 2**64, 10_000, np.uint64) & np.uint64(0xFFFFFFFF00000FFF))
    keyfile.write(tmp_path / "x.keys", data.as_uri(), keys, keyfile.identity(data.as_uri()), packed)
    assert (tmp_path / "x.keys").stat().st_size <= 8 * len(packed)
    found = keyfile.opened(tmp_path / "x.keys", data.as_uri(), keys)
    hashes = (packed >> np.uint64(32)).astype(np.uint32)
    wanted = np.unique(hashes[[3, 77, 9_999]])
    expected = sorted(int(row) & 0xFFFFFFFF for row, of in zip(packed, hashes, strict=True) if of in wanted)
    assert found.found(wanted, 100).tolist() == expected
    assert found.found(wanted, 2) is None


def test_a_file_replaced_under_its_name_with_its_size_and_time_is_another_one(house):
    place = house.folder / "same"
    place.mkdir()

    def put(names):
        table = pa.table({"name": pa.array(names), "number": pa.array(range(len(names)))})
        pq.write_table(
            table, place / "part-0.parquet", compression="none", use_dictionary=False, write_statistics=False
        )

    put(["a ", " a", "b", " a"])
    house.commit(house.run("SELECT name, sum(number) AS s FROM same GROUP BY name", "sums", "same", run="app-3/0"))
    govtool.open().index_records("app-3")
    found, used = rows("sums", "name = 'b'", True)
    assert used
    before = (place / "part-0.parquet").stat()
    put(["b", " a", "a ", " a"])
    os.utime(place / "part-0.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (place / "part-0.parquet").stat().st_size == before.st_size
    found, used = rows("sums", "name = 'b'", True)
    assert used == 0
    assert [row["_row"] for row in found.inputs[0].rows] == [0]


@pytest.mark.parametrize("damage", ["cut", "empty", "header", "magic", "other", "body", "tail"])
def test_a_damaged_sidecar_is_not_used(house, damage):
    govtool.open().index_records("app-2")
    expected = rows("names", "name = 'a'", False)[0]
    for file in sidecar_folder().path.iterdir():
        data = bytearray(file.read_bytes())
        if damage == "cut":
            data = data[:-1]
        elif damage == "empty":
            data = bytearray()
        elif damage == "header":
            data[12:20] = b"\xff" * 8
        elif damage == "magic":
            data[:7] = b"GTKEYS1"
        elif damage == "body":
            data[-108:-8] = bytes(byte ^ 1 for byte in data[-108:-8])
        elif damage == "tail":
            data[-1] ^= 1
        else:
            data = bytearray(data.replace(b"duckdb ", b"duckbd "))
        file.write_bytes(data)
    found, used = rows("names", "name = 'a'", True)
    assert (found, used) == (expected, 0)


def test_the_folder_keeps_to_its_bound(tmp_path):
    folder = SidecarFolder(tmp_path, 250)
    for number in range(4):
        (tmp_path / f"{number}.keys").write_bytes(b"x" * 100)
        os.utime(tmp_path / f"{number}.keys", (number, number))
    (tmp_path / ".build-dead").write_bytes(b"x")
    os.utime(tmp_path / ".build-dead", (1, 1))
    (tmp_path / ".build-live").write_bytes(b"x")
    folder.evict()
    assert sorted(file.name for file in tmp_path.iterdir()) == [".build-live", "2.keys", "3.keys"]


def test_a_cache_that_is_too_small_is_stated(house, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE_SIZE", "4K")
    (built,) = govtool.open().index_records("app-1")
    assert "GOVTOOL_CACHE_SIZE" in built.why


def test_rows_by_id_are_those_of_the_files(house):
    records = govtool.open().records("names").where("name = 'a'").go_back_all()
    ids = [(token.file, token.row) for token in records.ids()]
    assert len(ids) > 3
    assert [(t.file, t.row) for t in records.rows(ids[1:3]).ids()] == ids[1:3]
    assert records.rows([(9, 9)]).ids() == ()


@pytest.mark.parametrize(("column", "apart", "few"), [("number", 64, 1000), ("number", 1, 3), ("File_Index", 64, 3)])
def test_records_have_the_ordinal_of_their_file(tmp_path, monkeypatch, column, apart, few):
    """Against the files read one by one: whatever the columns are called, one file gone, with and without a list."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("govtool.records.sidecar.rows_read._APART", apart)
    monkeypatch.setattr("govtool.records.sidecar.lookup._FEW_FOUND", few)
    warehouse = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    draw = random.Random(column)
    parts = [[(draw.choice("abcdef"), draw.randrange(9), n) for n in range(40)] for _ in range(6)]
    warehouse.table("data", {"name": pa.string(), column: pa.int64(), "value": pa.int64()}, *parts)
    sql = f"SELECT name, {column}, sum(value) AS s FROM data GROUP BY name, {column}"
    warehouse.commit(warehouse.run(sql, "sums", "data"))
    for lost in (None, 2):
        if lost is not None:
            (tmp_path / "data" / f"part-{lost}.parquet").unlink()
        chosen = govtool.open().records("sums").where(f"name IN ('a', 'c') AND {column} IN (1, 4, 7)").go_back_all()
        expected = {
            (file, at): row
            for file, rows in enumerate(parts)
            for at, row in enumerate(rows)
            if file != lost and row[0] in "ac" and row[1] in (1, 4, 7)
        }
        assert {(token.file, token.row) for token in chosen.ids()} == expected.keys()
        (answer,) = chosen.answer(1000).inputs
        found = {(row["_file"].rpartition("-")[2], row["_row"]): row for row in answer.rows}
        assert {(f"{file}.parquet", at) for file, at in expected} == found.keys()
        for (file, at), (name, number, value) in expected.items():
            row = found[f"{file}.parquet", at]
            assert (row["name"], row[column], row["value"]) == (name, number, value)
