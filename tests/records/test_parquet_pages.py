"""Pages cut out of Parquet files: the wanted rows, whatever the layout of the file, or nothing."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded import Warehouse

import govtool
from govtool.records.parquet import cut as cut_module
from govtool.records.parquet import file_cut as file_cut_module
from govtool.records.parquet.cut import CutPiece, PieceFiles
from govtool.records.parquet.file_cut import CutSource
from govtool.records.parquet.marks import MARK
from govtool.store import Store

ROWS = 3000


def cut(file: Path, columns, rows, first, folder) -> list[CutPiece] | None:
    """The pieces of one file; None where it is not cut."""
    pieces = PieceFiles(folder)
    if not pieces.add(CutSource(file, columns, rows, first)):
        assert pieces.finish() == []
        return None
    ((_, found),) = pieces.finish()
    return found


def table(seed: int) -> pa.Table:
    """Flat and nested columns, with NULLs and empty lists; long texts, whose pages end earlier than others."""
    rng = random.Random(seed)

    def maybe(value):
        return None if rng.random() < 0.1 else value

    rows = [
        {
            "number": maybe(rng.randrange(50)),
            "text": maybe(rng.choice("äbc") * rng.randrange(40)),
            "long": f"{n}-" + "y" * rng.randrange(200),
            "list": maybe([maybe(rng.randrange(9)) for _ in range(rng.randrange(4))]),
            "maps": maybe([{"k": maybe(str(n)), "m": [("a", n), ("b", None)][: rng.randrange(3)]}]),
            "pair": maybe({"x": n, "y": {"z": maybe(n * 0.5)}}),
        }
        for n in range(ROWS)
    ]
    kinds = [
        ("number", pa.int64()), ("text", pa.string()), ("long", pa.string()), ("list", pa.list_(pa.int32())),
        ("maps", pa.list_(pa.struct([("k", pa.string()), ("m", pa.map_(pa.string(), pa.int64()))]))),
        ("pair", pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.float64())]))])),
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema(kinds))


LAYOUTS = {
    "even pages": {"max_rows_per_page": 100},
    "two row groups": {"max_rows_per_page": 100, "row_group_size": 1700},
    "pages by size": {"data_page_size": 2000, "write_batch_size": 16},
    "no dictionary": {"max_rows_per_page": 70, "use_dictionary": False, "compression": "zstd"},
    "pages of version 2": {"max_rows_per_page": 100, "data_page_version": "2.0", "compression": "gzip"},
    "deltas, checksums": {
        "max_rows_per_page": 100, "use_dictionary": False, "compression": "none", "write_page_checksum": True,
        "column_encoding": {"number": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY"},
    },
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pieces_have_the_rows_of_the_file(tmp_path, layout):
    data = table(1)
    file = tmp_path / "data.parquet"
    pq.write_table(data, file, write_page_index=True, **LAYOUTS[layout])
    rng, found = random.Random(layout), 0
    for turn in range(6):
        rows = np.array(sorted(rng.sample(range(ROWS), rng.choice([1, 2, 5]))))
        columns = rng.sample(data.column_names, rng.randrange(1, 7))
        folder = tmp_path / str(turn)
        folder.mkdir()
        pieces = cut(file, columns, rows, 7_000_000_000, folder)
        if pieces is None:
            continue
        found += 1
        assert sorted(name for piece in pieces for name in piece.columns) == sorted(columns)
        for piece in pieces:
            wanted = (
                data.select(piece.columns).take(rows).add_column(0, MARK, pa.array(rows + 7_000_000_000)).to_pylist()
            )
            there = pq.read_table(piece.path, page_checksum_verification=True)
            there = there.select([MARK, *piece.columns]).to_pylist()
            assert [row for row in there if row[MARK] >= 0] == wanted
            assert {row[MARK] for row in there if row[MARK] < 0} <= {-1}
            assert len(there) < ROWS
            query = f"SELECT {MARK}, {', '.join(piece.columns)} FROM read_parquet('{piece.path}') WHERE {MARK} >= 0"
            assert sorted(duckdb.sql(query).to_arrow_table().to_pylist(), key=lambda row: row[MARK]) == wanted
    assert found


def test_files_that_are_cut_alike_lie_in_the_same_pieces(tmp_path, monkeypatch):
    """Files of three layouts and two partitions in one folder of pieces; some of them break while they are written."""
    rng, pieces, expected = random.Random(8), PieceFiles(tmp_path), {}
    kinds = [LAYOUTS[name] for name in ("even pages", "two row groups", "no dictionary", "deltas, checksums")]
    columns, broken, mark_chunk = ["number", "long", "maps"], 0, cut_module.mark_chunk
    for number in range(24):
        data, file, part = table(number), tmp_path / f"data-{number}.parquet", rng.choice("ab")
        pq.write_table(data, file, write_page_index=True, **rng.choice(kinds))
        rows = np.array(sorted(rng.sample(range(ROWS), rng.choice([1, 3]))))
        calls = iter(range(rng.choice([0, 1, 1000])))
        monkeypatch.setattr(cut_module, "mark_chunk", lambda *given, calls=calls: (next(calls), mark_chunk(*given))[1])
        try:
            is_cut = pieces.add(CutSource(file, columns, rows, number << 34, part))
        except StopIteration:
            broken += 1
            continue
        assert is_cut
        wanted = data.select(columns).take(rows).add_column(0, MARK, pa.array(rows + (number << 34))).to_pylist()
        expected |= {(part, row[MARK]): row for row in wanted}
    assert broken
    found: dict = {}
    sets = pieces.finish()
    assert len(sets) <= len(kinds) * 2
    for part, own in sets:
        for piece in own:
            query = f"SELECT {MARK}, {', '.join(piece.columns)} FROM read_parquet('{piece.path}') WHERE {MARK} >= 0"
            for row in duckdb.sql(query).to_arrow_table().to_pylist():
                found.setdefault((part, row[MARK]), {}).update(row)
    assert found == expected


NESTED = {
    "list": pa.list_(pa.int32()),
    "long_runs": pa.list_(pa.int64()),
    "one": pa.list_(pa.string()),
    "deep": pa.list_(pa.list_(pa.struct([("x", pa.float64()), ("y", pa.string())]))),
    "map": pa.map_(pa.string(), pa.list_(pa.int16())),
    "fixed": pa.list_(pa.binary(3)),
    "flags": pa.list_(pa.bool_()),
}


def nested_rows(rng: random.Random) -> pa.Table:
    """Nested columns with NULLs and empty lists at every level, and long runs of equal values."""

    def some(make, most=4):
        return (
            None
            if rng.random() < 0.15
            else [None if rng.random() < 0.15 else make() for _ in range(rng.randrange(most))]
        )

    def pair():
        return {"x": rng.choice([0.5, None, -0.0]), "y": rng.choice(["", "ä", None, "long" * rng.randrange(20)])}

    rows = [
        {
            "list": some(lambda: rng.randrange(700)),
            "long_runs": [n // 500] * (n % 3) if n % 700 else [],
            "one": ["same"] * rng.randrange(3),
            "deep": some(lambda: some(pair)),
            "map": None
            if rng.random() < 0.1
            else [(f"k{m}", some(lambda: rng.randrange(9))) for m in range(rng.randrange(3))],
            "fixed": some(lambda: rng.randbytes(3)),
            "flags": some(lambda: rng.random() < 0.5),
        }
        for n in range(ROWS)
    ]
    return pa.Table.from_pylist(rows, pa.schema(list(NESTED.items())))


@pytest.mark.parametrize("compression", ["snappy", "zstd", "gzip", "brotli", "lz4", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_rows_alone_are_cut_of_nested_columns(tmp_path, compression, version, dictionary):
    rng = random.Random(f"{compression} {version} {dictionary}")
    data = nested_rows(rng)
    file = tmp_path / "data.parquet"
    layout = {"compression": compression, "data_page_version": version, "use_dictionary": dictionary}
    pq.write_table(data, file, write_page_index=True, max_rows_per_page=50, row_group_size=1700, **layout)
    cut_by_rows = set()
    for turn in range(4):
        rows = np.array(sorted(rng.sample(range(ROWS), rng.choice([1, 3, 6])) + ([1699, 1700] if turn == 1 else [])))
        rows = np.unique(rows)
        folder = tmp_path / str(turn)
        folder.mkdir()
        pieces = cut(file, data.column_names, rows, 5, folder)
        assert pieces is not None
        assert sorted(name for piece in pieces for name in piece.columns) == sorted(data.column_names)
        for piece in pieces:
            wanted = data.select(piece.columns).take(rows).to_pylist()
            there = pq.read_table(piece.path).to_pylist()
            marked = [row for row in there if row[MARK] >= 0]
            assert [row.pop(MARK) for row in marked] == (rows + 5).tolist()
            assert marked == wanted
            query = f"SELECT * FROM read_parquet('{piece.path}') WHERE {MARK} >= 0 ORDER BY {MARK}"
            again = duckdb.sql(query).to_arrow_table().select(piece.columns)
            assert again.cast(data.select(piece.columns).schema).to_pylist() == wanted
            if len(there) == len(rows):
                cut_by_rows |= {*piece.columns}
    plain = {*NESTED} if version == "1.0" else {*NESTED} - {"flags"}  # of version 2, booleans are runs
    assert cut_by_rows >= plain


def test_files_that_cannot_be_cut(tmp_path):
    data = table(2)

    def cut_of(columns=("number",), rows=(5,), **layout):
        file = tmp_path / "data.parquet"
        pq.write_table(data, file, **{"write_page_index": True, "max_rows_per_page": 100, **layout})
        return cut(file, columns, np.array(rows), 0, tmp_path)

    assert cut_of() is not None
    assert cut_of(write_page_index=False) is None
    assert cut_of(max_rows_per_page=ROWS) is None  # one page: nothing to leave out
    assert cut_of(rows=range(0, ROWS, 50)) is None  # nearly all pages
    assert cut_of(columns=("number", "Number")) is None
    assert cut_of(rows=(ROWS,)) is None
    other = tmp_path / "other.parquet"
    for content in (b"", b"PAR1", b"PAR1\xff\xff\xff\x7fPAR1", b"\x19" * 100 + b"\x40\0\0\0PAR1"):
        other.write_bytes(content)
        assert cut(other, ("number",), np.array([5]), 0, tmp_path) is None


def test_a_damaged_file_gives_its_rows_or_nothing(tmp_path):
    """Bytes of the footer and of the page index are changed: a cut that is made has the index's rows of each page."""
    data = table(3).select(["number", "text", "list"])
    file = tmp_path / "data.parquet"
    pq.write_table(data, file, write_page_index=True, max_rows_per_page=100)
    whole = file.read_bytes()
    start, rng = whole.rindex(b"PAR1") - 4, random.Random(4)
    length = int.from_bytes(whole[start : start + 4], "little")
    for _ in range(300):
        broken = bytearray(whole)
        broken[rng.randrange(start - length - 600, start)] = rng.randrange(256)
        file.write_bytes(broken)
        pieces = cut(file, ["number", "list"], np.array([7, 250]), 0, tmp_path)  # and raises nothing
        for piece in pieces or ():
            query = f"SELECT {MARK} FROM read_parquet('{piece.path}') WHERE {MARK} >= 0"
            with contextlib.suppress(duckdb.Error):
                assert sorted(duckdb.sql(query).fetchall()) == [(7,), (250,)]


