"""BigQuery's INFORMATION_SCHEMA.JOBS, as CSV, JSON or Parquet, and jobs as its API lists them."""

from __future__ import annotations

from typing import Any

from govtool.capture.logs.mapping import SKIP, Preset
from govtool.capture.logs.query_record import FAILED


def _adjust(found: dict[str, Any], row: dict[str, Any]) -> str | None:
    kind = _value(row, "job_type") or _value(row, "configuration", "jobType")
    if isinstance(kind, str) and kind.upper() != "QUERY":
        return SKIP  # loads, copies and extracts have no SQL
    error = found.get("error")
    if isinstance(error, dict) and isinstance(message := error.get("message") or error.get("reason"), str):
        found["error"] = message
    elif error in ({}, []):
        del found["error"]
    if "error" in found:
        found["status"] = FAILED  # the state of a job that failed is DONE
    statement = _value(row, "statement_type") or _value(row, "statistics", "query", "statementType")
    if statement == "SCRIPT" and "session_id" not in found:
        found["session_id"] = found.get("query_id")
    elif "parent_id" in found:
        found.setdefault("session_id", found["parent_id"])  # variables and temporary tables are the script's
    return None


def _value(row: dict[str, Any], *path: str) -> Any:
    value: Any = row
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name, value.get(name.upper()))
    return value


PRESET = Preset(
    "bigquery",
    "bigquery",
    {
        "text": ("query", "configuration.query.query"),
        "started_at": ("start_time", "creation_time", "statistics.starttime", "statistics.creationtime"),
        "ended_at": ("end_time", "statistics.endtime"),
        "user": ("user_email",),
        "database": (
            "default_dataset.project_id",
            "configuration.query.defaultdataset.projectid",
            "project_id",
            "jobreference.projectid",
        ),
        "schema": (
            "default_dataset.dataset_id",
            "default_dataset",
            "configuration.query.defaultdataset.datasetid",
        ),
        "session_id": ("session_info.session_id", "session_id", "statistics.sessioninfo.sessionid"),
        "query_id": ("job_id", "jobreference.jobid"),
        "parent_id": ("parent_job_id", "statistics.parentjobid"),
        "status": ("state", "status.state"),
        "error": ("error_result", "error_result.message", "error_result.reason", "status.errorresult"),
    },
    (
        frozenset({"query", "job_id"}),
        frozenset({"query", "statement_type", "project_id"}),
        frozenset({"configuration", "jobreference"}),
    ),
    _adjust,
    frozenset({"job_type", "statement_type", "configuration", "statistics"}),
)
"""The jobs of a script have it as their parent. The text of others' jobs is empty where one may not see it."""
