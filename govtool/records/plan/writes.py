"""Catalyst's commands that write files and tables, as operators above what they write."""

from __future__ import annotations

from typing import Any

from govtool.records.lake.leaf import written_to
from govtool.records.lake.leaf_options import target_options
from govtool.records.plan import leaves
from govtool.records.plan.nodes import Write, outputs
from govtool.records.plan.term_pieces import Unread
from govtool.records.plan.tree import Node

Json = Any
_TEXTUAL = frozenset({"csv", "json", "text"})
"""Formats whose options decide what is read of a file."""


def insert(fields: Json, child: Node, partitioned: tuple[str, ...]) -> Write:
    """Read an ``InsertIntoHadoopFsRelationCommand``.

    Args:
        fields: Of the command.
        child: What it writes.
        partitioned: The columns that rows are partitioned by.

    Raises:
        Unread: The statement names partitions.
    """
    table = fields["catalogTable"]
    dataset = leaves.table_name(table) if table is not None else str(fields["outputPath"])
    if fields["staticPartitions"]["$map"]:
        raise Unread("partitions that the statement names")
    kind = str(fields["fileFormat"].get("$format", "")).lower()
    options = _options(kind, fields.get("options"))
    return Write(child, dataset, kind, _mode(fields["mode"]), _names(fields, child), partitioned, options)


def create_table(fields: Json, child: Node) -> Write:
    """Read a ``CreateDataSourceTableAsSelectCommand``."""
    table = fields["table"]
    partitioned = tuple(str(each) for each in table["f"]["partitionColumnNames"])
    kind = str(table["f"].get("provider") or "")
    options = _options(kind.lower(), table["f"].get("storage", {}).get("f", {}).get("properties"))
    name, mode = leaves.table_name(table), _mode(fields["mode"])
    return Write(child, name, kind, mode, _names(fields, child), partitioned, options)


def save(fields: Json, child: Node) -> Write:
    """Read a ``SaveIntoDataSourceCommand``."""
    options = {str(key).lower(): str(value) for key, value in (fields["options"] or {"$map": []})["$map"]}
    dataset = options.get("path") or options.get("dbtable") or ""
    return Write(child, dataset, "", _mode(fields["mode"]), _names(fields, child))


def into_table(fields: Json, table: Json, child: Node) -> Write:
    """Read a command that writes rows, by position, into a table of a connector.

    Where it is none of Delta Lake or Iceberg, what it wrote is not looked for: its rows are those of the plan.

    Args:
        fields: Of the command.
        table: Of the ``DataSourceV2Relation`` that it writes to.
        child: What it writes.
    """
    found = table.get("$lake")
    mode = "overwrite" if "deleteExpr" in fields else "append"
    names = tuple(each.name for each in outputs(child))
    if found is None:
        return Write(child, "", "", mode, names)
    options = target_options(str(found["format"]), str(found["location"])) if found["location"] else ()
    return Write(child, written_to(found), "parquet", mode, names, options=options)


def _options(kind: str, found: Json) -> tuple[tuple[str, str], ...]:
    """Options that a reader needs as well; files of other formats describe themselves."""
    return leaves.options_of(found) if kind in _TEXTUAL and found else ()


def _names(fields: Json, child: Node) -> tuple[str, ...]:
    given = fields.get("outputColumnNames")
    return tuple(str(each) for each in given) if given else tuple(each.name for each in outputs(child))


def _mode(value: Json) -> str:
    return {"ErrorIfExists": "error"}.get(value["$enum"], str(value["$enum"]).lower())
