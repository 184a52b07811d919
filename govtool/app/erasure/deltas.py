"""Changes of a dataset's files: rows that go, by place, and rows that come, as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import EngineError
from govtool.records.execute.places import Place, place_of
from govtool.records.plan import types as t
from govtool.records.plan.nodes import File, Relation
from govtool.redaction import clean_failure

if TYPE_CHECKING:
    import pyarrow as pa

    from govtool.records.plan.expressions import Attribute

Drops = dict[int, int | None]
"""Rows of a file that go, by index; with the row of the table that comes in its place, if one does."""


@dataclass(frozen=True, slots=True)
class DatasetDelta:
    """What changes in the files of a write, or of a source.

    Attributes:
        relation: The files as they are, with all columns of the data.
        drops: By file, the rows that go.
        table: Rows that come, under the relation's columns; None: none.
        appended: The rows of the table that come in no other's place.
    """

    relation: Relation
    drops: dict[Place, Drops] = field(default_factory=dict)
    table: pa.Table | None = None
    appended: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything changes."""
        return any(self.drops.values()) or bool(self.appended)

    def places(self) -> set[Place]:
        """The files."""
        return {place_of(file) for file in self.relation.files}

    def arriving(self) -> list[int]:
        """The rows of the table that come, in some row's place or in none."""
        replaced = [row for rows in self.drops.values() for row in rows.values() if row is not None]
        return sorted([*replaced, *self.appended])


def arrow_schema(columns: Iterable[Attribute]) -> pa.Schema:
    """The columns of a plan as Arrow has them in files.

    Raises:
        EngineError: A type has no form in files (``engine.not-exact``).
    """
    import pyarrow as pa

    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def arrow_type(kind: t.Type) -> pa.DataType:
    """A type of Spark SQL as Arrow has it in files.

    Raises:
        EngineError: It has no form there.
    """
    import pyarrow as pa

    if isinstance(kind, t.Decimal):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, t.Array):
        return pa.list_(arrow_type(kind.element))
    if isinstance(kind, t.Map):
        return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
    if isinstance(kind, t.Struct):
        return pa.struct([pa.field(each.name, arrow_type(each.type)) for each in kind.fields])
    if isinstance(kind, t.Text):
        return pa.string()
    scalars: dict[str, Any] = {
        "boolean": pa.bool_, "byte": pa.int8, "short": pa.int16, "integer": pa.int32, "long": pa.int64,
        "float": pa.float32, "double": pa.float64, "string": pa.string, "binary": pa.binary, "date": pa.date32,
        "timestamp": lambda: pa.timestamp("us", tz="UTC"), "timestamp_ntz": lambda: pa.timestamp("us"),
    }  # fmt: skip
    name = kind.name if isinstance(kind, t.Scalar) else ""
    if name not in scalars:
        raise EngineError(f"values of type {t.to_json(kind)} cannot be written", code="engine.not-exact")
    return scalars[name]()


def in_schema(table: pa.Table, columns: Iterable[Attribute]) -> pa.Table:
    """A table of an executor, by position, under the names and types of a plan's columns.

    Raises:
        EngineError: A value does not fit.
    """
    import pyarrow as pa

    schema = arrow_schema(columns)
    try:
        arrays = [column.cast(each.type) for column, each in zip(table.columns, schema, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EngineError(f"rows cannot be written: {clean_failure(error)}", code="engine.not-exact") from error
    return pa.table(arrays, schema=schema)


def table_file(table: pa.Table, place: Path) -> File:
    """Write rows as a Parquet file that a plan can read."""
    import pyarrow.parquet as pq

    pq.write_table(table, place)
    facts = place.stat()
    return File(0, place.as_uri(), facts.st_size, facts.st_mtime_ns // 1_000_000)


def file_rows(relation: Relation) -> int | None:
    """The number of rows of Parquet files, from their footers; None for other formats and places."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from govtool.records.execute.inputs import local_path

    total = 0
    for file in relation.files:
        path = local_path(file.uri)
        if relation.format != "parquet" or path is None:
            return None
        try:
            total += pq.read_metadata(path).num_rows
        except (OSError, pa.ArrowException):
            return None
    return total
