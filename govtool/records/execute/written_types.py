"""Types of Arrow that are the same whichever engine gave the rows, and whatever wrote the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.records.plan import types as t

if TYPE_CHECKING:
    import pyarrow as pa


def as_written(actual: pa.DataType, kind: t.Type) -> pa.DataType:
    """A type of Arrow with its timestamps as Spark writes them: instants in UTC, or without a zone, in microseconds."""
    import pyarrow as pa

    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return pa.timestamp("us", tz="UTC" if kind == t.TIMESTAMP else None)
    if isinstance(kind, t.Array) and pa.types.is_list(actual):
        return pa.list_(as_written(actual.value_type, kind.element))
    if isinstance(kind, t.Map) and pa.types.is_map(actual):
        return pa.map_(as_written(actual.key_type, kind.key), as_written(actual.item_type, kind.value))
    if isinstance(kind, t.Struct) and pa.types.is_struct(actual) and actual.num_fields == len(kind.fields):
        pairs = zip(actual, kind.fields, strict=True)
        return pa.struct([pa.field(own.name, as_written(own.type, each.type)) for own, each in pairs])
    return actual


def without_zones(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose instants are times of UTC without a zone, as DuckDB gives them; Spark and files have the zone."""
    kind = _without_zone(column.type)
    return column if kind == column.type else column.cast(kind)


def _without_zone(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    if pa.types.is_list(kind):
        return pa.list_(_without_zone(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_without_zone(kind.key_type), _without_zone(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _without_zone(each.type)) for each in kind])
    return kind
