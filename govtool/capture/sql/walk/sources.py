"""FROM items: tables, subqueries, joins, laterals, set-returning functions, pivots."""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.expressions import Identifier

from govtool.capture.sql import nodes
from govtool.capture.sql.walk import naming
from govtool.capture.sql.walk.columns import ROW_KINDS
from govtool.capture.sql.walk.dependencies import (
    TRANSFORMATION,
    Deps,
    bounded,
    compose,
)
from govtool.capture.sql.walk.functions import function_name
from govtool.capture.sql.walk.relation import (
    BULK_FILE,
    FunctionRows,
    OpenStar,
    QueryOutput,
    ShardedTable,
    Source,
    TableInfo,
    file_name,
    named_table,
    starred,
)
from govtool.capture.sql.walk.scope import CommonTable, Environment, MergingJoin, Scope
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.table_functions import TableFunctionWalk
from govtool.functions.facts import SERIES

JOIN: Final = ROW_KINDS["join"]


class SourceWalk(TableFunctionWalk):
    """Adds FROM items to scopes."""

    def add_sources(self, select: exp.Expr, scope: Scope, env: Environment | None) -> None:
        """Add FROM, LATERAL VIEWs and JOINs of a SELECT (or UPDATE, DELETE, MERGE) to its scope."""
        from_ = select.args.get("from_")
        if from_ is not None:
            self.add_source(from_.this, scope, env)
        for lateral in select.args.get("laterals") or ():
            self.add_source(lateral, scope, env)
        joins = select.args.get("joins")
        if joins:
            self.add_joins(joins, scope, env, 0)

    def add_joins(self, joins: list[exp.Join], scope: Scope, env: Environment | None, start: int) -> None:
        """Add joins one after the other, to what is in the scope's sources from ``start`` on."""
        for join in joins:
            # A comma binds last, so what is before it is not on the left of the joins behind it. Where a dialect is
            # different, the parser calls it a CROSS JOIN.
            if is_comma(join):
                start = len(scope.sources)
            self.add_join(join, scope, env, start)

    def add_join(self, join: exp.Join, scope: Scope, env: Environment | None, start: int = 0) -> None:
        """Add the right side of a join, and reference the columns of its condition.

        Args:
            join: The join.
            scope: Where to add it.
            env: The CTEs in sight.
            start: Where in the scope's sources the left side begins.
        """
        before = len(scope.sources)
        right = join.this
        if isinstance(right, nodes.Alias) and join.kind == "ARRAY":  # ClickHouse ARRAY JOIN
            output = QueryOutput()
            output.add(self.name(right.args["alias"]), self.dependencies(right.this, scope, env))
            scope.add(Source(self.name(right.args["alias"]), output=output))
        elif join.kind == "ARRAY" and isinstance(right, nodes.Column | nodes.Table):
            return
        else:
            self.add_source(right, scope, env)
        added = scope.sources[before:]
        on = join.args.get("on")
        if on is not None:
            self.refer_to(on, scope.since(start) if start else scope, env, JOIN)
        self.refer_to(join.args.get("match_condition"), scope, env, JOIN)
        if join.args.get("using"):
            self._using([self.name(_using_name(item)) for item in join.args["using"]], join, scope, start, before)
        elif join.method == "NATURAL":
            self._natural(join, scope, start, before)
        if join.kind in ("SEMI", "ANTI") or join.side in ("SEMI", "ANTI"):
            for source in added:
                source.hidden = True
            scope.seen.clear()

    def _using(self, names: list[str], join: exp.Join, scope: Scope, start: int, before: int) -> None:
        """Merge the columns of USING: left for inner and left joins, right for right joins, both for full joins."""
        merged: dict[str, Deps] = {}
        end = len(scope.sources)
        found_by_name = join.method == "NATURAL" and len(names) > 1  # it joins what is left when one of them is gone
        for name in names:
            left = self._side(name, scope, start, before, join)
            right = self._side(name, scope, before, end, join)
            for deps in (left, right):
                if found_by_name:
                    self.refer_unnamed(starred(deps), JOIN)
                else:
                    self.refer(self.noted(deps), JOIN, join)
            if join.side == "RIGHT":
                merged[name] = right
            elif join.side == "FULL":
                both = [
                    compose(dep, TRANSFORMATION, self.interner.prepend("coalesce", 0), self.interner)
                    for dep in (*left, *right)
                ]
                merged[name] = bounded(both)
            else:
                merged[name] = left
        scope.merged.update(merged)
        scope.joins.append(MergingJoin(start, before, end, merged))
        scope.seen.clear()

    def _side(self, name: str, scope: Scope, start: int, end: int, node: exp.Expr) -> Deps:
        """Return the dependencies of the column that one side, ``sources[start:end]``, puts into USING."""
        for join in reversed(scope.joins):
            if start <= join.left and join.end <= end and name in join.merged:
                return join.merged[name]
        sources = scope.sources[start:end]
        known = [
            deps for source in sources if not source.hidden and (deps := source.get(name, self.interner)) is not None
        ]
        if len(known) == 1:
            return known[0]
        if known:
            return self._ambiguous(name, [dep for deps in known for dep in deps], node)
        possible = [(source, deps) for source in sources if (deps := source.assume(name, self.interner)) is not None]
        shown = [pair for pair in possible if pair[0].is_used(name)] or possible
        if len(shown) == 1:
            owners = shown[0][0].owners()
            if len(owners) == 1:
                owners[0].used.add(name)
            return shown[0][1]
        if shown:
            return self._ambiguous(name, [dep for _, deps in shown for dep in deps], node)
        self.diagnose("unresolved", f"USING ({name}): one side has no such column", node)
        return ()

    def _natural(self, join: exp.Join, scope: Scope, start: int, before: int) -> None:
        left, right = scope.sources[start:before], scope.sources[before:]
        if any(source.is_open for source in (*left, *right)):
            names = "the joined columns depend on schemas that are not known"
            self.diagnose("ambiguous", f"NATURAL JOIN: {names}", join)
        left_names = [name for source in left if not source.hidden for name in source.names()]
        right_names = {name for source in right if not source.hidden for name in source.names()}
        shared = [name for name in dict.fromkeys(left_names) if name in right_names]
        self._using(shared, join, scope, start, before)

    # ---- one item ----------------------------------------------------------------------------------

    def add_source(self, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
        """Add one FROM item, with the joins and pivots that hang on it."""
        start = len(scope.sources)
        if isinstance(node, nodes.Table):
            self._add_table(node, scope, env)
        elif isinstance(node, nodes.Subquery):
            self._add_subquery(node, scope, env)
        elif isinstance(node, nodes.Lateral):
            self._add_lateral(node, scope, env)
        elif isinstance(node, nodes.Unnest):
            self._add_unnest(node, scope, env)
        elif isinstance(node, nodes.Values):
            self._finish(node, self.values(node, scope, env), scope, env)
        elif isinstance(node, nodes.TableAlias):  # |> AS name, in pipe syntax: the CTE that the parser has made of it
            self._add_table(nodes.Table(this=node.this.copy()), scope, env)
        elif isinstance(node, nodes.TableFromRows) and isinstance(
            node.this, nodes.Literal
        ):  # Snowflake's TABLE('name')
            named = exp.to_table(node.this.name, dialect=self.dialect)
            for key in ("alias", "joins"):
                named.set(key, node.args.get(key))
            self._add_table(named, scope, env)
        elif isinstance(node, nodes.TableFromRows) and isinstance(node.this, nodes.Placeholder):  # a RESULTSET
            rows = self.variable_rows(self.variable_name(node.this), node)
            if rows is None:
                self.diagnose("opaque", "the rows of a variable that is not known", node)
            self._finish(node, rows or QueryOutput(), scope, env)
        elif isinstance(node, nodes.TableFromRows):
            self._finish(node, self._function_output(node.this, scope, env), scope, env)
        elif isinstance(
            node, (nodes.Stream, nodes.Final, nodes.Paren)
        ):  # Databricks' STREAM(table), ClickHouse's t FINAL
            self.add_source(node.this, scope, env)
            return
        elif isinstance(node, nodes.Alias):
            self._finish(node, self._function_output(node.this, scope, env), scope, env)
        elif isinstance(node, nodes.Query):
            self._finish(node, self.query(node, scope.parent, env), scope, env)
        elif isinstance(node, nodes.Func):
            self._finish(node, self._function_output(node, scope, env), scope, env)
        else:
            self.diagnose("opaque", f"FROM item {node.key.upper()} is not understood", node)
            return
        for lateral in node.args.get("laterals") or ():
            self.add_source(lateral, scope, env)
        if type(node) is not nodes.Subquery:
            self.add_joins(node.args.get("joins") or [], scope, env, start)

    def _add_table(self, node: exp.Table, scope: Scope, env: Environment | None) -> None:
        args = node.args
        this = args.get("this")
        if type(this) is Identifier and not (args.get("db") or args.get("catalog") or args.get("pivots")):
            alias = args.get("alias")
            if alias is None or not alias.args.get("columns"):
                self._add_plain_table(node, this, alias, scope, env)
                return
        if isinstance(this, nodes.Func) and not isinstance(this, nodes.DynamicIdentifier):
            files = _files_read(this)
            if files:
                self._add_files(files, node, scope, env)
                return
            schema = ".".join(self.qualifier(p for key in ("catalog", "db") if (p := node.args.get(key)) is not None))
            self._finish(node, self._function_output(this, scope, env, schema), scope, env, scalar=True)
            return
        if node.args.get("rows_from"):
            output = QueryOutput()
            for item in node.args["rows_from"]:
                inner = self._function_output(
                    item.this if isinstance(item, (nodes.Table, nodes.Alias)) else item, scope, env
                )
                for name, deps in zip(inner.names, inner.deps, strict=True):
                    output.add(name, deps)
            self._finish(node, output, scope, env)
            return
        alias, columns = self._alias(node)
        plain = isinstance(this, nodes.Identifier) and not args.get("db") and not args.get("catalog")
        plain = plain and not marked(this)
        cte = env.find(self.name(this)) if env is not None and plain else None
        if cte is not None:
            output = self.common_table(cte)
            alias = alias or self.name(this)
            self._place(Source(alias, output=self.relabelled(output, columns)), node, scope, env)
            return
        name = self.lookup.table_name(node)
        if not name:
            self.diagnose("opaque", "a table is named by an expression or parameter", node)
            self._place(Source(alias, output=QueryOutput()), node, scope, env)
            return
        table = self.lookup.table(name)
        self._read_rows(table)
        db = args.get("db")
        last: exp.Expr | None = this
        written = ""
        if isinstance(this, nodes.DynamicIdentifier):
            named = named_table(this.this.name, self.dialect)
            if named is not None:
                written, last = ".".join(self.qualifier(named.parts)), named.parts[-1]
        elif not db:
            written = ""
        elif type(this) is Identifier and type(db) is Identifier and not args.get("catalog"):
            written = f"{self.name(db)}.{self.name(this)}"
        else:
            parts = node.parts
            written, last = ".".join(self.qualifier(parts)), parts[-1]
        source = Source(alias or self.name(last), table=table, full_name=written)
        if columns:
            source = Source(source.alias, output=self.relabelled(self.table_output(table), columns))
        self._place(source, node, scope, env)

    def _read_rows(self, table: TableInfo) -> None:
        """Record that the rows of a table are read; of a wildcard, those of the tables that it stands for."""
        if type(table) is ShardedTable:
            self.reads.update(dict.fromkeys([shard.id for shard in table.shards], EVERYWHERE))
        self.reads[table.id] = EVERYWHERE

    def _add_plain_table(
        self, node: exp.Table, this: exp.Expr, alias: exp.Expr | None, scope: Scope, env: Environment | None
    ) -> None:
        """A table or CTE named by one identifier: nearly all of them."""
        name = self.name(this)
        called = name if alias is None else self.name(alias.args.get("this")) or name
        cte = env.find(name) if env is not None and not marked(this) else None
        if cte is not None:
            scope.add(Source(called, output=self.common_table(cte)))
        elif name == "dual":
            scope.add(Source(called, output=QueryOutput()))
        else:
            table = self.lookup.table(self.lookup.table_name(node))
            self._read_rows(table)
            scope.add(Source(called, table=table))

    def _add_files(self, files: list[str], node: exp.Table, scope: Scope, env: Environment | None) -> None:
        """read_csv('a.csv'), read_parquet([…]): each file is a dataset; several have the same columns."""
        alias, columns = self._alias(node)
        tables = [self.lookup.table(file_name(name)) for name in files]
        for table in tables:
            self.reads[table.id] = EVERYWHERE
        output = self.table_output(tables[0])
        for table in tables[1:]:
            more = self.table_output(table)
            output.open.extend(OpenStar(star.table) for star in more.open)
        if len(tables) == 1 and not columns:
            self._place(Source(alias, table=tables[0]), node, scope, env)
        else:
            self._place(Source(alias, output=output.renamed(columns)), node, scope, env)

    def table_output(self, table: TableInfo) -> QueryOutput:
        """Return the output of ``SELECT * FROM table``."""
        output = QueryOutput()
        for position, (name, type_) in enumerate(table.columns.items()):
            output.add(name, starred(table.deps(name, self.interner)))
            if type_:
                output.types[position] = type_
        if not table.complete:
            for name in [name for name in table.used.listed() if name not in table.columns]:
                output.add(name, starred(table.deps(name, self.interner)))
            output.open.append(OpenStar(table))
        return output

    def _add_subquery(self, node: exp.Subquery, scope: Scope, env: Environment | None) -> None:
        inner = node.this
        alias, _ = self._alias(node)
        start = len(scope.sources)
        plain = isinstance(inner, (nodes.Table, nodes.TableFromRows, nodes.Subquery))
        if plain and not alias and not isinstance(inner.unnest(), nodes.Query):
            self.add_source(inner, scope, env)  # (a JOIN b ON …): its tables stay visible
            self.add_joins(node.args.get("joins") or [], scope, env, start)
            return
        if isinstance(inner, (nodes.Table, nodes.TableFromRows)):
            output = self._joined_output(inner, scope, env)
        else:
            output = (
                self.query(node, scope.parent, env) if node.args.get("with_") else self.query(inner, scope.parent, env)
            )
            self.modifiers(node, output, scope.parent, env)
        self._finish(node, output.unique() if self.dialect == "duckdb" else output, scope, env)
        self.add_joins(node.args.get("joins") or [], scope, env, start)

    def _joined_output(self, inner: exp.Expr, scope: Scope, env: Environment | None) -> QueryOutput:
        """The output of an aliased parenthesised join: ``(a JOIN b ON …) AS j(p, q)``."""
        joined = Scope(scope.parent)
        self.add_source(inner, joined, env)
        return self.star(joined)

    def _add_lateral(self, node: exp.Lateral, scope: Scope, env: Environment | None) -> None:
        inner = node.this
        if isinstance(inner, nodes.Subquery):
            output = self.query(inner, scope, env)  # a lateral subquery sees the items before it
        elif isinstance(inner, nodes.Unnest):
            self._add_unnest(inner, scope, env, node)
            return
        else:
            output = self._function_output(inner, scope, env)
        _, columns = self._alias(node)
        if node.args.get("ordinality") and len(columns) > len(output.names):
            output.names.extend([""] * (len(columns) - len(output.names) - 1))
            output.deps.extend([output.deps[0] if output.deps else ()] * (len(columns) - len(output.deps) - 1))
            output.add("", ())
        self._finish(node, output, scope, env, scalar=True)

    # ---- placing ---------------------------------------------------------------------------------

    def _alias(self, node: exp.Expr) -> tuple[str, list[str]]:
        alias = node.args.get("alias")
        if isinstance(alias, nodes.TableAlias):
            columns = [
                self.name(c.this if isinstance(c, nodes.ColumnDef) else c) for c in alias.args.get("columns") or ()
            ]
            return self.name(alias.args.get("this")), columns
        return self.name(alias) if isinstance(alias, nodes.Identifier) else "", []

    def _finish(
        self, node: exp.Expr, output: QueryOutput, scope: Scope, env: Environment | None, *, scalar: bool = False
    ) -> None:
        alias, columns = self._alias(node)
        typed = isinstance(node.args.get("alias"), nodes.TableAlias) and any(
            isinstance(c, nodes.ColumnDef) and c.args.get("kind") for c in node.args["alias"].args.get("columns") or ()
        )
        series = typed or any(isinstance(star.table, FunctionRows) and star.table.id in SERIES for star in output.open)
        if columns:
            while len(output.names) < len(columns) and output.open:
                output.add("", output.deps[0] if output.deps else ())
            output = self.relabelled(output, columns)
        elif (
            scalar
            and alias
            and len(output.names) == 1
            and not (series and self.dialect not in naming.DIALECTS)
            and any(isinstance(star.table, FunctionRows) for star in output.open)
        ):
            output = output.renamed([alias])  # PostgreSQL: the alias of a function names its only column too
        if series or (columns and node.args.get("view")):  # there is no column but these
            output = output.copy()
            output.open = []
        if not alias and scalar and isinstance(node, nodes.Table) and isinstance(node.this, nodes.Func):
            alias = function_name(node.this)  # a function without an alias has its own name
        self._place(Source(alias, output=output), node, scope, env)

    def _place(self, source: Source, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
        for pivot in node.args.get("pivots") or ():
            source = self.pivot(source, pivot, scope, env)
        match = node.args.get("match")
        if match is not None:
            source = self.match_recognize(source, match, scope, env)
        scope.add(source)

    # ---- implemented by PivotWalk, ProjectionWalk and QueryWalk ----------------------------------------

    def pivot(self, source: Source, node: exp.Pivot, scope: Scope, env: Environment | None) -> Source:
        """Return what a PIVOT or UNPIVOT makes of a FROM item."""
        raise NotImplementedError

    def match_recognize(
        self, source: Source, node: exp.MatchRecognize, scope: Scope, env: Environment | None
    ) -> Source:
        """Return what MATCH_RECOGNIZE makes of a FROM item."""
        raise NotImplementedError

    def star(self, scope: Scope) -> QueryOutput:
        """Return the output of ``*`` over a scope."""
        raise NotImplementedError

    def modifiers(self, node: exp.Expr, output: QueryOutput, scope: Scope | None, env: Environment | None) -> None:
        """Record ORDER BY on an already computed output."""
        raise NotImplementedError

    def common_table(self, cte: CommonTable) -> QueryOutput:
        """Return the output of a CTE."""
        raise NotImplementedError


def marked(name: exp.Expr | None) -> bool:
    """Return whether a name is T-SQL's ``#name`` or ``##name``, which never is a CTE."""
    return name is not None and bool(name.args.get("temporary") or name.args.get("global_"))


def is_comma(join: exp.Join) -> bool:
    """Return whether a join is written as a comma."""
    args = join.args
    return not (
        args.get("kind") or args.get("side") or args.get("method") or args.get("on") is not None or args.get("using")
    )


def _using_name(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, nodes.Column) else item


_READERS: Final = frozenset(
    {
        "read_csv",
        "read_csv_auto",
        "read_parquet",
        "parquet_scan",
        "read_json",
        "read_json_auto",
        "read_ndjson",
        "delta_scan",
        "iceberg_scan",
        BULK_FILE,
    }
)


def _files_read(node: exp.Expr) -> list[str]:
    """Return the constant file names that a reading function is given; none for another function."""
    if function_name(node) == "openrowset" and node.expressions and function_name(node.expressions[0]) == "bulk":
        return [item.name for item in node.expressions[0].expressions if isinstance(item, nodes.Literal)]
    if function_name(node) not in _READERS:
        return []
    first = (
        node.args.get("this") if isinstance(node.args.get("this"), nodes.Expr) else next(iter(node.expressions), None)
    )
    items = first.expressions if isinstance(first, nodes.Array) else [first]
    if function_name(node) == BULK_FILE:
        items = node.expressions
    return [item.name for item in items if isinstance(item, nodes.Literal) and item.is_string]
