"""Every reader on its fixture, and on what should not be there."""

from __future__ import annotations

import gzip
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.capture.logs import redshift, rows, stream, thrift
from govtool.capture.logs.mapping import FIELDS
from govtool.capture.logs.query_record import QueryRecord, Reject
from govtool.capture.logs.read import NAMES, LogOptions, check_options, find_logs, read_log
from govtool.capture.logs.times import parse_time
from govtool.errors import UnknownNameError, UsageError

FIXTURES = Path(__file__).parents[3] / "fixtures" / "logs"


def read(data: bytes, format: str = "auto", **more) -> list[QueryRecord | Reject]:
    return list(read_log(io.BytesIO(data), "x.log", check_options(LogOptions(format, **more))))


def records(data: bytes, format: str = "auto", **more) -> list[QueryRecord]:
    return [entry for entry in read(data, format, **more) if isinstance(entry, QueryRecord)]


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*")), ids=lambda p: p.name)
@pytest.mark.parametrize("packed", [lambda d: d, gzip.compress, zstd], ids=["plain", "gz", "zstd"])
def test_each_fixture_is_recognised_and_read_to_what_stands_beside_it(file, packed):
    if file.suffix == ".expected":
        return
    found = []
    plain_sql = file.suffix == ".sql"  # which ``auto`` takes for code
    if plain_sql:
        with pytest.raises(UsageError, match="this is SQL"):
            read(packed(file.read_bytes()))
    for entry in read(packed(file.read_bytes()), "sql" if plain_sql else "auto"):
        if isinstance(entry, Reject):
            found.append(f"! {entry.line} {entry.message}")
            continue
        about = {
            name: value
            for name, value in zip(entry._fields[3:], entry[3:], strict=True)
            if value not in (None, (), False)
        }
        found.append(
            f"{entry.line} {json.dumps(entry.text)} "
            + " ".join(f"{k}={v}" for k, v in about.items()).replace("\n", " ")
        )
    assert found == file.with_name(file.name + ".expected").read_text(encoding="utf-8").splitlines()


def test_two_members_one_after_the_other_are_one_log():
    for packed in (gzip.compress, zstd):
        assert [r.text for r in records(packed(b'{"sql":"a"}\n') + packed(b'{"sql":"b"}\n'))] == ["a", "b"]


@pytest.mark.parametrize("packed", [gzip.compress, zstd])
def test_a_log_that_breaks_off_keeps_what_came_before(packed):
    data = packed(b"".join(b'{"sql":"select %d"}\n' % n for n in range(300_000)))
    found = read(data[: len(data) * 3 // 4])
    assert len([e for e in found if isinstance(e, QueryRecord)]) > 1000
    assert isinstance(found[-1], Reject)
    assert found[-1].fatal


@pytest.mark.parametrize("packed", [gzip.compress, zstd])
def test_a_bomb_is_not_read_to_its_end(packed, monkeypatch):
    monkeypatch.setattr(stream, "EXPANSION_FREE", 1 << 20)
    data = packed(b'{"sql":"a"}\n' + b" " * (64 << 20))
    found = read(data)
    assert found[0].text == "a"
    assert "expands" in found[-1].message
    assert sum(map(len, _until_refused(data))) < 48 << 20


def _until_refused(data: bytes):
    try:
        yield from stream.chunks(io.BytesIO(data))
    except stream.UnreadableStreamError:
        return


def test_lines_without_an_end_are_skipped(monkeypatch):
    monkeypatch.setattr(stream, "MAX_RECORD", 1 << 20)
    data = b'{"sql":"a"}\n' + b"x" * (5 << 20) + b'\n{"sql":"b"}\n'
    found = read(data, "jsonl")
    assert [getattr(e, "text", None) or e.message for e in found] == ["a", "a line of more than 1 MiB", "b"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"sql": "a", "ts": "yesterday"}', "started_at: not a time"),
        (b'{"sql": "a", "ts": [1]}', "started_at: not a time"),
        (b'{"sql": "a", "ts": 1e300}', "started_at: not a time"),
        (b'{"sql": "a", "ts": "2020-01-01 00:00:00 XYZ"}', "started_at: no time zone XYZ is known"),
        (b'{"sql": 5}', "text: not a string but int"),
        (b'{"sql": "a", "user": {"name": "ann"}}', "user: not a string but dict"),
        (b'{"sql": "a", "rows": "many"}', "rows: not a number"),
        (b'{"sql": "a", "status": ["ok"]}', "status: not a string but list"),
        (b'{"sql": "a", "search_path": 5}', "search_path: not a list of names"),
        (b'{"other": "a"}', "no text of a statement in it"),
        (b'{"sql": "half', "no JSON: unterminated string starting at"),
        (b'["sql"]', "not a JSON object but list"),
        (b"[" * 100_000, "no JSON: nested too deeply"),
        (b"\x00\x01\xff\xfe", "no JSON: expecting value"),
        (b"1" * 5000, "no JSON: exceeds the limit (4300 digits) for integer string conversion"),
    ],
)  # fmt: skip
def test_a_bad_line_costs_only_itself(line, message):
    found = read(b'{"sql": "one"}\n' + line + b'\n{"sql": "two"}\n')
    assert [e.text for e in found if isinstance(e, QueryRecord)] == ["one", "two"]
    assert [(e.line, e.message) for e in found if isinstance(e, Reject)] == [(2, message)]


