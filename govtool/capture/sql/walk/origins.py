"""Origins of output columns: the projection or assignment of a statement that makes each of them.

A column that a query only hands on, by its name or by ``*``, is followed into the CTE or derived table that it comes
from, up to the expression that computes it. Of a UNION there is one in each arm; a recursive one is not entered, as its
edges do not say through which of its arms they come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.arms import arm_counts, arms_of

Queries = Mapping[str, exp.Expr]
"""Common table expressions by name: the CTE nodes."""
Origin = exp.Expr | list[exp.Expr | None]
"""The node of a column; several are those of arms, by their number."""
MAX_DEPTH: Final = 24
_NO_QUERIES: Final[dict[str, exp.Expr]] = {}


class OriginFinder:
    """Finds the origins of one statement's columns."""

    def __init__(self, name: Callable[[exp.Expr | str | None], str], item_name: Callable[[exp.Expr], str]) -> None:
        """Take the functions that give an identifier, and an item of a SELECT list, their names."""
        self.name = name
        self.item_name = item_name
        # By the ids of nodes and of mappings, all of which live as long as the finder: columns ask for the same again.
        self._items: dict[int, dict[str, exp.Expr]] = {}
        self._stars: dict[int, int] = {}
        """By SELECT: the position of its first ``*``."""
        self._plains: dict[tuple[int, int], tuple[exp.Expr, Queries]] = {}
        self._insides: dict[tuple[int, str, int], tuple[exp.Expr, Queries] | None] = {}
        self._arms: dict[int, list[exp.Expr]] = {}
        self._queries: Queries | None = None
        self._recursive: dict[int, bool] = {}
        """By CTE that is a UNION."""

    def origins(self, tree: exp.Expr, names: list[str]) -> dict[str, Origin]:
        """Return the origins of columns that a statement writes, by name, as far as they are known."""
        if isinstance(tree, nodes.Update):
            return dict(self._assigned(tree.expressions))
        if isinstance(tree, nodes.Merge):
            return self._merged(tree)
        query, listed = _query_of(tree)
        if query is None:
            return {}
        if self._queries is None:
            self._queries = self._common(tree, _NO_QUERIES)
        queries = self._queries
        found: dict[str, Origin] = {}
        by_position = listed or isinstance(tree, nodes.Insert)
        for position, name in enumerate(names):
            origin = self._of_query(query, name, position if by_position else -1, queries)
            if origin is not None:
                found[name] = origin
        return found

    # ---- statements -----------------------------------------------------------------------------------

    def _assigned(self, items: list[exp.Expr]) -> list[tuple[str, exp.Expr]]:
        found: list[tuple[str, exp.Expr]] = []
        for item in items:
            if isinstance(item, (nodes.EQ, nodes.PropertyEQ)):
                left = item.this
                for part in left.expressions if isinstance(left, nodes.Tuple) else [left]:
                    found.append((self.name(part.this if isinstance(part, nodes.Column) else part), item))
        return found

    def _merged(self, tree: exp.Expr) -> dict[str, Origin]:
        """The assignments of each branch of a MERGE, by its number."""
        whens = tree.args.get("whens")
        branches = list(whens.expressions) if isinstance(whens, nodes.Expr) else []
        found: dict[str, Origin] = {}
        arms: list[exp.Expr | None]
        for number, when in enumerate(branches):
            then = when.args.get("then")
            pairs: list[tuple[str, exp.Expr]] = []
            if isinstance(then, nodes.Update):
                pairs = self._assigned(then.expressions)
            elif isinstance(then, nodes.Insert):
                columns, values = then.this, then.args.get("expression")
                if isinstance(columns, nodes.Tuple) and isinstance(values, nodes.Tuple):
                    names = [self.name(c.this if isinstance(c, nodes.Column) else c) for c in columns.expressions]
                    pairs = list(zip(names, values.expressions, strict=False))
            for name, node in pairs:
                known = found.get(name)
                arms = known if isinstance(known, list) else [None for _ in branches]
                arms[number] = node
                found[name] = arms
        return found

    # ---- queries --------------------------------------------------------------------------------------

    def _of_query(self, query: exp.Expr, name: str, position: int, queries: Queries) -> Origin | None:
        query, queries = self._plain(query, queries)
        if isinstance(query, nodes.Union):
            return self._of_arms(query, name, position, queries, 0)
        if isinstance(query, nodes.SetOperation):
            return self._of_query(query.this, name, position, queries)
        if isinstance(query, nodes.Values):
            return _value(query, position)
        return self._of_select(query, name, position, queries, 0) if isinstance(query, nodes.Select) else None

    def _of_arms(
        self, query: exp.Expr, name: str, position: int, queries: Queries, depth: int
    ) -> list[exp.Expr | None] | None:
        arms = self._arms.get(id(query))
        if arms is None:
            arms = self._arms[id(query)] = arms_of(query, nodes.Union)
        by_name = bool(query.args.get("by_name"))
        if position < 0 and not by_name:
            position = self._position(arms[0], name)
        counts = arm_counts(query) or [1] * len(arms)
        found: list[exp.Expr | None] = []
        for arm, count in zip(arms, counts, strict=True):
            select, inner = self._plain(arm, queries)
            origin: Origin | None = None
            if isinstance(select, nodes.Select):
                origin = self._of_select(select, name, -1 if by_name else position, inner, depth + 1)
                if isinstance(origin, list) and count == 1:
                    origin = self._item(select, name, -1 if by_name else position)
            elif count > 1 and isinstance(select, nodes.Union) and depth < MAX_DEPTH:
                origin = self._of_arms(select, name, position, inner, depth + 1)
            found.extend(_repeated(origin, count))
        return found if any(found) else None

    def _position(self, arm: exp.Expr, name: str) -> int:
        """The position of a column in an arm; -1 where a ``*`` stands before it."""
        select, _ = self._plain(arm, _NO_QUERIES)
        while isinstance(select, nodes.SetOperation):
            select, _ = self._plain(select.this, _NO_QUERIES)
        for number, item in enumerate(select.expressions if isinstance(select, nodes.Select) else ()):
            if _is_star(item):
                return -1
            if self.item_name(item) == name:
                return number
        return -1

    def _of_select(self, select: exp.Expr, name: str, position: int, queries: Queries, depth: int) -> Origin | None:
        """The item that makes a column: its own expression, or what it hands on from a query inside."""
        item = self._item(select, name, position)
        if item is None or depth > MAX_DEPTH:
            return item
        value = item.args.get("this") if type(item) is nodes.Alias else item
        if type(value) is nodes.Column and not isinstance(value.args.get("this"), nodes.Star):
            inner = self._inside(select, self.name(value.args.get("table")), queries)
            found = self._entered(inner, self.name(value.this), depth)
            return item if found is None or (not isinstance(found, list) and _is_star(found)) else found
        if not _is_star(item):
            return item
        qualifier = self.name(item.args.get("table")) if isinstance(item, nodes.Column) else ""
        found = self._entered(self._inside(select, qualifier, queries), name, depth)
        return item if found is None else found

    def _item(self, select: exp.Expr, name: str, position: int) -> exp.Expr | None:
        items: list[exp.Expr] = select.args["expressions"]
        if 0 <= position < len(items) and position < self._first_star(select, items):
            return items[position]
        known = self._items.get(id(select))
        if known is None:
            known = self._items[id(select)] = {}
            for item in items:
                if not _is_star(item):
                    known.setdefault(self.item_name(item), item)
                elif known.setdefault("*", item) is not item:
                    known["**"] = item  # several: which of them has it is not known
        if position >= 0:
            return None if "**" in known else known.get("*")
        return known.get(name) or (None if "**" in known else known.get("*"))

    def _first_star(self, select: exp.Expr, items: list[exp.Expr]) -> int:
        """The position of the first ``*`` of a SELECT; behind its last item if there is none."""
        found = self._stars.get(id(select))
        if found is None:
            found = 0
            while found < len(items) and not _is_star(items[found]):
                found += 1
            self._stars[id(select)] = found
        return found

    def _inside(self, select: exp.Expr, qualifier: str, queries: Queries) -> tuple[exp.Expr, Queries] | None:
        """The CTE or derived table behind a source of a SELECT; None where it is a table, or may be several."""
        key = (id(select), qualifier, id(queries))
        if key not in self._insides:
            self._insides[key] = self._source(select, qualifier, queries)
        return self._insides[key]

    def _source(self, select: exp.Expr, qualifier: str, queries: Queries) -> tuple[exp.Expr, Queries] | None:
        from_ = select.args.get("from_")
        sources = [from_.this] if isinstance(from_, nodes.From) else []
        sources += [join.this for join in select.args.get("joins") or ()]
        if not qualifier and len(sources) != 1:
            return None
        for source in sources:
            alias = source.args.get("alias")
            called = self.name(alias.this) if isinstance(alias, nodes.TableAlias) else ""
            if isinstance(source, nodes.Table) and not source.args.get("db"):
                written = self.name(source.this) if isinstance(source.this, nodes.Identifier) else ""
                if qualifier in ("", called or written):
                    common = queries.get(written)
                    return None if common is None else (common, queries)
            elif isinstance(source, nodes.Subquery) and qualifier in ("", called):
                return source, queries
        return None

    def _entered(self, inside: tuple[exp.Expr, Queries] | None, name: str, depth: int) -> Origin | None:
        """The item of a query inside that makes a column, or of each of its arms; None where that cannot be told."""
        if inside is None:
            return None
        holder, queries = inside
        alias = holder.args.get("alias")
        columns = alias.args.get("columns") if type(alias) is nodes.TableAlias else None
        listed = [self.name(column) for column in columns] if columns else None
        position = listed.index(name) if listed and name in listed else -1
        query, queries = self._plain(holder.args["this"] if type(holder) is nodes.CTE else holder, queries)
        if listed and position < 0:
            return None
        while isinstance(query, nodes.SetOperation) and not isinstance(query, nodes.Union):  # its first arm names it
            query, queries = self._plain(query.this, queries)
        if isinstance(query, nodes.Select):
            return self._of_select(query, name, position, queries, depth + 1)
        if not isinstance(query, nodes.Union) or depth > MAX_DEPTH or self._is_recursive(holder):
            return None
        if listed and query.args.get("by_name"):
            return None
        return self._of_arms(query, name, position, queries, depth + 1)

    def _is_recursive(self, holder: exp.Expr) -> bool:
        """Return whether a CTE may read itself: a table of its name is in it."""
        if not isinstance(holder, nodes.CTE):
            return False
        known = self._recursive.get(id(holder))
        if known is None:
            alias = holder.args.get("alias")
            own = self.name(alias.this) if isinstance(alias, nodes.TableAlias) else ""
            known = False
            for table in holder.find_all(nodes.Table):
                if self.name(table.this if isinstance(table.this, nodes.Identifier) else None) == own:
                    known = True
            self._recursive[id(holder)] = known
        return known

    def _plain(self, query: exp.Expr, queries: Queries) -> tuple[exp.Expr, Queries]:
        """A query without parentheses around it, and with its common table expressions."""
        key = (id(query), id(queries))
        known = self._plains.get(key)
        if known is None:
            known = self._plains[key] = self._unwrapped(query, queries)
        return known

    def _unwrapped(self, query: exp.Expr, queries: Queries) -> tuple[exp.Expr, Queries]:
        queries = self._common(query, queries)
        while isinstance(query, nodes.Subquery) and isinstance(query.this, nodes.Expr):
            query = query.this
            queries = self._common(query, queries)
        return query, queries

    def _common(self, query: exp.Expr, queries: Queries) -> Queries:
        with_ = query.args.get("with_")
        if not isinstance(with_, nodes.With):
            return queries
        found = dict(queries)
        for common in with_.expressions:
            alias = common.args.get("alias")
            if isinstance(common, nodes.CTE) and isinstance(alias, nodes.TableAlias):
                found[self.name(alias.this)] = common
        return found


def _repeated(origin: Origin | None, count: int) -> list[exp.Expr | None]:
    """The origins of a column in as many arms as one arm of a UNION is."""
    if isinstance(origin, list):
        return origin if len(origin) == count else [None] * count
    return [origin] * count


def _query_of(tree: exp.Expr) -> tuple[exp.Expr | None, bool]:
    """The query of a statement, and whether a list gives its columns names by position."""
    if isinstance(tree, nodes.Query):
        return tree, False
    if isinstance(tree, (nodes.Create, nodes.Insert, nodes.Cache)):
        query = tree.args.get("expression")
        listed = isinstance(tree.this, nodes.Schema)
        return (query if isinstance(query, (nodes.Query, nodes.Values)) else None), listed
    return None, False


def _value(query: exp.Expr, position: int) -> exp.Expr | None:
    """The value of the first row of VALUES."""
    row = query.expressions[0] if query.expressions else None
    items = row.expressions if isinstance(row, nodes.Tuple) else []
    return items[position] if 0 <= position < len(items) else None


def _is_star(item: exp.Expr) -> bool:
    cls = type(item)
    return cls is nodes.Star or (cls is nodes.Column and type(item.args["this"]) is nodes.Star)
