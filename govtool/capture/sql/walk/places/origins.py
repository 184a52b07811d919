"""Origins of output columns: the projection or assignment of a statement that makes each of them.

A column that a query only hands on, by its name or by ``*``, is followed into the CTE or derived table that it comes
from, up to the expression that computes it. Of a UNION there is one in each arm; a recursive one is not entered, as its
edges do not say through which of its arms they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.syntax.tree_search import nodes_of
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.expressions.naming import output_name
from govtool.capture.sql.walk.queries.arms import arm_counts, arms_of

Queries = Mapping[str, exp.Expr]
"""Common table expressions by name: the CTE nodes."""
Origin = exp.Expr | list[exp.Expr | None]
"""The node of a column; several are those of arms, by their number."""
MAX_DEPTH: Final = 24
_NO_QUERIES: Final[dict[str, exp.Expr]] = {}


class _Plain:
    """A query without parentheses around it, with the common table expressions in its sight, and what was looked up.

    Attributes:
        node: The query.
        queries: What is in its sight.
        items: Of a SELECT: its items by name, ``*`` the first star, and ``**`` another one.
        first_star: Of a SELECT: the position of its first ``*``, or the number of its items; -1 before it was counted.
        insides: Of a SELECT: what is behind its sources, by their names.
        arms: Of a UNION.
    """

    __slots__ = ("arms", "first_star", "insides", "items", "node", "queries")

    def __init__(self, node: exp.Expr, queries: Queries) -> None:
        self.node = node
        self.queries = queries
        self.items: dict[str, exp.Expr] | None = None
        self.first_star = -1
        self.insides: dict[str, _Inside | None] = {}
        self.arms: list[_Plain] = []


class _Inside:
    """A CTE or derived table behind a source of a SELECT."""

    __slots__ = ("is_recursive", "listed", "query")

    def __init__(self, query: _Plain, listed: dict[str, int] | None, is_recursive: bool) -> None:
        self.query = query
        self.listed = listed
        """The names that a list gives its columns, with their positions."""
        self.is_recursive = is_recursive


class OriginFinder:
    """Finds the origins of one statement's columns."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self._plains: dict[tuple[int, int], _Plain] = {}
        """By the ids of a node and of a mapping, which live as long as the finder."""
        self._queries: Queries | None = None

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
        found: dict[str, Origin] = {}
        by_position = listed or isinstance(tree, nodes.Insert)
        plain = self._first(self._plain(query, self._queries))
        for position, name in enumerate(names):
            origin = self._of_query(plain, name, position if by_position else -1)
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
                    found.append((self.walk.name(part.this if isinstance(part, nodes.Column) else part), item))
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
                    names = [self.walk.name(c.this if isinstance(c, nodes.Column) else c) for c in columns.expressions]
                    pairs = list(zip(names, values.expressions, strict=False))
            for name, node in pairs:
                known = found.get(name)
                arms = known if isinstance(known, list) else [None for _ in branches]
                arms[number] = node
                found[name] = arms
        return found

    # ---- queries --------------------------------------------------------------------------------------

    def _of_query(self, query: _Plain, name: str, position: int) -> Origin | None:
        node = query.node
        if isinstance(node, nodes.Select):
            return self._of_select(query, name, position, 0)
        if isinstance(node, nodes.Union):
            return self._of_arms(query, name, position, 0)
        return _value(node, position) if isinstance(node, nodes.Values) else None

    def _of_arms(self, query: _Plain, name: str, position: int, depth: int) -> list[exp.Expr | None] | None:
        node, arms = query.node, query.arms
        if not arms:
            arms = query.arms = [self._plain(arm, query.queries) for arm in arms_of(node, nodes.Union)]
        by_name = bool(node.args.get("by_name"))
        if position < 0 and not by_name:
            position = self._position(arms[0], name)
        if by_name:
            position = -1
        counts = arm_counts(node) or [1] * len(arms)
        found: list[exp.Expr | None] = []
        for arm, count in zip(arms, counts, strict=True):
            origin: Origin | None = None
            if isinstance(arm.node, nodes.Select):
                origin = self._of_select(arm, name, position, depth + 1)
                if isinstance(origin, list) and count == 1:
                    origin = self._item(arm, name, position)
            elif count > 1 and isinstance(arm.node, nodes.Union) and depth < MAX_DEPTH:
                origin = self._of_arms(arm, name, position, depth + 1)
            found.extend(_repeated(origin, count))
        return found if any(found) else None

    def _position(self, arm: _Plain, name: str) -> int:
        """The position of a column in an arm; -1 where a ``*`` stands before it."""
        while isinstance(arm.node, nodes.SetOperation):
            arm = self._plain(arm.node.this, arm.queries)
        for number, item in enumerate(arm.node.expressions if isinstance(arm.node, nodes.Select) else ()):
            if _is_star(item):
                return -1
            if output_name(self.walk, item) == name:
                return number
        return -1

    def _of_select(self, query: _Plain, name: str, position: int, depth: int) -> Origin | None:
        """The item that makes a column: its own expression, or what it hands on from a query inside."""
        item = self._item(query, name, position)
        if item is None or depth > MAX_DEPTH:
            return item
        value = item.args.get("this") if type(item) is nodes.Alias else item
        if type(value) is nodes.Column:
            args = value.args
            if not isinstance(args.get("this"), nodes.Star):
                inner = self._inside(query, args.get("table"))
                found = None if inner is None else self._entered(inner, self.walk.name(args["this"]), depth)
                return item if found is None or (not isinstance(found, list) and _is_star(found)) else found
        if not _is_star(item):
            return item
        inner = self._inside(query, item.args.get("table") if isinstance(item, nodes.Column) else None)
        found = None if inner is None else self._entered(inner, name, depth)
        return item if found is None else found

    def _item(self, query: _Plain, name: str, position: int) -> exp.Expr | None:
        items: list[exp.Expr] = query.node.args["expressions"]
        if 0 <= position < len(items) and position < _first_star(query, items):
            return items[position]
        known = query.items
        if known is None:
            known = query.items = {}
            for item in items:
                if not _is_star(item):
                    known.setdefault(output_name(self.walk, item), item)
                elif known.setdefault("*", item) is not item:
                    known["**"] = item  # several: which of them has it is not known
        if position >= 0:
            return None if "**" in known else known.get("*")
        return known.get(name) or (None if "**" in known else known.get("*"))

    def _inside(self, query: _Plain, table: exp.Expr | None) -> _Inside | None:
        """The CTE or derived table behind a source of a SELECT; None where it is a table, or may be several."""
        qualifier = "" if table is None else self.walk.name(table)
        insides = query.insides
        if qualifier not in insides:
            holder = self._source(query.node, qualifier, query.queries)
            insides[qualifier] = None if holder is None else self._held(holder, query.queries)
        return insides[qualifier]

    def _source(self, select: exp.Expr, qualifier: str, queries: Queries) -> exp.Expr | None:
        from_ = select.args.get("from_")
        sources = [from_.this] if isinstance(from_, nodes.From) else []
        sources += [join.this for join in select.args.get("joins") or ()]
        if not qualifier and len(sources) != 1:
            return None
        for source in sources:
            alias = source.args.get("alias")
            called = self.walk.name(alias.this) if isinstance(alias, nodes.TableAlias) else ""
            if isinstance(source, nodes.Table) and not source.args.get("db"):
                written = self.walk.name(source.this) if isinstance(source.this, nodes.Identifier) else ""
                if qualifier in ("", called or written):
                    return queries.get(written)
            elif isinstance(source, nodes.Subquery) and qualifier in ("", called):
                found: exp.Expr = source
                return found
        return None

    def _held(self, holder: exp.Expr, queries: Queries) -> _Inside:
        """What is in a CTE or derived table."""
        alias = holder.args.get("alias")
        columns = alias.args.get("columns") if type(alias) is nodes.TableAlias else None
        listed: dict[str, int] | None = {} if columns else None
        for position, column in enumerate(columns or ()):
            if listed is not None:
                listed.setdefault(self.walk.name(column), position)
        query = self._first(self._plain(holder.args["this"] if type(holder) is nodes.CTE else holder, queries))
        return _Inside(query, listed, isinstance(query.node, nodes.Union) and self._is_recursive(holder))

    def _entered(self, inside: _Inside, name: str, depth: int) -> Origin | None:
        """The item of a query inside that makes a column, or of each of its arms; None where that cannot be told."""
        position = -1
        if inside.listed is not None:
            position = inside.listed.get(name, -1)
            if position < 0:
                return None
        query = inside.query
        if isinstance(query.node, nodes.Select):
            return self._of_select(query, name, position, depth + 1)
        if not isinstance(query.node, nodes.Union) or depth > MAX_DEPTH or inside.is_recursive:
            return None
        if position >= 0 and query.node.args.get("by_name"):
            return None
        return self._of_arms(query, name, position, depth + 1)

    def _is_recursive(self, holder: exp.Expr) -> bool:
        """Return whether a CTE may read itself: a table of its name is in it."""
        if not isinstance(holder, nodes.CTE):
            return False
        alias = holder.args.get("alias")
        own = self.walk.name(alias.this) if isinstance(alias, nodes.TableAlias) else ""
        for table in nodes_of(holder, nodes.Table):
            if self.walk.name(table.this if isinstance(table.this, nodes.Identifier) else None) == own:
                return True
        return False

    def _first(self, query: _Plain) -> _Plain:
        """The first arm of an INTERSECT or EXCEPT, which names and makes the columns; else the query itself."""
        while isinstance(query.node, nodes.SetOperation) and not isinstance(query.node, nodes.Union):
            query = self._plain(query.node.this, query.queries)
        return query

    def _plain(self, query: exp.Expr, queries: Queries) -> _Plain:
        """A query without parentheses around it, and with its common table expressions."""
        key = (id(query), id(queries))
        known = self._plains.get(key)
        if known is None:
            inside = self._common(query, queries)
            while isinstance(query, nodes.Subquery) and isinstance(query.this, nodes.Expr):
                query = query.this
                inside = self._common(query, inside)
            known = self._plains[key] = _Plain(query, inside)
        return known

    def _common(self, query: exp.Expr, queries: Queries) -> Queries:
        with_ = query.args.get("with_")
        if not isinstance(with_, nodes.With):
            return queries
        found = dict(queries)
        for common in with_.expressions:
            alias = common.args.get("alias")
            if isinstance(common, nodes.CTE) and isinstance(alias, nodes.TableAlias):
                found[self.walk.name(alias.this)] = common
        return found


def _first_star(query: _Plain, items: list[exp.Expr]) -> int:
    """The position of the first ``*`` of a SELECT; behind its last item if there is none."""
    found = query.first_star
    if found < 0:
        found = 0
        while found < len(items) and not _is_star(items[found]):
            found += 1
        query.first_star = found
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