def test_a_stray_quote_in_a_csv_costs_only_its_line():
    data = b'query,user\nselect 1,ann\n"select 2,bob\nselect 3,cid\nselect 4,dan\n'
    found = read(data)
    assert [e.text for e in found if isinstance(e, QueryRecord)] == ["select 1", "select 3", "select 4"]
    assert [e.line for e in found if isinstance(e, Reject)] == [3]


def test_a_quote_that_is_never_closed_is_bounded(monkeypatch):
    monkeypatch.setattr(rows, "MAX_LINES", 50)
    data = b'query,user\n"select 1,ann\n' + b"select 2,bob\n" * 200
    found = read(data)
    assert len([e for e in found if isinstance(e, QueryRecord)]) == 200
    assert [(e.line, e.message) for e in found if isinstance(e, Reject)] == [(2, "a quote that is not closed")]


def test_json_over_many_lines_and_arrays():
    objects = [{"sql": 'select "a{[" from t', "user": "x"}, {"sql": "b\\", "nested": {"a": [1, {"b": 2}]}}]
    for text in (
        json.dumps(objects),
        json.dumps(objects, indent=2),
        "\n".join(json.dumps(o, indent=1) for o in objects),
    ):
        assert [r.text for r in records(text.encode())] == ['select "a{[" from t', "b\\"]


def test_half_a_json_array_says_so():
    found = read(b'[{"sql": "a"},\n {"sql": "b"')
    assert found[0].text == "a"
    assert found[1:] == [Reject("x.log", 2, "half a JSON object")]


def test_a_map_names_what_holds_the_fields():
    data = b'when;who;what;Ctx\n2026-01-01;ann;select 1;{"s": 7}\n'
    (record,) = records(data, "csv", map={"text": "what", "user": "WHO", "started_at": "when"})
    assert (record.text, record.user, record.started_at) == ("select 1", "ann", datetime(2026, 1, 1))
    (record,) = records(b'{"q": {"Text": "select 2"}}', map={"text": "q.text"})
    assert record.text == "select 2"


def test_nested_values_may_be_missing_in_some_rows():
    data = b'{"q": null, "sql": "x"}\n{"q": {"s": "1"}, "sql": "y"}\n'
    assert [r.session_id for r in records(data, "jsonl", map={"session_id": "q.s"})] == [None, "1"]


def test_other_encodings():
    text = '{"sql": "select \'é\'"}\n'
    for data in (text.encode("utf-16"), b"\xef\xbb\xbf" + text.encode(), text.encode("cp1252")):
        assert [r.text for r in records(data)] == ["select 'é'"]


def test_half_a_surrogate_pair_does_not_get_out():
    (record,) = records(b'{"sql": "select \'\\ud800\'", "user": "\\ud800"}')
    record.text.encode()
    record.user.encode()


