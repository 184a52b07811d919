"""Columns of FROM items for the scope that reads them: tables, derived relations, set-returning functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError

from govtool.capture.sql.walk.dependencies import OPAQUE, REF_SHIFT, STAR, Deps, Interner
from govtool.capture.sql.walk.usage import UsedColumns
from govtool.model import HIDDEN
from govtool.names import split_name
from govtool.redaction import clean_location


class ViewBase(NamedTuple):
    """What a view is to what is written to it."""

    base: str
    """The table, or view, of whose rows its rows are one by one; empty where it is of more."""
    columns: tuple[tuple[str, str], ...]
    """Its columns, with their names in ``base``; empty for what is no column there."""
    is_open: bool
    """Whether other columns pass through it under the same name."""
    reads: tuple[str, ...]
    """All that it reads; of the rows of one table, this one."""
    selects: bool
    """Whether it has only some of these rows."""


class TableInfo:
    """One base table or view, shared by every statement that reads it.

    Attributes:
        id: Canonical dataset id.
        columns: Known columns in order, with their types where known.
        complete: Whether ``columns`` are all there are.
        virtual: Not a table but the elements of an array or the rows of a function, whose columns are assumed only
            where nothing else may own a name.
    """

    __slots__ = ("columns", "complete", "described", "found", "id", "mark", "used", "view")
    virtual = False

    def __init__(self, id: str, columns: dict[str, str | None] | None, complete: bool) -> None:
        self.id = id
        self.columns: dict[str, str | None] = columns or {}
        self.complete = complete
        self.used = UsedColumns()
        """Columns that some statement named with this table's qualifier: evidence from usage."""
        self.described: frozenset[str] = frozenset()
        """Columns that documentation lists: it may lack some, and list some that are gone."""
        self.found: dict[str, Deps] = {}
        """Cached results of ``deps``."""
        self.mark = ""
        """Its signature, once that was needed."""
        self.view: ViewBase | None = None
        """Where a definition is that of a view through which rows may be written; asked for with ``Lookup.view``."""

    def deps(self, column: str, interner: Interner) -> Deps:
        """Return the dependency on one column, as a one-element tuple."""
        found = self.found.get(column)
        if found is None:
            found = self.found[column] = (interner.ref(self.id, column),)
        return found

    def hidden(self, interner: Interner) -> Deps:
        """Return the dependency on the columns that nobody has named."""
        return (interner.ref(self.id, HIDDEN) | OPAQUE,)


class QueryOutput:
    """The columns that a query puts out.

    Attributes:
        names: Canonical column names by position; ``""`` where the position is not yet named.
        deps: Dependencies by position.
        open: Base tables whose unknown columns pass through a ``*`` that could not be expanded.
        fields: For columns built as a struct, or as an array of structs: position -> shape (see ``shapes``).
    """

    __slots__ = ("_index", "deps", "fields", "hidden", "names", "open", "types", "value_table")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.deps: list[Deps] = []
        self.open: list[OpenStar] = []
        self.fields: dict[int, QueryOutput] = {}
        self.types: dict[int, str] = {}
        self.hidden: set[str] = set()
        self.value_table = False
        """SELECT AS STRUCT: where a value is expected, the columns are the fields of one struct."""
        self._index: dict[str, int] | None = None

    def add(self, name: str, deps: Deps) -> None:
        """Append a column."""
        self.names.append(name)
        self.deps.append(deps)
        self._index = None

    def index(self) -> dict[str, int]:
        """Return name -> position; the first of equal names wins."""
        if self._index is None:
            index: dict[str, int] = {}
            for position, name in enumerate(self.names):
                index.setdefault(name, position)
            self._index = index
        return self._index

    def first(self, count: int) -> QueryOutput:
        """Return a copy with the first ``count`` columns only."""
        result = self.renamed(())
        del result.names[count:], result.deps[count:]
        return result

    def copy(self) -> QueryOutput:
        """Return a copy whose lists can be changed."""
        return self.renamed(())

    def unique(self) -> QueryOutput:
        """Return the output with names that occur again numbered: ``id``, ``id_1``, as DuckDB does."""
        if len(set(self.names)) == len(self.names):
            return self
        result = self.copy()
        taken = set(self.names)
        seen: set[str] = set()
        for position, name in enumerate(self.names):
            number, new = 0, name
            while new in seen or (number and new in taken):
                number += 1
                new = f'{name[:-1]}_{number}"' if name.endswith('"') else f"{name}_{number}"
            seen.add(new)
            result.names[position] = new
        return result

    def renamed(self, names: Iterable[str]) -> QueryOutput:
        """Return a copy whose first columns carry ``names`` (a column list of an alias, a CTE or a view)."""
        result = QueryOutput()
        names = list(names)
        result.names = names[: len(self.names)] + self.names[len(names) :]
        result.deps = list(self.deps)
        result.open = self.open if len(names) > len(self.names) else list(self.open)
        result.fields = dict(self.fields)
        result.types = dict(self.types)
        return result


