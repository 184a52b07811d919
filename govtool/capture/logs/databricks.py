"""Databricks' system.query.history, as CSV, JSON or Parquet, and queries as its API lists them."""

from __future__ import annotations

from govtool.capture.logs.mapping import Preset

PRESET = Preset(
    "databricks",
    "databricks",
    {
        "text": ("statement_text", "query_text"),
        "started_at": ("start_time", "query_start_time_ms"),
        "ended_at": ("end_time", "query_end_time_ms"),
        "user": ("executed_by", "user_name"),
        "role": ("executed_as", "executed_as_user_name"),
        "session_id": ("session_id",),
        "query_id": ("statement_id", "query_id"),
        "status": ("execution_status", "status"),
        "error": ("error_message",),
        "rows": ("produced_rows", "rows_produced"),
    },
    (
        frozenset({"statement_text", "statement_id"}),
        frozenset({"statement_text", "executed_by"}),
        frozenset({"query_text", "query_start_time_ms"}),
    ),
)
"""The text is empty where the workspace encrypts it with a key of its own."""
