"""Where tables are and what their logs say: places as Hadoop writes them, folders, files with their times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from govtool.capture.tables.delta import DeltaVersion, Read, delta_version, newest_version
from govtool.capture.tables.iceberg import SnapshotFile, TableMetadata, current_snapshot, snapshot_files, table_metadata
from govtool.errors import GovtoolError
from govtool.store.backends.folder import open_folder

LOGS = {"delta": "_delta_log", "iceberg": "metadata"}
"""The folder of a table's log, by format."""
_METADATA = re.compile(r"metadata/(?:v(\d+)|(\d+)-[0-9a-f-]+)(?:\.gz)?\.metadata\.json")


def folder_of(location: str) -> Path | None:
    """The folder of a table whose place is a path as Hadoop writes it, which is not encoded; None if it is remote."""
    if location.startswith("file:"):
        return Path("/" + location.removeprefix("file:").lstrip("/"))
    return Path(location) if location.startswith("/") else None


def uri_of(location: str, path: str) -> str:
    """The URI of a file below a table."""
    folder = folder_of(location)
    return (folder / path).as_uri() if folder is not None else f"{location.rstrip('/')}/{quote(path)}"


def time_of(location: str, path: str) -> int:
    """The time of writing of a file that is here, in milliseconds; 0 where it is not, or not known."""
    folder = folder_of(location)
    try:
        return 0 if folder is None else (folder / path).stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def open_log(location: str, format: str) -> tuple[dict[str, int], Read] | None:
    """The files of a table's log with their sizes, and what reads one; None if the place cannot be listed."""
    folder = folder_of(location)
    try:
        sizes, read = open_folder(str(folder) if folder is not None else location, LOGS[format])
    except (GovtoolError, OSError):
        return None

    def tried(name: str) -> bytes | None:
        try:
            return read(name)
        except GovtoolError:
            return None

    return sizes, tried


def delta_at(location: str, version: int, table: str = "") -> DeltaVersion | None:
    """What the log of a table says of a version; None if it does not.

    Args:
        location: The table's place.
        version: Its version.
        table: Its id: what was read of this table is kept. Empty: it is not known, and the log is read anew.
    """
    try:
        return _delta_at(location, version, table) if table else _read_delta(location, version)
    except LookupError:
        return None


def _read_delta(location: str, version: int) -> DeltaVersion:
    log = open_log(location, "delta")
    found = None if log is None else delta_version(log[0], log[1], version)
    if found is None:
        raise LookupError(location)
    return found


@lru_cache(maxsize=32)
def _delta_at(location: str, version: int, table: str) -> DeltaVersion:
    found = _read_delta(location, version)
    if found.metadata.get("id") != table:
        raise LookupError(location)
    return found


def iceberg_at(location: str, metadata: str, snapshot: int) -> tuple[TableMetadata, tuple[SnapshotFile, ...]] | None:
    """The metadata of a table, and the live files of a snapshot; None if they cannot be read.

    Args:
        location: The table's place.
        metadata: Its metadata file, when it was read; where it is gone, the newest one is taken.
        snapshot: The snapshot's id.
    """
    try:
        return _iceberg_at(location, metadata, snapshot)
    except LookupError:
        return None


@lru_cache(maxsize=32)
def _iceberg_at(location: str, metadata: str, snapshot: int) -> tuple[TableMetadata, tuple[SnapshotFile, ...]]:
    log = open_log(location, "iceberg")
    if log is None:
        raise LookupError(location)
    sizes, read = log
    own = "metadata/" + metadata.rpartition("/")[2]
    for name in dict.fromkeys(each for each in (own, _newest(sizes)) if each in sizes):
        data = read(name)
        table = None if data is None else table_metadata(data)
        files = None if table is None else snapshot_files(table, snapshot, read)
        if table is not None and files is not None:
            return table, files
    raise LookupError(location)


def newest_metadata(location: str) -> tuple[TableMetadata, int | None, Read] | None:
    """The newest metadata of an Iceberg table with its current snapshot; None if it cannot be read."""
    log = open_log(location, "iceberg")
    data = None if log is None else log[1](_newest(log[0]))
    table = None if data is None else table_metadata(data)
    if log is None or data is None or table is None:
        return None
    return table, current_snapshot(data), log[1]


def _newest(sizes: dict[str, int]) -> str:
    found = [(int(match[1] or match[2]), path) for path in sizes if (match := _METADATA.fullmatch(path))]
    return max(found)[1] if found else ""


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """What a table has now.

    Attributes:
        files: The URIs of its data files.
        thinned: Those of files that may have rows which are deleted.
    """

    files: frozenset[str]
    thinned: frozenset[str]


def live_files(location: str, format: str) -> LiveFiles | None:
    """The files that are live in a table now; None if its log does not tell."""
    if format == "delta":
        log = open_log(location, format)
        version = None if log is None else newest_version(log[0])
        state = None if version is None or log is None else delta_version(log[0], log[1], version)
        if state is None:
            return None
        thinned = (path for path, file in state.files.items() if file.vector)
        return LiveFiles(*(frozenset(uri_of(location, path) for path in paths) for paths in (state.files, thinned)))
    newest = newest_metadata(location)
    if newest is None:
        return None
    table, snapshot, read = newest
    files = () if snapshot is None else snapshot_files(table, snapshot, read)
    if files is None:
        return None
    data = frozenset(uri_of(location, file.path) for file in files if not file.outside and not file.deletes)
    return LiveFiles(data, data if any(file.deletes for file in files) else frozenset())
