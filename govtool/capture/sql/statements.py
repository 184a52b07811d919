"""Statements: what each kind writes, from which columns.

``StatementWalk.statement`` turns one tree into writes: drafts of derivations, still with packed dependencies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from govtool.capture.sql.columns import ROW_KINDS
from govtool.capture.sql.dependencies import CONDITIONAL, KIND_MASK, STAR, Deps, arm_of, bounded, compose, with_arm
from govtool.capture.sql.query import QueryWalk
from govtool.capture.sql.relation import OpenStar, Output, Source, TableInfo, starred
from govtool.capture.sql.scope import Environment, Scope

FILTER = ROW_KINDS["filter"]


@dataclass(slots=True)
class Write:
    """What one statement does to one dataset."""

    target: str
    kind: str
    """The statement's kind: ``create_view``, ``insert`` …"""
    mode: str
    target_kind: str = "table"
    output: Output = field(default_factory=Output)
    rows: dict[int, None] = field(default_factory=dict)
    reads: dict[str, None] = field(default_factory=dict)
    dataset_reads: tuple[str, ...] = ()
    """Files and stages that are read whole."""
    defines: bool = True
    """Whether ``output`` says what columns the target has (a definition), and not just which were written."""
    min_group: int | None = None
    renamed_to: str | None = None


