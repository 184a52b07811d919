"""A version of a Delta table as a leaf: exact where its files are plain Parquet under the table's own names.

After the Delta protocol (github.com/delta-io/delta, PROTOCOL.md): "Valid Feature Names in Table Features", "Partition
Value Serialization".
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from govtool.capture.tables.delta import DeltaVersion, LoggedFile, is_below
from govtool.capture.tables.vectors import VectorError, decoded, vector_file
from govtool.records.lake.places import delta_at, time_of, uri_of
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Value
from govtool.records.plan.nodes import File
from govtool.records.plan.term_pieces import Unread
from govtool.records.plan.text_values import text_value

_TITLE = "a table of Delta Lake"
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


def version_files(
    location: str, table: str, version: int, partitions: t.Struct
) -> tuple[tuple[File, ...], list[tuple[Any, ...]]]:
    """The files of a version, and what deletes rows of them.

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
    files = listed(location, state.files.values(), partitions)
    vectors = {uri_of(location, each.path): each.vector for each in state.files.values() if each.vector}
    return files, [_vector(file.ordinal, vectors[file.uri]) for file in files if file.uri in vectors]


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
    if mode != "none":
        return f"{_TITLE} with column mapping: its files have other names of columns ({mode})"
    features = state.protocol.get("readerFeatures")
    unknown = sorted({str(each) for each in features} - _HARMLESS) if isinstance(features, (list, tuple)) else []
    if unknown:
        return f"{_TITLE} with a feature that is not known: {unknown[0]}"
    if state.outside:
        return f"{_TITLE} with files of another table, as a shallow clone has"
    return ""


def listed(location: str, files: Iterable[LoggedFile], partitions: t.Struct) -> tuple[File, ...]:
    """Files with ordinals by their URIs, and values of partitions by the log.

    Raises:
        Unread: A value of a partition is of a form that is not read.
    """
    found = sorted((uri_of(location, each.path), each) for each in _by_path(files))
    return tuple(
        File(i, uri, each.size, time_of(location, each.path), _partition(each, partitions.fields))
        for i, (uri, each) in enumerate(found)
    )


def _by_path(files: Iterable[LoggedFile]) -> list[LoggedFile]:
    return list({each.path: each for each in files}.values())


def _partition(file: LoggedFile, fields: Sequence[t.Field]) -> tuple[Value, ...]:
    return tuple(_value(file.partition.get(field.name), field.type) for field in fields)


def _value(text: str | None, kind: t.Type) -> Value:
    if text is None:
        return None
    if kind == t.STRING and text:
        return text
    value = _decimal(text, kind) if isinstance(kind, t.Decimal) else text_value(text, kind)
    if value is None:
        raise Unread(f"a partition of {_TITLE} whose value is not read")
    return value


def _decimal(text: str, kind: t.Decimal) -> Value:
    try:
        return decimal.Decimal(text).quantize(decimal.Decimal(1).scaleb(-kind.scale))
    except decimal.InvalidOperation:
        return None
