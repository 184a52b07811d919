"""Incremental models of dbt after their first run: the query of their content, from what there was and the new rows.

Strategies and defaults are those of dbt's adapters (macros ``get_incremental_*_sql``). What else decides the rows of a
model is refused: its result would be another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NEW = "__govtool_new"
"""The name of the new rows in the query that adds them."""

_STRATEGIES = ("append", "merge", "delete+insert")
_REPLACING = ("postgres", "redshift", "duckdb", "snowflake", "bigquery", "databricks")
"""Adapters that replace the rows of a ``unique_key`` if no strategy is given."""
_APPENDING = ("spark", "fabricspark", "hive")
"""Adapters that append if no strategy is given, whether there is a ``unique_key`` or not."""
_NARROWING = ("incremental_predicates", "predicates", "merge_update_columns", "merge_exclude_columns")
"""Settings by which a merge leaves some rows or columns as they are."""


class NotCovered(Exception):
    """The rows of a model depend on something that is not evaluated here: what, and what would help."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class IncrementalModel:
    """How a model adds rows.

    Attributes:
        keys: Columns by which new rows replace earlier ones; empty: all rows stay.
        is_fixed: New rows must have exactly the model's columns; else columns that it does not have are left out.
    """

    keys: tuple[str, ...]
    is_fixed: bool

    def query(self, name: str, text: str, columns: str) -> str:
        """The query of a model's new content.

        Args:
            name: What the model is called in queries.
            text: The query of the new rows.
            columns: The columns that the model has, as they are written in a query.
        """
        kept = f"SELECT {columns} FROM {name}"
        if self.keys:
            same = " AND ".join(f"{NEW}.{key} = {name}.{key}" for key in self.keys)
            kept += f" WHERE NOT EXISTS (SELECT 1 FROM {NEW} WHERE {same})"
        return f"WITH {NEW} AS (\n{text}\n)\n{kept} UNION ALL SELECT {columns} FROM {NEW}"


def incremental_model(config: Mapping[str, Any], adapter: str, dialect: str) -> IncrementalModel:
    """Read the settings of an incremental model.

    Args:
        config: Of the model, from the manifest.
        adapter: dbt's adapter, whose default strategy counts; may be empty.
        dialect: What keys are written in.

    Raises:
        NotCovered: A setting decides which rows there are, in a way that is not evaluated here.
    """
    strategy, keys = config.get("incremental_strategy"), _keys(config.get("unique_key"))
    is_fixed = config.get("on_schema_change") not in (None, "ignore")
    if strategy not in (None, *_STRATEGIES):
        raise NotCovered(f"the strategy {strategy}", ", ".join(_STRATEGIES))
    if not keys or (strategy or _default_strategy(adapter)) == "append":
        return IncrementalModel((), is_fixed)
    for name in _NARROWING:
        if config.get(name):
            raise NotCovered(name, "give its rows, or compile it with --full-refresh and an empty --state")
    for key in keys:
        if not _is_column(key, dialect):
            raise NotCovered(f"the unique_key {key}", "a list of columns, as in unique_key: [id, day]")
    return IncrementalModel(keys, is_fixed)


def _default_strategy(adapter: str) -> str:
    """What an adapter does with a ``unique_key`` if no strategy is given."""
    if adapter in _APPENDING:
        return "append"
    if adapter not in _REPLACING:
        named = f" of {adapter}" if adapter else ""
        raise NotCovered(f"unique_key with the default strategy{named}", "set incremental_strategy in the model")
    return "delete+insert"


def _keys(given: object) -> tuple[str, ...]:
    keys: Sequence[object] = [given] if isinstance(given, str) else given if isinstance(given, list) else ()
    return tuple(key for key in keys if isinstance(key, str) and key)


def _is_column(key: str, dialect: str) -> bool:
    """Whether a key is the name of a column, not an expression."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        found = parse_one(f"SELECT t.{key}", dialect=dialect or "spark")  # where reserved words are names, too
    except SqlglotError:
        return False
    (column, *others) = found.expressions or [None]
    is_name = isinstance(column, exp.Column) and len(column.parts) == 2 and not isinstance(column.this, exp.Star)
    return is_name and not others
