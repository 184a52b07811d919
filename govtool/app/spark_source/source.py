"""The classes that Spark calls, each in a process of its own: all they know is their options and what was pickled."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from govtool.app.spark_source import filters, tables, write
from govtool.errors import UsageError
from govtool.store.commit import FragmentRef
from govtool.store.names import DEFAULT_BRANCH

_OPTIONS = {"path", "store", "table", "rev", "branch", "source", "message", "author"}


class GovtoolSource(DataSource):
    """A store as a data source.

    Options: ``store`` (or the argument of ``load``/``save``; default: as for the command line), ``table`` (``nodes``,
    ``edges``, ``evidence``, ``facts``, ``runs``, ``versions`` …), ``rev`` (a branch, tag, number, id or date; default:
    the newest), ``branch``. For writing: ``source`` (the unit of retraction), ``message``, ``author``.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "govtool"

    def schema(self) -> StructType:
        """The schema of the table in that version."""
        from pyspark.sql.pandas.types import from_arrow_schema

        found = tables.schema(self._table(), self._version())
        return from_arrow_schema(_plain(found))

    def reader(self, schema: StructType) -> GovtoolReader:
        """A reader of that version as it is now."""
        return GovtoolReader(self._table(), self._version(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> GovtoolWriter:
        """A writer of one commit."""
        options = self._checked()
        if "rev" in options:
            raise UsageError(
                "a commit is added to a branch, not to a revision", code="usage.arguments", hint="leave out rev"
            )
        table = self._table()
        write.check_columns(table, schema.fieldNames())
        return GovtoolWriter(
            uri=self._uri(),
            table=table,
            source=options.get("source") or f"spark.{table}",
            branch=options.get("branch") or DEFAULT_BRANCH,
            overwrite=overwrite,
            message=options.get("message"),
            author=options.get("author"),
        )

    def _checked(self) -> dict[str, str]:
        from govtool.errors import UnknownNameError

        options = {name.lower(): value for name, value in self.options.items()}
        for name in sorted(options.keys() - _OPTIONS):
            raise UnknownNameError(
                f"no option {name}", code="usage.unknown-option", hint=f"one of {', '.join(sorted(_OPTIONS))}"
            )
        return options

    def _table(self) -> str:
        return tables.check_table(self._checked().get("table", ""))

    def _uri(self) -> str:
        from govtool.app.project.project import store_uri

        options = self._checked()
        return store_uri(options.get("store") or options.get("path"))

    def _version(self) -> tables.StoreVersion | None:
        options = self._checked()
        return tables.resolve(self._uri(), options.get("rev"), options.get("branch"))


@dataclass
class SourcePartition(InputPartition):
    """A partition."""

    cut: tables.Cut


class GovtoolReader(DataSourceReader):
    """Reads a table of one version."""

    def __init__(self, table: str, version: tables.StoreVersion | None, schema: StructType) -> None:
        self.table = table
        self.version = version
        self.schema = schema
        self.pushed: list[filters.Pushed] = []

    def pushFilters(self, filters_: list[Any]) -> Iterable[Any]:
        """Take over what Arrow can filter; give back the rest."""
        types = {field.name: field.dataType.simpleString() for field in self.schema.fields}
        self.pushed, left = filters.push(filters_, types)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """One a fragment, without those that the filters leave nothing of."""
        return [SourcePartition(cut) for cut in tables.cuts(self.table, self.version, self.pushed)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition as Arrow record batches."""
        if not isinstance(partition, SourcePartition):  # what Spark makes of an empty list of partitions
            return
        wanted = _arrow(self.schema)
        condition = filters.expression(self.pushed)
        for table in tables.rows(self.table, partition.cut):
            rows = _conform(table, wanted)
            if condition is not None:
                rows = rows.filter(condition)
            for batch in rows.combine_chunks().to_batches():
                if batch.num_rows:
                    yield batch


@dataclass
class UploadedFragments(WriterCommitMessage):
    """The fragments that one task has uploaded."""

    refs: tuple[FragmentRef, ...]


@dataclass
class GovtoolWriter(DataSourceArrowWriter):
    """Writes the rows of a job: tasks upload fragments, which nobody sees; the driver makes one commit of them."""

    uri: str
    table: str
    source: str
    branch: str
    overwrite: bool
    message: str | None
    author: str | None

    def __post_init__(self) -> None:
        self.job = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Upload the rows of a task. Run again, it writes the same bytes to the same places."""
        from pyspark import TaskContext

        from govtool.store import Store

        context = TaskContext.get()
        label = f"{context.partitionId() if context else 0}"
        # Rows that are appended once more are there once more; to overwrite with the same changes nothing.
        job = "" if self.overwrite else self.job
        store = Store.open(self.uri)
        return UploadedFragments(
            tuple(store.upload(f) for f in write.fragments(self.table, self.source, job, label, iterator))
        )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make everything visible in one commit."""
        from govtool.app.project.user import user_name
        from govtool.store import Changes, Store

        refs = tuple(ref for message in messages if isinstance(message, UploadedFragments) for ref in message.refs)
        if not refs and not self.overwrite:
            return
        # What names the batch is the content: the job is committed once, however often Spark asks for it.
        batch = hashlib.sha256("".join(sorted(ref.sha256 for ref in refs)).encode()).hexdigest()
        Store.open(self.uri).commit(
            Changes(retract=(self.source,) if self.overwrite else (), uploaded=refs),
            message=self.message or f"spark write {self.table}",
            author=self.author or user_name(),
            batch=f"spark:{self.job if not self.overwrite else batch}",
            summary={"command": "spark write", "table": self.table, "rows": sum(ref.rows for ref in refs)},
            branch=self.branch,
        )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing was made visible; ``govtool store gc`` removes what tasks have uploaded."""


def _plain(schema: Any) -> Any:
    """The schema with types that Spark has: no dictionaries, no unsigned numbers."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _type(field.type)) for field in schema])


def _type(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    if pa.types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(kind.bit_width, pa.decimal128(20, 0))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _type(field.type)) for field in kind])
    return kind


def _arrow(schema: StructType) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # Spark 4.0
        return to_arrow_schema(schema)


def _conform(table: Any, wanted: Any) -> Any:
    """The columns that Spark expects, in its order and types; one that a fragment does not have is null."""
    import pyarrow as pa

    columns = []
    for field in wanted:
        if field.name in table.column_names:
            columns.append(table.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(len(table), field.type))
    return pa.Table.from_arrays(columns, schema=wanted)
