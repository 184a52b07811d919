"""Rows looked up by key: semijoins of an input with known values, answered by sidecars before files are read.

Only the leaf is narrowed; the semijoin itself stays, so that every row that a sidecar points at is compared as the plan
compares it. Joins with record ids are narrowed in the same way, and need no sidecar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from govtool.records.execute.duckdb import RECORD, DuckExecutor, column_name
from govtool.records.plan import types as t
from govtool.records.plan.expressions import Attribute, Call
from govtool.records.plan.nodes import Join, LocalRows, Relation, outputs
from govtool.records.plan.pruned import pruned
from govtool.records.plan.tree import Node, rewrite_nodes, walk_nodes
from govtool.records.sidecar.folder import SidecarFolder
from govtool.records.sidecar.keyfile import KeySet
from govtool.records.sidecar.rows_read import Places, ReadRows, RowsRead, by_file, data_columns
from govtool.records.sql.dialect import NotExact
from govtool.records.sql.statement import KEPT
from govtool.records.trace.segment import conjuncts

MAX_LOOKUPS = 100_000
"""The most values that are looked up; a scan is faster for more."""
MAX_FOUND = 20_000
"""The most rows that are read by their places."""
_FEW_FOUND = 1_000
"""Up to so many rows a scan reads the one column that finds them, and the rest of them by their places."""
_FEW = 4
"""Up to so many values each, several columns are compared at once: an engine reads the next ones of hardly any row."""
_CONSTANTS = 500
"""Up to so many values are looked for as constants."""
_WRITTEN = (t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.STRING)
"""Types whose values are written as constants."""
Compared = Mapping[str, tuple[Attribute, Attribute]]
"""By name, columns of the files, each with the column of the values that it has to equal."""
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
        self._rows = RowsRead(base)

    def keep(self, node: Node) -> Relation:
        """Evaluate a plan once; return a leaf that reads its rows."""
        return self.base.keep(self.narrowed(node))

    def fetch(self, node: Node) -> list[tuple[Any, ...]]:
        """The rows of a plan."""
        return self.base.fetch(self.narrowed(node))

    def arrow(self, node: Node) -> Any:
        """The rows of a plan as a pyarrow table."""
        return self.base.arrow(self.narrowed(node))

    def kept_rows(self, leaf: Relation) -> int | None:
        """The number of rows of what ``keep`` returned; None of another relation."""
        return self.base.kept_rows(leaf)

    def narrowed(self, node: Node) -> Node:
        """A plan that reads no column in vain, and whose leaves are narrowed to rows that may match."""
        self._rows.forget_oldest()
        return rewrite_nodes(pruned(node), self._narrowed)

    def _narrowed(self, node: Node) -> Node:
        import duckdb

        found = lookup_of(node)
        if found is None or not isinstance(node, Join) or not _is_cheap(found.values):
            return node
        try:
            return self._looked_up(node, found)
        except (duckdb.Error, NotExact, OSError):  # OSError: no room for pages, or a file that is gone
            return node  # the plan itself shows whether it can be evaluated

    def _looked_up(self, node: Join, found: KeyLookup) -> Join:
        kept = found.values if isinstance(found.values, Relation) else self.base.keep(found.values)
        if self._count(kept) > MAX_LOOKUPS:
            return replace(node, right=kept)
        rows = self._by_id(found, kept) if found.record is not None else self._by_key(found, kept)
        return replace(node, left=found.leaf if rows is None else self._rows.leaf(found.leaf, rows), right=kept)

    def _by_id(self, found: KeyLookup, kept: Relation) -> ReadRows | None:
        import numpy as np

        assert found.record is not None
        name = column_name(found.record)
        text = f"SELECT {name}::BIGINT AS v FROM {kept.dataset} WHERE {name} IS NOT NULL"
        ids = np.array(sorted({*self._rows.ids_of(text).tolist()}), np.int64)  # np.unique imports numpy.ma
        known = self._rows.of_records(found.leaf, ids)
        if known is None and len(ids) <= MAX_FOUND:
            known = self._rows.at_places(found.leaf, by_file(ids.tolist()))
        return known

    def _by_key(self, found: KeyLookup, kept: Relation) -> ReadRows | None:
        """The rows that may match: read before, found by a sidecar, or by a scan of the columns that are needed."""
        keys = found.keys()
        values = {name: other for name, (_, other) in keys.items()}
        known = self._rows.of_values(found.leaf, values, kept) if keys else None
        if known is None and keys and self.use.folder is not None:
            known = self._by_sidecar(found.leaf, keys, kept)
        if known is None and keys:
            known = self._by_scan(found, kept)
        return known

    def _by_sidecar(self, leaf: Relation, keys: Compared, kept: Relation) -> ReadRows | None:
        for names in _choices(tuple(sorted(keys))):
            chosen = {name: keys[name] for name in names}
            places = self._candidates(leaf, chosen, kept)
            if places is None:
                continue
            self.use.used += 1
            if sum(map(len, places.values())) > MAX_FOUND:
                return None
            values = {name: other for name, (_, other) in chosen.items()}
            return self._rows.at_places(leaf, places, values, kept)
        self.use.miss(leaf, tuple(sorted(keys)))
        return None

    def _by_scan(self, found: KeyLookup, kept: Relation) -> ReadRows | None:
        """The rows with one of the values: their places first, as few rows are then read by these.

        Few values are constants: an engine reads the other columns only of rows that meet them. Many are a join by
        the one column that tells them apart best; what else has to match is left to the plan.
        """
        keys = found.keys()
        constants = self._constants(keys, kept)
        name = self._telling(keys, kept, constants)
        narrow = [*constants] if constants and max(map(len, constants.values())) <= _FEW else [name]
        if {*narrow} < {column.name for column in data_columns(found.leaf)}:
            condition = self._condition(keys, narrow, constants, kept)
            places = self._rows.places(found.leaf, [keys[each][0] for each in narrow], condition, _FEW_FOUND)
            if places is not None:
                return self._rows.at_places(found.leaf, places, {each: keys[each][1] for each in narrow}, kept)
        names = [*constants] or [name]
        condition = self._condition(keys, names, constants, kept)
        return self._rows.scanned(found.leaf, {each: keys[each][1] for each in names}, kept, condition)

    def _condition(
        self, keys: Compared, names: Sequence[str], constants: Mapping[str, list[str]], kept: Relation
    ) -> str:
        """What follows FROM and ``rows``, so that rows with the values in some columns are left."""
        if constants.keys() >= {*names}:
            return f"WHERE {' AND '.join(_among(keys[name][0], constants[name]) for name in names)}"
        (name,) = names
        return self._joined(*keys[name], kept)

    def _joined(self, own: Attribute, other: Attribute, kept: Relation) -> str:
        same = "=" if self._without_nulls(kept, other) else "IS NOT DISTINCT FROM"
        joined = f"rows.{column_name(own)} {same} v.{column_name(other)}"
        return f"SEMI JOIN (SELECT DISTINCT {column_name(other)} FROM {kept.dataset}) AS v ON {joined}"

    def _constants(self, keys: Compared, kept: Relation) -> dict[str, list[str]]:
        """By column, the few values that it has to have, as they are written in SQL."""
        written = {name: other for name, (own, other) in keys.items() if own.type in _WRITTEN}
        if not written or self._count(kept) > _CONSTANTS:
            return {}
        names = ", ".join(column_name(other) for other in written.values())
        rows = self.base.connection.execute(f"SELECT {names} FROM {kept.dataset}").fetchall()
        values = {name: {row[at] for row in rows} for at, name in enumerate(written)}
        return {
            name: sorted(map(_written, own))
            for name, own in values.items()
            if own and None not in own and not any("\x00" in str(value) for value in own)
        }

    def _telling(self, keys: Compared, kept: Relation, constants: Mapping[str, list[str]]) -> str:
        """The column with the most different values; of several a number, as it is read faster."""
        counts = {
            name: len(constants[name])
            if name in constants
            else self._scalar(f"SELECT count(DISTINCT {column_name(other)}) FROM {kept.dataset}")
            for name, (_, other) in keys.items()
        }
        return max(keys, key=lambda name: (counts[name], keys[name][0].type != t.STRING, name))

    def _without_nulls(self, kept: Relation, column: Attribute) -> bool:
        return not self._scalar(f"SELECT count(*) FROM {kept.dataset} WHERE {column_name(column)} IS NULL")

    def _candidates(self, leaf: Relation, keys: Compared, kept: Relation) -> Places | None:
        """The rows that may match, by file; None where a file has no sidecar."""
        import numpy as np

        assert self.use.folder is not None
        key_set = key_set_of(self.base, [own for own, _ in keys.values()])
        opened = [self.use.folder.open(file.uri, key_set) for file in leaf.files]
        if any(each is None for each in opened):
            return None
        columns = ", ".join(column_name(keys[name][1]) for name, _ in key_set.columns)
        text = f"SELECT DISTINCT {HASH.format(columns=columns)}::UINTEGER AS v FROM {kept.dataset}"
        wanted = np.sort(self._rows.ids_of(text).astype(np.uint32))
        rows, left = {}, MAX_FOUND
        for file, sidecar in zip(leaf.files, opened, strict=True):
            found = sidecar.found(wanted, left) if sidecar is not None else None
            if found is None:  # so many that a scan is faster
                return {file.ordinal: np.empty(MAX_FOUND + 1, np.int8)}
            if len(found):
                rows[file.ordinal] = found
                left -= len(found)
        return rows

    def _count(self, kept: Relation) -> int:
        known = self.base.kept_rows(kept)
        return self._scalar(f"SELECT count(*) FROM {kept.dataset}") if known is None else known

    def _scalar(self, text: str) -> int:
        return int(self.base.connection.execute(text).fetchall()[0][0])


def _among(column: Attribute, values: list[str]) -> str:
    return f"rows.{column_name(column)} IN ({', '.join(values)})"


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
