"""Effects of commands on the catalog, from the facts of a live session (``govtool.spark.live.plans.definitions``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from govtool.capture.spark.analyzed.place_names import place_of
from govtool.capture.spark.definitions import RESTORED, Defined
from govtool.capture.spark.identity import DatasetPlace, column_path, field_path

PROCEDURE = "break.procedure"

_RESTORING = frozenset(
    {"rollback_to_snapshot", "rollback_to_timestamp", "set_current_snapshot", "cherrypick_snapshot", "fast_forward",
     "publish_changes"}
)  # fmt: skip
"""Procedures of Iceberg after which a table has another of its states."""
_FILLING = frozenset({"add_files", "migrate", "snapshot", "register_table", "create_changelog_view"})
"""Procedures of Iceberg that bring data from elsewhere."""


def defined_by(facts: object) -> Defined | None:
    """Read the facts of a command (``govtool.spark.live.plans.definitions``); None if they are no such facts."""
    if not isinstance(facts, Mapping) or not facts.get("does"):
        return None
    does = str(facts["does"])
    place = place_of(facts)
    if does == "call":
        return _called(str(facts.get("procedure") or ""), place)
    if does == "restore":
        name = place.name.name if place is not None else "a table"
        return Defined(does, place, "restore", "", breaks=((RESTORED, f"{name} is what it was in an earlier version"),))
    if place is None:
        return None
    if facts.get("view"):
        place = DatasetPlace(place.name, "view", place.aliases)
    columns = _columns(facts.get("columns"))
    match does:
        case "create":
            return Defined(does, place, "create_table", "declare", columns)
        case "add":
            return Defined(does, place, "alter", "declare", columns)
        case "drop":
            return Defined(does, place, "drop", "drop")
        case "truncate":
            return Defined(does, place, "truncate", "")
        case "rename" | "clone":
            return _of_two_tables(does, facts, place, columns)
        case "rename_column":
            return _renamed_column(facts, place)
    return None


def _of_two_tables(
    does: str, facts: Mapping[str, Any], place: DatasetPlace, columns: tuple[tuple[str, str | None], ...]
) -> Defined | None:
    """A table that is renamed, or made as a clone of another; None if the other one is not named."""
    other = place_of({"table": facts.get("to" if does == "rename" else "from") or ()})
    if other is None:
        return None
    pairs = tuple((path, path) for path, _ in columns)
    if does == "clone":
        return Defined(does, place, "create_table_as", "replace", columns, other, pairs)
    return Defined(does, DatasetPlace(other.name, place.kind), "rename", "rename", columns, place, pairs)


def _renamed_column(facts: Mapping[str, Any], place: DatasetPlace) -> Defined | None:
    old = tuple(str(part) for part in facts.get("column") or ())
    if not old:
        return None
    new = field_path((*old[:-1], str(facts.get("to") or "")))
    return Defined("rename_column", place, "alter", "update", ((new, None),), place, ((field_path(old), new),))


def _called(procedure: str, place: DatasetPlace | None) -> Defined | None:
    name = place.name.name if place is not None else "a table"
    plain = procedure.rpartition(".")[2].lower()
    if plain in _RESTORING:
        return Defined("restore", place, "call", "", breaks=((RESTORED, f"{plain}: {name} has another of its states"),))
    if plain in _FILLING:
        return Defined(
            "call", place, "call", "", breaks=((PROCEDURE, f"{plain}: what {name} is filled from is not told"),)
        )
    return None


def _columns(value: object) -> tuple[tuple[str, str | None], ...]:
    found = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, list) and len(item) == 2:
            name, type_ = str(item[0]), str(item[1]) or None
            found.append((column_path(name), type_))
    return tuple(found)