def test_an_empty_log_has_no_records():
    assert read(b"") == []
    assert read(b" \n\n") == []
    assert read(b"query,user\n") == []


def test_what_cannot_be_recognised_is_said_with_what_to_do():
    for data in (b"hello world\n", b'{"a": 1}\n', b"a,b\n1,2\n"):
        with pytest.raises(UsageError) as error:
            read(data)
        assert error.value.code == "usage.log-format"
        assert "--map" in error.value.hint


def test_unknown_names_have_neighbours():
    with pytest.raises(UnknownNameError) as error:
        check_options(LogOptions("snowflak"))
    assert error.value.nearest == ("snowflake",)
    with pytest.raises(UnknownNameError) as error:
        check_options(LogOptions("csv", {"txt": "query"}))
    assert "text" in error.value.nearest


def test_folders_are_read_in_order(tmp_path):
    for name in ("b.jsonl", "a.csv.gz", ".hidden", "sub/c.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [p.relative_to(tmp_path).as_posix() for p in find_logs(tmp_path)] == ["a.csv.gz", "b.jsonl", "sub/c.log"]
    with pytest.raises(UsageError):
        find_logs(tmp_path / "missing")


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20T22:10:00.5Z", "2026-11-20 22:10:00.5 UTC", "2026-11-20 22:10:00.500000000+00:00",
        "2026-11-20 14:10:00.500 -0800", "2026-11-20 23:10:00.500 CET", "2026/11/20 22:10:00.5 +00",
        "1795212600.5", "1795212600500", 1795212600.5, 1795212600500, 1795212600500000, "1795212600500000000",
    ],
)  # fmt: skip
def test_times_of_all_kinds(text):
    assert parse_time(text) - datetime(2026, 11, 20, 22, 10, 0, 500000, UTC) < timedelta(milliseconds=1)


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=300), st.sampled_from(NAMES[1:]))
def test_no_bytes_raise(data, format):
    for entry in read(data, format):
        assert isinstance(entry, (QueryRecord, Reject))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_NAMES = [
    "query",
    "query_text",
    "timestamp",
    "message",
    "error_severity",
    "session_id",
    "error_result",
    "job_id",
    "metadata",
    "context",
    "createTime",
    "sequence",
    "xid",
    *FIELDS,
]


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=6), max_size=4),
    st.sampled_from(
        ["jsonl", "postgres-json", "snowflake", "bigquery", "databricks", "redshift", "redshift-text", "trino"]
    ),
)
def test_no_types_raise(objects, format):
    for entry in read("\n".join(json.dumps(o) for o in objects).encode(), format):
        if isinstance(entry, QueryRecord):
            assert all(value is None or isinstance(value, str) for value in (entry.text, entry.user, entry.session_id))


def parquet(rows: list[dict[str, object]], schema: pa.Schema | None = None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink, row_group_size=2)
    return sink.getvalue()


def test_a_history_that_was_unloaded_as_parquet():
    number = pa.decimal128(38, 0)
    schema = pa.schema(
        {"QUERY_TEXT": pa.string(), "SESSION_ID": number, "START_TIME": pa.timestamp("ms"), "ROWS_PRODUCED": number,
         "EXECUTION_STATUS": pa.string(), "DATABASE_NAME": pa.binary(), "OTHER": pa.list_(pa.int8())}
    )  # fmt: skip
    start = datetime(2026, 11, 20, 22, 10)
    rows = [
        {"QUERY_TEXT": "SELECT\n1", "SESSION_ID": Decimal(7), "START_TIME": start, "ROWS_PRODUCED": Decimal(3),
         "EXECUTION_STATUS": "SUCCESS", "DATABASE_NAME": b"SHOP"},
        {"QUERY_TEXT": "<redacted>", "EXECUTION_STATUS": "FAIL"},
        {"QUERY_TEXT": "x" * 100_000, "EXECUTION_STATUS": "SUCCESS"},
    ]  # fmt: skip
    data = parquet(rows, schema)
    first, second, third = records(data)
    assert first == QueryRecord(
        "SELECT\n1", "x.log", 1, "snowflake", start, session_id="7", rows=3, database="SHOP", status="ok"
    )
    assert (second.line, second.status) == (2, "failed")
    assert (third.line, third.truncated) == (3, True)
    assert [r.text for r in records(data, map={"text": "database_name"})] == ["SHOP", "", ""]


