"""The current snapshot of an Iceberg table and its live files, by its metadata and manifests.

After the Iceberg table specification (iceberg.apache.org/spec): "Table Metadata", "Manifest Lists" and "Manifests".
Paths are those below the table's ``location``; files elsewhere are left out.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from typing import Any

from govtool.capture.tables.avro import AvroError, avro_records
from govtool.capture.tables.delta import Read

_DELETED = 2
"""The status of a manifest's entry whose file is gone from the snapshot."""
_METADATA = 64 * 1024 * 1024


def current_snapshot(metadata: bytes) -> int | None:
    """The ``current-snapshot-id`` of a table; None if there is none, or the metadata cannot be read."""
    found = (_document(metadata) or {}).get("current-snapshot-id")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def iceberg_files(metadata: bytes, read: Read) -> dict[str, int] | None:
    """The path and size in bytes of each live file of the current snapshot; None if the metadata does not tell.

    Args:
        metadata: The table's metadata file.
        read: Reads a file below the table.
    """
    document = _document(metadata) or {}
    number, location = current_snapshot(metadata), document.get("location")
    snapshots = document.get("snapshots")
    if number is None or not isinstance(location, str) or not isinstance(snapshots, list):
        return None
    current = next((s for s in snapshots if isinstance(s, dict) and s.get("snapshot-id") == number), None)
    if current is None or not isinstance(current.get("manifest-list"), str):
        return None
    try:
        live: dict[str, int] = {}
        for manifest in _records(current["manifest-list"], location, read):
            live.update(_manifest_files(str(manifest.get("manifest_path")), location, read))
        return live
    except AvroError:
        return None


def _document(metadata: bytes) -> dict[str, Any] | None:
    try:
        if metadata[:2] == b"\x1f\x8b":
            metadata = gzip.GzipFile(fileobj=io.BytesIO(metadata)).read(_METADATA)
        found = json.loads(metadata)
    except (ValueError, OSError, EOFError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _manifest_files(path: str, location: str, read: Read) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in _records(path, location, read):
        file = entry.get("data_file")
        if entry.get("status") == _DELETED or not isinstance(file, Mapping):
            continue
        below, size = _below(str(file.get("file_path")), location), file.get("file_size_in_bytes")
        if below is not None:
            found[below] = size if isinstance(size, int) else -1
    return found


def _records(path: str, location: str, read: Read) -> list[Mapping[str, Any]]:
    below = _below(path, location)
    data = None if below is None else read(below)
    if data is None:
        raise AvroError("a manifest cannot be read")
    return [record for record in avro_records(data) if isinstance(record, Mapping)]


def _below(path: str, location: str) -> str | None:
    """A path relative to the table; the forms ``file:/x``, ``file:///x`` and ``/x`` are one."""
    whole, root = _plain(path), _plain(location).rstrip("/") + "/"
    return whole.removeprefix(root) if whole.startswith(root) else None


def _plain(path: str) -> str:
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return path.replace("s3a://", "s3://", 1).replace("s3n://", "s3://", 1)
