"""Rows of inputs that one evaluation read, kept for the next ones: a trace looks for the same rows at every step.

Rows are found by values or by their places, with the columns that the plan reads; a step that needs no others, and
rows that are among these, reads no file. Rows that are shown are read with all their columns by their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from govtool.model.token import FILE_BITS, ROW_BITS
from govtool.records.execute.duckdb import RECORD, DuckExecutor, column_name
from govtool.records.execute.inputs import local_path
from govtool.records.parquet.cut import CutPiece, PieceFiles
from govtool.records.parquet.file_cut import CutSource, Dictionaries
from govtool.records.parquet.marks import MARK
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute
from govtool.records.plan.nodes import Relation
from govtool.records.plan.types import LONG, Struct, Type
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.statement import KEPT

if TYPE_CHECKING:
    import numpy as np

MAX_ROWS = 1_000_000
"""The most rows that are kept of one search; more are read by the plan itself."""
MAX_CELLS = 4_000_000
"""The most cells of one search: of wide rows fewer are kept."""
MAX_TABLES = 8
"""Searches that are remembered."""
_LISTED = 256
"""Up to so many rows of a file are written into the statement."""
_COMPARED = 1_000
"""Up to so many values are compared here, and not by a statement."""
_PLAIN = (t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.STRING)
_PROBED = 4
"""Of so many files the first is searched alone: where it has many of the rows, the others have too many."""
_SKEW = 4
"""Times the rows that a file would have of the bound, if all had the same."""
_APART = 64
"""Up to so many files are read each by a statement of its own, which skips what is between the rows."""
Places = Mapping[int, "np.ndarray[Any, Any]"]
"""Rows by the ordinal of their file, ascending."""
Layout = tuple[tuple[tuple[str, ...], bytes], ...]
"""How a file was cut: columns and schema of each piece."""
Keys = Mapping[str, Attribute]
"""Names of columns of the files, each with the column of the values that it has to equal."""


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Rows of some files in a table.

    Attributes:
        table: Its name; the id of a row is in ``record``.
        files: The files.
        columns: The table's columns, by name and type of the files' column.
        names: The columns by which the rows were looked for; empty: rows were read by their places.
        values: The table of the values that they were looked for by, its columns in the order of ``names``.
        few: These values, where they are few.
        records: ``[rows] int64``, ids of the rows, ascending.
    """

    table: str
    files: tuple[Any, ...]
    columns: Mapping[tuple[str, Type], str]
    names: tuple[str, ...]
    values: str
    records: np.ndarray[Any, Any]
    few: frozenset[tuple[Any, ...]] | None = None

    def has_columns_of(self, leaf: Relation) -> bool:
        """Return True if a leaf's rows can be read from here."""
        return self.files == leaf.files and all((c.name, c.type) in self.columns for c in data_columns(leaf))


