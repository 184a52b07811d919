"""``ingest openlineage`` and ``export openlineage``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

from govtool.app.ingest import openlineage

FIXTURES = Path(__file__).parents[2] / "fixtures" / "openlineage"
SPARK = FIXTURES / "spark_orders.jsonl"


def test_a_folder_is_one_commit_and_the_same_again_is_none(store):
    first = store("ingest", "openlineage", FIXTURES)
    assert first.code == 0
    assert "commit 1" in first.out
    again = store("ingest", "openlineage", FIXTURES)
    assert "nothing new" in again.out
    assert len(store("log", "-f", "jsonl").out.splitlines()) == 1


def test_the_graph_answers(store):
    store("ingest", "openlineage", FIXTURES)
    done = store("impact", "dw.crm.users.email", "-f", "json")
    reached = {entry["column"] for entry in json.loads(done.out)["columns"]}
    assert reached >= {"postgres://dw:5432/dw.crm.people.mail", "postgres://dw:5432/dw.mart.audience.email"}
    explained = json.loads(store("explain", "s3://lake/shop/orders.amount", "-f", "json").out)
    assert "openlineage" in json.dumps(explained)
    assert "0193400a-0000-7000-8000-000000000001" in json.dumps(explained)


def test_lines_without_end_that_are_no_events_end_the_ingest(store, project, monkeypatch):
    monkeypatch.setattr(openlineage, "MAX_NOTES", 20)
    (project / "events.jsonl").write_text('{"Event": "SparkListenerLogStart"}\n' * 30)
    done = store("ingest", "openlineage", "events.jsonl")
    assert (done.code, "more than 20 lines are not events" in done.err) == (3, True)
    assert "events.jsonl:" in done.err


@pytest.mark.parametrize("form", ["plain", "gz", "zst", "pretty", "array", "stdin", "bom"])
def test_forms_of_files(store, project, form):
    text = SPARK.read_bytes()
    events = [json.loads(line) for line in text.splitlines()]
    data = {
        "gz": lambda: gzip.compress(text),
        "zst": lambda: pa.compress(text, codec="zstd", asbytes=True),
        "pretty": lambda: "\n".join(json.dumps(e, indent=2) for e in events).encode(),
        "array": lambda: json.dumps(events).encode(),
        "bom": lambda: b"\xef\xbb\xbf" + text,
    }.get(form, lambda: text)()
    if form == "zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as out:
            out.write(text)
        data = sink.getvalue().to_pybytes()
    (project / "events").write_bytes(data)
    given = ("-",) if form == "stdin" else ("events",)
    done = store("ingest", "openlineage", *given, "--source", "x", stdin=data if form == "stdin" else b"")
    assert done.code == 0, done.err
    assert "6 datasets" in done.out or "4 datasets" in done.out


def test_what_is_no_event_is_counted_and_the_rest_is_ingested(store, project):
    lines = SPARK.read_bytes().splitlines()
    bad = [b"not json", b'{"some": "thing"}', b"[1, 2]", lines[0][:100], b'{"a":' * 5000]
    (project / "mixed.jsonl").write_bytes(b"\n".join([*lines, *bad]))
    done = store("ingest", "openlineage", "mixed.jsonl")
    assert done.code == 0
    assert "not-json" in done.err
    assert "not-openlineage" in done.err
    assert "mixed.jsonl:5" in done.err
    coverage = json.loads(store("coverage", "-f", "json").out)
    assert coverage["coverage"]["opaque"] == 5
    assert store("ingest", "openlineage", "mixed.jsonl", "--strict").code == 3


def test_only_rubbish_is_no_evidence(store, project):
    (project / "bad.jsonl").write_text("rubbish\n")
    assert store("ingest", "openlineage", "bad.jsonl").code == 3


def test_a_compressed_file_that_breaks_off_gives_what_it_has(store, project):
    (project / "cut.gz").write_bytes(gzip.compress(SPARK.read_bytes() * 3)[:-20])
    done = store("ingest", "openlineage", "cut.gz")
    assert "breaks off" in done.err
    assert "commit 1" in done.out


def test_events_that_come_later_are_merged(store, project):
    lines = SPARK.read_text().splitlines(keepends=True)
    for number in (2, 0, 3, 1):
        (project / "part.jsonl").write_text(lines[number])
        assert store("ingest", "openlineage", "part.jsonl", "--append", "--source", "live").code == 0
    piecewise = store("export", "openlineage").out
    store("ingest", "openlineage", SPARK, "--source", "live")
    assert store("export", "openlineage").out.count("\n") == piecewise.count("\n")
    assert strip(store("export", "openlineage").out) == strip(piecewise)


def strip(text: str) -> list[str]:
    """Events without the time of the commit."""
    return sorted(json.dumps({**json.loads(line), "eventTime": ""}, sort_keys=True) for line in text.splitlines())


def test_sql_is_not_forgotten_when_more_events_come(store, project):
    store("ingest", "openlineage", FIXTURES / "airflow_sql.json", "--append", "--source", "live")
    store("ingest", "openlineage", SPARK, "--append", "--source", "live")
    done = store("impact", "dw.crm.users.email", "-f", "json")
    assert "postgres://dw:5432/dw.mart.audience.email" in done.out


def test_export_and_ingest_again_settles(store, project):
    store("ingest", "openlineage", FIXTURES)
    assert store("export", "openlineage", "-o", "first.jsonl").code == 0
    store("init", "--store", "other")
    store("ingest", "openlineage", "first.jsonl", "--store", "other")
    second = store("export", "openlineage", "--store", "other").out
    assert strip(second) == strip((project / "first.jsonl").read_text())


def test_export_of_one_source_and_of_none(store, project):
    (project / "v.sql").write_text("create view v as select a from t; select b from t;")
    store("ingest", "sql", "v.sql")
    store("ingest", "openlineage", SPARK)
    done = store("export", "openlineage", "--source", "sql:v.sql", "-f", "json")
    assert {e["job"]["name"] for e in json.loads(done.out) if "job" in e} == {"v.sql:1"}
    assert "1 bare query left out" in done.err
    unknown = store("export", "openlineage", "--source", "nope")
    assert unknown.code == 2
    assert "usage.unknown-source" in unknown.err


def test_nothing_there(store, project):
    assert store("ingest", "openlineage", "missing.jsonl").code == 2
    (project / "empty").mkdir()
    assert store("ingest", "openlineage", "empty").code == 2


def test_a_binary_file_is_one_line(store, project):
    (project / "bin").write_bytes(bytes(range(256)) * 40)
    done = store("ingest", "openlineage", "bin")
    assert done.code == 3
    assert [line for line in done.err.splitlines() if "not-json" in line] == ["error[not-json] a binary file"]
    assert "--> bin\n" in done.err
    assert "dialect" not in done.err


def test_a_damaged_stream_is_no_binary_file(store, project):
    (project / "a.gz").write_bytes(gzip.compress(SPARK.read_bytes())[:200])
    done = store("ingest", "openlineage", "a.gz")
    assert "a binary file" not in done.err
    assert "error[not-json]" in done.err


def test_lines_that_are_no_events_are_in_the_order_of_numbers(store, project):
    (project / "e.jsonl").write_text("".join(f"no {number}\n" for number in range(12)))
    done = store("ingest", "openlineage", "e.jsonl", "-v")
    places = [line.strip() for line in done.err.splitlines() if "-->" in line]
    assert places == [f"--> e.jsonl:{number}" for number in range(1, 13)]