def test_parquet_of_other_formats_and_of_none():
    jobs = [{"query": "SELECT 1", "job_id": "j", "job_type": "QUERY", "error_result": {"reason": "x", "message": "m"}}]
    assert [(r.dialect, r.status, r.error) for r in records(parquet(jobs))] == [("bigquery", "failed", "m")]
    pieces = [
        {"text": "SELECT", "xid": 1, "query": 5, "sequence": 0},
        {"text": " 1", "xid": 1, "query": 5, "sequence": 1},
    ]
    assert [r.text.split() for r in records(parquet(pieces))] == [["SELECT", "1"]]
    assert [r.text for r in records(parquet([{"a": "SELECT 1"}]), map={"text": "a"})] == ["SELECT 1"]
    with pytest.raises(UsageError):
        read(parquet([{"a": 1}]))


def test_parquet_that_is_damaged_is_a_reject():
    data = parquet([{"sql": f"SELECT {n}"} for n in range(5)])
    for damaged in (data[:-20], data[: len(data) // 2] + b"\0" * 8 + data[len(data) // 2 + 8 :], b"PAR1"):
        *_, last = read(damaged, "jsonl")
        assert isinstance(last, Reject) or len(records(damaged, "jsonl")) == 5


def test_pages_of_an_api_hold_rows():
    page = {"kind": "bigquery#jobList", "jobs": [json.loads((FIXTURES / "bigquery-api.jsonl").read_text())] * 2}
    for text in (json.dumps(page), json.dumps(page, indent=2), f"{json.dumps(page)}\n{json.dumps(page)}"):
        assert {(r.text, r.dialect) for r in records(text.encode())} == {("SELECT a FROM t", "bigquery")}
    assert read(b'{"jobs": [], "kind": "bigquery#jobList"}\n{"sql": "a"}\n', "jsonl")[0].text == "a"


def test_pieces_of_a_statement_are_held_within_bounds(monkeypatch):
    monkeypatch.setattr(redshift, "HELD", 1000)
    rows = [f'{{"query": {n}, "xid": 1, "sequence": 0, "text": "select {n} {"x" * 90}"}}' for n in range(1, 30)]
    late = '{"query": 1, "xid": 1, "sequence": 1, "text": " from t"}'
    found = records("\n".join([*rows, late]).encode())
    assert len(found) == 30
    assert [r.text for r in found if r.truncated] == [" from t"]


def test_a_piece_that_comes_twice_is_said():
    row = '{"query": 1, "xid": 1, "sequence": 0, "text": "select 1"}\n'
    found = read((row + row).encode())
    assert found[0] == Reject("x.log", 2, "piece 0 of a statement comes twice")
    assert found[1].text == "select 1"


def test_a_query_that_is_held_for_its_outcome_comes_out_at_the_end(monkeypatch):
    monkeypatch.setattr(thrift, "MAX_HELD", 2)
    lines = [f"26/03/01 10:00:0{n} INFO X: Submitting query 'SELECT {n}' with id{n}" for n in range(5)]
    lines.append("26/03/01 10:00:09 ERROR X: Error executing query with id4, currentState RUNNING,")
    found = records("\n".join(lines).encode())
    assert {(r.text, r.status) for r in found} == {(f"SELECT {n}", "failed" if n == 4 else "ok") for n in range(5)}
    assert len({r.session_id for r in found}) == 5


@pytest.mark.parametrize(
    "line",
    [
        b"\t\t    4 Query\t",
        b"2026-03-01T10:00:00Z\t    4 Connect\t",
        b"2026-99-01T10:00:00Z\t    4 Query\tSELECT 1",
        b"x",
    ],
)
def test_odd_lines_of_a_general_log(line):
    head = b"Time                 Id Command    Argument\n"
    good = b"2026-03-01T10:00:00Z\t    7 Query\tSELECT 7\n"
    found = read(head + line + b"\n" + good)
    assert found[-1].text == "SELECT 7"
