"""Datasets as facts about leaves and commands name them, and types as SQL writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from govtool.capture.spark.analyzed.tree import Json
from govtool.capture.spark.identity import DatasetPlace, path_name, table_name, topic_name
from govtool.capture.spark.jdbc import table_behind

MAX_PLACES = 64
"""Datasets that one relation may be of."""

_VERSION = re.compile(r"@(?:v\d+|\d{17})\Z")
"""The version of a Delta table, behind its path."""
_STATE = re.compile(r"(?:branch|tag|snapshot_id|at_timestamp)_.+\Z")
"""A branch or a state of an Iceberg table, as the last part of its name."""


def place_of(facts: Json) -> DatasetPlace | None:
    """The dataset that facts about a leaf or a command name; None if they name none."""
    paths = [path for path in facts.get("paths") or ([facts["path"]] if facts.get("path") else []) if path]
    if facts.get("table"):
        return _of_table(facts, paths)
    if facts.get("url"):
        table = str(facts.get("dbtable") or "")
        return DatasetPlace(table_behind(str(facts["url"]), table), "table") if table else None
    if facts.get("topic"):
        return DatasetPlace(topic_name(str(facts.get("kafka.bootstrap.servers") or ""), str(facts["topic"])), "table")
    if paths:
        return DatasetPlace(path_name(common_path(paths)), "file")
    return None


def _of_table(facts: Json, paths: Sequence[str]) -> DatasetPlace:
    """The dataset of facts that name a table."""
    parts = [str(part) for part in facts["table"]]
    if "/" in parts[-1]:  # delta.`/lake/orders`
        return DatasetPlace(path_name(_VERSION.sub("", parts[-1]) if not paths else common_path(paths)), "file")
    is_iceberg = "iceberg" in str(facts.get("relation", ""))
    if len(parts) > 2 and is_iceberg and _STATE.match(parts[-1]):
        parts.pop()
    if is_iceberg and any("/" in part for part in parts[:-1]):  # read by its path: a folder is the namespace
        return DatasetPlace(path_name(common_path(paths) if paths else "/".join(parts[-2:])), "file")
    name = table_name(tuple(parts))
    aliases = tuple(dict.fromkeys(path_name(path) for path in paths[:1]))
    if facts.get("url") and facts.get("dbtable"):
        aliases = (*aliases, table_behind(str(facts["url"]), str(facts["dbtable"])))
    return DatasetPlace(name, "view" if facts.get("view") else "table", aliases)


def places_of(facts: Json) -> tuple[DatasetPlace, ...]:
    """The datasets that facts about a leaf name: several where a reader was given several paths.

    Of more than `MAX_PLACES` paths in one folder, that folder; none where they are in several.
    """
    first = place_of(facts)
    paths = [str(path) for path in facts.get("paths") or () if path]
    if first is None or first.kind != "file" or facts.get("table") or len(paths) < 2:
        return () if first is None else (first,)
    names = tuple(dict.fromkeys(path_name(path) for path in paths))
    if len(names) <= MAX_PLACES:
        return tuple(DatasetPlace(name, "file") for name in names)
    folders = {name.name.rstrip("/").rpartition("/")[0] for name in names}
    return (first,) if len(folders) == 1 else ()


def common_path(paths: Sequence[str]) -> str:
    """The path of files that are read as one: the folder that all of them are in."""
    if len(paths) == 1:
        return paths[0]
    split = [path.rstrip("/").split("/") for path in paths]
    shared: list[str] = []
    for parts in zip(*split, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared)


def type_text(type_: object) -> str:
    """A type of Spark's JSON schemas as SQL writes it.

    >>> type_text({"type": "array", "elementType": "long", "containsNull": True})
    'array<bigint>'
    """
    if isinstance(type_, str):
        return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(type_, type_)
    if not isinstance(type_, Mapping):
        return ""
    kind = type_.get("type")
    if kind == "array":
        return f"array<{type_text(type_.get('elementType'))}>"
    if kind == "map":
        return f"map<{type_text(type_.get('keyType'))},{type_text(type_.get('valueType'))}>"
    if kind == "struct":
        fields = ",".join(f"{field.get('name')}:{type_text(field.get('type'))}" for field in type_.get("fields") or ())
        return f"struct<{fields}>"
    return str(kind or "")


def table_parts(identifier: Json) -> tuple[str, ...]:
    """Catalog, database and table of an identifier, as many as it has."""
    return tuple(str(identifier[key]) for key in ("catalog", "database", "table") if identifier.get(key))
