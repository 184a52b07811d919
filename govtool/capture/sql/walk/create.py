"""CREATE TABLE and VIEW in all their forms: with columns, from a query, like or from another table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.dependencies import TRANSFORMATION, compose
from govtool.capture.sql.walk.relation import OpenStar, QueryOutput, Source, TableInfo, file_name, starred
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import Write, WriteWalk

_GRAPH: Final = frozenset({"node", "edge", "filetable"})
"""Sources of T-SQL's CREATE TABLE AS beside a query: a graph, or files."""


MATCHED_BY_NAME: Final = frozenset({"mysql", "singlestore", "doris"})
"""Dialects in which CREATE TABLE (…) SELECT puts the query's columns beside those that are listed.

MySQL 8.4, "CREATE TABLE … SELECT Statement": columns of the SELECT are appended to the right, and a listed column of
the same name gives its type.
"""


class CreateWalk(WriteWalk):
    """Walks statements that create relations."""

    def _create(self, tree: exp.Create) -> None:
        kind = str(tree.args.get("kind") or "").upper()
        if kind == "MODEL":
            self._create_model(tree)
            return
        if kind not in ("TABLE", "VIEW", "FLOW") or isinstance(tree.this, nodes.UserDefinedFunction):
            return
        properties = tree.args["properties"].expressions if tree.args.get("properties") else []
        target_kind = _target_kind(kind, properties)
        named = tree.this.this if isinstance(tree.this, nodes.Schema) else tree.this
        if isinstance(named, nodes.Table) and self.lookup.table_name(named).startswith("temp."):
            target_kind = "temporary"
        names, types = self._column_list(tree.this)
        query = tree.args.get("expression")
        if self.dialect in ("tsql", "fabric") and isinstance(query, nodes.Table) and self.name(query.this) in _GRAPH:
            if self.name(query.this) == "edge":
                names, types = ['"$from_id"', '"$to_id"', *names], [None, None, *types]
            query = None
        if isinstance(query, (nodes.Query, nodes.Table, nodes.Pivot, nodes.Values)):
            env = self.environment(tree, None, None)
            output = self.query(query, None, env)
            if self.dialect == "duckdb":
                output = output.unique()
            if names and self.dialect in MATCHED_BY_NAME and kind == "TABLE":
                output = _beside(output, names, types)
            elif names:
                if not output.open and len(names) != len(output.names) and kind == "VIEW":
                    self.diagnose("arity", f"{len(names)} names for {len(output.names)} columns", tree.this)
                output = self._named(output, names)
                output.types.update({i: t for i, t in enumerate(types) if t})
            write_kind = (
                "create_table_as" if target_kind in ("table", "temporary") and kind == "TABLE" else "create_view"
            )
            if target_kind == "materialized_view":
                write_kind = "create_materialized_view"
            write = self._write(tree.this, output, write_kind, "replace", target_kind, query)
            into = next((p.this for p in properties if isinstance(p, nodes.ToTableProperty)), None)
            if into is not None:  # ClickHouse: the view is a trigger that fills another table
                write.target = self._target(into)
                write.mode, write.defines, write.kind = "append", False, "insert"
            return
        clone = tree.args.get("clone")
        like = next((p for p in self._likes(tree.this, properties)), None)
        if clone is not None and isinstance(clone.this, nodes.Table):
            self._copied(tree.this, clone.this, target_kind, "create_table_as")
        elif like is not None:
            source = self.lookup.table(self.lookup.table_name(like))
            output = _columns([*source.columns, *names], [*source.columns.values(), *types])
            write = self._write(tree.this, output, "create_table", "declare", target_kind, None)
            self._parents(write, properties)
        else:
            output = _columns(names, types)
            for partition in (p for p in properties if isinstance(p, nodes.PartitionedByProperty)):
                for column in partition.this.expressions if isinstance(partition.this, nodes.Schema) else ():
                    if isinstance(column, nodes.ColumnDef) and self.name(column.this) not in output.index():
                        output.add(self.name(column.this), ())
            generated = self._generated(tree.this, output)
            mode = "replace" if generated else "declare"
            write = self._write(tree.this, output, "create_table", mode, target_kind, None, defines=bool(output.names))
            write.reads.pop(write.target, None)
            self._parents(write, properties)
            location = next((p for p in properties if isinstance(p, nodes.LocationProperty)), None)
            if location is not None and isinstance(location.this, nodes.Literal):
                self._located(write, file_name(location.this.name))

    def _located(self, write: Write, file: str) -> None:
        """A table over files: its columns are theirs by name, else by position, where it is known what they hold."""
        write.dataset_reads = (file,)
        known = self.lookup.table(file)
        if not known.complete or not known.columns:
            return
        columns = list(known.columns)
        output = write.output
        by_name = set(output.names) <= set(columns)
        for position, name in enumerate(output.names):
            column = name if by_name else columns[position] if position < len(columns) else ""
            if column and not output.deps[position]:
                output.deps[position] = known.deps(column, self.interner)

    def _parents(self, write: Write, properties: Iterable[exp.Expr]) -> None:
        """Let the rows of a table that is made as a part of others be rows of these."""
        columns = {name: write.output.types.get(i) for i, name in enumerate(write.output.names)}
        table = TableInfo(write.target, columns, complete=bool(columns))
        for item in properties:
            named = [item.this] if isinstance(item, nodes.PartitionedOfProperty) else item.expressions
            if isinstance(item, (nodes.PartitionedOfProperty, nodes.InheritsProperty)):
                for parent in named:
                    if isinstance(parent, nodes.Table) and (name := self.lookup.table_name(parent)):
                        self.part_of(table, name)

    def part_of(self, table: TableInfo, parent: str) -> None:
        """The rows of a partition, or of a table that inherits, are rows of its parent."""
        known = self.lookup.table(parent) if parent != table.id else table
        names = [name for name in table.columns if name in known.columns or not known.complete]
        if not table.complete:
            names = list(dict.fromkeys([*names, *known.columns, *sorted({*table.used.listed(), *known.used.listed()})]))
        output = QueryOutput()
        for name in names:
            output.add(name, starred(table.deps(name, self.interner)))
        if not table.complete and not known.complete:
            output.open.append(OpenStar(table))
        write = Write(parent, "partition", "append", "table", output, defines=False)
        write.reads = {table.id: EVERYWHERE}
        self.writes.append(write)

    def _create_model(self, tree: exp.Create) -> None:
        """CREATE MODEL m … AS SELECT …: a model is made of the columns that it was trained on."""
        query = tree.args.get("expression")
        if not isinstance(query, nodes.Query):
            return
        env = self.environment(tree, None, None)
        output = self.query(query, None, env)
        properties = tree.args["properties"].expressions if tree.args.get("properties") else []
        transform = next((p for p in properties if isinstance(p, nodes.TransformModelProperty)), None)
        if transform is not None:
            scope = Scope(None)
            scope.add(Source("", output=output))
            made = QueryOutput()
            for item in transform.expressions:
                if isinstance(item, nodes.Star):
                    star = self.starred_columns(item, scope, env)
                    for name, deps in zip(star.names, star.deps, strict=True):
                        made.add(name, deps)
                    made.open.extend(star.open)
                else:
                    value = item.this if isinstance(item, nodes.Alias) else item
                    made.add(self.output_name(item), self.dependencies(value, scope, env))
            output = made
        chain = self.interner.prepend("create_model", 0)
        trained = output.copy()
        trained.deps = [
            tuple([compose(dep, TRANSFORMATION, chain, self.interner) for dep in deps]) for deps in output.deps
        ]
        self._write(tree.this, trained, "create_model", "replace", "table", query)

    def _generated(self, node: exp.Expr, output: QueryOutput) -> bool:
        """Give generated columns the dependencies of their expressions, over the table's own columns."""
        computed: list[tuple[exp.Expr, exp.Expr]] = []
        for item in node.expressions if isinstance(node, nodes.Schema) else ():
            for constraint in item.args.get("constraints") or () if type(item) is nodes.ColumnDef else ():
                kind = constraint.args.get("kind")  # .kind raises where the parser put what it does not expect
                if isinstance(kind, nodes.ComputedColumnConstraint):
                    computed.append((item, kind))
        if not computed:
            return False
        scope = Scope(None)
        scope.add(Source("", table=TableInfo(self._target(node), dict.fromkeys(output.names), complete=True)))
        for item, kind in computed:
            position = output.index()[self.name(item.this)]
            output.deps[position] = self.dependencies(kind.this, scope, None)
        return True

    def _likes(self, node: exp.Expr, properties: Iterable[exp.Expr]) -> Iterable[exp.Table]:
        inside = node.expressions if isinstance(node, nodes.Schema) else []
        for item in (*inside, *properties):
            if type(item) is nodes.ColumnDef:
                continue
            if isinstance(item, (nodes.LikeProperty, nodes.PartitionedOfProperty)) and isinstance(
                item.this, nodes.Table
            ):
                yield item.this
            elif isinstance(item, nodes.InheritsProperty):
                yield from (t for t in item.expressions if isinstance(t, nodes.Table))

    def _copied(self, target: exp.Expr, source: exp.Table, target_kind: str, kind: str) -> None:
        inner = Scope(None)
        self.add_source(source, inner, None)
        self._write(target, self.star(inner), kind, "replace", target_kind, None)

    def _named(self, output: QueryOutput, names: list[str]) -> QueryOutput:
        """Give the columns of ``output`` the names of a column list, by position."""
        if not output.open:
            return self.relabelled(output, names)
        self.diagnose(
            "star-unresolved", "the positions behind a * are not known: a column list cannot be matched to it"
        )
        result = QueryOutput()
        for name in names:
            result.add(name, ())
        result.open = [OpenStar(s.table, s.except_, s.rename, s.arm, candidate=True) for s in output.open]
        return result

    def _cache(self, tree: exp.Cache) -> None:
        query = tree.args.get("expression")
        if isinstance(query, nodes.Query):
            self._write(tree.this, self.query(query, None, None), "create_view", "replace", "temporary", query)


