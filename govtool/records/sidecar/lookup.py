"""Rows looked up by key: semijoins of an input with known values, answered by sidecars before files are read.

Only the leaf is narrowed; the semijoin itself stays, so that every row that a sidecar points at is compared as the plan
compares it. Joins with record ids are narrowed in the same way, and need no sidecar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from govtool.model.token import FILE_BITS, ROW_BITS
from govtool.records.execute.duckdb import RECORD, DuckExecutor, column_name
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call
from govtool.records.plan.nodes import Join, LocalRows, Relation, outputs
from govtool.records.plan.tree import Node, rewrite_nodes, walk_nodes
from govtool.records.plan.types import LONG, Struct
from govtool.records.sidecar.folder import SidecarFolder
from govtool.records.sidecar.keyfile import KeySet
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.statement import KEPT
from govtool.records.trace.segment import conjuncts

if TYPE_CHECKING:
    import numpy as np

MAX_LOOKUPS = 100_000
"""The most values that are looked up; a scan is faster for more."""
MAX_FOUND = 200_000
"""The most rows that are read one by one."""
_LISTED = 256
"""Up to so many rows are written into the statement, so that the reader skips others."""
_REMEMBERED = 5000
"""Up to so many rows are read with all their columns, once."""
_CONSTANTS = 500
"""Up to so many values are looked for as constants."""
_WRITTEN = (t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.STRING)
"""Types whose values are written as constants."""
HASH = "(hash({columns}) & 4294967295)"
_HASHED = frozenset(
    ["boolean", "byte", "short", "integer", "long", "string", "binary", "date", "timestamp", "timestamp_ntz"]
)  # floats are left out: 0.0 equals -0.0


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """A semijoin of a leaf with values.

    Attributes:
        leaf: What is read.
        values: The values.
        pairs: A column of the leaf, by id, and the column of the values that it has to equal.
    """

    leaf: Relation
    values: Node
    pairs: Mapping[int, Attribute]

    @property
    def record(self) -> Attribute | None:
        """The column of the values that holds record ids, if rows are chosen by these."""
        marks = dict(self.leaf.metadata)
        return next((other for own, other in self.pairs.items() if marks.get(own) == RECORD), None)

    def keys(self) -> dict[str, tuple[Attribute, Attribute]]:
        """By name, the columns of the files that can be looked up, each with the column of the values."""
        found = {}
        for column in self.leaf.columns:
            other = self.pairs.get(column.id)
            if other is not None and _is_hashed(column, self.leaf) and t.same(column.type, other.type):
                found[column.name] = (column, other)
        return found


@dataclass(slots=True)
class SidecarUse:
    """Sidecars of one opened write: where they are, and which would have helped.

    Attributes:
        folder: Where they are; None: none is used.
        missed: The leaves that were scanned for values, with the columns.
        used: How many lookups were answered.
    """

    folder: SidecarFolder | None = None
    missed: dict[tuple[Any, ...], tuple[Relation, tuple[str, ...]]] = field(default_factory=dict)
    used: int = 0

    def miss(self, leaf: Relation, names: tuple[str, ...]) -> None:
        """Remember what was looked for in vain."""
        self.missed[(tuple(each.uri for each in leaf.files), names)] = (leaf, names)


class SidecarExecutor:
    """Evaluates plans in DuckDB; of inputs that are semijoined with few values it reads the rows that may match.

    Args:
        base: Evaluates.
        use: The sidecars.
    """

    def __init__(self, base: DuckExecutor, use: SidecarUse) -> None:
        self.base = base
        self.use = use
        self._remembered: dict[Any, tuple[frozenset[int], str]] = {}
        self._scans: dict[Any, list[tuple[dict[str, frozenset[str]], frozenset[int]]]] = {}
        self._numbers = count(1)

    def keep(self, node: Node) -> Relation:
        """Evaluate a plan once; return a leaf that reads its rows."""
        return self.base.keep(self.narrowed(node))

    def fetch(self, node: Node) -> list[tuple[Any, ...]]:
        """The rows of a plan."""
        return self.base.fetch(self.narrowed(node))

    def arrow(self, node: Node) -> Any:
        """The rows of a plan as a pyarrow table."""
        return self.base.arrow(self.narrowed(node))

    def narrowed(self, node: Node) -> Node:
        """A plan whose leaves are narrowed to rows that may match."""
        return rewrite_nodes(node, self._narrowed)

    def _narrowed(self, node: Node) -> Node:
        import duckdb

        found = lookup_of(node)
        if found is None or not isinstance(node, Join) or not _is_cheap(found.values):
            return node
        try:
            return self._looked_up(node, found)
        except (duckdb.Error, NotExact):
            return node  # the plan itself shows whether it can be evaluated

    def _looked_up(self, node: Join, found: KeyLookup) -> Join:
        kept = found.values if isinstance(found.values, Relation) else self.base.keep(found.values)
        if self._scalar(f"SELECT count(*) FROM {kept.dataset}") > MAX_LOOKUPS:
            return replace(node, right=kept)
        rows = self._by_id(found, kept) if found.record is not None else self._by_key(found, kept)
        return (
            replace(node, right=kept) if rows is None else replace(node, left=self._leaf(found.leaf, rows), right=kept)
        )

    def _by_id(self, found: KeyLookup, kept: Relation) -> dict[int, np.ndarray[Any, Any]] | None:
        import numpy as np

        assert found.record is not None
        name = column_name(found.record)
        ids = np.unique(self._numbers_of(f"SELECT {name}::BIGINT AS v FROM {kept.dataset} WHERE {name} IS NOT NULL"))
        if len(ids) > MAX_FOUND:
            return None
        return _by_file(frozenset(ids.tolist()))

    def _by_key(self, found: KeyLookup, kept: Relation) -> dict[int, np.ndarray[Any, Any]] | None:
        keys = found.keys() if self.use.folder is not None else {}
        for names in _choices(tuple(sorted(keys))):
            rows = self._candidates(found.leaf, {name: keys[name] for name in names}, kept)
            if rows is not None:
                self.use.used += 1
                return None if sum(map(len, rows.values())) > MAX_FOUND else rows
        if keys:
            self.use.miss(found.leaf, tuple(sorted(keys)))
        return self._scanned_rows(found, kept)

    def _scanned_rows(self, found: KeyLookup, kept: Relation) -> dict[int, np.ndarray[Any, Any]] | None:
        """The rows that may have one of a few values, found by one scan for constants.

        An engine reads the other columns only of rows that meet constants, and the rows answer the next steps, too.
        None: there are many values, or many rows.
        """
        conditions = self._constants(found, kept)
        if not conditions:
            return None
        leaf, columns = found.leaf, data_columns(found.leaf)
        key = _content(leaf, columns)
        for names, records in self._scans.get(key, ()):
            if all(name in conditions and conditions[name] <= values for name, values in names.items()):
                return _by_file(records)
        table = f"kept_scanned_{next(self._numbers)}"
        by_name = {column.name: column_name(column) for column in columns}
        where = " AND ".join(f"{by_name[name]} IN ({', '.join(sorted(conditions[name]))})" for name in conditions)
        self._read_rows(leaf, table, self.base.view, f"WHERE {where} LIMIT {_REMEMBERED + 1}")
        records = frozenset(self._numbers_of(f"SELECT record AS v FROM {table}").tolist())
        if len(records) > _REMEMBERED:
            return None
        self._scans.setdefault(key, []).append((conditions, records))
        self._remembered[key] = records, table
        return _by_file(records)

    def _constants(self, found: KeyLookup, kept: Relation) -> dict[str, frozenset[str]]:
        """By column, the few values that it has to have, as they are written in SQL."""
        keys = {name: other for name, (own, other) in found.keys().items() if own.type in _WRITTEN}
        if not keys or self._scalar(f"SELECT count(*) FROM {kept.dataset}") > _CONSTANTS:
            return {}
        names = ", ".join(column_name(other) for other in keys.values())
        rows = self.base.connection.execute(f"SELECT {names} FROM {kept.dataset}").fetchall()
        values = {name: {row[at] for row in rows} for at, name in enumerate(keys)}
        return {
            name: frozenset(map(_written, own))
            for name, own in values.items()
            if own and None not in own and not any("\x00" in str(value) for value in own)
        }

    def _candidates(
        self, leaf: Relation, keys: dict[str, tuple[Attribute, Attribute]], kept: Relation
    ) -> dict[int, np.ndarray[Any, Any]] | None:
        """The rows that may match, by file; None where a file has no sidecar."""
        import numpy as np

        assert self.use.folder is not None
        key_set = key_set_of(self.base, [own for own, _ in keys.values()])
        opened = [self.use.folder.open(file.uri, key_set) for file in leaf.files]
        if any(each is None for each in opened):
            return None
        columns = ", ".join(column_name(keys[name][1]) for name, _ in key_set.columns)
        text = f"SELECT DISTINCT {HASH.format(columns=columns)}::UINTEGER AS v FROM {kept.dataset}"
        wanted = np.sort(self._numbers_of(text).astype(np.uint32))
        rows, left = {}, MAX_FOUND
        for file, sidecar in zip(leaf.files, opened, strict=True):
            found = sidecar.found(wanted, left) if sidecar is not None else None
            if found is None:  # so many that a scan is faster
                return {file.ordinal: np.empty(MAX_FOUND + 1, np.int8)}
            if len(found):
                rows[file.ordinal] = found
                left -= len(found)
        return rows

    def _leaf(self, leaf: Relation, rows: dict[int, np.ndarray[Any, Any]]) -> Relation:
        """The rows of a leaf at given places, as a view."""
        name = f"kept_narrowed_{next(self._numbers)}"
        if sum(map(len, rows.values())) > _REMEMBERED:
            text = self._at_places(leaf, rows, name)
        else:
            text = self._remembered_rows(leaf, rows, name)
        self.base.connection.execute(f"CREATE TEMP VIEW {name} AS {text}")
        return Relation(0, name, KEPT, (), leaf.columns, Struct(()))

    def _at_places(self, leaf: Relation, rows: dict[int, np.ndarray[Any, Any]], name: str) -> str:
        """A statement that reads rows from their files."""
        import numpy as np
        import pyarrow as pa

        files = np.concatenate([np.full(len(rows[file]), file, np.int32) for file in rows] or [np.empty(0, np.int32)])
        places = np.concatenate(list(rows.values()) or [np.empty(0, np.int64)])
        connection = self.base.connection
        connection.register(f"{name}_given", pa.table({"file": files, "place": places}))
        connection.execute(f"CREATE TEMP TABLE {name}_places AS SELECT file, place FROM {name}_given")
        connection.unregister(f"{name}_given")
        narrow = replace(leaf, files=tuple(each for each in leaf.files if each.ordinal in rows))
        text = self.base.view(narrow)
        if narrow.files:
            text += f" SEMI JOIN {name}_places AS places ON files._ordinal = places.file"
            text += " AND data.file_row_number = places.place"
            if len(places) <= _LISTED:
                text += f" WHERE data.file_row_number IN ({', '.join(str(n) for n in np.unique(places))})"
        return text

    def _remembered_rows(self, leaf: Relation, rows: dict[int, np.ndarray[Any, Any]], name: str) -> str:
        """A statement for a few rows: they are read once, and the next steps of the trace find them there."""
        records = {file << ROW_BITS | int(row) for file, found in rows.items() for row in found}
        marks = dict(leaf.metadata)
        columns = [column for column in leaf.columns if column.id not in marks]
        key = (leaf.files, tuple((column.name, column.type) for column in columns))
        known, table = self._remembered.get(key, (frozenset(), ""))
        if not table or not records <= known:
            record = Attribute(max(column.id for column in leaf.columns) + 1, "record", LONG)
            own = replace(leaf, columns=(*columns, record), metadata=((record.id, RECORD),))
            values = [f"{column_name(column)} AS v{number}" for number, column in enumerate(columns)]
            made = f"{name}_rows"
            text = f"SELECT {', '.join([*values, f'{column_name(record)} AS record'])}"
            self.base.connection.execute(
                f"CREATE TEMP TABLE {made} AS {text} FROM ({self._at_places(own, rows, name)})"
            )
            self._remembered[key] = known, table = frozenset(records), made
        values = [f"v{number} AS {column_name(column)}" for number, column in enumerate(columns)]
        values += [f"record AS {column_name(column)}" for column in leaf.columns if column.id in marks]
        text = f"SELECT {', '.join(values)} FROM {table}"
        return (
            text if records == known else f"{text} WHERE record IN ({', '.join(map(str, sorted(records))) or 'NULL'})"
        )

    def _read_rows(self, leaf: Relation, table: str, source: Callable[[Relation], str], more: str = "") -> None:
        """Keep rows of a leaf with all their columns, in its order, and their record ids."""
        columns = data_columns(leaf)
        record = Attribute(max((column.id for column in leaf.columns), default=0) + 1, "record", LONG)
        own = replace(leaf, columns=(*columns, record), metadata=((record.id, RECORD),))
        values = [f"{column_name(column)} AS v{number}" for number, column in enumerate(columns)]
        text = f"SELECT {', '.join([*values, f'{column_name(record)} AS record'])} FROM ({source(own)}) {more}"
        self.base.connection.execute(f"CREATE TEMP TABLE {table} AS {text}")

    def _scalar(self, text: str) -> int:
        return int(self.base.connection.execute(text).fetchall()[0][0])

    def _numbers_of(self, text: str) -> np.ndarray[Any, Any]:
        import numpy as np

        return np.asarray(self.base.connection.execute(text).fetchnumpy()["v"])


def data_columns(leaf: Relation) -> list[Attribute]:
    """The columns of a leaf that are data."""
    marks = dict(leaf.metadata)
    return [column for column in leaf.columns if column.id not in marks]


def _content(leaf: Relation, columns: list[Attribute]) -> tuple[Any, ...]:
    """Return a key of what a leaf reads, whatever the ids of its columns."""
    return (leaf.files, tuple((column.name, column.type) for column in columns))


def _by_file(records: frozenset[int]) -> dict[int, np.ndarray[Any, Any]]:
    import numpy as np

    ids = np.array(sorted(records), np.int64)
    files = ids >> ROW_BITS & (1 << FILE_BITS) - 1
    return {int(file): ids[files == file] & (1 << ROW_BITS) - 1 for file in np.unique(files)}


def _written(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def lookup_of(node: Node) -> KeyLookup | None:
    """The semijoin of Parquet files with values by equality of columns, if an operator is one."""
    if not isinstance(node, Join) or node.kind != "left_semi" or not isinstance(node.left, Relation):
        return None
    leaf = node.left
    if leaf.format != "parquet" or not leaf.files:
        return None
    own = {column.id for column in leaf.columns}
    others = {column.id: column for column in outputs(node.right)}
    pairs: dict[int, Attribute] = {}
    for part in conjuncts(node.condition):
        if isinstance(part, Call) and part.name in ("=", "<=>"):
            for one, other in (part.arguments, part.arguments[::-1]):
                if isinstance(one, Attribute) and isinstance(other, Attribute) and one.id in own and other.id in others:
                    pairs.setdefault(one.id, others[other.id])
    return KeyLookup(leaf, node.right, pairs) if pairs else None


def key_set_of(executor: DuckExecutor, columns: list[Attribute]) -> KeySet:
    """The key set of columns of a leaf."""
    import duckdb

    from govtool.records.sql.duckdb import DuckDialect

    dialect = DuckDialect(executor.session)
    named = sorted((column.name, dialect.type(column.type)) for column in columns)
    return KeySet(tuple(named), f"duckdb {duckdb.__version__}")


def _is_hashed(column: Attribute, leaf: Relation) -> bool:
    """Return whether a column is one of the files whose equal values have equal hashes."""
    names = [each.name for each in leaf.schema.fields]
    if column.name in leaf.partitioned or names.count(column.name) != 1:
        return False
    kind = column.type
    return isinstance(kind, t.Decimal) or (isinstance(kind, t.Scalar) and kind.name in _HASHED)


def _is_cheap(node: Node) -> bool:
    """Return whether values are there already, so that to evaluate them reads no file."""
    leaves = [each for each in walk_nodes(node) if not each.nodes()]
    return all(isinstance(each, LocalRows) or (isinstance(each, Relation) and each.format == KEPT) for each in leaves)


def _choices(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The sets of columns that may have a sidecar: all of them, then one at a time."""
    if names:
        yield names
    if len(names) > 1:
        yield from ((name,) for name in names)