class StatementWalk(QueryWalk):
    """Walks one statement."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.writes: list[Write] = []

    def statement(self, tree: exp.Expr) -> list[Write]:
        """Return the writes of a statement; none if it carries no lineage."""
        method = _METHODS.get(tree.__class__)
        if method is None:
            if isinstance(tree, exp.Query):
                method = "_select"
            else:
                return self.writes
        getattr(self, method)(tree)
        for name, common in self.common_tables:
            if not common.used and isinstance(common.node, exp.DML):
                self.separately(lambda common=common: self.common_table(common))  # type: ignore[misc]
            elif not common.used:
                self.diagnose("unused-cte", f"the CTE {name} is not read by anything", common.node, severity="info")
        return self.writes

    # ---- queries --------------------------------------------------------------------------------------

    def _select(self, tree: exp.Expr) -> None:
        output = self.query(tree, None, None)
        into = tree.args.get("into")
        if into is not None and isinstance(into.this, exp.Table):
            temporary = bool(into.args.get("temporary"))
            self._write(into.this, output, "create_table_as", "replace", "temporary" if temporary else "table", tree)
            return
        self.writes.append(self._taken(Write("", "select", "replace", "query", output, min_group=min_group(tree, self))))

    def _taken(self, write: Write) -> Write:
        """Move what the walk has recorded so far into ``write``."""
        write.rows, self.rows = self.rows, {}
        write.reads, self.reads = self.reads, {}
        return write

    def _write(
        self, table: exp.Expr, output: Output, kind: str, mode: str, target_kind: str, query: exp.Expr | None, *, defines: bool = True
    ) -> Write:
        name = self._target(table)
        write = self._taken(Write(name, kind, mode, target_kind, output, defines=defines))
        write.min_group = min_group(query, self) if query is not None else None
        self.writes.append(write)
        return write

    def _target(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Schema):
            node = node.this
        if isinstance(node, exp.Table):
            name = self.lookup.table_name(node)
            if name:
                return name
        if isinstance(node, exp.Directory):
            return file_name(node.this.name)
        self.diagnose("opaque", "the target is named by an expression or parameter", node)
        return ""

    # ---- CREATE ----------------------------------------------------------------------------------------

    def _create(self, tree: exp.Create) -> None:
        kind = str(tree.args.get("kind") or "").upper()
        if kind not in ("TABLE", "VIEW", "FLOW") or isinstance(tree.this, exp.UserDefinedFunction):
            return
        properties = tree.args["properties"].expressions if tree.args.get("properties") else []
        target_kind = _target_kind(kind, properties)
        names, types = self._column_list(tree.this)
        query = tree.args.get("expression")
        if isinstance(query, exp.Query) or isinstance(query, (exp.Table, exp.Pivot, exp.Values)):
            env = self.environment(tree, None, None)
            output = self.query(query, None, env)
            if names:
                if not output.open and len(names) != len(output.names) and kind == "VIEW":
                    self.diagnose("arity", f"{len(names)} names for {len(output.names)} columns", tree.this)
                output = self._named(output, names)
                output.types.update({i: t for i, t in enumerate(types) if t})
            write_kind = "create_table_as" if target_kind in ("table", "temporary") and kind == "TABLE" else "create_view"
            if target_kind == "materialized_view":
                write_kind = "create_materialized_view"
            write = self._write(tree.this, output, write_kind, "replace", target_kind, query)
            into = next((p.this for p in properties if isinstance(p, exp.ToTableProperty)), None)
            if into is not None:  # ClickHouse: the view is a trigger that fills another table
                write.target = self._target(into)
                write.mode, write.defines, write.kind = "append", False, "insert"
            return
        clone = tree.args.get("clone")
        like = next((p for p in self._likes(tree.this, properties)), None)
        if clone is not None and isinstance(clone.this, exp.Table):
            self._copied(tree.this, clone.this, target_kind, "create_table_as")
        elif like is not None:
            source = self.lookup.table(self.lookup.table_name(like))
            output = Output()
            for name, type_ in source.columns.items():
                output.add(name, ())
                if type_:
                    output.types[len(output.names) - 1] = type_
            for name, type_ in zip(names, types, strict=True):
                output.add(name, ())
                if type_:
                    output.types[len(output.names) - 1] = type_
            self._write(tree.this, output, "create_table", "declare", target_kind, None)
        else:
            output = Output()
            for name, type_ in zip(names, types, strict=True):
                output.add(name, ())
                if type_:
                    output.types[len(output.names) - 1] = type_
            for partition in (p for p in properties if isinstance(p, exp.PartitionedByProperty)):
                for column in partition.this.expressions if isinstance(partition.this, exp.Schema) else ():
                    if isinstance(column, exp.ColumnDef) and self.name(column.this) not in output.index():
                        output.add(self.name(column.this), ())
            write = self._write(tree.this, output, "create_table", "declare", target_kind, None, defines=bool(output.names))
            location = next((p for p in properties if isinstance(p, exp.LocationProperty)), None)
            if location is not None and isinstance(location.this, exp.Literal):
                write.dataset_reads = (file_name(location.this.name),)

    def _likes(self, node: exp.Expr, properties: Iterable[exp.Expr]) -> Iterable[exp.Table]:
        inside = node.expressions if isinstance(node, exp.Schema) else []
        for item in (*inside, *properties):
            if isinstance(item, (exp.LikeProperty, exp.PartitionedOfProperty)) and isinstance(item.this, exp.Table):
                yield item.this
            elif isinstance(item, exp.InheritsProperty):
                yield from (t for t in item.expressions if isinstance(t, exp.Table))

    def _copied(self, target: exp.Expr, source: exp.Table, target_kind: str, kind: str) -> None:
        inner = Scope(None)
        self.add_source(source, inner, None)
        self._write(target, self.star(inner), kind, "replace", target_kind, None)

    def _column_list(self, node: exp.Expr) -> tuple[list[str], list[str | None]]:
        names: list[str] = []
        types: list[str | None] = []
        for item in node.expressions if isinstance(node, exp.Schema) else ():
            if isinstance(item, exp.ColumnDef):
                kind = item.args.get("kind")
                names.append(self.name(item.this))
                types.append(kind.sql(dialect=self.dialect or None) if isinstance(kind, exp.DataType) else None)
            elif isinstance(item, (exp.Identifier, exp.Column)):
                names.append(self.name(item.this if isinstance(item, exp.Column) else item))
                types.append(None)
        return names, types

    def _named(self, output: Output, names: list[str]) -> Output:
        """Give the columns of ``output`` the names of a column list, by position."""
        if not output.open:
            return output.renamed(names)
        self.diagnose("star-unresolved", "the positions behind a * are not known: a column list cannot be matched to it")
        result = Output()
        for name in names:
            result.add(name, ())
        result.open = [OpenStar(s.table, s.except_, s.rename, s.arm, candidate=True) for s in output.open]
        return result

    def _cache(self, tree: exp.Cache) -> None:
        query = tree.args.get("expression")
        if isinstance(query, exp.Query):
            self._write(tree.this, self.query(query, None, None), "create_view", "replace", "temporary", query)

    # ---- INSERT -----------------------------------------------------------------------------------------

    def _insert(self, tree: exp.Insert) -> None:
        self.insert(tree, self.environment(tree, None, None))

    def insert(self, tree: exp.Insert, env: Environment | None, source: exp.Expr | None = None) -> Write | None:
        """Walk one INSERT; ``source`` is the FROM of Hive's multi-insert."""
        query = tree.args.get("expression")
        target = tree.this
        if not isinstance(target, (exp.Table, exp.Schema, exp.Directory)):
            self.diagnose("opaque", "the target of an INSERT is not a table", tree)
            return None
        if isinstance(query, exp.Expr) and not isinstance(query, exp.DML) and source is not None and isinstance(query, exp.Select):
            if query.args.get("from_") is None:
                query.set("from_", exp.From(this=source.copy()))
            output = self.query(query, None, env)
        elif isinstance(query, (exp.Query, exp.Table, exp.Values, exp.Pivot)):
            output = self.query(query, None, env)
        else:
            output = Output()
        overwrite = bool(tree.args.get("overwrite"))
        if isinstance(target, exp.Directory):
            return self._write(target, output, "insert", "replace", "file", query)
        columns, _ = self._column_list(target)
        table = target.this if isinstance(target, exp.Schema) else target
        partition = table.args.get("partition") or tree.args.get("partition")
        static, dynamic = self._partition(partition)
        output = self._by_target(output, self._target(table), columns, static, dynamic, bool(tree.args.get("by_name")), tree, query)
        for name, deps in static.items():
            output.add(name, deps)
        replaces = overwrite and not partition and tree.args.get("where") is None
        write = self._write(table, output, "insert", "replace" if replaces else "append", self._kind_of(table), query, defines=False)
        conflict = tree.args.get("conflict")
        if conflict is not None:
            self._on_conflict(conflict, table, write, env)
        return write

    def _partition(self, node: object) -> tuple[dict[str, Deps], list[str]]:
        """Split PARTITION (a = 'x', b) into static columns and dynamic ones."""
        static: dict[str, Deps] = {}
        dynamic: list[str] = []
        for item in node.expressions if isinstance(node, exp.Expr) else ():
            if isinstance(item, exp.EQ):
                left = item.this
                static[self.name(left.this if isinstance(left, exp.Column) else left)] = ()
            else:
                dynamic.append(self.name(item.this if isinstance(item, exp.Column) else item))
        return static, dynamic

    def _by_target(
        self,
        output: Output,
        target: str,
        columns: list[str],
        static: dict[str, Deps],
        dynamic: list[str],
        by_name: bool,
        tree: exp.Expr,
        query: exp.Expr | None,
    ) -> Output:
        """Give the columns of an inserted query the names of the target's columns."""
        if by_name:
            return output
        names = columns
        if not names and target:
            table = self.lookup.table(target)
            if table.complete:
                names = [name for name in table.columns if name not in static]
                if dynamic:  # dynamic partition columns come last in the query
                    names = [name for name in names if name not in dynamic] + dynamic
        if not names and dynamic and not output.open:
            names = [*output.names[: max(0, len(output.names) - len(dynamic))], *dynamic]
        if not names:
            if output.names and target and not isinstance(query, exp.Values):
                self.diagnose("assumed", f"the columns of {target} are not known: taken from the names of the query", tree, severity="info")
            elif output.names:
                self.diagnose("unresolved", f"the columns of {target} are not known, and VALUES has no names", tree, severity="info")
                return Output()
            return output
        if output.open:
            return self._matched_by_name(output, names, tree)
        if len(output.names) > len(names):
            self.diagnose("arity", f"{len(output.names)} values for {len(names)} columns of {target}", tree)
            return output.renamed(names)
        if columns and len(output.names) < len(names) and output.names:
            self.diagnose("arity", f"{len(output.names)} values for {len(names)} columns of {target}", tree)
        return output.renamed(names[: len(output.names)])

    def _matched_by_name(self, output: Output, names: list[str], tree: exp.Expr) -> Output:
        """A ``*`` hides the positions: columns of the same name are candidates only."""
        self.diagnose("star-unresolved", "the positions behind a * are not known: the inserted columns cannot be matched", tree)
        result = Output()
        for name in names:
            result.add(name, ())
        result.open = [OpenStar(s.table, s.except_, s.rename, s.arm, candidate=True) for s in output.open]
        return result

    def _kind_of(self, table: exp.Expr) -> str:
        name = self.lookup.table_name(table) if isinstance(table, exp.Table) else ""
        return "temporary" if name.startswith("temp.") else "table"

    def _on_conflict(self, node: exp.OnConflict, table: exp.Expr, write: Write, env: Environment | None) -> None:
        """ON CONFLICT DO UPDATE: SET values come from ``excluded`` (the inserted row) or the target."""
        scope = Scope(None)
        inserted = Source("excluded", output=write.output)
        scope.add(self._target_source(table))
        scope.add(inserted)
        inserted.hidden = True
        for alias in ("values", "new"):
            scope.by_alias.setdefault(alias, inserted)
        sets = [item for item in node.expressions if isinstance(item, exp.EQ)]
        if not sets:
            return
        group = self.number()
        arm = arm_of(group, 1)
        write.output.deps = [with_arm(deps, arm_of(group, 0)) for deps in write.output.deps]
        where = node.args.get("where")
        steering = self.collect(where.this, scope, env, CONDITIONAL, 0) if where is not None else []
        for name, deps in self._assignments(sets, scope, env):
            self._add_to(write.output, name, with_arm((*deps, *steering), arm))
        self.rows = {}
        self.reads = {}

    def _target_source(self, table: exp.Expr) -> Source:
        node = table.this if isinstance(table, exp.Schema) else table
        alias, _ = self._alias(node)
        name = self.lookup.table_name(node) if isinstance(node, exp.Table) else ""
        if not name or not isinstance(node, exp.Table):
            return Source(alias, output=Output())
        info = self.lookup.table(name)
        return Source(alias or self.name(node.parts[-1]), table=info, full_name=".".join(self.qualifier(node.parts)))

    def _add_to(self, output: Output, name: str, deps: Deps) -> None:
        position = output.index().get(name)
        if position is None:
            output.add(name, deps)
        else:
            output.deps[position] = bounded((*output.deps[position], *deps))

    def _multi_insert(self, tree: exp.MultitableInserts) -> None:
        """Hive's FROM … INSERT … INSERT …, and Oracle's and Snowflake's INSERT ALL / FIRST."""
        source = tree.args["source"]
        env = self.environment(tree, None, None)
        hive = [item for item in tree.expressions if isinstance(item, exp.Insert)]
        if hive:
            for item in hive:
                self.insert(item, env, source)
            return
        output, rows = self.separately(lambda: self.query(source, None, env))
        reads, self.reads = self.reads, {}
        conditions: list[exp.Expr] = []
        for item in tree.expressions:
            insert = item.this
            if not isinstance(insert, exp.Insert):
                continue
            scope = Scope(None)
            scope.add(Source("", output=output))
            values = insert.args.get("expression")
            row = values.expressions[0] if isinstance(values, exp.Values) and values.expressions else None
            written = Output()
            if row is None:
                for name, deps in zip(output.names, output.deps, strict=True):
                    written.add(name, deps)
            else:
                for value in row.expressions if isinstance(row, exp.Tuple) else [row]:
                    written.add(self.output_name(value), self.dependencies(value, scope, env))
            columns, _ = self._column_list(insert.this)
            table = insert.this.this if isinstance(insert.this, exp.Schema) else insert.this
            written = self._by_target(written, self._target(table), columns, {}, [], False, insert, None)
            own = item.args.get("expression")
            # ELSE, and with FIRST every later branch, is reached by what the earlier conditions let through.
            deciding = conditions if item.args.get("else_") or str(tree.args.get("kind")).upper() == "FIRST" else []
            for condition in [*deciding, own]:
                self.refer_to(condition, scope, env, FILTER)
            if own is not None:
                conditions.append(own)
            write = self._write(table, written, "insert", "append", self._kind_of(table), source, defines=False)
            write.rows.update(rows)
            write.reads.update(reads)

    # ---- UPDATE, DELETE, MERGE ------------------------------------------------------------------------------

    def _update(self, tree: exp.Update) -> None:
        self.update(tree, self.environment(tree, None, None))

    def update(self, tree: exp.Update, env: Environment | None) -> Write:
        """Walk an UPDATE: values flow into the SET columns; WHERE and ON steer them."""
        scope = Scope(None)
        table = tree.this
        from_ = tree.args.get("from_")
        aliased = self._aliased_target(table, from_)
        target_node = aliased if aliased is not None else table
        target = self._target(target_node)
        if aliased is None:
            scope.add(self._target_source(table))
            _, rows = self.separately(lambda: self._joins(table, scope, env))
            self.rows.update(rows)
        if from_ is not None:
            self.add_source(from_.this, scope, env)
        for key in ("joins", "laterals"):
            for item in tree.args.get(key) or ():
                if isinstance(item, exp.Join):
                    self.add_join(item, scope, env)
        where = tree.args.get("where")
        if where is not None:
            self.refer_to(where.this, scope, env, FILTER)
        steering, self.rows = list(self.rows), {}
        output = Output()
        for name, deps in self._assignments(tree.expressions, scope, env):
            self._add_to(output, name, (*deps, *(compose(dep & ~KIND_MASK, CONDITIONAL, 0, self.interner) for dep in steering)))
        own_read = aliased is None
        write = self._write(target_node, output, "update", "update", self._kind_of(target_node), None, defines=False)
        if own_read or list(write.reads).count(target) == 1:
            write.reads.pop(target, None)
        return write

    def _joins(self, table: exp.Expr, scope: Scope, env: Environment | None) -> Output:
        for join in table.args.get("joins") or ():
            self.add_join(join, scope, env)
        return Output()

    def _aliased_target(self, table: exp.Expr, from_: exp.Expr | None) -> exp.Table | None:
        """T-SQL's UPDATE u … FROM t u: the target is the table behind the alias."""
        if from_ is None or not isinstance(table, exp.Table) or table.args.get("db"):
            return None
        stack = [from_.this, *(from_.parent.args.get("joins") or [] if from_.parent is not None else [])]
        while stack:
            item = stack.pop()
            if isinstance(item, exp.Join):
                item = item.this
            if isinstance(item, exp.Table):
                alias, _ = self._alias(item)
                if (alias or self.name(item.this)) == self.name(table.this) and (alias or self.dialect in ("tsql", "fabric")):
                    return item
                stack.extend(item.args.get("joins") or ())
        return None

    def _assignments(self, items: Iterable[exp.Expr], scope: Scope, env: Environment | None) -> list[tuple[str, Deps]]:
        """Return the columns that SET assigns, with what flows into each; rows of subqueries steer their column."""
        found: list[tuple[str, Deps]] = []
        for item in items:
            if not isinstance(item, (exp.EQ, exp.PropertyEQ)):
                self.diagnose("opaque", "an assignment of SET is not understood", item)
                continue
            left, right = item.this, item.expression
            saved, self.rows = self.rows, {}
            if isinstance(left, exp.Tuple):
                names = [self._assigned(part) for part in left.expressions]
                values = self._tuple_values(right, len(names), scope, env)
            else:
                names = [self._assigned(left)]
                values = [self.dependencies(right, scope, env)]
            steering = [compose(dep & ~KIND_MASK, CONDITIONAL, 0, self.interner) for dep in self.rows]
            self.rows = saved
            found.extend((name, bounded((*deps, *steering))) for name, deps in zip(names, values, strict=False))
        return found

    def _tuple_values(self, right: exp.Expr, count: int, scope: Scope, env: Environment | None) -> list[Deps]:
        plain = right.unnest() if isinstance(right, (exp.Subquery, exp.Paren)) else right
        if isinstance(plain, exp.Query):
            return self.query(plain, scope, env).deps
        if isinstance(plain, exp.Tuple):
            return [self.dependencies(value, scope, env) for value in plain.expressions]
        return [self.dependencies(right, scope, env)] * count

    def _assigned(self, node: exp.Expr) -> str:
        """Return the column (or field path) that an assignment names, without the table's alias."""
        if isinstance(node, exp.Column):
            parts = self.qualifier(node.parts)
            return parts[-1] if len(parts) < 2 or self.dialect not in ("bigquery", "spark", "databricks") else self._assigned_path(parts)
        if isinstance(node, (exp.Dot, exp.Bracket)):
            base, path = self._path(node)
            return f"{self._assigned(base)}.{path}" if not path.startswith("[") else f"{self._assigned(base)}{path}"
        return self.name(node)

    def _assigned_path(self, parts: tuple[str, ...]) -> str:
        return ".".join(parts[1:]) if parts[0] in self._target_names else ".".join(parts)

    @property
    def _target_names(self) -> frozenset[str]:
        return self._targets

    _targets: frozenset[str] = frozenset()

    def _delete(self, tree: exp.Delete) -> None:
        self.delete(tree, self.environment(tree, None, None))

    def delete(self, tree: exp.Delete, env: Environment | None) -> Write:
        """Walk a DELETE: what decides which rows go is referenced by the target's row set."""
        scope = Scope(None)
        several = tree.args.get("tables")
        table = tree.this if isinstance(tree.this, exp.Table) else several[0] if several else None
        if table is None:
            return self._write(tree, Output(), "delete", "delete", "table", None, defines=False)
        self.add_source(table, scope, env)
        target = self._target(table)
        for source in tree.args.get("using") or ():
            self.add_source(source, scope, env)
        where = tree.args.get("where")
        if where is not None:
            self.refer_to(where.this, scope, env, FILTER)
        node = table
        if several:
            source = scope.find((self.name(several[0].this),))
            if source is not None and source.table is not None:
                target = source.table.id
        write = self._write(node, Output(), "delete", "delete", self._kind_of(table), None, defines=False)
        write.target = target
        write.reads.pop(target, None)
        return write

    def _merge(self, tree: exp.Merge) -> None:
        env = self.environment(tree, None, None)
        table = tree.this
        target = self._target(table)
        scope = Scope(None)
        scope.add(self._target_source(table))
        before = len(scope.sources)
        self.add_source(tree.args["using"], scope, env)
        source = scope.sources[before] if len(scope.sources) > before else None
        inner_rows, self.rows = self.rows, {}
        on = self.collect(tree.args["on"], scope, env, CONDITIONAL, 0) if tree.args.get("on") is not None else []
        on_rows, self.rows = self.rows, {}
        on_rows = {**inner_rows, **on_rows}
        output = Output()
        rows: dict[int, None] = {}
        group = self.number()
        for number, when in enumerate(tree.args["whens"].expressions):
            arm = arm_of(group, number)
            condition = when.args.get("condition")
            deciding = self.collect(condition, scope, env, CONDITIONAL, 0) if condition is not None else []
            deciding_rows, self.rows = self.rows, {}
            then = when.args["then"]
            if isinstance(then, exp.Update):
                steering = [compose(dep & ~KIND_MASK, CONDITIONAL, 0, self.interner) for dep in (*on, *deciding, *on_rows, *deciding_rows)]
                for name, deps in self._branch_values(then, scope, env, source, target):
                    self._add_to(output, name, with_arm((*deps, *steering), arm))
                continue
            if isinstance(then, exp.Insert):
                for name, deps in self._branch_insert(then, scope, env, source, target):
                    self._add_to(output, name, with_arm(deps, arm))
            self.refer(on, ROW_KINDS["join"])
            self.refer(deciding, FILTER)
            for row in with_arm((*self.rows, *on_rows, *deciding_rows), arm):
                rows[row] = None
            self.rows = {}
        self.rows = rows
        write = self._write(table, output, "merge", "update", self._kind_of(table), None, defines=False)
        write.reads.pop(target, None)
        if source is not None and source.table is not None:
            write.reads[source.table.id] = None

    def _branch_values(
        self, then: exp.Update, scope: Scope, env: Environment | None, source: Source | None, target: str
    ) -> list[tuple[str, Deps]]:
        assigned = then.args.get("expressions")
        if isinstance(assigned, exp.Star) or any(isinstance(item, exp.Star) for item in assigned or ()):
            return self._same_names(source, target, then)
        saved, self._targets = self._targets, frozenset({scope.sources[0].alias})
        try:
            return self._assignments(then.expressions, scope, env)
        finally:
            self._targets = saved

    def _same_names(self, source: Source | None, target: str, node: exp.Expr) -> list[tuple[str, Deps]]:
        """UPDATE SET * and INSERT *: columns of the source into those of the same name."""
        if source is None:
            return []
        wanted = self.lookup.table(target)
        output = self.source_star(source)
        pairs = list(zip(output.names, output.deps, strict=True))
        if output.open:
            self.diagnose("star-unresolved", "the columns of the source of a MERGE are not all known", node)
            for star in output.open:
                for name in wanted.columns:
                    if name not in output.index():
                        pairs.append((name, starred(star.lookup(name, self.interner) or ())))
        if wanted.complete:
            pairs = [pair for pair in pairs if pair[0] in wanted.columns]
        return pairs

    def _branch_insert(
        self, then: exp.Insert, scope: Scope, env: Environment | None, source: Source | None, target: str
    ) -> list[tuple[str, Deps]]:
        columns = then.this
        values = then.args.get("expression")
        if isinstance(columns, (exp.Star, exp.Var)) and values is None:
            if isinstance(columns, exp.Var) and source is not None:  # BigQuery's INSERT ROW: by position
                output = self.source_star(source)
                known = self.lookup.table(target)
                if known.complete and not output.open:
                    return list(zip(known.columns, output.deps, strict=False))
            return self._same_names(source, target, then)
        items = values.expressions if isinstance(values, exp.Tuple) else [values] if isinstance(values, exp.Expr) else []
        if isinstance(columns, exp.Tuple):
            names = [self._assigned(c) for c in columns.expressions]
        elif isinstance(columns, (exp.Column, exp.Identifier, exp.Paren)):
            inner = columns.this if isinstance(columns, exp.Paren) else columns
            names = [self._assigned(inner)]
        else:
            known = self.lookup.table(target)
            if isinstance(values, exp.Var) or not items:
                return self._same_names(source, target, then)
            if not known.complete:
                self.diagnose("unresolved", f"the columns of {target} are not known, and the INSERT of a MERGE lists none", then)
                return []
            names = list(known.columns)
        items = [item.this if isinstance(item, exp.Paren) else item for item in items]
        return [(name, self.dependencies(item, scope, env)) for name, item in zip(names, items, strict=False)]

    def modifying(self, node: exp.Expr, env: Environment | None) -> Output:
        """Walk a data-modifying CTE: its write counts, and its RETURNING is its output."""
        saved_rows, self.rows = self.rows, {}
        saved_reads, self.reads = self.reads, {}
        env = self.environment(node, None, env)
        write: Write | None = None
        if isinstance(node, exp.Insert):
            write = self.insert(node, env)
        elif isinstance(node, exp.Update):
            write = self.update(node, env)
        elif isinstance(node, exp.Delete):
            write = self.delete(node, env)
        else:
            self.diagnose("opaque", f"{node.key.upper()} inside WITH is not understood", node)
        self.rows, self.reads = saved_rows, saved_reads
        output = Output()
        returning = node.args.get("returning")
        if returning is None or write is None:
            return output
        self.reads[write.target] = None
        self.reads.update(write.reads)
        self.rows.update(write.rows)  # which rows it returns is decided by what decided which rows it touched
        scope = Scope(None)
        scope.add(self._target_source(node.this))
        for source in node.args.get("using") or ():
            self.add_source(source, scope, env)
        for item in returning.expressions:
            if isinstance(item, exp.Star):
                star = self.star(scope)
                for name, deps in zip(star.names, star.deps, strict=True):
                    output.add(name, deps)
                output.open.extend(star.open)
            else:
                output.add(self.output_name(item), self.dependencies(item, scope, env))
        return output

    # ---- files ------------------------------------------------------------------------------------------------

    def _copy(self, tree: exp.Copy) -> None:
        """COPY in either direction, between a table or query and files or stages."""
        this = tree.this
        files = tree.args.get("files") or []
        if tree.args.get("kind"):  # into a table
            columns, _ = self._column_list(this)
            output = Output()
            query = next((f for f in files if isinstance(f, exp.Subquery)), None)
            table = this.this if isinstance(this, exp.Schema) else this
            if query is not None:
                output = self._by_target(self.query(query, None, None), self._target(table), columns, {}, [], False, tree, query)
            else:
                for name in columns:
                    output.add(name, ())
            write = self._write(table, output, "copy", "append", self._kind_of(table), query, defines=False)
            write.dataset_reads = tuple(file_name(name) for f in files if (name := _location(f)))
            return
        inner = this.this if isinstance(this, exp.Schema) else this
        if isinstance(inner, exp.Query):
            output = self.query(inner, None, None)
        else:
            scope = Scope(None)
            self.add_source(inner, scope, None)
            output = self.star(scope)
            columns, _ = self._column_list(this)
            if columns:
                kept = Output()
                for name in columns:
                    kept.add(name, scope.sources[0].get(name, self.interner) or scope.sources[0].assume(name, self.interner) or ())
                output = kept
        for target in (name for f in files if (name := _location(f))):
            self.writes.append(self._taken(Write(file_name(target), "copy", "replace", "file", output)))

    def _load(self, tree: exp.LoadData) -> None:
        table = tree.this
        path = tree.args.get("inpath")
        mode = "replace" if tree.args.get("overwrite") else "append"
        write = self._write(table, Output(), "load", mode, self._kind_of(table), None, defines=False)
        name = _location(path) if isinstance(path, exp.Expr) else ""
        write.dataset_reads = (file_name(name),) if name else ()

    def _export(self, tree: exp.Export) -> None:
        output = self.query(tree.this, None, None)
        options = tree.args.get("options")
        uri = next((p.args["value"].name for p in options.expressions if p.name.lower() == "uri"), "") if options is not None else ""
        if not uri:
            self.diagnose("opaque", "EXPORT DATA without a constant uri", tree)
            return
        self.writes.append(self._taken(Write(file_name(uri), "copy", "replace", "file", output)))

    # ---- DDL on what exists ----------------------------------------------------------------------------------------

    def _alter(self, tree: exp.Alter) -> None:
        table = tree.this
        if not isinstance(table, exp.Table):
            return
        for action in tree.args.get("actions") or ():
            if isinstance(action, exp.AlterRename):
                self._rename(table, action.this)
            elif isinstance(action, exp.SwapTable):
                self._rename(table, action.this, swap=True)
            elif isinstance(action, exp.Query):
                self._write(table, self.query(action, None, None), "create_view", "replace", "view", action)
            elif isinstance(action, exp.RenameColumn):
                output = Output()
                name = self.lookup.table_name(table)
                old, new = self.name(_column_of(action.this)), self.name(_column_of(action.args["to"]))
                output.add(new, self.lookup.table(name).deps(old, self.interner) if name else ())
                self._write(table, output, "alter", "update", self._kind_of(table), None, defines=False)
            elif isinstance(action, (exp.ColumnDef, exp.Schema)):
                output = Output()
                for column in action.expressions if isinstance(action, exp.Schema) else [action]:
                    if isinstance(column, exp.ColumnDef):
                        output.add(self.name(column.this), ())
                        kind = column.args.get("kind")
                        if kind is not None:
                            output.types[len(output.names) - 1] = kind.sql(dialect=self.dialect or None)
                if output.names:
                    self._write(table, output, "alter", "declare", self._kind_of(table), None, defines=False)

    def _rename(self, old: exp.Table, new: exp.Expr, *, swap: bool = False) -> None:
        if not isinstance(new, exp.Table):
            return
        source = self.lookup.table_name(old)
        if not new.args.get("db") and old.args.get("db"):
            new = new.copy()
            new.set("db", old.args["db"].copy())
            if old.args.get("catalog"):
                new.set("catalog", old.args["catalog"].copy())
        write = Write(source, "swap" if swap else "rename", "rename", renamed_to=self.lookup.table_name(new), defines=False)
        self.writes.append(write)

    def _drop(self, tree: exp.Drop) -> None:
        kind = str(tree.args.get("kind") or "").upper()
        if kind not in ("TABLE", "VIEW"):
            return
        for table in tree.args.get("tables") or ([tree.this] if isinstance(tree.this, exp.Table) else []):
            if isinstance(table, exp.Table):
                self.writes.append(Write(self.lookup.table_name(table), "drop", "drop", defines=False))

    def _truncate(self, tree: exp.TruncateTable) -> None:
        for table in tree.expressions:
            if isinstance(table, exp.Table):
                self.writes.append(Write(self.lookup.table_name(table), "truncate", "truncate", defines=False))


