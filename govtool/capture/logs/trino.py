"""Trino's query events as its listeners write them: JSON objects with ``metadata`` and ``context``.

An event tells when a query was created, another one when it was completed (Trino documentation, "HTTP event listener",
and its ``QueryCompletedEvent``). The first has no outcome yet and counts as unfinished.
"""

from __future__ import annotations

from typing import Any

from govtool.capture.logs.mapping import SKIP, Preset
from govtool.capture.logs.query_record import FAILED


def _adjust(found: dict[str, Any], row: dict[str, Any]) -> str | None:
    if "text" not in found and not isinstance(row.get("metadata"), dict):
        return SKIP  # an event about a split
    prepared = row.get("metadata")
    if isinstance(prepared, dict) and isinstance(prepared.get("preparedQuery"), str) and prepared["preparedQuery"]:
        found["text"] = prepared["preparedQuery"]  # instead of EXECUTE name
    if found.get("error"):
        found["status"] = FAILED
    elif "ended_at" not in found and "statistics" not in row:
        found["status"] = "RUNNING"
    return None


PRESET = Preset(
    "trino",
    "trino",
    {
        "text": ("metadata.query",),
        "started_at": ("createtime", "executionstarttime"),
        "ended_at": ("endtime",),
        "user": ("context.user", "context.principal"),
        "database": ("context.catalog",),
        "schema": ("context.schema",),
        "query_id": ("metadata.queryid",),
        "status": ("metadata.querystate",),
        "error": ("failureinfo.failuremessage", "failureinfo.failuretype", "failureinfo.errorcode.name"),
    },
    (frozenset({"metadata", "context", "createtime"}), frozenset({"metadata", "context", "iometadata"})),
    _adjust,
    frozenset({"metadata", "statistics"}),
)
"""Sessions have no name: each query says its catalog and schema, and what a user runs counts as one session."""
