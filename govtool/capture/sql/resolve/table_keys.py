"""The keys of a table, which other statements refer to without naming their columns.

``REFERENCES parent`` means the parent's primary key, and a partition holds the rows that the parent's partition key
puts there. Both stand in the definition of the table alone, whose tree may be gone when they are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from govtool.capture.sql.resolve.relations import column_name
from govtool.capture.sql.resolve.states import StatementState, TableKeys
from govtool.capture.sql.scripts.trees import release, tree_of
from govtool.capture.sql.syntax import nodes

_WORDS: Final = re.compile(r"\b(?:PRIMARY|PARTITION\w*)\b", re.IGNORECASE)
"""One of these is in every definition that has a key."""
_NONE: Final = TableKeys((), ())


def table_keys(statement: StatementState) -> TableKeys:
    """Return the keys that a statement gives to the table that it makes; they are looked for once."""
    if statement.keys is None:
        statement.keys = _found(statement)
    return statement.keys


def added_key(alters: Sequence[StatementState]) -> tuple[str, ...]:
    """Return the columns of the primary key that the last of these ALTERs adds to a table."""
    for statement in reversed(alters):
        key = statement.tree.find(nodes.PrimaryKey) if statement.tree is not None else None
        if key is not None:
            return _names(_listed(key), statement)
    return ()


def _found(statement: StatementState) -> TableKeys:
    if type(statement.tree) is not nodes.Create or not _WORDS.search(statement.parsed.text):
        return _NONE
    tree = tree_of(statement.parsed)
    if tree is None:
        return _NONE
    found = _keys(tree, statement)
    if statement.parsed.packed is not None:
        release(tree)
    return found


def _keys(tree: exp.Expr, statement: StatementState) -> TableKeys:
    partition = tree.find(nodes.PartitionedByProperty)
    columns = [] if partition is None else [column.this for column in partition.find_all(nodes.Column)]
    return TableKeys(_names(_primary(tree.this), statement), _names(columns, statement))


def _names(columns: Sequence[exp.Expr], statement: StatementState) -> tuple[str, ...]:
    return tuple([column_name(column, statement.script.dialect) for column in columns])


def _primary(table: exp.Expr) -> list[exp.Expr]:
    """The names of the columns of a primary key, from a column's constraint or one of the table."""
    for item in table.expressions if isinstance(table, nodes.Schema) else ():
        key = item.find(nodes.PrimaryKey, nodes.PrimaryKeyColumnConstraint)
        if isinstance(key, nodes.PrimaryKey):
            return _listed(key)
        if key is not None and isinstance(item, nodes.ColumnDef):
            return [item.this]
    return []


def _listed(key: exp.Expr) -> list[exp.Expr]:
    return [found for part in key.expressions if (found := part.find(nodes.Identifier)) is not None]