_METHODS: dict[type, str] = {
    exp.Create: "_create",
    exp.Cache: "_cache",
    exp.Insert: "_insert",
    exp.MultitableInserts: "_multi_insert",
    exp.Update: "_update",
    exp.Delete: "_delete",
    exp.Merge: "_merge",
    exp.Copy: "_copy",
    exp.LoadData: "_load",
    exp.Export: "_export",
    exp.Alter: "_alter",
    exp.Drop: "_drop",
    exp.TruncateTable: "_truncate",
    exp.Pivot: "_select",
    exp.Values: "_select",
}


def _target_kind(kind: str, properties: list[exp.Expr]) -> str:
    if any(isinstance(p, (exp.TemporaryProperty, exp.VolatileProperty)) for p in properties):
        return "temporary"
    if kind == "VIEW":
        return "materialized_view" if any(isinstance(p, exp.MaterializedProperty) for p in properties) else "view"
    return "table"


def file_name(location: str) -> str:
    """Return the canonical dataset name of a file, path or stage: quoted, since it is no plain identifier."""
    return '"' + location.replace('"', '""') + '"'


def _location(node: exp.Expr) -> str:
    if isinstance(node, exp.Literal):
        return str(node.name)
    if isinstance(node, exp.Table):
        this = node.this
        return this.name if isinstance(this, (exp.Var, exp.Identifier)) else ""
    if isinstance(node, exp.Var):
        return node.name
    return ""


