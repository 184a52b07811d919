"""A version of a Delta table as a leaf: exact where its files are plain Parquet, also under other names of columns.

After the Delta protocol (github.com/delta-io/delta, PROTOCOL.md): "Column Mapping", "Valid Feature Names in Table
Features", "Partition Value Serialization".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from govtool.capture.tables.delta import DeltaVersion, LoggedFile, is_below
from govtool.capture.tables.vectors import VectorError, decoded, vector_file
from govtool.records.lake.files import Names
from govtool.records.lake.places import delta_at, time_of, uri_of
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Value
from govtool.records.plan.nodes import File
from govtool.records.plan.term_pieces import Unread
from govtool.records.plan.text_values import decimal_value, text_value

_TITLE = "a table of Delta Lake"
_PHYSICAL = "delta.columnMapping.physicalName"
_HARMLESS = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Features of readers that change nothing about files that the checks here let pass."""
_OF_VARIANTS = frozenset({"variantType", "variantType-preview", "variantShredding", "variantShredding-preview"})
"""Features that change nothing where no column is a variant; delta-rs gives them to tables without any."""


def version_files(
    location: str, table: str, version: int, partitions: t.Struct
) -> tuple[tuple[File, ...], list[tuple[Any, ...]], dict[int, Names]]:
    """The files of a version, what deletes rows of them, and by ordinal the names of columns that differ in them.

    Args:
        location: The table's place, as Hadoop writes it.
        table: The table's id: another one may be at its place by now.
        version: The version that was read.
        partitions: Its partition columns.

    Raises:
        Unread: Its log does not tell, or rows of its files are not the table's rows.
    """
    state = delta_at(location, version, table)
    if state is None:
        raise Unread(f"the log of {_TITLE} does not tell version {version}, or another table is at its place")
    why = why_not(state)
    if why:
        raise Unread(why)
    names = physical_names(state)
    files = listed(location, state.files.values(), partitions, names)
    vectors = {uri_of(location, each.path): each.vector for each in state.files.values() if each.vector}
    deletes = [_vector(file.ordinal, vectors[file.uri]) for file in files if file.uri in vectors]
    return files, deletes, {file.ordinal: names for file in files}


def _vector(ordinal: int, found: Mapping[str, Any]) -> tuple[Any, ...]:
    """What deletes rows of a file, as ``deleted`` keeps it.

    Raises:
        Unread: It is of a form that is not read, or in a file elsewhere.
    """
    kind, place, size = found.get("storageType"), str(found.get("pathOrInlineDv")), found.get("sizeInBytes")
    try:
        if kind == "i":
            decoded(place)
            return (ordinal, "inline", place)
        path = vector_file(place) if kind == "u" else ""
    except VectorError:
        path = ""
    if not path or not is_below(path) or not isinstance(size, int):
        raise Unread(f"{_TITLE} with deletion vectors that are not below its place")
    return (ordinal, "vector", path, int(found.get("offset") or 0), size)


def why_not(state: DeltaVersion) -> str:
    """Why rows of a version's files are not those of the table; empty if they are."""
    mode = state.configuration.get("delta.columnMapping.mode", "none")
    if mode not in ("none", "name"):
        return f"{_TITLE} with column mapping: its files have other names of columns ({mode})"
    features = state.protocol.get("readerFeatures")
    harmless = _HARMLESS if '"variant"' in str(state.metadata.get("schemaString")) else _HARMLESS | _OF_VARIANTS
    unknown = sorted({str(each) for each in features} - harmless) if isinstance(features, (list, tuple)) else []
    if unknown:
        return f"{_TITLE} with a feature that is not known: {unknown[0]}"
    if state.outside:
        return f"{_TITLE} with files of another table, as a shallow clone has"
    return ""


def physical_names(state: DeltaVersion) -> dict[str, str | None]:
    """The names of columns in the files of a version, where they differ from those of the table.

    Raises:
        Unread: Fields within a column have other names, or the schema does not tell.
    """
    if state.configuration.get("delta.columnMapping.mode", "none") == "none":
        return {}
    try:
        fields = json.loads(state.metadata["schemaString"])["fields"]
        names = {str(each["name"]): str(each["metadata"][_PHYSICAL]) for each in fields}
        inner = next((each["name"] for each in fields if _is_renamed(each["type"])), None)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unread(f"{_TITLE} with column mapping whose schema is not read") from error
    if inner is not None:
        raise Unread(f"{_TITLE} with column mapping: fields within column {inner} have other names in its files")
    return {name: other for name, other in names.items() if other != name}


def _is_renamed(kind: Any) -> bool:
    """Return whether fields within a type have other names in files."""
    if not isinstance(kind, dict):
        return False
    fields = kind.get("fields", [])
    inner = [kind.get(part) for part in ("elementType", "keyType", "valueType")] + [each["type"] for each in fields]
    return any(each["metadata"][_PHYSICAL] != each["name"] for each in fields) or any(map(_is_renamed, inner))


def listed(
    location: str, files: Iterable[LoggedFile], partitions: t.Struct, names: Mapping[str, str | None] | None = None
) -> tuple[File, ...]:
    """Files with ordinals by their URIs, and values of partitions by the log, which has them under names of its own.

    Raises:
        Unread: A value of a partition is of a form that is not read.
    """
    found = sorted((uri_of(location, each.path), each) for each in _by_path(files))
    fields = [(str((names or {}).get(each.name, each.name)), each.type) for each in partitions.fields]
    return tuple(
        File(i, uri, each.size, time_of(location, each.path), _partition(each, fields))
        for i, (uri, each) in enumerate(found)
    )


def _by_path(files: Iterable[LoggedFile]) -> list[LoggedFile]:
    return list({each.path: each for each in files}.values())


def _partition(file: LoggedFile, fields: Sequence[tuple[str, t.Type]]) -> tuple[Value, ...]:
    return tuple(_value(file.partition.get(name), kind) for name, kind in fields)


def _value(text: str | None, kind: t.Type) -> Value:
    if text is None:
        return None
    if kind == t.STRING and text:
        return text
    value = decimal_value(text, kind) if isinstance(kind, t.Decimal) else text_value(text, kind)
    if value is None:
        raise Unread(f"a partition of {_TITLE} whose value is not read")
    return value
