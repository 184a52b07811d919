"""Leaves of captured plans that read a version of a Delta or Iceberg table."""

from __future__ import annotations

from typing import Any

from govtool.records.lake import delta, iceberg
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Relation, Write
from govtool.records.plan.term_pieces import Unread
from govtool.records.plan.terms import TermReader

Json = Any
_FORMAT, _LOCATION = "govtool.table", "govtool.location"
"""Options of a relation that is a version of a table: the table's format, and its place."""


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
    if version is None:
        raise Unread("which version of the table was read is not known: it changed at the time")
    if found["format"] == "delta":
        schema, partitions = terms.types[found["schema"]], terms.types[found["partitions"]]
        if not isinstance(schema, t.Struct) or not isinstance(partitions, t.Struct):
            raise Unread("a schema that is none")
        if found.get("part"):
            raise Unread("a folder of a table of Delta Lake")
        files = delta.version_files(location, own, int(version), partitions)
        inner = {each.name for each in partitions.fields}
        data = t.Struct(tuple(each for each in schema.fields if each.name not in inner))
        names = {each.name for each in (*schema.fields, *partitions.fields)}
        metadata = tuple((each.id, each.name) for each in columns if each.name not in names)
        parts = tuple(each.name for each in partitions.fields)
        made = Relation(leaf, dataset, "parquet", files, columns, data, parts, metadata=metadata)
    else:
        files = iceberg.snapshot_listing(location, own, str(version), [each.name for each in columns])
        data = t.Struct(tuple(t.Field(each.name, each.type) for each in columns))
        made = Relation(leaf, dataset, "parquet", files, columns, data)
    return as_table(made, str(found["format"]), location, str(version))


def as_table(relation: Relation, format: str, location: str, version: str) -> Relation:
    """A relation of Parquet files, marked as a version of a table."""
    options = (*relation.options, *target_options(format, location))
    return Relation(
        relation.leaf, relation.dataset, relation.format, relation.files, relation.columns, relation.schema,
        relation.partitioned, options, version, relation.metadata,
    )  # fmt: skip


def table_of(relation: Relation | Write) -> tuple[str, str] | None:
    """The format and the place of the table that a relation is a version of, or that is written to; None of files."""
    known = dict(relation.options)
    return (known[_FORMAT], known[_LOCATION]) if _FORMAT in known and _LOCATION in known else None


def table_options(relation: Relation) -> tuple[tuple[str, str], ...]:
    """The options that mark a relation as a version of a table."""
    return tuple(pair for pair in relation.options if pair[0] in (_FORMAT, _LOCATION))


def without_table(relation: Relation) -> tuple[tuple[str, str], ...]:
    """A relation's other options."""
    return tuple(pair for pair in relation.options if pair[0] not in (_FORMAT, _LOCATION))


def target_options(format: str, location: str) -> tuple[tuple[str, str], ...]:
    """The options that mark a write as one into a table."""
    return ((_FORMAT, format), (_LOCATION, location))


def written_to(found: Json) -> str:
    """The name of a table that a command of the second data source API writes to; its place where it has none."""
    return ".".join(map(str, found.get("name") or ())) or str(found["location"])
