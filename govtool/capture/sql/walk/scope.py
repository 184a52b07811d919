"""Scopes: which name means which column at one place of a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.dependencies import Deps
from govtool.capture.sql.walk.relation import QueryOutput, Source


class MergingJoin(NamedTuple):
    """A join with USING or NATURAL: ``sources[left:right]`` with ``sources[right:end]`` of its scope."""

    left: int
    right: int
    end: int
    merged: dict[str, Deps]


class Scope:
    """The FROM items of one SELECT, under its enclosing scope.

    Attributes:
        sources: FROM items in order.
        merged: Columns joined by USING or NATURAL, with their merged dependencies.
        joins: The joins that merged them, inner ones first.
        around: The scope of the enclosing query: the parent, but for the scope of an ON whose parent is its own query.
        aliases: Output columns of this SELECT by name, filled as the projections are walked.
        windows: Named windows by folded name.
        aliases_first: Where output columns go before those of FROM, the columns that go before them all the same.
        aliases_visible: Whether the clause that is walked may name output columns (HAVING, QUALIFY in most dialects).
        seen: What written names stand for here, as far as they were resolved: unqualified names that a source of this
            scope owns (lateral aliases yield to them), and (qualifier, name) pairs.
    """

    __slots__ = (
        "aliases",
        "aliases_first",
        "aliases_visible",
        "around",
        "by_alias",
        "correlated",
        "joins",
        "merged",
        "parent",
        "seen",
        "sources",
        "windows",
    )

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.around = parent
        self.sources: list[Source] = []
        self.by_alias: dict[str, Source] = {}
        self.merged: dict[str, Deps] = {}
        self.joins: list[MergingJoin] = []
        self.aliases: dict[str, Deps] = {}
        self.correlated: frozenset[str] = frozenset()
        """Aliases that give way to columns of enclosing queries."""
        self.windows: dict[str, exp.Expr] = {}
        self.seen: dict[str | tuple[str, str], Deps] = {}
        self.aliases_visible = False
        self.aliases_first: frozenset[str] | None = None

    def add(self, source: Source) -> None:
        """Add a FROM item; what was resolved before may now mean something else."""
        self.sources.append(source)
        self.by_alias.setdefault(source.alias, source)
        if self.seen:
            self.seen.clear()

    def since(self, start: int) -> Scope:
        """Return the scope that sees the FROM items from ``start`` on, and before others only where they have none."""
        inner = Scope(self)
        inner.around = self.parent
        inner.sources = self.sources[start:]
        for source in inner.sources:
            inner.by_alias.setdefault(source.alias, source)
        for join in self.joins:
            if join.left >= start:
                inner.merged.update(join.merged)
        return inner

    def find(self, qualifier: tuple[str, ...]) -> Source | None:
        """Return the FROM item that a qualifier names, here or in an enclosing scope."""
        scope: Scope | None = self
        while scope is not None:
            if len(qualifier) == 1:
                found = scope.by_alias.get(qualifier[0])
                if found is not None:
                    return found
            else:
                for source in scope.sources:
                    if source.matches(qualifier):
                        return source
            scope = scope.parent
        return None


class CommonTable:
    """A CTE, evaluated when first read."""

    __slots__ = (
        "columns",
        "env",
        "evaluating",
        "node",
        "output",
        "reads",
        "recursive",
        "rows",
        "scope",
        "used",
        "working",
    )

    def __init__(
        self, node: exp.Expr, columns: list[str], env: Environment | None, scope: Scope | None, recursive: bool
    ) -> None:
        self.node = node
        self.columns = columns
        self.env = env
        self.scope = scope
        self.recursive = recursive
        self.output: QueryOutput | None = None
        self.working: QueryOutput | None = None
        """While a recursive CTE is iterated: what its own name means."""
        self.evaluating = False
        self.used = False
        self.rows: dict[int, exp.Expr | None] = {}
        """References of the row set, wherever it is read."""
        self.reads: dict[str, tuple[int, ...]] = {}


class Environment:
    """The CTEs that are visible at one place, innermost first."""

    __slots__ = ("parent", "tables")

    def __init__(self, parent: Environment | None = None) -> None:
        self.parent = parent
        self.tables: dict[str, CommonTable] = {}

    def find(self, name: str) -> CommonTable | None:
        """Return the CTE of that name."""
        env: Environment | None = self
        while env is not None:
            found = env.tables.get(name)
            if found is not None:
                return found
            env = env.parent
        return None


def is_correlated(value: exp.Expr, scope: Scope, name: Callable[[exp.Expr | str | None], str]) -> bool:
    """Return whether an expression names a column of an enclosing query.

    DuckDB does not take the alias of such an expression in the rest of the SELECT list: it looks for the name in the
    enclosing queries.
    """
    if value.find(nodes.Query) is not None:
        return False
    for column in value.find_all(nodes.Column):
        table = name(column.args.get("table"))
        if table:
            if table not in scope.by_alias:
                return True
            continue
        own = name(column.this)
        if own in scope.merged or (own in scope.aliases and own not in scope.correlated):
            continue
        if not any(own in source.known or source.is_open for source in scope.sources):
            return True
    return False
