"""Values taken out of pages without decoding the others, compared with what a simple reader finds."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from govtool.records.parquet import cut as cut_module
from govtool.records.parquet.cut import PieceFiles
from govtool.records.parquet.file_cut import CutSource, Dictionaries
from govtool.records.parquet.footer import Leaf, NoPageIndexError
from govtool.records.parquet.hybrid import bits_at, hybrid
from govtool.records.parquet.marks import MARK
from govtool.records.parquet.plain import PlainValues
from govtool.records.parquet.thrift import varint

TEXT = Leaf("t", 0, 1, 6, 0, (1, 2))
KINDS = {
    "short": lambda draw: b"ab" * draw.randrange(20),
    "some are empty": lambda draw: draw.choice([b"", b"x", b"yz"]),
    "all are empty": lambda draw: b"",
    "zeros": lambda draw: bytes(draw.randrange(6)) + draw.choice([b"", b"a"]),
    "like lengths": lambda draw: draw.choice([b"\1\0\0\0", b"\2\0\0\0ab", b"\0\0\0", b"q"]),
    "some are long": lambda draw: b"z" * draw.choice([3, 255, 256, 70_000]),
}


def plain(texts: list[bytes]) -> bytes:
    return b"".join(len(text).to_bytes(4, "little") + text for text in texts)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_found_wherever_they_begin(kind):
    draw = random.Random(kind)
    for _ in range(60):
        texts = [KINDS[kind](draw) for _ in range(draw.randint(1, 300))]
        values = PlainValues(TEXT, plain(texts), len(texts) + draw.randrange(3))
        for _ in range(3):  # what was found before is used again
            first = draw.randrange(len(texts))
            last = min(len(texts), first + draw.randrange(1, 4))
            assert values.spans([(first, last)]) == plain(texts[first:last])
            places = [draw.randrange(len(texts)) for _ in range(4)]
            assert values.at(np.array(places)) == plain([texts[place] for place in places])
        with pytest.raises(NoPageIndexError):
            PlainValues(TEXT, plain(texts), len(texts) + 1).spans([(0, len(texts) + 1)])
        with pytest.raises(NoPageIndexError):
            PlainValues(TEXT, plain(texts)[:-1], len(texts)).spans([(0, len(texts))])


def hybrid_of(numbers: list[int], width: int, draw: random.Random) -> bytes:
    """Numbers as a writer may put them: runs and bit-packed groups in any order."""
    found, at, wide = b"", 0, -(-width // 8)
    while at < len(numbers):
        alike = next((n for n in range(at, len(numbers)) if numbers[n] != numbers[at]), len(numbers)) - at
        if alike > 3 and draw.random() < 0.7:
            count = draw.randint(1, alike)
            found += varint(count << 1) + numbers[at].to_bytes(wide, "little")
        else:
            groups = draw.choice([1, 2, 2, 2, 63, 100])
            count = groups * 8
            bits = sum(number << width * n for n, number in enumerate(numbers[at : at + count]))
            found += varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")
        at += count
    return found


@pytest.mark.parametrize("width", [1, 3, 8, 13])
def test_numbers_of_a_hybrid_are_those_that_were_written(width):
    draw = random.Random(width)
    for _ in range(60):
        numbers: list[int] = []
        while len(numbers) < 2000:
            numbers += draw.choice([[draw.randrange(1 << width)] * draw.randrange(90), [draw.randrange(1 << width)]])
        data = hybrid_of(numbers, width, draw)
        first = draw.randrange(len(numbers))
        last = draw.randint(first, min(len(numbers), first + draw.choice([1, 50, 2000])))
        assert hybrid(data, width, first, last).tolist() == numbers[first:last]
        if width == 1:
            places = sorted(draw.sample(range(len(numbers)), 5))
            assert bits_at(data, places) == [(sum(numbers[:place]), numbers[place]) for place in places]
            with pytest.raises(NoPageIndexError):
                bits_at(data, [len(numbers) + 2000])
        with pytest.raises((NoPageIndexError, IndexError)):
            hybrid(data[: len(data) // 2], width, 0, len(numbers))


def flat_rows(draw: random.Random, count: int) -> pa.Table:
    """Columns of all flat types; most have a dictionary that is full after some pages."""

    def maybe(value):
        return None if draw.random() < 0.1 else value

    return pa.table(
        {
            "few": pa.array([maybe(draw.randrange(5)) for _ in range(count)], pa.int32()),
            "every": pa.array([draw.randrange(1 << 60) for _ in range(count)], pa.int64()),
            "short": pa.array([maybe(draw.randrange(300)) for _ in range(count)], pa.int16()),
            "text": pa.array([maybe(f"{draw.randrange(count)} ä" * draw.randrange(3)) for _ in range(count)]),
            "bytes": pa.array([maybe(draw.randbytes(draw.randrange(5))) for _ in range(count)], pa.binary()),
            "flag": pa.array([maybe(draw.random() < 0.5) for _ in range(count)], pa.bool_()),
            "share": pa.array([maybe(draw.choice([0.5, float("inf"), -0.0])) for _ in range(count)], pa.float64()),
            "amount": pa.array([maybe(draw.randrange(99)) for _ in range(count)], pa.int32()).cast(
                pa.decimal128(12, 2)
            ),
            "day": pa.array([maybe(draw.randrange(9999)) for _ in range(count)], pa.int32()).cast(pa.date32()),
            "time": pa.array([maybe(draw.randrange(10**12)) for _ in range(count)], pa.int64()).cast(
                pa.timestamp("us", "UTC")
            ),
            "nothing": pa.array([None] * count, pa.string()),
        }
    )


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [1 << 20, 600, 0])
def test_rows_alone_are_cut_of_flat_columns(tmp_path, version, dictionary):
    draw, known = random.Random(f"{version} {dictionary}"), Dictionaries()
    data = flat_rows(draw, 4000)
    file = tmp_path / "data.parquet"
    layout = {"data_page_version": version, "use_dictionary": dictionary > 0, "row_group_size": 2500}
    limit = {"dictionary_pagesize_limit": dictionary} if dictionary else {}
    pq.write_table(data, file, write_page_index=True, max_rows_per_page=100, **layout, **limit)
    by_rows = set()
    for turn in range(6):
        rows = np.array(sorted({*draw.sample(range(4000), draw.choice([1, 5, 12]))}))
        (tmp_path / str(turn)).mkdir()
        pieces = PieceFiles(tmp_path / str(turn))
        assert pieces.add(CutSource(file, data.column_names, rows, 9), known)
        ((_, found),) = pieces.finish()
        assert sorted(name for piece in found for name in piece.columns) == sorted(data.column_names)
        for piece in found:
            wanted = data.select(piece.columns).take(rows)
            there = pq.read_table(piece.path)
            marked = there.filter(pa.compute.greater_equal(there[MARK], 0))
            assert marked[MARK].to_pylist() == (rows + 9).tolist()
            assert marked.select(piece.columns).equals(wanted)
            query = f"SELECT * FROM read_parquet('{piece.path}') WHERE {MARK} >= 0 ORDER BY {MARK}"
            assert duckdb.sql(query).to_arrow_table().select(piece.columns).cast(wanted.schema).equals(wanted)
            by_rows |= {*piece.columns} if len(there) == len(rows) else set()
    assert by_rows >= {*data.column_names} - {"flag"}


def test_a_file_that_cannot_be_read_leaves_no_file_open(tmp_path, monkeypatch):
    monkeypatch.setattr(cut_module.os, "cpu_count", lambda: 4)
    draw = random.Random(3)
    files = [tmp_path / f"{n}.parquet" for n in range(6)]
    for file in files:
        pq.write_table(flat_rows(draw, 500), file, write_page_index=True, max_rows_per_page=50)
    sources = [CutSource(file, ["few", "text"], np.array([7, 300]), 0) for file in files]
    before = len([*Path("/proc/self/fd").iterdir()])
    assert PieceFiles(tmp_path).add_all(sources) == [True] * 6
    files[2].unlink()
    with pytest.raises(FileNotFoundError):
        PieceFiles(tmp_path).add_all(sources)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_lists_that_fill_groups_of_bits_are_those_of_their_rows(tmp_path):
    draw = random.Random(1)
    lists = [[draw.randrange(9) for _ in range(draw.choice([8, 8, 16]))] for _ in range(2000)]
    data = pa.table({"l": pa.array(lists, pa.list_(pa.int32()))})
    file = tmp_path / "data.parquet"
    pq.write_table(data, file, write_page_index=True, max_rows_per_page=500)
    rows = np.array([7, 12, 30, 31, 480])
    pieces = PieceFiles(tmp_path)
    assert pieces.add(CutSource(file, ["l"], rows, 0))
    (((_, (piece,))),) = pieces.finish()
    assert pq.read_table(piece.path)["l"].to_pylist() == [lists[row] for row in rows]


@pytest.mark.parametrize("dictionary", [True, False])
def test_damaged_pages_of_flat_columns_raise_nothing(tmp_path, dictionary):
    """Bytes of pages and dictionaries are changed: nothing is cut, or pieces of as many rows."""
    data = flat_rows(random.Random(8), 2000)
    file = tmp_path / "data.parquet"
    layout = {"compression": "none", "use_dictionary": dictionary}
    pq.write_table(data, file, write_page_index=True, max_rows_per_page=150, **layout)
    whole, draw, rows = file.read_bytes(), random.Random(9), np.array([7, 250, 1999])
    for turn in range(300):
        broken = bytearray(whole)
        for _ in range(1 + turn % 4):
            broken[draw.randrange(4, len(whole) * 4 // 5)] = draw.randrange(256)
        file.write_bytes(broken)
        pieces = PieceFiles(tmp_path)
        if pieces.add(CutSource(file, data.column_names, rows, 0)):
            for _, own in pieces.finish():
                assert all(pq.ParquetFile(piece.path).metadata.num_rows >= len(rows) for piece in own)
