"""Tables of Delta Lake and Iceberg, written by hand after their specifications: logs, manifests, data files."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.leaves import relation

DELTA_TYPES = {"long": pa.int64(), "string": pa.string(), "date": pa.date32(), "integer": pa.int32()}
ICEBERG_TYPES = {"long": pa.int64(), "string": pa.string(), "date": pa.date32(), "int": pa.int32()}
SPARK = {"int": "integer"}


def data_file(place: Path, rows: list[dict], columns: dict[str, pa.DataType], ids: dict[str, int] | None = None) -> int:
    """Write rows as Parquet; the size in bytes."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fields = [
        pa.field(name, kind, metadata={b"PARQUET:field_id": str(ids[name]).encode()} if ids else None)
        for name, kind in columns.items()
    ]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), place)
    return place.stat().st_size


@dataclass
class DeltaTable:
    """A table whose versions are written one by one.

    ``columns`` are all columns with their types in Delta's JSON; ``partitioned`` names some of them.
    """

    place: Path
    columns: dict[str, str]
    partitioned: tuple[str, ...] = ()
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    version: int = -1
    configuration: dict[str, str] = field(default_factory=dict)
    features: list[str] = field(default_factory=list)
    physical: dict[str, str] = field(default_factory=dict)
    """The names of columns in files, where they are mapped."""

    def commit(self, *actions: dict, metadata: bool = False) -> int:
        """Write a version; the first one tells the table's metadata."""
        self.version += 1
        lines = list(actions)
        if metadata or self.version == 0:
            protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": self.features}
            schema = {"type": "struct", "fields": [self._field(name, kind) for name, kind in self.columns.items()]}
            about = {
                "id": self.id,
                "schemaString": json.dumps(schema),
                "partitionColumns": list(self.partitioned),
                "configuration": self.configuration,
            }
            lines = [{"protocol": protocol}, {"metaData": about}, *lines]
        log = self.place / "_delta_log" / f"{self.version:020}.json"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("\n".join(json.dumps(each) for each in lines), encoding="utf-8")
        return self.version

    def file(self, name: str, rows: list[dict], partition: dict[str, str | None] | None = None, **more: object) -> dict:
        """Write a data file of the table's present columns, partition columns left out; the action that adds it."""
        kinds = {name: DELTA_TYPES[kind] for name, kind in self.columns.items() if name not in self.partitioned}
        own = {self.physical.get(name, name): kind for name, kind in kinds.items()}
        written = [{self.physical.get(name, name): value for name, value in row.items()} for row in rows]
        size = data_file(self.place / name, written, own)
        about = {"path": quote(name), "size": size, "partitionValues": partition or {}, "dataChange": True}
        return {"add": {**about, **more}}

    def found(self, version: int | None = None) -> dict:
        """What the plan reader says of a leaf that read a version."""
        version = self.version if version is None else version
        about = {"format": "delta", "location": f"file:{self.place}", "id": self.id, "version": str(version)}
        return {**about, "schema": 0, "partitions": 1}

    def _field(self, name: str, kind: object) -> dict:
        metadata = {"delta.columnMapping.physicalName": self.physical[name]} if name in self.physical else {}
        return {"name": name, "type": kind, "nullable": True, "metadata": metadata}

    def schemas(self) -> tuple[t.Struct, list[t.Struct]]:
        """The table's schema; and with the one of its partitions."""
        whole = t.Struct(tuple(t.Field(name, t.from_json(kind)) for name, kind in self.columns.items()))
        return whole, [whole, t.Struct(tuple(each for each in whole.fields if each.name in self.partitioned))]

    def relation(self, version: int | None = None):
        """The leaf of a plan that read a version."""
        return leaf(self.found(version), *self.schemas())


def remove(name: str) -> dict:
    """The action that removes a file."""
    return {"remove": {"path": quote(name)}}


def leaf(found, whole, types):
    """A leaf as it is read of what the plan reader says of a table."""
    columns = tuple(Attribute(i, each.name, each.type) for i, each in enumerate(whole.fields))
    return relation({"$lake": found}, columns, 0, SimpleNamespace(types=types))


