"""Relations that are versions of tables, and writes into tables: marked by options of govtool's own."""

from __future__ import annotations

from dataclasses import replace

from govtool.records.plan.nodes import Relation, Write

_FORMAT, _LOCATION = "govtool.table", "govtool.location"
DELETED = "govtool.deleted"
"""What deletes rows of a relation's files."""
NAMES = "govtool.names"
"""The names of columns in a relation's files, where these are not the relation's own."""
_OPTIONS = (_FORMAT, _LOCATION, DELETED, NAMES)


def as_table(relation: Relation, format: str, location: str, version: str) -> Relation:
    """A relation of Parquet files, marked as a version of a table."""
    return replace(relation, options=(*relation.options, *target_options(format, location)), version=version)


def table_of(relation: Relation | Write) -> tuple[str, str] | None:
    """The format and the place of the table that a relation is a version of, or that is written to; None of files."""
    known = dict(relation.options)
    return (known[_FORMAT], known[_LOCATION]) if _FORMAT in known and _LOCATION in known else None


def table_options(relation: Relation) -> tuple[tuple[str, str], ...]:
    """The options that mark a relation as a version of a table."""
    return tuple(pair for pair in relation.options if pair[0] in _OPTIONS)


def without_table(relation: Relation) -> tuple[tuple[str, str], ...]:
    """A relation's other options."""
    return tuple(pair for pair in relation.options if pair[0] not in _OPTIONS)


def target_options(format: str, location: str) -> tuple[tuple[str, str], ...]:
    """The options that mark a relation or a write as one of a table."""
    return ((_FORMAT, format), (_LOCATION, location))
