"""Column paths as a tree: ``address.zip`` lies in ``address``, ``items[].price`` in ``items[]`` in ``items``."""

from __future__ import annotations

MAX_DEPTH = 64
"""Levels of nesting that are told apart; what lies deeper hangs on the level above."""


def parent_path(path: str) -> str | None:
    """The path that contains this one, or ``None`` for a top-level column.

    >>> parent_path("items[].price"), parent_path("payload['a.b']"), parent_path('"odd.name"')
    ('items[]', 'payload', None)
    """
    if '"' not in path and "[" not in path:
        return path.rpartition(".")[0] or None
    cut = 0
    quoted = literal = False
    depth = 0
    for i, ch in enumerate(path):
        if literal:
            literal = ch != "'"
        elif ch == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif depth and ch == "'":
            literal = True
        elif ch == "[":
            if not depth:
                cut = i
            depth += 1
        elif ch == "]":
            depth -= 1
        elif ch == "." and depth <= 0:
            cut = i
    return path[:cut] or None


def ancestors(path: str) -> list[str]:
    """The paths that contain this one, nearest first, at most ``MAX_DEPTH`` of them."""
    found: list[str] = []
    parent = parent_path(path)
    while parent is not None and len(found) < MAX_DEPTH:
        found.append(parent)
        parent = parent_path(parent)
    return found
