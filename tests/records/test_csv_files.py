"""CSV files that DuckDB reads as Spark does, and those that are left to Spark."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from govtool.records.execute import csv_files
from govtool.records.execute.duckdb import RECORD, DuckExecutor
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import File, Relation, Session
from govtool.records.sql.dialect import NotExact

COLUMNS = (
    ("i", t.INTEGER), ("l", t.LONG), ("d", t.DOUBLE), ("m", t.Decimal(6, 2)), ("s", t.STRING), ("b", t.BOOLEAN),
    ("day", t.DATE),
)  # fmt: skip
TEXT = "1,-7,0.1,12.50,a b,true,2024-02-29\n,,,,,,\n007,9223372036854775807,-3,-0.05, é ,false,1999-12-31"
ROWS = [
    (1, -7, 0.1, Decimal("12.50"), "a b", True, datetime.date(2024, 2, 29)),
    (None,) * 7,
    (7, 2**63 - 1, -3.0, Decimal("-0.05"), " é ", False, datetime.date(1999, 12, 31)),
]


def leaf_of(tmp_path, *texts, columns=COLUMNS, name="part.csv", **options):
    """A leaf over files with these texts; its last column is the id of a row."""
    files = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}-{name}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        facts = path.stat()
        files.append(File(number, path.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000))
    schema = t.Struct(tuple(t.Field(name, kind) for name, kind in columns))
    own = [Attribute(n, name, kind) for n, (name, kind) in enumerate(columns, 1)]
    record = Attribute(99, "record", t.LONG)
    return Relation(
        0, "csv", "csv", tuple(files), (*own, record), schema, options=tuple(options.items()), metadata=((99, RECORD),)
    )


def rows_of(leaf):
    return sorted(DuckExecutor(Session("", True, "UTC")).fetch(leaf), key=lambda row: row[-1])


@pytest.mark.parametrize("end", ["", "\n"])
def test_plain_cells_are_read(tmp_path, end):
    found = rows_of(leaf_of(tmp_path, TEXT + end, TEXT + end))
    assert [row[:-1] for row in found] == ROWS * 2
    assert [row[-1] & 0xFFFF for row in found] == [0, 1, 2] * 2
    assert len({row[-1] for row in found}) == 6


def test_headers_and_separators(tmp_path):
    text = "x|y\n1|a\n2|\n"
    found = rows_of(leaf_of(tmp_path, text, columns=(("i", t.INTEGER), ("s", t.STRING)), header="true", sep="|"))
    assert [row[:-1] for row in found] == [(1, "a"), (2, None)]
    assert rows_of(leaf_of(tmp_path, "x|y", "", columns=COLUMNS[:2], header="TRUE", delimiter="|")) == []


def test_cells_in_quotes(tmp_path):
    """Whole cells; a quote within one only where the reader was given it as the escape, too."""
    columns = (("i", t.INTEGER), ("s", t.STRING))
    found = rows_of(leaf_of(tmp_path, '1,"a, b"\r\n"2"," c|"\r\n3,d\r\n', columns=columns))
    assert [row[:-1] for row in found] == [(1, "a, b"), (2, " c|"), (3, "d")]
    found = rows_of(leaf_of(tmp_path, '1,"a ""b"", c"\n2,"""d"""\n', columns=columns, escape='"'))
    assert [row[:-1] for row in found] == [(1, 'a "b", c'), (2, '"d"')]
    found = rows_of(leaf_of(tmp_path, '"a ""b"" c",1\n"d",2\n', columns=columns[::-1]))
    assert [row[:-1] for row in found] == [('"a ""b"" c"', 1), ("d", 2)]  # as Spark has it


def test_times_are_those_of_the_session(tmp_path):
    """The first of two where a zone has a time twice; one that it skips is left to Spark."""
    columns = (("t", t.TIMESTAMP), ("n", t.TIMESTAMP_NTZ))
    session = Session("", True, "Europe/Berlin")
    leaf = leaf_of(tmp_path, "2024-07-01 12:00:00.5,2024-07-01T12:00:00\n2024-10-27T02:30:00,\n", columns=columns)
    found = sorted(DuckExecutor(session).fetch(leaf), key=lambda row: row[-1])
    utc = datetime.UTC
    assert [row[0].astimezone(utc) for row in found] == [
        datetime.datetime(2024, 7, 1, 10, 0, 0, 500_000, utc), datetime.datetime(2024, 10, 27, 0, 30, 0, 0, utc)
    ]  # fmt: skip
    assert [row[1] for row in found] == [datetime.datetime(2024, 7, 1, 12), None]
    skipped = leaf_of(tmp_path, "2024-03-31 02:30:00,\n", columns=columns)
    legacy = Session("", True, "UTC", settings=(("spark.sql.legacy.timeParserPolicy", "LEGACY"),))
    for own in (session, Session("", True, "+01:00"), legacy):
        with pytest.raises(NotExact, match="format csv"):
            DuckExecutor(own).fetch(skipped)


def test_blocks_end_at_lines(tmp_path, monkeypatch):
    """Whatever the size of a block: the same rows."""
    text = "h,t\n" + "".join(f"{n},{'x' * (n % 7)}\n" for n in range(200))
    leaf = leaf_of(tmp_path, text, columns=(("i", t.INTEGER), ("s", t.STRING)), header="true")
    for size in (16, 17, 64, len(text), len(text) - 4, 1 << 20):
        monkeypatch.setattr(csv_files, "_BLOCK", size)
        found = rows_of(leaf)
        assert [row[:-1] for row in found] == [(n, "x" * (n % 7) or None) for n in range(200)]
        assert [row[-1] for row in found] == list(range(200))
    monkeypatch.setattr(csv_files, "_BLOCK", 4)
    with pytest.raises(NotExact, match="megabytes"):
        rows_of(leaf)


@pytest.mark.parametrize(
    "text",
    [
        'a,b"\n', 'a,"b"", c"\n', 'a,""""\n', 'a,"b"""\n', 'a,""\n', '"a,b\n', 'a,"b" \n', 'a, "b"\n', '"a\nb",c\n', "a,b\\\n", "a,b\rc,d\r",
        'a,"b\\"\n', "a,b\n\nc,d\n", "\na,b\n", "a,b\n\n", "a,b\n \t\nc,d\n", "a\n", "a,b,c\n",
        b"\xef\xbb\xbfa,b\n", b"a,\xff\n", "a,\x00\n",
    ],
)  # fmt: skip
def test_lines_that_can_be_read_in_two_ways_are_left_to_spark(tmp_path, text):
    with pytest.raises(NotExact, match="format csv"):
        rows_of(leaf_of(tmp_path, text, columns=(("a", t.STRING), ("b", t.STRING))))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (t.INTEGER, "+1"), (t.INTEGER, " 1"), (t.INTEGER, "2147483648"), (t.INTEGER, "1.0"), (t.INTEGER, "١"),
        (t.BYTE, "128"), (t.LONG, "9223372036854775808"), (t.DOUBLE, "NaN"), (t.DOUBLE, "1e3"), (t.DOUBLE, ".5"),
        (t.DOUBLE, "1d"), (t.BOOLEAN, "True"), (t.BOOLEAN, "1"), (t.DATE, "2024-2-1"), (t.DATE, "2023-02-29"),
        (t.DATE, "0001-01-01"), (t.Decimal(4, 2), "1.234"), (t.Decimal(4, 2), "123"), (t.Decimal(2, 2), "5.12"),
        (t.TIMESTAMP, "2024-01-01"), (t.TIMESTAMP, "2024-01-01 1:00:00"), (t.TIMESTAMP, "2024-01-01 00:00:00Z"),
        (t.TIMESTAMP, "1969-01-01 00:00:00"), (t.TIMESTAMP_NTZ, "2024-01-01 24:00:00"), (t.BINARY, "a"),
    ],
)  # fmt: skip
def test_cells_that_can_be_read_in_two_ways_are_left_to_spark(tmp_path, kind, text):
    with pytest.raises(NotExact, match="format csv"):
        rows_of(leaf_of(tmp_path, f"a,{text}\n", columns=(("a", t.STRING), ("b", kind))))


@pytest.mark.parametrize(
    "options",
    [
        {"quote": "'"}, {"escape": "'"}, {"nullValue": "NA"}, {"sep": "||"}, {"sep": "a"}, {"multiLine": "true"}, {"mode": "what"},
        {"encoding": "UTF-16"}, {"ignoreLeadingWhiteSpace": "true"}, {"comment": "#"}, {"lineSep": ";"},
    ],
)  # fmt: skip
def test_options_that_are_not_known_are_left_to_spark(tmp_path, options):
    with pytest.raises(NotExact, match="format csv"):
        rows_of(leaf_of(tmp_path, TEXT, **options))


def test_compressed_files_are_left_to_spark(tmp_path):
    with pytest.raises(NotExact, match="compressed"):
        rows_of(leaf_of(tmp_path, TEXT, name="part.csv.gz"))
