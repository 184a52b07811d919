"""Declared keys of datasets, and records that are named by their tokens."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import reduce

from govtool.errors import UnknownNameError, UsageError
from govtool.model.token import KeyToken, NamedToken, PositionToken, Token
from govtool.names import written_id
from govtool.records.lineage import Lineage
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call, Expression, Literal, Value
from govtool.records.plan.nodes import Distinct, Relation, Union, outputs
from govtool.records.plan.tree import Node
from govtool.records.recordset import RecordSet
from govtool.records.trace.back import ReachedRows
from govtool.records.trace.leaf_names import leaf_name
from govtool.records.trace.segment import Leaf

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


def rows_of_tokens(lineage: Lineage, tokens: Iterable[Token]) -> RecordSet:
    """Rows of inputs by their tokens, to be traced forward.

    Raises:
        UsageError: A token names another version than was read (``usage.token-version``), a column that is not there or
            a value that is none of the column's (``usage.token-key``), or is of a form that a run knows nothing of.
        UnknownNameError: The plan reads no such dataset.
    """
    by_dataset: dict[str, list[Token]] = {}
    for token in tokens:
        by_dataset.setdefault(token.dataset, []).append(token)
    parts = [_chosen(lineage, dataset, own) for dataset, own in by_dataset.items()]
    return RecordSet(lineage, tuple(part for chosen in parts for part in chosen))


def _chosen(lineage: Lineage, dataset: str, tokens: Sequence[Token]) -> list[ReachedRows]:
    every = lineage.input(dataset)
    found: list[ReachedRows] = []
    for part in every.parts:
        assert isinstance(part, ReachedRows)
        places = [_place(part.leaf, token) for token in tokens if isinstance(token, PositionToken)]
        keyed = [_meets(part.leaf, token) for token in tokens if not isinstance(token, PositionToken)]
        own = RecordSet(lineage, (part,))
        sets = [own.rows(places)] if places else []
        sets += [own.where(reduce(_either, keyed))] if keyed else []
        found.append(_united(lineage, part, [each.parts[0].rows for each in sets]))
    return found


def _united(lineage: Lineage, part: ReachedRows, rows: Sequence[Node]) -> ReachedRows:
    if len(rows) == 1:
        return replace(part, rows=rows[0])
    return replace(part, rows=Distinct(Union(tuple(rows), (lineage.ids.attribute("record", t.LONG),))))


def _place(leaf: Leaf, token: PositionToken) -> tuple[int, int]:
    version = leaf.version if isinstance(leaf, Relation) else ""
    if token.version != (version or "current"):
        raise UsageError(
            f"the run read {leaf_name(leaf)}@{version or 'current'}: {token} is of another version",
            code="usage.token-version",
        )
    return token.file, token.row


def _meets(leaf: Leaf, token: Token) -> Expression:
    """The condition that a row has a key."""
    if isinstance(token, NamedToken):
        raise UsageError(f"{token}: a run knows rows by keys and by places", code="usage.token-key")
    assert isinstance(token, KeyToken)
    columns = {column.name: column for column in outputs(leaf)}
    for name, _ in token.key:
        if name not in columns:
            raise UnknownNameError(
                f"{token.dataset} has no column '{name}'", code="usage.token-key", nearest=tuple(columns)
            )
    return reduce(_also, (equals_text(columns[name], text) for name, text in token.key))


def equals_text(column: Attribute, text: str) -> Expression:
    """The condition that a column has the value of a text.

    Raises:
        UsageError: The text is no value of the column's type, or keys of this type are not read (``usage.token-key``).
    """
    return Call("=", (column, _literal(column, text)), t.BOOLEAN)


def _also(first: Expression, second: Expression) -> Expression:
    return Call("and", (first, second), t.BOOLEAN)


def _either(first: Expression, second: Expression) -> Expression:
    return Call("or", (first, second), t.BOOLEAN)


def _literal(column: Attribute, text: str) -> Literal:
    """The text of a token's value, as a value of its column's type.

    Raises:
        UsageError: It is none, or keys of this type are not read.
    """
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
    raise ValueError("a type that keys are not read of")
