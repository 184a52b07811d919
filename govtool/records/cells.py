"""Cells of rows in answers: their keys, and their values in JSON's types.

Every value of a row that an answer holds, of traces, replays, differences, erasures and ``why``, goes through
``json_value``.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Sequence
from typing import Any

from govtool.records.plan import types as t

_TAKEN = re.compile(r"_+(?:id|file|row)\Z")
"""Keys of a row that are about the row itself, as they are or after underscores."""


def column_key(column: str) -> str:
    """The key of a data column in a row: ``_id``, ``_file`` and ``_row`` get one more underscore."""
    return f"_{column}" if _TAKEN.match(column) else column


def zoned(value: Any, kind: t.Type) -> Any:
    """A cell of an executor, its timestamps with their zone: executors give them in UTC."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC) if kind == t.TIMESTAMP and value.tzinfo is None else value
    if isinstance(kind, t.Array) and isinstance(value, list):
        return [zoned(item, kind.element) for item in value]
    if isinstance(kind, t.Map) and isinstance(value, dict):
        return {zoned(key, kind.key): zoned(item, kind.value) for key, item in value.items()}
    if isinstance(kind, t.Struct) and isinstance(value, dict):
        kinds = {field.name: field.type for field in kind.fields}
        return {name: zoned(item, kinds[name]) if name in kinds else item for name, item in value.items()}
    return value


def zoned_table(table: Any, kinds: Sequence[t.Type]) -> Any:
    """A pyarrow table of an executor, each timestamp that is a moment with its zone, UTC, as in files of Spark.

    Args:
        table: With columns in the order of ``kinds``.
        kinds: The types of its columns.
    """
    for number, kind in enumerate(kinds):
        column = table.column(number)
        wanted = _zoned_type(column.type, kind)
        if wanted != column.type:
            table = table.set_column(number, table.field(number).with_type(wanted), column.cast(wanted))
    return table


def _zoned_type(own: Any, kind: t.Type) -> Any:
    """The type of a column with zones, all else as it is."""
    import pyarrow as pa

    if kind == t.TIMESTAMP and pa.types.is_timestamp(own):
        return pa.timestamp(own.unit, "UTC")
    if isinstance(kind, t.Array) and pa.types.is_list(own):
        return pa.list_(own.value_field.with_type(_zoned_type(own.value_type, kind.element)))
    if isinstance(kind, t.Map) and pa.types.is_map(own):
        return pa.map_(_zoned_type(own.key_type, kind.key), _zoned_type(own.item_type, kind.value))
    if isinstance(kind, t.Struct) and pa.types.is_struct(own) and own.num_fields == len(kind.fields):
        pairs = zip([own.field(number) for number in range(own.num_fields)], kind.fields, strict=True)
        return pa.struct([field.with_type(_zoned_type(field.type, each.type)) for field, each in pairs])
    return own


def json_value(value: Any) -> Any:
    """A cell in JSON's types: decimals, dates, timestamps (with their zone) and bytes are strings."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return format(value, "f") if isinstance(value, decimal.Decimal) else str(value)


def key_text(value: Any) -> str:
    """A cell as tokens and the subject of an erasure have it."""
    shown = json_value(value)
    return ("true" if shown else "false") if isinstance(shown, bool) else str(shown)
