"""Snapshots of an Iceberg table and their live files, by its metadata and manifests.

After the Iceberg table specification (iceberg.apache.org/spec): "Table Metadata", "Manifest Lists" and "Manifests".
Paths are those below the table's ``location``; files elsewhere are left out.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from govtool.capture.tables.avro import AvroError, avro_records
from govtool.capture.tables.delta import Read, is_below

_ADDED, _DELETED = 1, 2
"""The status of a manifest's entry whose file came with a snapshot, and of one that is gone from it."""
_METADATA = 64 * 1024 * 1024


def current_snapshot(metadata: bytes) -> int | None:
    """The ``current-snapshot-id`` of a table; None if there is none, or the metadata cannot be read."""
    found = (_document(metadata) or {}).get("current-snapshot-id")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """A live file of a snapshot.

    Attributes:
        path: Below the table; as it is named where it is elsewhere.
        size: Bytes; -1: not told.
        format: ``PARQUET``, ``ORC``, ``AVRO``, ``PUFFIN``.
        deletes: Whether it lists rows of other files that are deleted.
        content: 0 of data, 1 of positions of deleted rows, 2 of values of deleted rows.
        vector: Of a deletion vector, where in the file it is, its size, and the data file that it is about.
        added: The snapshot that it came with; None: not told.
        outside: Whether it is not below the table.
    """

    path: str
    size: int
    format: str
    deletes: bool = False
    added: int | None = None
    outside: bool = False
    content: int = 0
    vector: tuple[int, int, str] | None = None


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A snapshot as a table's metadata has it."""

    id: int
    time: int
    """Milliseconds since 1970."""
    manifests: str
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """A metadata file of a table.

    Attributes:
        location: The table's place, as the table names it.
        snapshots: By id.
        schemas: All that are known, in the form of the specification.
        schemas_known: Whether none of them was left out since the table was made.
        properties: The table's.
        partitions: The ids of the columns whose values are those of partitions: files may lack them.
    """

    location: str
    snapshots: Mapping[int, TableSnapshot]
    schemas: tuple[Mapping[str, Any], ...]
    schemas_known: bool
    properties: Mapping[str, Any]
    partitions: frozenset[int]


def table_metadata(data: bytes) -> TableMetadata | None:
    """Read a metadata file; None if it cannot be read."""
    document = _document(data) or {}
    location, listed = document.get("location"), document.get("snapshots")
    if not isinstance(location, str) or not isinstance(listed, list):
        return None
    found = [each for each in map(_snapshot, listed) if each is not None]
    schemas = document.get("schemas")
    known = [each for each in schemas if isinstance(each, dict)] if isinstance(schemas, list) else []
    whole = bool(known) and sorted(str(each.get("schema-id")) for each in known) == sorted(map(str, range(len(known))))
    properties = document.get("properties")
    return TableMetadata(
        location,
        {each.id: each for each in found},
        tuple(known),
        whole,
        properties if isinstance(properties, dict) else {},
        frozenset(_partitions(document.get("partition-specs"))),
    )


def _partitions(specs: Any) -> Iterator[int]:
    for spec in specs if isinstance(specs, list) else ():
        fields = spec.get("fields") if isinstance(spec, dict) else None
        for field in fields if isinstance(fields, list) else ():
            source = field.get("source-id") if isinstance(field, dict) else None
            if isinstance(source, int) and field.get("transform") == "identity":
                yield source


def _snapshot(found: Any) -> TableSnapshot | None:
    if not isinstance(found, dict) or not isinstance(found.get("manifest-list"), str):
        return None
    number, time, summary = found.get("snapshot-id"), found.get("timestamp-ms"), found.get("summary")
    if not isinstance(number, int):
        return None
    kept = summary if isinstance(summary, dict) else {}
    return TableSnapshot(number, time if isinstance(time, int) else 0, found["manifest-list"], kept)


def snapshot_files(table: TableMetadata, snapshot: int, read: Read) -> tuple[SnapshotFile, ...] | None:
    """The live files of a snapshot; None if the metadata does not tell, or manifests cannot be read.

    Args:
        table: The table's metadata.
        snapshot: The snapshot's id.
        read: Reads a file below the table.
    """
    known = table.snapshots.get(snapshot)
    if known is None:
        return None
    try:
        manifests = _records(known.manifests, table.location, read)
        return tuple(file for each in manifests for file in _manifest_files(each, table.location, read))
    except AvroError:
        return None


def iceberg_files(metadata: bytes, read: Read) -> dict[str, int] | None:
    """The path and size in bytes of each live file of the current snapshot; None if the metadata does not tell.

    Args:
        metadata: The table's metadata file.
        read: Reads a file below the table.
    """
    number, table = current_snapshot(metadata), table_metadata(metadata)
    found = None if number is None or table is None else snapshot_files(table, number, read)
    return None if found is None else {file.path: file.size for file in found if not file.outside}


def _document(metadata: bytes) -> dict[str, Any] | None:
    try:
        if metadata[:2] == b"\x1f\x8b":
            metadata = gzip.GzipFile(fileobj=io.BytesIO(metadata)).read(_METADATA)
        found = json.loads(metadata)
    except (ValueError, OSError, EOFError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _manifest_files(manifest: Mapping[str, Any], location: str, read: Read) -> Iterator[SnapshotFile]:
    for entry in _records(str(manifest.get("manifest_path")), location, read):
        file = entry.get("data_file")
        if entry.get("status") == _DELETED or not isinstance(file, Mapping):
            continue
        path, size = str(file.get("file_path")), file.get("file_size_in_bytes")
        below, added = _below(path, location), entry.get("snapshot_id")
        if added is None and entry.get("status") == _ADDED:  # inherited from the manifest
            added = manifest.get("added_snapshot_id")
        yield SnapshotFile(
            path if below is None else below,
            size if isinstance(size, int) else -1,
            str(file.get("file_format")).upper(),
            bool(manifest.get("content")) or bool(file.get("content")),
            added if entry.get("status") == _ADDED and isinstance(added, int) else None,
            below is None,
            int(file.get("content") or 0),
            _vector(file),
        )


def _vector(file: Mapping[str, Any]) -> tuple[int, int, str] | None:
    offset, size = file.get("content_offset"), file.get("content_size_in_bytes")
    about = file.get("referenced_data_file")
    return (offset, size, str(about)) if isinstance(offset, int) and isinstance(size, int) else None


def _records(path: str, location: str, read: Read) -> list[Mapping[str, Any]]:
    below = _below(path, location)
    data = None if below is None else read(below)
    if data is None:
        raise AvroError("a manifest cannot be read")
    return [record for record in avro_records(data) if isinstance(record, Mapping)]


def _below(path: str, location: str) -> str | None:
    """A path relative to the table; the forms ``file:/x``, ``file:///x`` and ``/x`` are one."""
    whole, root = _plain(path), _plain(location).rstrip("/") + "/"
    below = whole.removeprefix(root)
    return below if whole.startswith(root) and is_below(below) else None


def _plain(path: str) -> str:
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return path.replace("s3a://", "s3://", 1).replace("s3n://", "s3://", 1)
