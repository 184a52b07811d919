"""A snapshot of an Iceberg table as a leaf: exact where files are Parquet and names of columns mean the same fields.

Iceberg finds columns by the ids of their fields. A column is read where no schema of the table ever gave its name to
another field: in each file under the name that the field has there. After the Iceberg table specification
(iceberg.apache.org/spec): "Column Projection", "Delete Formats", "Default values".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from govtool.capture.tables.iceberg import SnapshotFile, TableMetadata
from govtool.records.lake.files import Names
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


def snapshot_listing(
    location: str, metadata: str, snapshot: str, names: Sequence[str]
) -> tuple[tuple[File, ...], list[tuple[Any, ...]], dict[int, Names]]:
    """The files of a snapshot, what deletes rows of them, and by ordinal the names of columns that differ in them.

    Args:
        location: The table's place, as the table names it.
        metadata: Its metadata file.
        snapshot: The id of the snapshot; empty: the table had none.
        names: The columns that the plan knows.

    Raises:
        Unread: The metadata do not tell, or rows of its files are not the table's rows.
    """
    if not snapshot:
        return (), [], {}
    found = iceberg_at(location, metadata, int(snapshot)) if snapshot.isdecimal() else None
    if found is None:
        raise Unread(f"the metadata of {_TITLE} do not tell snapshot {snapshot}")
    table, every = found
    why = why_not(every)
    if why:
        raise Unread(why)
    files = [each for each in every if not each.deletes]
    ids = _numbered(table, names)
    known = listed(location, files)
    under = _names(location, table, ids, files)
    other = {file.ordinal: under[file.uri] for file in known if under.get(file.uri)}
    return known, [_deletes(location, known, each) for each in every if each.deletes], other


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


def _names(
    location: str, table: TableMetadata, ids: Mapping[str, int], files: Sequence[SnapshotFile]
) -> dict[str, Names]:
    """By the URI of a file, its names of columns where they differ from those of the table.

    Raises:
        Unread: A file does not say which fields its columns are.
    """
    folder = folder_of(location)
    if folder is not None:
        return {uri_of(location, each.path): _names_in(folder / each.path, ids, table.partitions) for each in files}
    called: dict[int, set[str]] = {}
    for path, field in (each for schema in table.schemas for each in _fields(schema)):
        if len(path) == 1:
            called.setdefault(int(field.get("id") or 0), set()).add(path[0])
    renamed = any(len(called[number]) > 1 for number in ids.values())
    if files and (renamed or not table.schemas_known or "schema.name-mapping.default" in table.properties):
        raise Unread(f"{_TITLE} whose files may have columns under other names")
    return {}


def _numbered(table: TableMetadata, names: Sequence[str]) -> dict[str, int]:
    """The ids of some columns.

    Raises:
        Unread: A name had several ids in the history of the schema, or a field within a column several names.
    """
    fields = [each for schema in table.schemas for each in _fields(schema)]
    tops: dict[str, set[int]] = {}
    for path, field in fields:
        if len(path) == 1 and path[0] in names:
            if not isinstance(field.get("id"), int):
                raise Unread(f"{_TITLE} with a field of an unknown form")
            tops.setdefault(path[0], set()).add(field["id"])
    unknown = sorted(set(names) - tops.keys())
    if unknown:
        raise Unread(f"{_TITLE}: column {unknown[0]} is none of its schema")
    for name, ids in tops.items():
        if len(ids) > 1:
            raise Unread(f"{_TITLE}: column {name} was dropped and added again")
    found = {name: next(iter(ids)) for name, ids in tops.items()}
    _check_fields(fields, {number: name for name, number in found.items()})
    return found


def _check_fields(fields: Sequence[tuple[tuple[str, ...], Mapping[str, Any]]], wanted: Mapping[int, str]) -> None:
    """Refuse columns with defaults, and those within which fields had other names.

    Raises:
        Unread: There is one.
    """
    by_path: dict[tuple[int, tuple[str, ...]], set[int]] = {}
    by_id: dict[int, set[tuple[str, ...]]] = {}
    top = 0
    for path, field in fields:  # those within a column follow it
        number = int(field.get("id") or 0)
        top = number if len(path) == 1 else top
        if top not in wanted:
            continue
        if field.get("initial-default") is not None:
            raise Unread(f"{_TITLE}: column {wanted[top]} has a default in files that lack it")
        by_path.setdefault((top, path[1:]), set()).add(number)
        by_id.setdefault(number, set()).add(path[1:])
    for (column, inner), ids in by_path.items():
        whole = ".".join((wanted[column], *inner))
        if len(ids) > 1:
            raise Unread(f"{_TITLE}: column {whole} was dropped and added again")
        if len(by_id[next(iter(ids))]) > 1:
            raise Unread(f"{_TITLE}: column {whole} was renamed")


def _names_in(path: Path, known: Mapping[str, int], partitions: Collection[int]) -> dict[str, str | None]:
    """The names of columns in a file, where they differ; a file that is gone is told by whoever reads it.

    Raises:
        Unread: The file does not say which fields its columns are, or has a column's values in its partition alone.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return {}
    there: dict[str, str] = {}
    for field in schema:
        own = (field.metadata or {}).get(b"PARQUET:field_id")
        if own is None:
            raise Unread(f"{_TITLE}: column {field.name} of {path.name} has no id of a field")
        if there.setdefault(own.decode("ascii", "replace"), field.name) != field.name:
            raise Unread(f"{_TITLE}: two columns of {path.name} are one field")
    found: dict[str, str | None] = {}
    for name, number in known.items():
        other = there.get(str(number))
        if other is None and number in partitions:
            raise Unread(f"{_TITLE}: column {name} is in no file, but in its partitions")
        if other != name and (other is not None or name in schema.names):
            found[name] = other
    return found


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
