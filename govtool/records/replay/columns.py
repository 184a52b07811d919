"""Columns of Parquet files that are read as a recorded type: without a loss, as Spark reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from govtool.records.plan import types as t

if TYPE_CHECKING:
    import pyarrow as pa

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def is_read_as(actual: pa.DataType, kind: t.Type) -> bool:
    """Return True if every value of a file's column is one of a recorded type; integers and floats may be narrower."""
    import pyarrow as pa

    if pa.types.is_dictionary(actual):
        actual = actual.value_type
    if pa.types.is_null(actual):
        return True
    if isinstance(kind, t.Decimal):
        fits = pa.types.is_decimal(actual) and actual.scale == kind.scale
        return bool(fits and actual.precision <= kind.precision)
    if isinstance(kind, t.Array):
        return _is_list(actual) and is_read_as(actual.value_type, kind.element)
    if isinstance(kind, t.Map):
        return (
            pa.types.is_map(actual)
            and is_read_as(actual.key_type, kind.key)
            and is_read_as(actual.item_type, kind.value)
        )
    if isinstance(kind, t.Struct):
        own = {field.name: field.type for field in actual} if pa.types.is_struct(actual) else {}
        return bool(own) and all(each.name not in own or is_read_as(own[each.name], each.type) for each in kind.fields)
    return _is_read_as_scalar(actual, kind)


def _is_list(actual: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(actual) or pa.types.is_large_list(actual))


def _is_read_as_scalar(actual: pa.DataType, kind: t.Type) -> bool:
    import pyarrow as pa

    of = pa.types
    if isinstance(kind, t.Text) or kind == t.STRING:
        return bool(of.is_string(actual) or of.is_large_string(actual))
    if not isinstance(kind, t.Scalar):
        return True  # a type that no executor is exact on
    if kind.name in _BITS:
        return bool(of.is_signed_integer(actual) and actual.bit_width <= _BITS[kind.name])
    known = {
        "boolean": of.is_boolean, "float": of.is_float32,
        "double": lambda each: of.is_float32(each) or of.is_float64(each),
        "binary": lambda each: of.is_binary(each) or of.is_large_binary(each) or of.is_fixed_size_binary(each),
        "date": of.is_date32, "timestamp": of.is_timestamp,
        "timestamp_ntz": lambda each: of.is_timestamp(each) and each.tz is None,
    }  # fmt: skip
    return kind.name not in known or bool(known[kind.name](actual))
