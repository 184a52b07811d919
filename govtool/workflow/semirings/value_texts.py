"""Values of whole columns as canonical strings; the counterpart of ``texts.value_text`` on Arrow arrays."""

from __future__ import annotations

from typing import Any

from govtool.workflow.semirings.texts import value_text
from govtool.workflow.semirings.tokens import concatenated

_PLAIN_BELOW = 1e9
"""From here on Arrow and Python may write a float in different forms."""
_PLAIN_PLACES = 6
"""Decimal places up to which Arrow writes no exponent."""


def value_texts(column: Any) -> Any:
    """An Arrow array of strings with the canonical string of each value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind):
        return _floats(column.cast(pa.float64()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.large_string()).fill_null("NULL")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return pc.cast(column, pa.large_string()).fill_null("NULL")
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= _PLAIN_PLACES:
        return pc.cast(column, pa.large_string()).fill_null("NULL")
    if pa.types.is_nested(kind):
        return _one_by_one(column)
    coded = column.dictionary_encode()
    return _one_by_one(coded.dictionary).take(coded.indices).fill_null("NULL")


def _one_by_one(column: Any) -> Any:
    import pyarrow as pa

    return pa.array([value_text(value) for value in column.to_pylist()], pa.large_string())


def _floats(column: Any) -> Any:
    """The shortest text that reads back as the same float, as Python has it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.cast(column, pa.large_string())
    texts = pc.if_else(pc.equal(pc.floor(column), column), concatenated(texts, ".0"), texts)
    size = pc.abs(column)
    is_plain = pc.or_(pc.equal(size, 0.0), pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, _PLAIN_BELOW)))
    is_plain = pc.or_kleene(is_plain, pc.is_null(column))
    if not pc.all(is_plain).as_py():
        others = _one_by_one(column.filter(pc.invert(is_plain)))
        texts = pc.replace_with_mask(texts, pc.invert(is_plain), others)
    return texts.fill_null("NULL")