@dataclass
class IcebergTable:
    """A table whose snapshots are written one by one; ``columns`` have ids and types of the specification."""

    place: Path
    columns: dict[str, tuple[int, str]]
    snapshots: list[dict] = field(default_factory=list)
    schemas: list[dict] = field(default_factory=list)
    entries: list[tuple[int, dict]] = field(default_factory=list)
    """The live files of the last snapshot, each with the snapshot that added it."""
    number: int = 100
    metadata: int = 0

    def file(self, name: str, rows: list[dict], ids: bool = True, **more: object) -> dict:
        """Write a data file of the table's present columns; its entry in a manifest."""
        kinds = {name: ICEBERG_TYPES[kind] for name, (_, kind) in self.columns.items()}
        own = {name: number for name, (number, _) in self.columns.items()} if ids else None
        size = data_file(self.place / "data" / name, rows, kinds, own)
        path = f"{self.place}/data/{name}"
        return {"content": 0, "file_path": path, "file_format": "PARQUET", "file_size_in_bytes": size, **more}

    def positions(self, name: str, *rows: tuple[str, int]) -> dict:
        """Write a file of position deletes; its entry in a manifest."""
        place = self.place / "data" / name
        listed = [{"file_path": f"{self.place}/data/{file}", "pos": row} for file, row in rows]
        size = data_file(place, listed, {"file_path": pa.string(), "pos": pa.int64()})
        about = {"content": 1, "file_path": str(place), "file_format": "PARQUET"}
        return {**about, "file_size_in_bytes": size}

    def puffin(self, name: str, file: str, rows: list[int]) -> dict:
        """Write a file with a deletion vector of a data file; its entry in a manifest."""
        place, blob = self.place / "data" / name, framed(vector(rows, "run"))
        place.write_bytes(b"PFA1" + blob + b"rest")
        about = {"content": 1, "file_path": str(place), "file_format": "PUFFIN", "file_size_in_bytes": 8 + len(blob)}
        where = {"content_offset": 4, "content_size_in_bytes": len(blob)}
        return {**about, **where, "referenced_data_file": f"{self.place}/data/{file}"}

    def commit(self, *added: dict, gone: tuple[str, ...] = (), time: int = 0, app: str = "app-1") -> int:
        """Write a snapshot with its manifest, and the metadata."""
        self.number += 1
        kept = [(s, f) for s, f in self.entries if not f["file_path"].endswith(gone or ("\0",))]
        self.entries = [*kept, *((self.number, each) for each in added)]
        folder = self.place / "metadata"
        folder.mkdir(parents=True, exist_ok=True)
        listed = []
        for deletes in (0, 1):
            own = [(s, f) for s, f in self.entries if bool(f["content"]) == bool(deletes)]
            if own:
                path = folder / f"m{self.number}-{deletes}.avro"
                rows = [{"status": int(s == self.number), "snapshot_id": s, "data_file": f} for s, f in own]
                path.write_bytes(avro(ENTRY, rows))
                listed.append({"manifest_path": str(path), "content": deletes, "added_snapshot_id": self.number})
        (folder / f"snap-{self.number}.avro").write_bytes(avro(MANIFEST, listed))
        schema = {"type": "struct", "schema-id": len(self.schemas), "fields": self._fields()}
        if not self.schemas or self.schemas[-1]["fields"] != schema["fields"]:
            self.schemas.append(schema)
        self.snapshots.append(
            {
                "snapshot-id": self.number,
                "timestamp-ms": time,
                "manifest-list": str(folder / f"snap-{self.number}.avro"),
                "summary": {"operation": "append", "spark.app.id": app},
            }
        )
        self.write()
        return self.number

    def write(self, **more: object) -> None:
        """Write a metadata file."""
        self.metadata += 1
        about = {
            "location": str(self.place),
            "current-snapshot-id": self.number,
            "snapshots": self.snapshots,
            "schemas": self.schemas,
            "current-schema-id": len(self.schemas) - 1,
            **more,
        }
        (self.place / "metadata" / f"v{self.metadata}.metadata.json").write_text(json.dumps(about), encoding="utf-8")

    def _fields(self) -> list[dict]:
        return [
            {"id": number, "name": name, "type": kind, "required": False}
            for name, (number, kind) in self.columns.items()
        ]

    def found(self, snapshot: int | None = None) -> dict:
        """What the plan reader says of a leaf that read a snapshot."""
        return {
            "format": "iceberg",
            "location": str(self.place),
            "id": str(self.place / "metadata" / f"v{self.metadata}.metadata.json"),
            "version": str(self.number if snapshot is None else snapshot),
            "name": ["lake", "db", self.place.name],
        }

    def relation(self, snapshot: int | None = None):
        """The leaf of a plan that read a snapshot."""
        kinds = {name: t.from_json(SPARK.get(kind, kind)) for name, (_, kind) in self.columns.items()}
        whole = t.Struct(tuple(t.Field(name, kind) for name, kind in kinds.items()))
        return leaf(self.found(snapshot), whole, [])


