"""Changes between versions in words, for tables and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from govtool.query.versions.diff import GraphChange

SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def change_name(change: GraphChange) -> str:
    """What has changed; of an edge, both ends."""
    return change.name if change.source is None else f"{change.source} → {change.name}"


def change_detail(change: GraphChange) -> str:
    """What is there now, what was there, or both."""
    how = f"{change.kind}: " if change.kind else ""
    if change.change == "changed":
        return f"{how}{change.before or 'unknown'} → {change.after or 'unknown'}"
    return how + (change.after or change.before or "") if how or change.after or change.before else ""


def change_words(change: GraphChange) -> str:
    """``+ fact t.a tag: pii:email``."""
    return " ".join(filter(None, (SIGNS[change.change], change.what, change_name(change), change_detail(change))))