class OpenStar:
    """A ``*`` over a table whose columns are not all known: what it hides and how it renames what passes."""

    __slots__ = ("arm", "candidate", "except_", "rename", "table")

    def __init__(
        self,
        table: TableInfo,
        except_: frozenset[str] = frozenset(),
        rename: dict[str, str] | None = None,
        arm: int = 0,
        *,
        candidate: bool = False,
    ) -> None:
        self.table = table
        self.candidate = candidate
        """True if what passes is only a candidate: a later UNION arm whose positions are hidden."""
        self.except_ = except_
        self.rename = rename or {}
        self.arm = arm

    def lookup(self, column: str, interner: Interner) -> Deps | None:
        """Return the dependencies of an output column that passes through the star, or None if it cannot."""
        name = next((old for old, new in self.rename.items() if new == column), column)
        if name == column and (column in self.except_ or column in self.rename):
            return None
        deps = self.table.deps(name, interner)
        if self.candidate:
            return tuple((dep >> REF_SHIFT << REF_SHIFT) | OPAQUE for dep in deps)
        return tuple(dep | self.arm for dep in deps)


class Source:
    """One FROM item in a scope, under its alias.

    Attributes:
        known: Columns that the source is known to have (keys).
        is_open: Whether it may have more.
        is_virtual: Whether only array elements or function rows hide behind it.
        full_name: The written name of a table, for references such as ``schema.table.column``.
        is_arguments: The arguments of an inlined function, which no table's column hides.
        hidden: The right side of a semi or anti join: visible to its own ON only.
    """

    __slots__ = ("alias", "full_name", "hidden", "is_arguments", "is_open", "is_virtual", "known", "output", "table")

    def __init__(
        self, alias: str, *, table: TableInfo | None = None, output: QueryOutput | None = None, full_name: str = ""
    ) -> None:
        self.alias = alias
        self.table = table
        self.output = output
        self.full_name = full_name
        self.hidden = False
        self.is_arguments = False
        self.is_open = False
        self.is_virtual = False
        self.known: Mapping[str, object] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take note of what the table or output says now."""
        output = self.output
        if self.table is not None:
            self.known = self.table.columns
            self.is_open = not self.table.complete
        elif output is not None:
            self.known = output.index()
            if output.open:
                self.is_open = any(not star.table.virtual for star in output.open)
                self.is_virtual = not self.is_open

    def names(self) -> list[str]:
        """Known column names in order."""
        if self.table is not None:
            return list(self.table.columns)
        return list(self.output.names) if self.output is not None else []

    def get(self, column: str, interner: Interner) -> Deps | None:
        """Return the dependencies of a column that the source is known to have, else None."""
        table = self.table
        if table is not None:
            if column not in table.columns:
                return None
            return table.found.get(column) or table.deps(column, interner)
        output = self.output
        if output is None:
            return None
        position = output.index().get(column)
        return None if position is None else output.deps[position]

    def assume(self, column: str, interner: Interner) -> Deps | None:
        """Return the dependencies of a column that an open source may have, else None."""
        if self.table is not None:
            return None if self.table.complete else self.table.deps(column, interner)
        if self.output is None or column in self.output.hidden:
            return None
        found = [deps for star in self.output.open if (deps := star.lookup(column, interner)) is not None]
        return found[0] if len(found) == 1 else None

    def owners(self) -> list[TableInfo]:
        """Base tables that an unknown column of this source may come from."""
        if self.table is not None:
            return [self.table]
        return [star.table for star in self.output.open] if self.output is not None else []

    def is_used(self, column: str) -> bool:
        """Return whether another statement shows that this source has the column."""
        return any(table.used.has(column) for table in self.owners())

    def describes(self, column: str) -> bool | None:
        """Return whether documentation lists the column; None where there is none of all that it may come from."""
        if self.table is not None:
            return column in self.table.described if self.table.described else None
        stars = self.output.open if self.output is not None else []
        if not stars or any([not star.table.described or star.rename for star in stars]):  # noqa: C419
            return None
        return any([column in star.table.described for star in stars])  # noqa: C419

    def matches(self, qualifier: tuple[str, ...]) -> bool:
        """Return whether a written qualifier (one or more parts) names this source."""
        if len(qualifier) == 1 and qualifier[0] == self.alias:
            return True
        if self.table is None or not self.full_name:
            return False
        parts = tuple(split_name(self.full_name))
        return len(qualifier) > 1 and parts[-len(qualifier) :] == qualifier


def starred(deps: Deps) -> Deps:
    """Return ``deps`` as reached through ``*``, keeping the mark only where the inner step named nothing either."""
    return tuple(dep | STAR for dep in deps)


class FunctionRows(TableInfo):
    """The rows of a set-returning function whose columns are not known: any column depends on its arguments."""

    __slots__ = ("arguments",)
    virtual = True

    def __init__(self, name: str, arguments: Deps) -> None:
        super().__init__(name, None, complete=False)
        self.arguments = arguments

    def deps(self, column: str, interner: Interner) -> Deps:
        """Return the dependencies of the arguments, whatever the column."""
        return self.arguments

    def hidden(self, interner: Interner) -> Deps:
        """Return the dependencies of the arguments."""
        return self.arguments


class ArrayElements(TableInfo):
    """The elements of an unnested array of structs: any column is a field below them."""

    __slots__ = ("path",)
    virtual = True

    def __init__(self, dataset: str, path: str) -> None:
        super().__init__(dataset, None, complete=False)
        self.path = path

    def deps(self, column: str, interner: Interner) -> Deps:
        """Return the dependency on the field ``column`` of the elements."""
        return (interner.ref(self.id, f"{self.path}.{column}"),)

    def hidden(self, interner: Interner) -> Deps:
        """Return the dependency on the elements as a whole."""
        return (interner.ref(self.id, self.path),)


class ShardedTable(TableInfo):
    """Tables that are read as one, by a name with a wildcard: a column is that of each which has it, and that of the
    wildcard itself, to which the graph ties the tables of other ingests (``govtool.graph.builder.shards``).
    """

    __slots__ = ("shards",)

    def __init__(self, name: str, shards: list[TableInfo]) -> None:
        columns: dict[str, str | None] = {}
        for shard in reversed(shards):  # the latest says what columns there are
            for column, type_ in shard.columns.items():
                columns.setdefault(column, type_)
        super().__init__(name, columns, all([shard.complete for shard in shards]))  # noqa: C419
        self.shards = shards

    def deps(self, column: str, interner: Interner) -> Deps:
        """Return the dependencies on the column in each table that has it, or may."""
        having = [shard for shard in self.shards if column in shard.columns or not shard.complete] or self.shards
        return tuple([interner.ref(name, column) for name in (*[shard.id for shard in having], self.id)])

    def hidden(self, interner: Interner) -> Deps:
        """Return the dependencies on the columns that nobody has named."""
        names = [*[shard.id for shard in self.shards], self.id]
        return tuple([interner.ref(name, HIDDEN) | OPAQUE for name in names])


BULK_FILE: Final = "openrowset_bulk"
"""The name of T-SQL's ``OPENROWSET(BULK 'file', …)``: a file stands for a table."""

