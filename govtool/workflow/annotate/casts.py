"""Casts that give the same number, as those that set operations and comparisons bring along."""

from __future__ import annotations

from govtool.records.plan import types as t
from govtool.records.plan.expressions import Cast, Expression


def scale_of(kind: t.Type) -> int | None:
    """Digits after the point of whole numbers, decimals and truth values; None: floats, or no numbers."""
    if isinstance(kind, t.Decimal):
        return kind.scale
    return 0 if kind in t.INTEGRAL or kind in (t.BOOLEAN, t.VOID) else None


def keeps_number(before: t.Type, after: t.Type) -> bool:
    """Return whether a cast gives the same value."""
    if before == after:
        return True
    digits, kept = scale_of(before), scale_of(after)
    if t.BOOLEAN in (before, after) or (digits is None and before not in t.FLOATS):
        return False
    if after in t.FLOATS:
        return after == t.DOUBLE or before in t.INTEGRAL[:2]
    return digits is not None and kept is not None and kept >= digits


def without_casts(value: Expression) -> Expression:
    """What a value was made of by casts that give the same value."""
    if isinstance(value, Cast) and keeps_number(value.value.type, value.type):
        return without_casts(value.value)
    return value
