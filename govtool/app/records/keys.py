"""Declared keys of datasets, and conditions on the values of keys."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from govtool.errors import UsageError
from govtool.names import written_id
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Expression, Literal, Value
from govtool.records.plan.nodes import Relation

_TRUTHS = ("false", "true")
_EPOCH = date(1970, 1, 1)


def declared_keys(
    leaves: Iterable[Relation], declared: Sequence[tuple[str, tuple[str, ...]]]
) -> Mapping[str, tuple[str, ...]]:
    """The columns that identify rows, by dataset; of several declarations for a dataset the longest name counts.

    Raises:
        UsageError: A dataset has no such column (``usage.config-keys``).
    """
    found: dict[str, tuple[str, ...]] = {}
    for leaf in leaves:
        fitting = [(name, columns) for name, columns in declared if _is_named(leaf.dataset, name)]
        if not fitting:
            continue
        name, columns = max(fitting, key=lambda each: len(each[0]))
        known = tuple(column.name for column in leaf.columns)
        missing = [column for column in columns if column not in known]
        if missing:
            raise UsageError(
                f"[keys] {name}: {leaf.dataset} has no column '{missing[0]}'", code="usage.config-keys", nearest=known
            )
        found[leaf.dataset] = columns
    return found


def _is_named(dataset: str, name: str) -> bool:
    """Return whether a name is a dataset's, or the end of it after a separator."""
    name = written_id(name)
    return any(each == name or each.endswith((f"/{name}", f".{name}")) for each in (dataset, *dataset.split(",")))


def equals_text(column: Attribute, text: str) -> Expression:
    """The condition that a column equals the value that a text stands for.

    Raises:
        UsageError: The text is no value of the column's type, or keys may not have this type (``usage.token-key``).
    """
    return Call("=", (column, _literal(column, text)), t.BOOLEAN)


def _literal(column: Attribute, text: str) -> Literal:
    """The value that a text stands for, as a literal of the column's type."""
    try:
        value: Value = _value(column.type, text)
    except (ValueError, decimal.InvalidOperation) as error:
        raise UsageError(f"'{text}' is no value of column '{column.name}'", code="usage.token-key") from error
    return Literal(value, column.type)


def _value(kind: t.Type, text: str) -> Value:
    if kind == t.STRING:
        return text
    if kind in t.INTEGRAL:
        return int(text)
    if kind == t.BOOLEAN:
        return _TRUTHS.index(text) == 1
    if kind == t.DATE:
        return (date.fromisoformat(text) - _EPOCH).days
    if isinstance(kind, t.Decimal):
        return decimal.Decimal(text)
    raise ValueError("keys may not have this type")