CALLER: Final = "caller"
"""The source of the rows of a routine's parameter: ``"caller(dbo.p)"``."""


def file_name(location: str) -> str:
    """Return the canonical dataset name of a file, path or stage: quoted, since it is no plain identifier.

    Users, passwords and signatures of addresses are no part of it, nor is a slash at the end. ``s3a`` and ``s3n`` are
    other clients of the same store.
    """
    place = _S3.sub("s3://", clean_location(location)) if "://" in location else location
    return '"' + (place.rstrip("/") or place).replace('"', '""') + '"'


_S3: Final = re.compile(r"s3[an]://", re.IGNORECASE)


def into_of(tree: exp.Expr) -> exp.Expr | None:
    """Return the INTO of a query; of a set operation, that of its first SELECT."""
    while isinstance(tree, (exp.SetOperation, exp.Subquery)):
        tree = tree.this
    into = tree.args.get("into")
    return into if isinstance(into, exp.Into) else None


def named_table(text: str, dialect: str) -> exp.Table | None:
    """Return the table that a text names; None where it is no name."""
    try:
        table = exp.to_table(text, dialect=dialect or None)
    except (SqlglotError, ValueError):
        return None
    parts = table.parts
    return table if parts and all([isinstance(part, exp.Identifier) for part in parts]) else None  # noqa: C419
