"""Rebuilt plans in DuckDB: no JVM, over Parquet files that are reachable from here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from govtool.errors import EngineError
from govtool.model.token import ROW_BITS
from govtool.records.execute.calendars import FACTS, shifted_columns
from govtool.records.execute.csv_files import CsvFiles
from govtool.records.execute.inputs import local_path
from govtool.records.lake.deleted import deleted_records
from govtool.records.lake.files import TABLES, plain_parts
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Literal
from govtool.records.plan.nodes import LocalRows, Plan, Relation, Session, outputs
from govtool.records.plan.tree import Node
from govtool.records.sql.dialect import EvaluationFailed, NotExact
from govtool.records.sql.duckdb import DuckDialect
from govtool.records.sql.duckdb_functions import quoted_name
from govtool.records.sql.statement import KEPT, SqlStatement, write
from govtool.redaction import clean_failure

if TYPE_CHECKING:
    import duckdb
    import pyarrow

_WRITTEN_ROWS = 64
"""Rows of the driver that are written into a statement; more are loaded."""
_LOADED = (t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.STRING)
_FILE_INDEX = "file_index"
"""DuckDB's column of a file's number in the list that it reads, where no column of the files is called so."""
RECORD = "_record"
"""The metadata column of a relation that holds a record's id: file ordinal and row, packed."""


TESTED_BELOW = 2
"""The major version of DuckDB from which on nobody has compared its answers with Spark's."""


MOST_MEMORY = 4 << 30
"""Bytes that DuckDB takes at most; by itself it would take four fifths of the machine's memory."""
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def open_duckdb() -> duckdb.DuckDBPyConnection:
    """A database in memory: a third of what the machine, or container, has, and at most ``MOST_MEMORY``.

    What does not fit goes to files in the folder for temporary files, which DuckDB removes when it ends.

    Raises:
        EngineError: DuckDB is a version whose answers were not compared with Spark's (``engine.duckdb``).
    """
    import duckdb

    if int(duckdb.__version__.partition(".")[0]) >= TESTED_BELOW:
        raise EngineError(
            f"DuckDB {duckdb.__version__} is not used: whether it answers as Spark does was tried below {TESTED_BELOW}",
            code="engine.duckdb",
            hint="pip install 'govtool[records]'",
        )
    connection = duckdb.connect()
    folder = Path(tempfile.gettempdir()) / f"govtool-duckdb-{os.getpid()}"
    connection.execute(f"SET temp_directory = {_text(str(folder))}")
    connection.execute(f"SET memory_limit = '{_memory(connection)}B'")
    return connection


def _memory(connection: duckdb.DuckDBPyConnection) -> int:
    """The bytes that a database may take: DuckDB's default is four fifths of those that there are."""
    (default,) = connection.execute("SELECT current_setting('memory_limit')").fetchone() or ("",)
    number, _, unit = str(default).partition(" ")
    try:
        return min(MOST_MEMORY, int(float(number) * _UNITS[unit] / 2.4))
    except (ValueError, KeyError):  # a limit that is not written as it is today
        return MOST_MEMORY


class DuckDatabase:
    """A database in memory for many executors: a connection costs a tenth of a database, and its tables are its own.

    Args:
        threads: At most so many threads; small queries are cheaper on one.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._database = open_duckdb()
        if threads is not None:
            self._database.execute(f"SET threads = {int(threads)}")

    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection whose temporary tables and settings no other sees."""
        return self._database.cursor()