def test_damaged_pages_raise_nothing(tmp_path):
    """Bytes of data pages are changed: nothing is cut, or pieces that an engine reads or refuses."""
    data = nested_rows(random.Random(6)).select(["list", "deep"])
    file = tmp_path / "data.parquet"
    pq.write_table(data, file, write_page_index=True, max_rows_per_page=150, compression="none")
    whole, rng = file.read_bytes(), random.Random(7)
    for turn in range(300):
        broken = bytearray(whole)
        for _ in range(1 + turn % 3):
            broken[rng.randrange(4, len(whole) * 4 // 5)] = rng.randrange(256)
        file.write_bytes(broken)
        for piece in cut(file, ["list", "deep"], np.array([7, 250]), 0, tmp_path) or ():
            assert pq.ParquetFile(piece.path).metadata.num_rows >= 2


def test_a_trace_reads_pages_and_answers_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("GOVTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    house = Warehouse(tmp_path, Store.init(str(tmp_path / ".govtool")))
    columns = {"name": pa.string(), "number": pa.int64(), "value": pa.int64()}
    rng = random.Random(5)
    parts = [[(rng.choice("abc"), rng.randrange(400), n) for n in range(1500)] for _ in range(2)]
    house.table("data", columns, *parts)
    for file in (tmp_path / "data").glob("*.parquet"):
        pq.write_table(pq.read_table(file), file, write_page_index=True, max_rows_per_page=50)
    house.commit(house.run("SELECT name, number, sum(value) AS s FROM data GROUP BY name, number", "sums", "data"))
    used, add_all = [], PieceFiles.add_all
    monkeypatch.setattr(PieceFiles, "add_all", lambda *given: used.append(add_all(*given)) or used[-1])
    found = [govtool.open().trace_back("sums", "name = 'b' AND number IN (3, 377)").trace for _ in range(2)]
    assert any(map(any, used))
    monkeypatch.setattr(file_cut_module, "_WORTH", -1.0)
    found.append(govtool.open().trace_back("sums", "name = 'b' AND number IN (3, 377)").trace)
    assert not any(used[-1])
    assert found[0] == found[1] == found[2]
    (rows,) = found[0].inputs
    expected = [values for part in parts for values in part if values[0] == "b" and values[1] in (3, 377)]
    assert sorted((row["name"], row["number"], row["value"]) for row in rows.rows) == sorted(expected)
