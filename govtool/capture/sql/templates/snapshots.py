"""Snapshots of dbt: tables of what they select, and of dbt's columns with the times from and until which a row held.

See https://docs.getdbt.com/docs/build/snapshots, "Snapshot meta-fields" and "Snapshot configurations". When a row
changed is decided by ``updated_at`` (strategy ``timestamp``), or is the time of the run (strategy ``check``).
"""

from __future__ import annotations

from collections.abc import Mapping

TAIL = "_snapshot_tail"
"""The call at the end of a snapshot's template, when its configuration is known."""

END = "\n) "
"""Ends what a snapshot selects, which may end in a comment."""

_ROWS = "dbt_snapshot"


def head(name: str) -> str:
    """The text before what a snapshot selects."""
    return f"CREATE TABLE {name} AS WITH {_ROWS} AS ("


def tail(config: Mapping[str, object]) -> str:
    """The text behind ``END``: dbt's columns by the snapshot's configuration.

    Args:
        config: ``unique_key`` (a column, an expression, or several), ``updated_at``, ``snapshot_meta_column_names``.
    """
    renamed = config.get("snapshot_meta_column_names")
    names = renamed if isinstance(renamed, dict) else {}
    changed = config.get("updated_at")
    when = changed if isinstance(changed, str) and changed else "CURRENT_TIMESTAMP"
    unique = config.get("unique_key")
    keys = [key for key in (unique if isinstance(unique, list) else [unique]) if isinstance(key, str) and key]
    values = {
        "dbt_scd_id": f"MD5(CONCAT({', '.join([*keys, when])}))",
        "dbt_updated_at": when,
        "dbt_valid_from": when,
        "dbt_valid_to": f"NULLIF({when}, {when})",
    }
    if config.get("hard_deletes") == "new_record":
        values["dbt_is_deleted"] = "'False'"
    columns = ", ".join(f"{value} AS {names.get(name, name)}" for name, value in values.items())
    return f"SELECT {_ROWS}.*, {columns} FROM {_ROWS};"