class DuckExecutor:
    """Evaluates plans of one recorded session.

    Args:
        session: What the plans ran in.
        threads: At most so many threads.
        database: Where; one of its own by default.
    """

    def __init__(self, session: Session, threads: int | None = None, database: DuckDatabase | None = None) -> None:
        self.session = session
        self.connection = open_duckdb() if database is None else database.connection()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute("SET preserve_insertion_order = false")
        if threads is not None:
            self.connection.execute(f"SET threads = {int(threads)}")
        self._numbers = count(1)
        self._views: set[tuple[str, Relation]] = set()
        self._calendars: dict[Any, list[str]] = {}
        self._kept: dict[str, int] = {}
        self._csv = CsvFiles(session)

    def skip(self, number: int) -> None:
        """Leave out the names of the first tables: they are there already."""
        self._numbers = count(number + 1)

    def statement(self, node: Node) -> SqlStatement:
        """A plan in SQL, its leaves there as views.

        Raises:
            NotExact: DuckDB does not give what Spark gives.
        """
        found = write(Plan(node, self.session), DuckDialect(self.session))
        for name, leaf in found.relations:
            if (name, leaf) not in self._views:
                self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {self.view(leaf)}")
                self._views = {known for known in self._views if known[0] != name} | {(name, leaf)}
        return found

    def arrow(self, node: Node) -> pyarrow.Table:
        """The rows of a plan; columns in its order, under their names, which may repeat.

        Raises:
            NotExact: DuckDB does not give what Spark gives, or a guard found a value for which it does not.
        """
        found = self.statement(node)
        table = self._run(found.text, lambda made: made.to_arrow_table())
        return table.rename_columns([each.name for each in found.columns]) if found.columns else table.select([])

    def fetch(self, node: Node) -> list[tuple[Any, ...]]:
        """The rows of a plan as Python values."""
        rows = self._run(self.statement(node).text, lambda made: made.fetchall())
        return [tuple(row) for row in rows] if outputs(node) else [() for _ in rows]

    def keep(self, node: Node) -> Relation:
        """Evaluate a plan once, and return the leaf that reads what came out."""
        name = f"kept_{next(self._numbers)}"
        if isinstance(node, LocalRows) and len(node.rows) > _WRITTEN_ROWS and self._loaded(name, node):
            return Relation(0, name, KEPT, (), node.columns, t.Struct(()))
        found = self.statement(node)
        columns = {each.id: (i, each) for i, each in enumerate(found.columns)}
        names = ", ".join(f"o{i} AS {column_name(each)}" for i, each in columns.values()) or "1 AS nothing"
        self._create(name, f"SELECT {names} FROM ({found.text})")
        own = tuple(each for _, each in columns.values())
        return Relation(0, name, KEPT, (), own, t.Struct(()))

    def _create(self, name: str, query: str) -> None:
        made = self._run(f"CREATE TEMP TABLE {name} AS {query}", lambda made: made.fetchone())
        self._kept[name] = int(made[0])

    def kept_rows(self, leaf: Relation) -> int | None:
        """The number of rows of what ``keep`` returned; None of another relation."""
        return self._kept.get(leaf.dataset) if leaf.format == KEPT else None

    def _loaded(self, name: str, node: LocalRows) -> bool:
        """Make a table of many rows without a statement that names each; False where values need the dialect."""
        import pyarrow as pa

        if not node.columns or any(column.type not in _LOADED for column in node.columns):
            return False
        cells = list(zip(*node.rows, strict=True))
        if any("\x00" in value for column in cells for value in column if isinstance(value, str)):
            return False
        kinds = [pa.string() if column.type == t.STRING else pa.int64() for column in node.columns]
        try:
            arrays = [pa.array(values, kind) for values, kind in zip(cells, kinds, strict=True)]
        except (pa.ArrowException, UnicodeError, OverflowError):
            return False
        dialect = DuckDialect(self.session)
        values = ", ".join(
            f"CAST(v{n} AS {dialect.type(each.type)}) AS {column_name(each)}" for n, each in enumerate(node.columns)
        )
        self.connection.register(f"{name}_given", pa.table({f"v{n}": each for n, each in enumerate(arrays)}))
        self._create(name, f"SELECT {values} FROM {name}_given")
        self.connection.unregister(f"{name}_given")
        return True

    def stream(self, text: str) -> Any:
        """The batches of a statement of one's own, as a reader of pyarrow.

        Raises:
            NotExact: DuckDB cannot run it.
        """
        return self._run(text, lambda made: made.to_arrow_reader(1 << 20))

    def _run(self, text: str, read: Callable[[duckdb.DuckDBPyConnection], Any]) -> Any:
        """Run a statement and read what it makes: rows are made while they are read, and guards look at them then."""
        import duckdb

        try:
            return read(self.connection.execute(text))
        except duckdb.InterruptException as error:  # a thread met a guard; another one, stopped by it, is heard first
            raise EvaluationFailed("DuckDB: a value on which it is not exact") from error
        except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.OutOfRangeException) as error:
            raise EvaluationFailed(f"DuckDB: {clean_failure(error)}") from error
        except duckdb.Error as error:
            raise NotExact(f"DuckDB: {clean_failure(error)}") from error

    # ---- leaves ---------------------------------------------------------------------------------------------------

    def view(self, leaf: Relation, mark: str = "") -> str:
        """The rows of a leaf's recorded files, under its columns' ids.

        Args:
            leaf: The leaf.
            mark: The column of the files that holds the records' ids, negative in rows that are left out; the files
                have the same columns then, all of the leaf's. Empty: all rows, whose ids are their places.

        Raises:
            NotExact: Files of a format, or in a place, that DuckDB is not given.
        """
        if leaf.format == "csv":
            leaf = self._csv.as_parquet(leaf)
        if leaf.format in TABLES:
            return self._live_rows(leaf)
        if leaf.format != "parquet":
            raise NotExact(f"files of format {leaf.format}")
        dialect = DuckDialect(self.session)
        if not leaf.files:
            return _no_rows(leaf, dialect)
        if not mark:
            self.require_calendar(leaf)
        paths = [self._path(each.uri) for each in leaf.files]
        listing = ", ".join(_text(path) for path in paths)
        marks, by_name = dict(leaf.metadata), str(not mark).lower()
        options = f"union_by_name = {by_name}, filename = '_file', file_row_number = true, hive_partitioning = false"
        source = f"read_parquet([{listing}], {options})"
        actual = dict.fromkeys((each.name for each in leaf.columns), "") if mark else self._types_in(source)
        # Values of partitions are in no file: they come from a table of the files, which has their ordinals, too.
        is_joined = bool(leaf.partitioned) or _FILE_INDEX in map(str.lower, actual)
        ordinal = "files._ordinal::BIGINT" if is_joined else _ordinal([file.ordinal for file in leaf.files])
        record = f"data.{mark}" if mark else f"({ordinal} << {ROW_BITS}) + data.file_row_number"
        cells = [
            record if marks.get(each.id) == RECORD else self._column(each, leaf, actual, dialect)
            for each in leaf.columns
        ]
        values = [f"{cell} AS {column_name(each)}" for cell, each in zip(cells, leaf.columns, strict=True)]
        join = self._joined_files(leaf, paths, dialect) if is_joined else ""
        left = f" WHERE data.{mark} >= 0" if mark else ""
        return f"SELECT {', '.join(values) or '1 AS nothing'} FROM {source} AS data{join}{left}"

    def require_calendar(self, leaf: Relation) -> None:
        """Refuse days and times that Spark reads as others than the files hold.

        Raises:
            NotExact: They are of the calendar before 1582.
        """
        paths = [self._path(each.uri) for each in leaf.files]
        own = [
            each for each in leaf.columns if each.name not in leaf.partitioned and each.id not in dict(leaf.metadata)
        ]
        key = (tuple(each.name for each in own), leaf.files)
        if key not in self._calendars:

            def facts() -> list[tuple[str, str, str]]:
                listing = ", ".join(map(_text, paths))
                wanted = ", ".join(f"{_text(key)}::BLOB" for key in FACTS)
                text = f"SELECT file_name, decode(key), decode(value) FROM parquet_kv_metadata([{listing}])"
                return list(self._run(f"{text} WHERE key IN ({wanted})", lambda made: made.fetchall()))

            self._calendars[key] = shifted_columns(own, paths, self.session, facts)
        if self._calendars[key]:
            raise NotExact(f"days or times before 1582 in the old calendar, in column {self._calendars[key][0]}")

    def _live_rows(self, leaf: Relation) -> str:
        """The rows of files of which some are deleted, or whose columns have other names."""
        import pyarrow as pa

        record = Attribute(max((abs(each.id) for each in leaf.columns), default=0) + 1, RECORD, t.LONG)
        whole = replace(leaf, columns=(*leaf.columns, record), metadata=(*leaf.metadata, (record.id, RECORD)))
        columns = ", ".join(f"live.{column_name(each)}" for each in leaf.columns) or "1 AS nothing"
        text = f"SELECT {columns} FROM ({' UNION ALL '.join(map(self.view, plain_parts(whole)))}) AS live"
        gone = deleted_records(leaf)
        if not len(gone):
            return text
        name = f"deleted_{next(self._numbers)}"
        self.connection.register(f"{name}_given", pa.table({"record": gone}))
        self._run(f"CREATE TEMP TABLE {name} AS SELECT record FROM {name}_given", lambda made: made.fetchone())
        self.connection.unregister(f"{name}_given")
        return f"{text} ANTI JOIN {name} ON live.{column_name(record)} = {name}.record"

    def _types_in(self, source: str) -> dict[str, str]:
        """The columns of files, with their types."""
        described = self._run(f"DESCRIBE SELECT * FROM {source}", lambda made: made.fetchall())
        return {name: kind for name, kind, *_ in described}

    def _joined_files(self, leaf: Relation, paths: list[str], dialect: DuckDialect) -> str:
        """A join of rows with the ordinal and the partition of their file."""
        files = ", ".join(self._file(leaf, i, path, dialect) for i, path in enumerate(paths))
        names = ", ".join(["_path", "_ordinal", *(f"_partition_{i}" for i in range(len(leaf.partitioned)))])
        return f" JOIN (VALUES {files}) AS files ({names}) ON data._file = files._path"

    def _path(self, uri: str) -> str:
        path = local_path(uri)
        if path is None:
            raise NotExact("files that are not on this machine")
        return str(path)

    def _file(self, leaf: Relation, number: int, path: str, dialect: DuckDialect) -> str:
        kinds = {each.name: each.type for each in leaf.columns}
        file = leaf.files[number]
        values = [
            dialect.literal(Literal(value, kinds.get(name, t.STRING)))
            for name, value in zip(leaf.partitioned, file.partition, strict=True)
        ]
        return f"({', '.join([_text(path), str(file.ordinal), *values])})"

    def _column(self, column: Attribute, leaf: Relation, actual: dict[str, str], dialect: DuckDialect) -> str:
        if column.id in dict(leaf.metadata):
            raise NotExact("a column of a relation that is no data")
        if column.name in leaf.partitioned:
            return f"files._partition_{leaf.partitioned.index(column.name)}"
        kind = dialect.type(column.type)
        if column.name not in actual:
            if column.name.lower() in {name.lower() for name in actual}:
                raise NotExact(f"column {column.name} in another case in the files")
            return f"CAST(NULL AS {kind})"
        own = f"data.{quoted_name(column.name)}"
        return own if actual[column.name] == kind else f"CAST({own} AS {kind})"


def run(plan: Plan, threads: int | None = None) -> pyarrow.Table:
    """Rebuild a plan and run it.

    Raises:
        NotExact: DuckDB does not give what Spark gives.
    """
    return DuckExecutor(plan.session, threads).arrow(plan.root)


def column_name(column: Attribute) -> str:
    """A column's name in a statement."""
    return f"c{column.id}" if column.id >= 0 else f"c_{-column.id}"


def _no_rows(leaf: Relation, dialect: DuckDialect) -> str:
    """A leaf without files."""
    empty = [f"{dialect.literal(Literal(None, each.type))} AS {column_name(each)}" for each in leaf.columns]
    return f"SELECT {', '.join(empty) or '1 AS nothing'} WHERE FALSE"


def _ordinal(ordinals: list[int]) -> str:
    """The ordinal of a row's file, from its number in the list of files that are read."""
    first = ordinals[0]
    if ordinals == [*range(first, first + len(ordinals))]:
        return f"(data.{_FILE_INDEX}::BIGINT + {first})"
    return f"[{', '.join(map(str, ordinals))}][data.{_FILE_INDEX}::BIGINT + 1]::BIGINT"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
