"""Snowflake's QUERY_HISTORY (ACCOUNT_USAGE or INFORMATION_SCHEMA), as CSV, JSON or Parquet."""

from __future__ import annotations

from typing import Any

from govtool.capture.logs.mapping import Preset

LONGEST = 100_000
"""Characters to which QUERY_TEXT is cut (Snowflake's documentation of ACCOUNT_USAGE.QUERY_HISTORY)."""


def _adjust(found: dict[str, Any], row: dict[str, Any]) -> str | None:
    text = found.get("text")
    if isinstance(text, str) and len(text) >= LONGEST:
        found["truncated"] = True
    return None


PRESET = Preset(
    "snowflake",
    "snowflake",
    {
        "text": ("query_text",),
        "started_at": ("start_time",),
        "ended_at": ("end_time",),
        "user": ("user_name",),
        "role": ("role_name",),
        "database": ("database_name",),
        "schema": ("schema_name",),
        "session_id": ("session_id",),
        "query_id": ("query_id",),
        "status": ("execution_status",),
        "error": ("error_message",),
        "rows": ("rows_produced",),
    },
    (
        frozenset({"query_text", "execution_status"}),
        frozenset({"query_text", "warehouse_name"}),
        frozenset({"query_text", "database_name", "session_id"}),
    ),
    _adjust,
)
"""DATABASE_NAME and SCHEMA_NAME are those in effect when the statement was compiled."""