def _target_kind(kind: str, properties: list[exp.Expr]) -> str:
    if any(isinstance(p, (nodes.TemporaryProperty, nodes.VolatileProperty)) for p in properties):
        return "temporary"
    if kind == "VIEW":
        return "materialized_view" if any(isinstance(p, nodes.MaterializedProperty) for p in properties) else "view"
    return "table"


def _beside(output: QueryOutput, names: list[str], types: list[str | None]) -> QueryOutput:
    """Columns that are listed, and behind them those of a query; the same name means the same column."""
    known = output.index()
    result = QueryOutput()
    for name, type_ in zip(names, types, strict=True):
        if name not in known:
            result.add(name, ())
            if type_:
                result.types[len(result.names) - 1] = type_
    listed = dict(zip(names, types, strict=True))
    for position, (name, deps) in enumerate(zip(output.names, output.deps, strict=True)):
        result.add(name, deps)
        found = listed.get(name) or output.types.get(position)
        if found:
            result.types[len(result.names) - 1] = found
        if position in output.fields:
            result.fields[len(result.names) - 1] = output.fields[position]
    result.open = list(output.open)
    return result


def _columns(names: Iterable[str], types: Iterable[str | None]) -> QueryOutput:
    """Return an output of columns that nothing flows into."""
    output = QueryOutput()
    for position, (name, type_) in enumerate(zip(names, types, strict=True)):
        output.add(name, ())
        if type_:
            output.types[position] = type_
    return output