# ---- deletion vectors --------------------------------------------------------------------------------------------

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def vector(rows: list[int], kind: str = "array") -> bytes:
    """Rows as a deletion vector: containers are arrays, bitmaps or runs."""
    parts: dict[int, dict[int, list[int]]] = {}
    for row in sorted(rows):
        parts.setdefault(row >> 32, {}).setdefault(row >> 16 & 0xFFFF, []).append(row & 0xFFFF)
    body = struct.pack("<IQ", 1681511377, len(parts))
    for high, containers in parts.items():
        body += struct.pack("<I", high) + _roaring(containers, kind)
    return body


def _roaring(containers: dict[int, list[int]], kind: str) -> bytes:
    count = len(containers)
    if kind == "run":
        head = struct.pack("<I", 12347 | count - 1 << 16) + b"\xff" * ((count + 7) // 8)
    else:
        head = struct.pack("<II", 12346, count)
    keys = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers.items())
    offsets = b"\0" * 4 * count if kind != "run" or count >= 4 else b""
    return head + keys + offsets + b"".join(_container(low, kind) for low in containers.values())


def _container(low: list[int], kind: str) -> bytes:
    if kind == "run":
        spans: list[list[int]] = []
        for row in low:
            if spans and spans[-1][0] + spans[-1][1] + 1 == row:
                spans[-1][1] += 1
            else:
                spans.append([row, 0])
        return struct.pack("<H", len(spans)) + b"".join(struct.pack("<HH", *span) for span in spans)
    if len(low) > 4096:
        bits = bytearray(8192)
        for row in low:
            bits[row // 8] |= 1 << row % 8
        return bytes(bits)
    return struct.pack(f"<{len(low)}H", *low)


def framed(body: bytes) -> bytes:
    """A vector as it lies in a file."""
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def z85(data: bytes) -> str:
    """Bytes as text."""
    found = ""
    for at in range(0, len(data), 4):
        number = int.from_bytes(data[at : at + 4].ljust(4, b"\0"), "big")
        found += "".join(_Z85[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return found


def delta_vector(place: Path, rows: list[int], kind: str = "array", prefix: str = "") -> dict:
    """Write a file of vectors into a Delta table; the descriptor of the second one in it."""
    number = uuid.uuid4()
    body, other = vector(rows, kind), framed(vector([0, 1]))
    (place / prefix).mkdir(exist_ok=True)
    (place / prefix / f"deletion_vector_{number}.bin").write_bytes(b"\1" + other + framed(body))
    where = {"storageType": "u", "pathOrInlineDv": prefix + z85(number.bytes), "offset": 1 + len(other)}
    return {**where, "sizeInBytes": len(body), "cardinality": len(rows)}


# ---- Avro -------------------------------------------------------------------------------------------------------

FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        {"name": "content", "type": "int"},
        {"name": "file_path", "type": "string"},
        {"name": "file_format", "type": "string"},
        {"name": "file_size_in_bytes", "type": "long"},
        {"name": "content_offset", "type": ["null", "long"]},
        {"name": "content_size_in_bytes", "type": ["null", "long"]},
        {"name": "referenced_data_file", "type": ["null", "string"]},
    ],
}
ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int"},
        {"name": "snapshot_id", "type": "long"},
        {"name": "data_file", "type": FILE},
    ],
}
MANIFEST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string"},
        {"name": "content", "type": "int"},
        {"name": "added_snapshot_id", "type": "long"},
    ],
}


def avro(schema: dict, records: list[dict]) -> bytes:
    """An Avro file, not compressed."""
    body = b"".join(_value(schema, each) for each in records)
    head = _long(1) + _text("avro.schema") + _text(json.dumps(schema)) + _long(0)
    return b"Obj\x01" + head + b"s" * 16 + _long(len(records)) + _long(len(body)) + body + b"s" * 16


def _value(schema: object, value: object) -> bytes:
    if isinstance(schema, dict):
        return b"".join(_value(each["type"], value.get(each["name"])) for each in schema["fields"])
    if isinstance(schema, list):
        return _long(0) if value is None else _long(1) + _value(schema[1], value)
    return _text(value) if schema == "string" else _long(value)


def _text(value: str) -> bytes:
    return _long(len(value.encode())) + value.encode()


def _long(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    found = b""
    while number > 127:
        found += struct.pack("B", number & 127 | 128)
        number >>= 7
    return found + struct.pack("B", number)
