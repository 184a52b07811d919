"""Redaction of events: no secret, no person's literal, no document without end is kept."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from govtool.redaction import SECRET, clean_location, clean_message, clean_text, is_secret_name

MAX_DEPTH = 48
MAX_FACET = 256 * 1024
"""Characters of one facet as JSON; of a larger one that carries no lineage a digest is kept."""

LINEAGE_FACETS = frozenset({"schema", "columnLineage", "lineage", "symlinks", "lifecycleStateChange", "datasetType"})
"""Facets of names, of which nothing is masked; descriptions of transformations, which quote them, are left out."""

_DROPPED = frozenset({"sourceCode", "spark.logicalPlan", "spark_unknown", "debug"})
"""Facets that hold code, data or plans: a digest stands for their content."""
_DESCRIPTIONS = ("description", "transformationDescription")
FUNCTIONS = re.compile(r"[^\s()'\"]+\(\)(?: → [^\s()'\"]+\(\))*\Z")
"""A description that only names functions, innermost first: ``trim() → lower()``."""


def clean(name: str, facet: Any) -> Any:
    """A facet without what must not be kept, as a JSON value."""
    if name in _DROPPED:
        return _digest(facet)
    value = _names(facet, name == "schema", 0) if name in LINEAGE_FACETS else _clean(facet, 0)
    if name == "errorMessage" and isinstance(value, dict):
        value = {key: clean_message(item) if isinstance(item, str) else item for key, item in value.items()}
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key not in ("_producer", "_schemaURL")}
    return value


def shortened(name: str, text: str) -> str:
    """A facet's JSON, or its digest if it is too long and carries no lineage."""
    if len(text) <= MAX_FACET or name in LINEAGE_FACETS:
        return text
    return json.dumps(_digest(text), sort_keys=True)


def _clean(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        return _digest(None)
    if isinstance(value, dict):
        # [{"name": "DB_PASSWORD", "value": …}] is how environment variables and parameters come.
        named = value.get("name", value.get("key"))
        secret = isinstance(named, str) and "value" in value and is_secret_name(named)
        return {
            str(key): SECRET
            if (secret and key == "value") or (_is_scalar(item) and is_secret_name(str(key)))
            else _clean(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, str):
        return clean_text(clean_location(value))
    if isinstance(value, float) and value not in (float("inf"), float("-inf")) and value == value:
        return value
    return value if isinstance(value, (int, bool)) or value is None else str(value)


def _names(value: Any, described: bool, depth: int) -> Any:
    """A facet of names; ``described``: what it describes are columns, not expressions."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {
            str(key): _by_column(item, described, depth + 1)
            if key == "fields" and isinstance(item, dict)
            else clean_text(item)
            if key in _DESCRIPTIONS and isinstance(item, str)
            else _names(item, described, depth + 1)
            for key, item in value.items()
            if key not in _DESCRIPTIONS or (isinstance(item, str) and (described or FUNCTIONS.match(item)))
        }
    if isinstance(value, list):
        return [_names(item, described, depth + 1) for item in value]
    if isinstance(value, str):
        return clean_location(value)
    return value if isinstance(value, (int, bool)) or value is None else str(value)


def _by_column(value: dict[Any, Any], described: bool, depth: int) -> Any:
    """Redact values by column: the keys are names of columns and stay."""
    if depth > MAX_DEPTH:
        return None
    return {str(key): _names(item, described, depth + 1) for key, item in value.items()}


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _digest(value: Any) -> dict[str, Any]:
    try:
        data = json.dumps(value, sort_keys=True, default=str).encode("utf-8", "backslashreplace")
    except (RecursionError, ValueError):
        data = b""
    return {"omitted": {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}}
