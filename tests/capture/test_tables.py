"""The live files of Delta and Iceberg tables, by their logs; and logs that somebody damaged."""

from __future__ import annotations

import io
import json
import zlib
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from govtool.capture.tables.avro import AvroError, avro_records
from govtool.capture.tables.delta import delta_files
from govtool.capture.tables.iceberg import current_snapshot, iceberg_files


def entry(number):
    return f"_delta_log/{number:020}.json"


def actions(*lines):
    return "\n".join(json.dumps(line) for line in lines).encode()


def add(path, size):
    return {"add": {"path": path, "size": size, "dataChange": True}}


def remove(path):
    return {"remove": {"path": path}}


def live(files, version):
    return delta_files(files, files.get, version)


DELTA = {
    entry(0): actions({"protocol": {}}, add("a.parquet", 1), add("p=x%20y/b.parquet", 2)),
    entry(1): actions(remove("a.parquet"), add("c.parquet", 3)),
    entry(2): actions(add("c.parquet", 3), remove("c.parquet"), add("s3://other/d.parquet", 4)),
}


def test_delta_commits_are_replayed():
    assert live(DELTA, 0) == {"a.parquet": 1, "p=x y/b.parquet": 2}
    assert live(DELTA, 1) == {"p=x y/b.parquet": 2, "c.parquet": 3}
    assert live(DELTA, 2) == {"p=x y/b.parquet": 2, "c.parquet": 3}


@pytest.mark.parametrize("parts", [1, 2])
def test_delta_begins_at_the_last_whole_checkpoint(parts):
    rows = [add("a.parquet", 1), remove("old.parquet"), add("b.parquet", 2)]
    files = {entry(11): actions(remove("a.parquet"), add("n.parquet", 9))}
    for part in range(parts):
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([{"add": None, "remove": None, **row} for row in rows[part::parts]]), sink)
        name = f"{10:020}.checkpoint" + (f".{part + 1:010}.{parts:010}" if parts > 1 else "")
        files[f"_delta_log/{name}.parquet"] = sink.getvalue()
    assert live(files, 11) == {"b.parquet": 2, "n.parquet": 9}
    if parts > 1:
        del files[f"_delta_log/{10:020}.checkpoint.{1:010}.{2:010}.parquet"]
        assert live(files, 11) is None


@pytest.mark.parametrize(
    "log",
    [
        b"{",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"add": 1}',
        b'{"add": {"path": 7}}',
        b'{"add": {"path": "x", "size": "y"}}',
        b"7",
    ],
)
def test_a_damaged_delta_log_tells_nothing_wrong(log):
    assert live({entry(0): log}, 0) in (None, {}, {"x": -1})


def test_a_delta_log_with_a_hole_does_not_tell():
    assert live({entry(0): DELTA[entry(0)], entry(2): DELTA[entry(2)]}, 2) is None


# Iceberg: a writer of Avro as small as can be.

LIST = {"type": "record", "name": "l", "fields": [{"name": "manifest_path", "type": "string"}]}
FILE = {
    "type": "record",
    "name": "f",
    "fields": [
        {"name": "file_path", "type": "string"},
        {"name": "file_size_in_bytes", "type": "long"},
        {"name": "lower_bounds", "type": ["null", {"type": "map", "values": "bytes"}]},
        {"name": "offsets", "type": ["null", {"type": "array", "items": "long"}]},
    ],
}
ENTRY = {
    "type": "record",
    "name": "e",
    "fields": [{"name": "status", "type": "int"}, {"name": "data_file", "type": FILE}],
}


def long(number):
    number = (number << 1) ^ (number >> 63)
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return long(len(data)) + data


def avro(schema, records, codec="null"):
    body = b"".join(records)
    if codec == "deflate":
        body = zlib.compress(body)[2:-4]
    head = long(2) + text("avro.schema") + text(json.dumps(schema)) + text("avro.codec") + text(codec) + long(0)
    return b"Obj\x01" + head + b"s" * 16 + long(len(records)) + long(len(body)) + body + b"s" * 16


def data_file(status, path, size):
    bounds = long(1) + long(1) + text("k") + text(b"v") + long(0)
    offsets = long(1) + long(-2) + long(2) + long(4) + long(8) + long(0)
    return long(status) + text(path) + long(size) + bounds + offsets


def metadata(location="s3://lake/t", snapshot=7, **more):
    snapshots = [
        {"snapshot-id": 7, "manifest-list": f"{location.rstrip('/')}/metadata/snap-7.avro"},
        {"snapshot-id": 6},
    ]
    return json.dumps({"location": location, "current-snapshot-id": snapshot, "snapshots": snapshots, **more}).encode()


def table(location, codec="deflate"):
    entries = [
        data_file(1, f"{location}/data/a.parquet", 10),
        data_file(2, f"{location}/data/gone.parquet", 11),
        data_file(0, f"{location}/data/b.parquet", 3_000_000_000),
        data_file(1, "s3://elsewhere/c.parquet", 12),
    ]
    return {
        "metadata/snap-7.avro": avro(LIST, [text(f"{location}/metadata/m1.avro")], codec),
        "metadata/m1.avro": avro(ENTRY, entries, codec),
    }


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("location", ["s3://lake/t", "file:/lake/t", "file:///lake/t/", "/lake/t"])
def test_iceberg_files_of_the_current_snapshot(codec, location):
    files = table("s3a://lake/t" if location.startswith("s3") else "file:///lake/t", codec)
    assert iceberg_files(metadata(location), files.get) == {"data/a.parquet": 10, "data/b.parquet": 3_000_000_000}


def test_the_current_snapshot():
    assert current_snapshot(metadata()) == 7
    for other in (b"{}", b"[]", b"{", b"[" * 100_000, metadata(snapshot=-1), metadata(snapshot="7"), b"\x1f\x8bxx"):
        assert current_snapshot(other) is None
        assert iceberg_files(other, {}.get) is None


def test_iceberg_manifests_that_cannot_be_read_do_not_tell():
    files = table("s3://lake/t")
    assert iceberg_files(metadata(), {"metadata/snap-7.avro": files["metadata/snap-7.avro"]}.get) is None
    assert iceberg_files(metadata(), (files | {"metadata/m1.avro": b"Obj\x01"}).get) is None
    assert iceberg_files(metadata(), table("s3://lake/t", "snappy").get) is None


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_damaged_avro_is_an_error_and_never_more(data):
    whole = bytearray(table("s3://lake/t", data.draw(st.sampled_from(["null", "deflate"])))["metadata/m1.avro"])
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    with suppress(AvroError):
        list(avro_records(cut))


def test_a_schema_without_end_is_refused():
    endless = {"type": "record", "name": "r", "fields": [{"name": "r", "type": "r"}]}
    nulls = {"type": "array", "items": "null"}
    for schema in (endless, nulls, {"type": {"type": {"type": 7}}}):
        with pytest.raises(AvroError):
            list(avro_records(avro(schema, [long(2**60)])))
