"""Leaves of a captured plan: files with their ordinals, and rows that the driver held."""

from __future__ import annotations

import posixpath
from typing import Any

from govtool.records.lake.leaf import table_relation, written_to
from govtool.records.plan import types as t
from govtool.records.plan.captured_values import read_value
from govtool.records.plan.expressions import Attribute, Value
from govtool.records.plan.nodes import File, Relation
from govtool.records.plan.term_pieces import Unread
from govtool.records.plan.terms import TermReader
from govtool.redaction import clean_value, is_secret_name

Json = Any
FORMATS = {
    "ParquetFileFormat": "parquet", "CSVFileFormat": "csv", "JsonFileFormat": "json", "TextFileFormat": "text",
    "OrcFileFormat": "orc",
}  # fmt: skip
"""Formats by the class that reads them."""


_KINDS = {"JDBCRelation": "a database", "KafkaRelation": "Kafka"}
_LAKES = {".delta.": "a table of Delta Lake", ".iceberg.": "a table of Iceberg"}
"""By a part of a class's name. What is not a version of the table, as changes between versions, is no files."""


def no_files(name: str) -> str:
    """Return why rows of a source cannot be traced, by the class of its relation, table or format."""
    kind = name.rsplit(".", 1)[-1]
    lake = next((title for part, title in _LAKES.items() if part in name), "a source that is no files")
    return f"rows of {_KINDS.get(kind, lake)} have no positions: {kind}"


def no_table(fields: Json) -> str:
    """Return why rows of a table of a connector (``DataSourceV2Relation``) cannot be traced."""
    table = fields.get("table")
    name = (table.get("$object") or table.get("$product")) if isinstance(table, dict) else ""
    return no_files(name or "DataSourceV2Relation")


def rows(found: Json, columns: tuple[Attribute, ...]) -> tuple[tuple[Value, ...], ...]:
    """Read rows of internal values."""
    return tuple(tuple(read_value(value, each.type) for value, each in zip(row, columns, strict=True)) for row in found)


def relation(fields: Json, columns: tuple[Attribute, ...], leaf: int, terms: TermReader) -> Relation:
    """Read a relation of files.

    Raises:
        Unread: It reads something else, or where its files are is not known.
    """
    if "$lake" in fields:
        return table_relation(fields["$lake"], _table(fields), columns, leaf, terms)
    found = (fields["relation"] or {}).get("$files") if isinstance(fields["relation"], dict) else None
    if found is None:
        name = (fields["relation"] or {}).get("$object") or (fields["relation"] or {}).get("$product") or "nothing"
        raise Unread(no_files(name))
    kind = FORMATS.get(found["formatClass"].rsplit(".", 1)[-1])
    for name in (found["formatClass"], found["index"]):
        if any(part in name for part in _LAKES):
            raise Unread(no_files(name))
    if kind is None:
        raise Unread(f"files of format {found['format']}")
    if found["files"] is None:
        raise Unread("its files could not be listed")
    schema, partitions = terms.types[found["schema"]], terms.types[found["partitions"]]
    if not isinstance(schema, t.Struct) or not isinstance(partitions, t.Struct):
        raise Unread("a schema that is none")
    return Relation(
        leaf,
        _dataset(fields, found),
        kind,
        _files(found["files"], partitions),
        columns,
        _own(schema, partitions),
        tuple(each.name for each in partitions.fields),
        options_of(found["options"]),
        metadata=_metadata(columns, schema, partitions),
    )


def _table(fields: Json) -> str:
    """The name of a table, or the place of one without a name."""
    table = fields.get("catalogTable")
    if isinstance(table, dict) and "f" in table:
        return table_name(table)
    return written_to(fields["$lake"])


def _dataset(fields: Json, found: Json) -> str:
    table = fields.get("catalogTable")
    if isinstance(table, dict) and "f" in table:
        return table_name(table)
    base = next((str(value) for key, value in found["options"]["$map"] if str(key).lower() == "basepath"), "")
    files = [str(each[0]) for each in found["files"] or ()]
    if base and len(found["roots"]) == len(files):  # the new files of a batch, of a folder
        return _from_the_root(base, files)
    return ",".join(_from_the_root(each, files) for each in found["roots"])


def _from_the_root(place: str, files: list[str]) -> str:
    """The place of some files as they have it, where it was given from the folder in which the job ran."""
    if place.startswith("/") or ":/" in place or not files:
        return place
    folder = files[0].rpartition("/")[0]
    while "=" in folder.rpartition("/")[2]:  # a partition
        folder = folder.rpartition("/")[0]
    own = "/".join(part for part in posixpath.normpath(place).split("/") if part not in (".", ".."))
    return folder if not own or folder.endswith(f"/{own}") else place


def table_name(table: Json) -> str:
    """The name of a ``CatalogTable``."""
    name = table["f"]["identifier"]["f"]
    return ".".join(part for part in (name.get("catalog"), name.get("database"), name["table"]) if part)


def _files(found: Json, partitions: t.Struct) -> tuple[File, ...]:
    kinds = [each.type for each in partitions.fields]
    listed = sorted(found, key=lambda each: str(each[0]))
    return tuple(
        File(i, uri, size, modified, tuple(read_value(value, kind) for value, kind in zip(values, kinds, strict=True)))
        for i, (uri, size, modified, values) in enumerate(listed)
    )


def _own(schema: t.Struct, partitions: t.Struct) -> t.Struct:
    """The columns that are in the files; a partition column may be there, too, and is then the folder's."""
    names = {each.name for each in partitions.fields}
    return t.Struct(tuple(each for each in schema.fields if each.name not in names))


def _metadata(columns: tuple[Attribute, ...], schema: t.Struct, partitions: t.Struct) -> tuple[tuple[int, str], ...]:
    names = {each.name for each in schema.fields + partitions.fields}
    return tuple((each.id, each.name) for each in columns if each.name not in names)


_PLACES = frozenset({"path", "paths", "basepath", "serialization.format", "checkpointlocation"})
"""Options that say where files are, and nothing of what they hold."""


def options_of(found: Json) -> tuple[tuple[str, str], ...]:
    """Options of a reader or a writer but its paths; secrets stay out of every record."""
    pairs = [(str(key), str(value)) for key, value in found["$map"]]
    kept = [
        (key, str(clean_value(key, value)))
        for key, value in pairs
        if key.lower() not in _PLACES and not is_secret_name(key)
    ]
    return tuple(sorted(kept))