@dataclass(slots=True)
class RowsRead:
    """The rows that were read of inputs, in an executor's connection.

    Attributes:
        base: The executor.
    """

    base: DuckExecutor
    _known: list[ReadRows] = field(default_factory=list)
    _numbers: Any = field(default_factory=lambda: count(1))
    _dictionaries: Dictionaries = field(default_factory=Dictionaries)

    def forget_oldest(self) -> None:
        """Drop the oldest tables beyond the bound; views of them are of no use after that."""
        while len(self._known) > MAX_TABLES or sum(len(each.records) for each in self._known) > 2 * MAX_ROWS:
            gone = self._known.pop(0)
            self.base.connection.execute(f"DROP TABLE {gone.table}")
            if gone.values:
                self.base.connection.execute(f"DROP TABLE {gone.values}")

    def of_values(self, leaf: Relation, keys: Keys, values: Relation) -> ReadRows | None:
        """Rows that were looked for by these values, or by others that these are among."""
        wanted: dict[tuple[str, ...], frozenset[tuple[Any, ...]] | None] = {}
        for each in reversed(self._known):
            if each.names and each.has_columns_of(leaf) and set(each.names) <= keys.keys():
                if each.names not in wanted:
                    wanted[each.names] = self._few({name: keys[name] for name in each.names}, values)
                few = wanted[each.names]
                if few is not None and each.few is not None:
                    if few <= each.few:
                        return each
                elif self._is_among(each, keys, values):
                    return each
        return None

    def _is_among(self, known: ReadRows, keys: Keys, values: Relation) -> bool:
        own = ", ".join(f"{column_name(keys[name])} AS k{n}" for n, name in enumerate(known.names))
        same = " AND ".join(f"k.k{n} IS NOT DISTINCT FROM v.k{n}" for n in range(len(known.names)))
        text = f"SELECT 1 FROM (SELECT {own} FROM {values.dataset}) AS k ANTI JOIN {known.values} AS v ON {same}"
        return not self.base.connection.execute(f"{text} LIMIT 1").fetchall()

    def _few(self, keys: Keys, values: Relation) -> frozenset[tuple[Any, ...]] | None:
        """The combinations of values, where they are few and of types that Python compares as the engine does."""
        count = self.base.kept_rows(values)
        if count is None or count > _COMPARED or any(each.type not in _PLAIN for each in keys.values()):
            return None
        columns = ", ".join(column_name(keys[name]) for name in sorted(keys))
        return frozenset(self.base.connection.execute(f"SELECT {columns} FROM {values.dataset}").fetchall())

    def of_records(self, leaf: Relation, records: np.ndarray[Any, Any]) -> ReadRows | None:
        """Rows that were read, and that have all of these ids.

        Args:
            leaf: The input.
            records: ``[n] int64``.
        """
        for each in self._known:
            if each.has_columns_of(leaf) and _are_among(records, each.records):
                return each
        return None

    def at_places(
        self, leaf: Relation, places: Places, keys: Keys | None = None, values: Relation | None = None
    ) -> ReadRows:
        """Rows that are read by their places.

        Args:
            leaf: The input.
            places: The rows.
            keys: The columns by which they were found, if all rows with some values are among them.
            values: These values.
        """
        with TemporaryDirectory(prefix="govtool-pages-") as folder:
            text = self._text_of_places(_with_record(leaf), places, Path(folder))
            return self._kept(leaf, f"SELECT * FROM ({text})", keys or {}, values)

    def scanned(self, leaf: Relation, keys: Keys, values: Relation, condition: str) -> ReadRows | None:
        """Read the rows that meet a condition; None where there are too many.

        The condition lets all rows with the wanted values through, and perhaps others.

        Args:
            leaf: The input.
            keys: The columns by which rows are looked for.
            values: The values.
            condition: What follows FROM and the rows, as ``rows``: a join or a WHERE.
        """
        source = self.base.view(_with_record(leaf))
        most = min(MAX_ROWS, MAX_CELLS // max(1, len(data_columns(leaf))))
        found = self._kept(leaf, f"SELECT rows.* FROM ({source}) AS rows {condition} LIMIT {most + 1}", keys)
        if len(found.records) > most:
            self.base.connection.execute(f"DROP TABLE {found.table}")
            return None
        return self._looked_for(found, keys, values)

    def places(self, leaf: Relation, columns: Sequence[Attribute], condition: str, most: int) -> Places | None:
        """The places of rows that meet a condition on some columns; None where there are more than a bound.

        Args:
            leaf: The input.
            columns: The columns.
            condition: As that of `scanned`.
            most: The most rows.
        """
        import numpy as np

        probed = 1 if len(leaf.files) >= _PROBED else 0
        first, rest = (replace(leaf, files=files) for files in (leaf.files[:probed], leaf.files[probed:]))
        found = self._records_of(first, columns, condition, most) if probed else np.empty(0, np.int64)
        if probed and len(found) > _SKEW * most / len(leaf.files):
            return None
        found = np.concatenate([found, self._records_of(rest, columns, condition, most)])
        return None if len(found) > most else by_file(found.tolist())

    def _records_of(
        self, leaf: Relation, columns: Sequence[Attribute], condition: str, most: int
    ) -> np.ndarray[Any, Any]:
        """The ids of rows that meet a condition, one more than a bound at most."""
        own = _with_record(replace(leaf, columns=tuple(columns), metadata=()))
        record = column_name(own.columns[-1])
        text = f"SELECT rows.{record} AS v FROM ({self.base.view(own)}) AS rows {condition} LIMIT {most + 1}"
        return self.ids_of(text).astype("int64")

    def leaf(self, leaf: Relation, rows: ReadRows) -> Relation:
        """A leaf that reads kept rows in place of its files."""
        marks = dict(leaf.metadata)
        values = [
            f"{'record' if column.id in marks else rows.columns[column.name, column.type]} AS {column_name(column)}"
            for column in leaf.columns
        ]
        name = f"kept_narrowed_{next(self._numbers)}"
        text = f"SELECT {', '.join(values) or '1 AS nothing'} FROM {rows.table}"
        self.base.connection.execute(f"CREATE TEMP VIEW {name} AS {text}")
        return Relation(0, name, KEPT, (), leaf.columns, Struct(()))

    def ids_of(self, text: str) -> np.ndarray[Any, Any]:
        """The whole numbers ``v`` of a statement."""
        import numpy as np

        return np.asarray(self.base.connection.execute(text).fetchnumpy()["v"])

    def _kept(self, leaf: Relation, text: str, keys: Keys, values: Relation | None = None) -> ReadRows:
        import numpy as np

        columns = data_columns(leaf)
        named = {(column.name, column.type): f"v{n}" for n, column in enumerate(columns)}
        parts = [f"{column_name(column)} AS v{n}" for n, column in enumerate(columns)]
        record = column_name(_record_of(leaf))
        table = f"kept_read_{next(self._numbers)}"
        made = f"SELECT {', '.join([*parts, f'{record} AS record'])} FROM ({text})"
        self.base.connection.execute(f"CREATE TEMP TABLE {table} AS {made}")
        records = np.sort(self.ids_of(f"SELECT record AS v FROM {table}").astype(np.int64))
        found = ReadRows(table, leaf.files, named, (), "", records)
        if values is not None:
            return self._looked_for(found, keys, values)
        if not keys:
            self._known.append(found)
        return found

    def _looked_for(self, found: ReadRows, keys: Keys, values: Relation) -> ReadRows:
        """Remember rows with a copy of the values that they were looked for by."""
        names = tuple(sorted(keys))
        copy = f"{found.table}_values"
        columns = ", ".join(f"{column_name(keys[name])} AS k{n}" for n, name in enumerate(names))
        self.base.connection.execute(f"CREATE TEMP TABLE {copy} AS SELECT DISTINCT {columns} FROM {values.dataset}")
        found = replace(found, names=names, values=copy, few=self._few(keys, values))
        self._known.append(found)
        return found

    def _text_of_places(self, leaf: Relation, places: Places, folder: Path) -> str:
        narrow = replace(leaf, files=tuple(each for each in leaf.files if each.ordinal in places))
        if not narrow.files:
            return self.base.view(narrow)
        apart = len(narrow.files) <= _APART
        given = "" if apart and all(len(rows) <= _LISTED for rows in places.values()) else self._given(places)
        if not apart:
            record = column_name(leaf.columns[-1])
            ids = f"(SELECT (file::BIGINT << {ROW_BITS}) + place AS record FROM {given}) AS places"
            return f"SELECT * FROM ({self.base.view(narrow)}) AS rows SEMI JOIN {ids} ON rows.{record} = places.record"
        self.base.require_calendar(leaf)
        pieces, sources = PieceFiles(folder), {}
        for file in narrow.files:
            source = self._source(leaf, file, places[file.ordinal])
            if source is not None:
                sources[file.ordinal] = source
        cut = dict(zip(sources, pieces.add_all([*sources.values()], self._dictionaries), strict=True))
        texts = [
            self._text_of_file(replace(leaf, files=(file,)), places[file.ordinal], given)
            for file in narrow.files
            if not cut.get(file.ordinal)
        ]
        by_partition = {file.partition: file for file in narrow.files}
        layouts: dict[Layout, list[tuple[Any, list[CutPiece]]]] = {}
        for partition, own in pieces.finish():
            layouts.setdefault(tuple((p.columns, p.schema) for p in own), []).append((by_partition[partition], own))
        texts += [self._text_of_pieces(leaf, cut_files) for cut_files in layouts.values()]
        return " UNION ALL ".join(texts)

    def _text_of_file(self, leaf: Relation, rows: np.ndarray[Any, Any], given: str) -> str:
        """A statement that reads rows of one file, which is not cut."""
        (file,) = leaf.files
        if len(rows) <= _LISTED:
            listed = ", ".join(map(str, rows.tolist()))
            return f"({self.base.view(leaf)} WHERE data.file_row_number IN ({listed}))"
        own = f"(SELECT place FROM {given} WHERE file = {file.ordinal}) AS places"
        return f"({self.base.view(leaf)} SEMI JOIN {own} ON data.file_row_number = places.place)"

    def _source(self, leaf: Relation, file: Any, rows: np.ndarray[Any, Any]) -> CutSource | None:
        """The rows that are cut out of a file, marked by their ids; None where that is not worth it."""
        path = local_path(file.uri)
        names = {column.name for column in data_columns(leaf)} - set(leaf.partitioned)
        if not names or path is None or len(rows) > _LISTED:
            return None
        return CutSource(path, names, rows, file.ordinal << ROW_BITS, file.partition)

    def _text_of_pieces(self, leaf: Relation, cut_files: Sequence[tuple[Any, list[CutPiece]]]) -> str:
        """A statement that reads pieces that were cut alike; its first part has the values of partitions as well."""
        record = column_name(leaf.columns[-1])
        parts = []
        for number, piece in enumerate(cut_files[0][1]):
            own = {*piece.columns, *(leaf.partitioned if number == 0 else ())}
            files = tuple(replace(file, uri=pieces[number].path.as_uri()) for file, pieces in cut_files)
            columns = tuple(column for column in data_columns(leaf) if column.name in own)
            narrow = replace(leaf, files=files, columns=(*columns, leaf.columns[-1]))
            parts.append(f"({self.base.view(narrow, MARK)}) AS piece_{number}")
        joined = [f" JOIN {part} ON piece_{n}.{record} = piece_0.{record}" for n, part in enumerate(parts[1:], 1)]
        names = [*map(column_name, data_columns(leaf)), f"piece_0.{record}"]
        return f"(SELECT {', '.join(names)} FROM {parts[0]}{''.join(joined)})"

    def _given(self, places: Places) -> str:
        import numpy as np
        import pyarrow as pa

        files = np.concatenate([np.full(len(rows), file, np.int32) for file, rows in places.items()])
        rows = np.concatenate(list(places.values()))
        name = f"kept_places_{next(self._numbers)}"
        self.base.connection.register(f"{name}_given", pa.table({"file": files, "place": rows}))
        self.base.connection.execute(f"CREATE TEMP TABLE {name} AS SELECT file, place FROM {name}_given")
        self.base.connection.unregister(f"{name}_given")
        return name


def data_columns(leaf: Relation) -> list[Attribute]:
    """The columns of a leaf that are data.

    Raises:
        NotExact: It has others than the record's id.
    """
    marks = dict(leaf.metadata)
    if any(marks.get(column.id, RECORD) != RECORD for column in leaf.columns):
        raise NotExact("a column of a relation that is no data")
    return [column for column in leaf.columns if column.id not in marks]


def by_file(records: Iterable[int]) -> Places:
    """The places of records."""
    import numpy as np

    ids = np.array(sorted(records), np.int64)
    files = ids >> ROW_BITS & (1 << FILE_BITS) - 1
    return {file: ids[files == file] & (1 << ROW_BITS) - 1 for file in sorted({*files.tolist()})}


def _are_among(records: np.ndarray[Any, Any], others: np.ndarray[Any, Any]) -> bool:
    """Return whether some ids are among others, which are ascending."""
    import numpy as np

    if not len(others):
        return not len(records)
    at = np.minimum(np.searchsorted(others, records), len(others) - 1)
    return bool((others[at] == records).all())


def _record_of(leaf: Relation) -> Attribute:
    return Attribute(max((column.id for column in leaf.columns), default=0) + 1, "record", LONG)


def _with_record(leaf: Relation) -> Relation:
    """A leaf with its data columns and the ids of its rows."""
    record = _record_of(leaf)
    return replace(leaf, columns=(*data_columns(leaf), record), metadata=((record.id, RECORD),))
