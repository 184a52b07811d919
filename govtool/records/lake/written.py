"""The files that a write added to a Delta or Iceberg table, by the commit that it made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from govtool.capture.tables.delta import delta_commits
from govtool.capture.tables.iceberg import snapshot_files
from govtool.records.lake import delta, iceberg
from govtool.records.lake.files import with_files
from govtool.records.lake.leaf_options import as_table, table_of
from govtool.records.lake.places import LiveFiles, delta_at, live_files, newest_metadata, open_log
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import File, Relation
from govtool.records.plan.term_pieces import Unread

_ROWS = ("append", "overwrite")
"""Operations of snapshots that add rows."""


def written_to_table(
    format: str, location: str, columns: Sequence[Attribute], window: tuple[int, int], application: str
) -> Relation | None:
    """The files of the one commit of a time, as a relation; None where there is not just one, or it does not tell.

    Args:
        format: ``delta`` or ``iceberg``.
        location: The table's place.
        columns: What was written; their names are those in the table.
        window: The earliest and the latest time of the commit, in milliseconds.
        application: That of Spark; Iceberg keeps it.
    """
    try:
        if format == "delta":
            return _delta(location, columns, window)
        return _iceberg(location, columns, window, application)
    except Unread:
        return None


class LiveTables:
    """Which files are live in tables now; each table's log is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], LiveFiles] = {}

    def has(self, relation: Relation) -> bool:
        """Return whether the files of a version are all live in the table now."""
        return len(self.of(relation)) == len(relation.files)

    def of(self, relation: Relation) -> tuple[File, ...]:
        """The files of a version that are live in the table now; files of no table are."""
        table = table_of(relation)
        if table is None:
            return relation.files
        live = self._live(table).files
        return tuple(file for file in relation.files if file.uri in live)

    def are_thinned(self, relation: Relation) -> bool:
        """Return whether rows of a version's files may be deleted in the table now."""
        table = table_of(relation)
        return table is not None and any(file.uri in self._live(table).thinned for file in relation.files)

    def beside(self, relations: Iterable[Relation]) -> int:
        """The number of files that are live in the tables of some relations, and that none of these has."""
        known: dict[tuple[str, str], set[str]] = {}
        for relation in relations:
            table = table_of(relation)
            if table is not None:
                known.setdefault(table, set()).update(file.uri for file in relation.files)
        return sum(len(self._live(table).files - own) for table, own in known.items())

    def _live(self, table: tuple[str, str]) -> LiveFiles:
        if table not in self._known:
            self._known[table] = live_files(table[1], table[0]) or LiveFiles(frozenset(), frozenset())
        return self._known[table]


def _delta(location: str, columns: Sequence[Attribute], window: tuple[int, int]) -> Relation | None:
    log = open_log(location, "delta")
    commits = None if log is None else delta_commits(log[0], log[1], *window)
    wrote = {version: files for version, files in (commits or {}).items() if any(file.changes for file in files)}
    if len(wrote) != 1:
        return None
    ((version, files),) = wrote.items()
    state = delta_at(location, version)
    schema = None if state is None else _schema(state.metadata.get("schemaString"))
    if state is None or schema is None or delta.why_not(state) or any(file.vector for file in files):
        return None
    partitioned = _partition_columns(state.metadata)
    fields = _fields_of(columns, schema)
    inner = None if fields is None else _partition_fields(fields, partitioned)
    if fields is None or inner is None:
        return None
    data = t.Struct(tuple(field for field in fields if field.name not in partitioned))
    attributes = tuple(Attribute(i, field.name, field.type) for i, field in enumerate((*data.fields, *inner.fields)))
    names = delta.physical_names(state)
    made = Relation(0, "", "parquet", delta.listed(location, files, inner, names), attributes, data, partitioned)
    table = as_table(made, "delta", location, str(version))
    return with_files(table, (), {file.ordinal: names for file in made.files})


def _partition_columns(metadata: Mapping[str, object]) -> tuple[str, ...]:
    listed = metadata.get("partitionColumns")
    return tuple(str(each) for each in listed) if isinstance(listed, (list, tuple)) else ()


def _fields_of(columns: Sequence[Attribute], schema: t.Struct) -> list[t.Field] | None:
    """The table's fields for the columns that were written; None where one is missing or has another type."""
    known = {field.name.lower(): field for field in schema.fields}
    fields: list[t.Field] = []
    for column in columns:
        field = known.get(column.name.lower())
        if field is None or t.bare(field.type) != t.bare(column.type):
            return None
        fields.append(field)
    return fields


def _partition_fields(fields: Sequence[t.Field], partitioned: Sequence[str]) -> t.Struct | None:
    """The fields of the columns of partitions, in their order; None where one was not written."""
    found = [field for field in fields if field.name in partitioned]
    if len(found) < len(partitioned):
        return None
    return t.Struct(tuple(next(field for field in found if field.name == name) for name in partitioned))


def _schema(text: object) -> t.Struct | None:
    try:
        found = t.from_json(json.loads(text)) if isinstance(text, str) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, t.Struct) else None


def _iceberg(location: str, columns: Sequence[Attribute], window: tuple[int, int], application: str) -> Relation | None:
    newest = newest_metadata(location)
    if newest is None:
        return None
    table, _, read = newest
    fits = [
        each
        for each in table.snapshots.values()
        if window[0] <= each.time <= window[1]
        and each.summary.get("operation") in _ROWS
        and _is_by(each.summary, application)
    ]
    if len(fits) != 1:
        return None
    files = snapshot_files(table, fits[0].id, read)
    added = None if files is None else [file for file in files if file.added == fits[0].id]
    if added is None or iceberg.why_not(added) or any(file.deletes for file in added):
        return None
    attributes = tuple(Attribute(i, column.name, column.type) for i, column in enumerate(columns))
    data = t.Struct(tuple(t.Field(column.name, column.type) for column in columns))
    made = Relation(0, "", "parquet", iceberg.listed(location, added), attributes, data)
    return as_table(made, "iceberg", location, str(fits[0].id))


def _is_by(summary: Mapping[str, object], application: str) -> bool:
    return not application or summary.get("spark.app.id") in (None, application)
