"""Leaves of captured plans that read a version of a Delta or Iceberg table."""

from __future__ import annotations

from typing import Any

from govtool.records.lake import delta, iceberg
from govtool.records.lake.files import with_files
from govtool.records.lake.leaf_options import as_table
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Relation
from govtool.records.plan.term_pieces import Unread
from govtool.records.plan.terms import TermReader

Json = Any


def table_relation(found: Json, dataset: str, columns: tuple[Attribute, ...], leaf: int, terms: TermReader) -> Relation:
    """Read a leaf of a plan as the files of the version that was read.

    Args:
        found: What ``PlanWalker`` says of the table (``$lake``).
        dataset: The table's name, or its place.
        columns: The leaf's.
        leaf: Its number.
        terms: Knows the plan's types.

    Raises:
        Unread: Which version was read is not known, its log does not tell its files, or their rows are not its rows.
    """
    location, version, own = str(found["location"]), found["version"], str(found["id"] or "")
    if found.get("part"):
        raise Unread("a part of a table: a folder of a partition, or changes between versions")
    if version is None:
        raise Unread("which version of the table was read is not known: it changed at the time")
    if found["format"] == "delta":
        schema, partitions = terms.types[found["schema"]], terms.types[found["partitions"]]
        if not isinstance(schema, t.Struct) or not isinstance(partitions, t.Struct):
            raise Unread("a schema that is none")
        files, deletes, names = delta.version_files(location, own, int(version), partitions)
        inner = {each.name for each in partitions.fields}
        data = t.Struct(tuple(each for each in schema.fields if each.name not in inner))
        known = {each.name for each in (*schema.fields, *partitions.fields)}
        metadata = tuple((each.id, each.name) for each in columns if each.name not in known)
        parts = tuple(each.name for each in partitions.fields)
        made = Relation(leaf, dataset, "parquet", files, columns, data, parts, metadata=metadata)
    else:
        columns_read = [each.name for each in columns]
        files, deletes, names = iceberg.snapshot_listing(location, own, str(version), columns_read)
        data = t.Struct(tuple(t.Field(each.name, each.type) for each in columns))
        made = Relation(leaf, dataset, "parquet", files, columns, data)
    return with_files(as_table(made, str(found["format"]), location, str(version)), deletes, names)


def written_to(found: Json) -> str:
    """The name of a table of the second data source API; its place where it has none, or is named by it."""
    name = ".".join(map(str, found.get("name") or ()))
    return str(found["location"]) if not name or "/" in name else name
