"""A snapshot of an Iceberg table as a leaf: exact where files are Parquet and names of columns mean the same fields.

Iceberg finds columns by the ids of their fields. A column is read by its name where no schema of the table ever gave
the name to another field, and where the file has the field under this name or not at all. After the Iceberg table
specification (iceberg.apache.org/spec): "Column Projection", "Delete Formats", "Default values".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from govtool.capture.tables.iceberg import SnapshotFile, TableMetadata
from govtool.records.lake.places import folder_of, iceberg_at, time_of, uri_of
from govtool.records.plan.nodes import File
from govtool.records.plan.term_pieces import Unread

_TITLE = "a table of Iceberg"
_TYPES = frozenset(
    ["boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary"]
)
_DEPTH = 50
_VALUES = 2
"""The content of a file that deletes rows by their values."""
_FRAME = 8
"""Bytes around a vector: its length and its checksum."""
Ids = Mapping[tuple[str, ...], int]
"""Ids of fields by the names on the way to them."""


def snapshot_listing(
    location: str, metadata: str, snapshot: str, names: Sequence[str]
) -> tuple[tuple[File, ...], list[tuple[Any, ...]]]:
    """The files of a snapshot, and what deletes rows of them.

    Args:
        location: The table's place, as the table names it.
        metadata: Its metadata file.
        snapshot: The id of the snapshot; empty: the table had none.
        names: The columns that the plan knows.

    Raises:
        Unread: The metadata do not tell, or rows of its files are not the table's rows.
    """
    if not snapshot:
        return (), []
    found = iceberg_at(location, metadata, int(snapshot)) if snapshot.isdecimal() else None
    if found is None:
        raise Unread(f"the metadata of {_TITLE} do not tell snapshot {snapshot}")
    table, every = found
    why = why_not(every)
    if why:
        raise Unread(why)
    files = [each for each in every if not each.deletes]
    _check_names(location, table, files, names)
    known = listed(location, files)
    return known, [_deletes(location, known, each) for each in every if each.deletes]


def _deletes(location: str, known: Sequence[File], file: SnapshotFile) -> tuple[Any, ...]:
    """What deletes rows of files, as ``deleted`` keeps it.

    Raises:
        Unread: A vector of a file that is not among them.
    """
    if file.vector is None:
        return (-1, "positions", file.path)
    offset, size, about = file.vector
    folder = folder_of(about)
    uri = about if folder is None else folder.as_uri()
    ordinal = next((each.ordinal for each in known if each.uri == uri), None)
    if ordinal is None:
        raise Unread(f"{_TITLE} with a deletion vector of a file that is not live")
    return (ordinal, "vector", file.path, offset, size - _FRAME)


def why_not(files: Sequence[SnapshotFile]) -> str:
    """Why rows of a snapshot's files are not those of the table; empty if they are."""
    if any(file.content == _VALUES for file in files):
        return f"{_TITLE} with delete files that name values of rows"
    other = next((f.format for f in files if f.format != "PARQUET" and not (f.deletes and f.vector)), "")
    if other:
        return f"{_TITLE} with files of format {other}"
    if any(file.outside for file in files):
        return f"{_TITLE} with files that are not below its place"
    return ""


def listed(location: str, files: Sequence[SnapshotFile]) -> tuple[File, ...]:
    """Files with ordinals by their URIs."""
    found = sorted((uri_of(location, each.path), each) for each in files)
    return tuple(File(i, uri, each.size, time_of(location, each.path)) for i, (uri, each) in enumerate(found))


def _check_names(location: str, table: TableMetadata, files: Sequence[SnapshotFile], names: Sequence[str]) -> None:
    """Refuse columns whose names do not say which field of a file they are.

    Raises:
        Unread: There is one.
    """
    known = _numbered(table, names)
    if not files:
        return
    folder = folder_of(location)
    if folder is None:
        if not table.schemas_known or "schema.name-mapping.default" in table.properties:
            raise Unread(f"{_TITLE} whose files may have columns under other names")
        return
    top = {path[0]: number for path, number in known.items() if len(path) == 1}
    for file in files:
        _check_file(folder / file.path, top, table.partitions)


def _numbered(table: TableMetadata, names: Sequence[str]) -> dict[tuple[str, ...], int]:
    """The ids of some columns and of their fields, by path.

    Raises:
        Unread: A path had several ids in the history of the schema, or an id several paths.
    """
    by_name: dict[tuple[str, ...], set[int]] = {}
    by_id: dict[int, set[tuple[str, ...]]] = {}
    fields = [each for schema in table.schemas for each in _fields(schema)]
    for path, field in fields:
        if path[0] not in names:
            continue
        number, default = field.get("id"), field.get("initial-default")
        if not isinstance(number, int) or default is not None:
            raise Unread(f"{_TITLE}: column {path[0]} has a default in files that lack it")
        by_name.setdefault(path, set()).add(number)
    unknown = sorted(set(names) - {path[0] for path in by_name})
    if unknown:
        raise Unread(f"{_TITLE}: column {unknown[0]} is none of its schema")
    for path, field in fields:
        by_id.setdefault(int(field.get("id") or 0), set()).add(path)
    for path, ids in by_name.items():
        if len(ids) > 1:
            raise Unread(f"{_TITLE}: column {'.'.join(path)} was dropped and added again")
        if len(by_id[next(iter(ids))]) > 1:
            raise Unread(f"{_TITLE}: column {'.'.join(path)} was renamed")
    return {path: next(iter(ids)) for path, ids in by_name.items()}


def _check_file(path: Path, known: Mapping[str, int], partitions: Collection[int]) -> None:
    """Compare the ids of a file's columns with those of the table; a file that is gone is told by whoever reads it.

    Raises:
        Unread: A column is there under another name, or another one under its name; or the file has no ids.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return
    for field in schema:
        own = (field.metadata or {}).get(b"PARQUET:field_id")
        if field.name in known and own != str(known[field.name]).encode():
            raise Unread(f"{_TITLE}: column {field.name} is another field in {path.name}")
    there = {(field.metadata or {}).get(b"PARQUET:field_id"): field.name for field in schema}
    for name, number in known.items():
        if there.get(str(number).encode(), name) != name:
            raise Unread(f"{_TITLE}: column {name} was renamed")
        if number in partitions and name not in schema.names:
            raise Unread(f"{_TITLE}: column {name} is in no file, but in its partitions")


def _fields(schema: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """All fields of a schema with the names on the way to them.

    Raises:
        Unread: A type that is not read as Spark reads it in plain Parquet.
    """
    if len(before) > _DEPTH:
        raise Unread(f"{_TITLE} with types that are nested too deeply")
    if isinstance(schema, str):
        if schema not in _TYPES and not schema.startswith("decimal("):
            raise Unread(f"{_TITLE} with a column of type {schema[:40]}")
        return
    if not isinstance(schema, Mapping):
        raise Unread(f"{_TITLE} with a type of an unknown form")
    parts = {"list": ("element",), "map": ("key", "value")}.get(str(schema.get("type")), ())
    for part in parts:
        path = (*before, part)
        yield path, {"id": schema.get(f"{part}-id")}
        yield from _fields(schema.get(part), path)
    listed = schema.get("fields") if schema.get("type") == "struct" else ()
    for field in listed if isinstance(listed, list) else ():
        if not isinstance(field, Mapping):
            raise Unread(f"{_TITLE} with a field of an unknown form")
        path = (*before, str(field.get("name")))
        yield path, field
        yield from _fields(field.get("type"), path)
