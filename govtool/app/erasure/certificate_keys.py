"""The shapes of a certificate and of a plan: the keys that reading them relies on, and their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PLACE = "place"
"""A text that can be a part of a path."""
_FILE = {"path": _PLACE, "sha256": str}
_DATASET = {
    **dict.fromkeys(("dataset", "verified"), str),
    **dict.fromkeys(("deleted", "changed", "appeared", "unchanged", "rows_after"), int),
    "folder": _PLACE,
    "files": [_FILE],
    "keys?": [{"column": str, "digests": [str]}],
}
_ENTRY = {"dataset": str, "why": str}
_CERTIFICATE = {
    **dict.fromkeys(("schema", "ended", "salt"), str),
    "subjects": [{"column": str, "digest": str}],
    "datasets": [_DATASET],
    "unchanged": [str],
    "unknown": [{"dataset": str, "why": [str], "rows?": int}],
    **{name: [_ENTRY] for name in ("not_written", "not_searched", "not_reached")},
    "no_subject?": [_ENTRY],
    "beyond": [str],
}
_PLAN = {
    "schema": str,
    "commit": {"id": str},
    "request": {"subjects": [str], "keys": [str], "no_subject": [str], "all_runs": bool},
    "datasets": [{"dataset": _PLACE, "files": [{"uri": _PLACE, "size": int, "modified": int}]}],
}


MAX_DEPTH = 200
"""Lists and objects of a plan within each other; the deepest are values of nested types."""


def depth(value: Any, most: int) -> int:
    """Return how deep the lists and objects of a value of JSON are nested; counting stops above ``most``."""
    level, found = [value], 0
    while level and found <= most:
        level = [
            inner
            for each in level
            if isinstance(each, (list, dict))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        found += 1
    return found


def is_plan(value: Any) -> bool:
    """Return whether a value of JSON has the keys of a plan that applying it reads before the store is asked."""
    return _fits(value, _PLAN) and isinstance(value["request"].get("run"), str | None)


def is_certificate(value: Any) -> bool:
    """Return whether a value of JSON has the keys of a certificate; further ones do not count."""
    return _fits(value, _CERTIFICATE)


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict):
        return isinstance(value, Mapping) and all(_has(value, name, inner) for name, inner in shape.items())
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(each, shape[0]) for each in value)
    if shape == _PLACE:
        return isinstance(value, str) and "\0" not in value and _is_text(value)
    return isinstance(value, shape) and (shape is not str or _is_text(value))


def _has(value: Mapping[str, Any], name: str, shape: Any) -> bool:
    if name.endswith("?"):
        return name[:-1] not in value or _fits(value[name[:-1]], shape)
    return name in value and _fits(value[name], shape)


def _is_text(value: str) -> bool:
    """Return whether a text can be written: JSON may hold halves of surrogate pairs."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