def _column_of(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Column) else node


def min_group(query: exp.Expr, walk: QueryWalk) -> int | None:
    """Return k where the outermost SELECT has ``HAVING COUNT(…) >= k`` among its conjuncts, else None."""
    body = query.unnest() if isinstance(query, exp.Subquery) else query
    having = body.args.get("having") if isinstance(body, exp.Select) else None
    if having is None:
        return None
    best: int | None = None
    stack = [having.this]
    while stack:
        item = stack.pop()
        if isinstance(item, (exp.And, exp.Paren)):
            stack.extend(value for value in (item.args.get("this"), item.args.get("expression")) if isinstance(value, exp.Expr))
            continue
        left, right = item.args.get("this"), item.args.get("expression")
        bound: int | None = None
        if isinstance(item, (exp.GTE, exp.GT)) and isinstance(left, exp.Count) and isinstance(right, exp.Literal) and right.name.isdigit():
            bound = int(right.name) + isinstance(item, exp.GT)
        elif isinstance(item, (exp.LTE, exp.LT)) and isinstance(right, exp.Count) and isinstance(left, exp.Literal) and left.name.isdigit():
            bound = int(left.name) + isinstance(item, exp.LT)
        if bound is not None:
            best = bound if best is None else max(best, bound)
    return best


__all__ = ["STAR", "StatementWalk", "TableInfo", "Write", "file_name"]
