"""Statements: what each kind writes, from which columns.

``StatementWalk.statement`` turns one tree into writes: drafts of derivations, still with packed dependencies.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.columns import ROW_KINDS
from govtool.capture.sql.walk.dependencies import CONDITIONAL, KIND_MASK, OPAQUE, REF_SHIFT, bounded, compose
from govtool.capture.sql.walk.functions import type_text
from govtool.capture.sql.walk.query import CTES_WHEN_READ
from govtool.capture.sql.walk.relation import QueryOutput, Source, into_of
from govtool.capture.sql.walk.scope import CommonTable, Environment, Scope
from govtool.capture.sql.walk.state import EVERYWHERE, TriggerCondition
from govtool.capture.sql.walk.unread import UnreadWalk
from govtool.capture.sql.walk.writes import BY_NAME, BY_POSITION, Write, bounds_of


class StatementWalk(UnreadWalk):
    """Walks one statement of any kind."""

    def statement(self, tree: exp.Expr) -> list[Write]:
        """Return the writes of a statement; none if it carries no lineage."""
        method = _METHODS.get(tree.__class__)
        if method is None:
            if isinstance(tree, nodes.Query):
                method = "_select"
            else:
                return self.writes
        getattr(self, method)(tree)
        for name, common in self.common_tables:
            if not common.used and isinstance(common.node, nodes.DML):
                self.separately(lambda common=common: self.common_table(common))  # type: ignore[misc]
            elif not common.used:
                if self.dialect not in CTES_WHEN_READ:
                    self._name_columns(common)
                self.diagnose("unused-cte", f"the CTE {name} is not read by anything", common.node, severity="info")
        for condition in self.conditions if self.writes else ():
            self._restrict(condition)
        for test in self.tests if self.writes else ():
            self._decide(test)
        named = frozenset([dep >> REF_SHIFT for dep in self.named if dep & KIND_MASK != OPAQUE])
        for write in self.writes:
            write.named = named
        return self.writes

    def _restrict(self, condition: TriggerCondition) -> None:
        """Let what is written depend on the rows for which a trigger runs: it steers values that are set, else rows."""
        scope = Scope(None)
        table = self.lookup.table(condition.table)
        for name in condition.records:
            scope.add(Source(name, table=table))
        self._depend(self._deciding_rows(condition.node, scope))

    def _decide(self, test: exp.Expr) -> None:
        """Let what is written depend on the condition of an IF around it. What it does not find, others report."""
        reads, self.reads = self.reads, {}
        diagnostics, self.diagnostics = self.diagnostics, {}
        ambiguous = dict(self.ambiguous)
        rows = self._deciding_rows(test, Scope(None))
        self.reads, self.diagnostics, self.ambiguous = reads, diagnostics, ambiguous
        self._depend({dep: None for dep in rows if dep & KIND_MASK != OPAQUE})

    def _deciding_rows(self, condition: exp.Expr, scope: Scope) -> dict[int, exp.Expr | None]:
        """The dependencies of a condition, as those of a filter."""
        saved, self.rows = self.rows, {}
        self.refer_to(condition, scope, None, ROW_KINDS["filter"])
        rows, self.rows = self.rows, saved
        return rows

    def _depend(self, rows: dict[int, exp.Expr | None]) -> None:
        """Let what is written depend on rows of others: they steer values that are set, else they decide about rows."""
        steering = [compose(dep & ~KIND_MASK, CONDITIONAL, 0, self.interner) for dep in rows]
        for write in self.writes:
            if write.kind == "update":
                write.output.deps = [bounded((*deps, *steering)) for deps in write.output.deps]
            elif write.mode != "assign":
                write.rows.update(rows)

    def touches_rows(self, write: Write) -> None:
        """Let what steers an UPDATE decide about rows, too: triggers run for the rows that it touches."""
        saved, self.rows = self.rows, write.rows
        for deps in write.output.deps:
            self.refer([dep for dep in deps if dep & KIND_MASK == CONDITIONAL], ROW_KINDS["filter"])
        self.rows = saved

    def _name_columns(self, common: CommonTable) -> None:
        """Record what a CTE names that nothing reads: the statement fails without these columns all the same."""
        self.without_effects(lambda: self.common_table(common))

    # ---- two tables at once ---------------------------------------------------------------------------

    def _insert(self, tree: exp.Insert) -> None:
        super()._insert(tree)
        self._into(tree)

    def _update(self, tree: exp.Update) -> None:
        super()._update(tree)
        self._into(tree)

    def _delete(self, tree: exp.Delete) -> None:
        super()._delete(tree)
        self._into(tree)

    def _merge(self, tree: exp.Merge) -> None:
        super()._merge(tree)
        self._into(tree)

    def _into(self, tree: exp.Expr) -> None:
        """T-SQL's ``OUTPUT inserted.a, deleted.b INTO log``: the rows that were touched, into a second table."""
        returning = tree.args.get("returning")
        if returning is None or not self.writes or not self.writes[0].target:
            return
        into = returning.args.get("into")
        if not isinstance(into, (nodes.Table, nodes.Schema)):
            return
        touched = self.writes[0]
        before = len(self.common_tables)
        env = self.environment(tree, None, None)
        del self.common_tables[before:]  # the same, once more: what of them is read was seen
        item = self._changed(tree)
        changed = self.target_cte(item, env) if item is not None else None
        scope = Scope(None)
        for alias in ("inserted", "deleted"):
            if changed is not None:
                source = Source(alias, output=self.common_table(changed))
            else:
                source = Source(alias, table=self.lookup.table(touched.target))
            source.hidden = True  # named with its alias only
            scope.add(source)
        self._touching(tree, scope, env)
        given = nodes.Select(expressions=returning.expressions)
        output = self._projections(given, scope, None)
        columns, _ = self._column_list(into)
        name = self._target(into)
        output = self._by_target(output, name, columns, {}, [], False, tree, given)
        node = into.this if isinstance(into, nodes.Schema) else into
        write = self._write(into, output, "insert", "append", self._kind_of(node), None, defines=False)
        write.fills = BY_NAME if columns else BY_POSITION
        write.rows.update(touched.rows)
        write.reads[touched.target] = EVERYWHERE

    def _changed(self, tree: exp.Expr) -> exp.Expr | None:
        """Return the FROM item whose rows a statement changes."""
        if isinstance(tree, nodes.Delete) and tree.args.get("tables"):
            named = tree.args["tables"][0]
            items = [tree.this] if isinstance(tree.this, nodes.Expr) else []
            return self.item_named(self.name(named.this), items) or named
        if isinstance(tree, nodes.Update):
            aliased = self._aliased_target(tree.this, tree.args.get("from_"))
            if aliased is not None:
                return aliased
        target = tree.this
        return target if isinstance(target, nodes.Expr) else None

    def _touching(self, tree: exp.Expr, scope: Scope, env: Environment | None) -> None:
        """Add what an OUTPUT may name besides the rows, and reference what decided which rows were touched."""
        from_ = tree.args.get("from_")
        where = tree.args.get("where")
        if isinstance(tree, nodes.Merge):
            scope.add(self._target_source(tree.this))
            self.add_source(tree.args["using"], scope, env)
            self.refer_to(tree.args.get("on"), scope, env, ROW_KINDS["join"])
        elif isinstance(tree, nodes.Update):
            if from_ is None:
                scope.add(self._target_source(tree.this))
            self.add_sources(tree, scope, env)
            if where is not None:
                self.refer_to(where.this, scope, env, ROW_KINDS["filter"])
        elif isinstance(tree, nodes.Delete) and isinstance(tree.this, nodes.Expr):
            self.add_source(tree.this, scope, env)

    # ---- queries --------------------------------------------------------------------------------------

    def _select(self, tree: exp.Expr) -> None:
        output = self.query(tree, None, None)
        if self.dialect in ("tsql", "fabric") and _assigns_variables(tree):
            return
        into = into_of(tree)
        if into is not None and isinstance(into.this, nodes.Table):
            temporary = bool(into.args.get("temporary"))
            self._write(into.this, output, "create_table_as", "replace", "temporary" if temporary else "table", tree)
            return
        self.writes.append(self._taken(Write("", "select", "replace", "query", output, bounds=bounds_of(tree, self))))

    def modifying(self, node: exp.Expr, env: Environment | None) -> QueryOutput:
        """Walk a data-modifying CTE: its write counts, and its RETURNING is its output."""
        saved_rows, self.rows = self.rows, {}
        saved_reads, self.reads = self.reads, {}
        env = self.environment(node, None, env)
        write: Write | None = None
        if isinstance(node, nodes.Insert):
            write = self.insert(node, env)
        elif isinstance(node, nodes.Update):
            write = self.update(node, env)
        elif isinstance(node, nodes.Delete):
            write = self.delete(node, env)
        else:
            self.diagnose("opaque", f"{node.key.upper()} inside WITH is not understood", node)
        self.rows, self.reads = saved_rows, saved_reads
        output = QueryOutput()
        returning = node.args.get("returning")
        if returning is None or write is None:
            return output
        self.reads[write.target] = EVERYWHERE
        self.read(write.reads)
        self.rows.update(write.rows)  # which rows it returns is decided by what decided which rows it touched
        scope = Scope(None)
        scope.add(self._target_source(node.this))
        for source in node.args.get("using") or ():
            self.add_source(source, scope, env)
        if isinstance(node, nodes.Update):  # whose conditions steer values there, and rows here
            self.add_sources(node, scope, env)
            where = node.args.get("where")
            if where is not None:
                self.refer_to(where.this, scope, env, ROW_KINDS["filter"])
        for item in returning.expressions:
            if isinstance(item, nodes.Star):
                star = self.star(scope)
                for name, deps in zip(star.names, star.deps, strict=True):
                    output.add(name, deps)
                output.open.extend(star.open)
            else:
                output.add(self.output_name(item), self.dependencies(item, scope, env))
        return output

    # ---- DDL on what exists ----------------------------------------------------------------------------------------

    def _alter(self, tree: exp.Alter) -> None:
        table = tree.this
        if not isinstance(table, nodes.Table):
            return
        for action in tree.args.get("actions") or ():
            if isinstance(action, nodes.AlterRename):
                self._rename(table, action.this)
            elif isinstance(action, nodes.SwapTable):
                self._rename(table, action.this, swap=True)
            elif isinstance(action, nodes.Query):
                self._write(table, self.query(action, None, None), "create_view", "replace", "view", action)
            elif isinstance(action, nodes.RenameColumn):
                output = QueryOutput()
                name = self.lookup.table_name(table)
                old, new = self.name(_column_of(action.this)), self.name(_column_of(action.args["to"]))
                output.add(new, self.lookup.table(name).deps(old, self.interner) if name else ())
                self._write(table, output, "alter", "update", self._kind_of(table), None, defines=False)
            elif isinstance(action, (nodes.ColumnDef, nodes.Schema)):
                output = QueryOutput()
                for column in action.expressions if isinstance(action, nodes.Schema) else [action]:
                    if isinstance(column, nodes.ColumnDef):
                        output.add(self.name(column.this), ())
                        kind = column.args.get("kind")
                        if kind is not None:
                            output.types[len(output.names) - 1] = type_text(kind, self.dialect) or ""
                if output.names:
                    self._write(table, output, "alter", "declare", self._kind_of(table), None, defines=False)

    def _rename(self, old: exp.Table, new: exp.Expr, *, swap: bool = False) -> None:
        if not isinstance(new, nodes.Table):
            return
        source = self.lookup.table_name(old)
        if not new.args.get("db") and old.args.get("db"):
            new = new.copy()
            new.set("db", old.args["db"].copy())
            if old.args.get("catalog"):
                new.set("catalog", old.args["catalog"].copy())
        write = Write(
            source, "swap" if swap else "rename", "rename", renamed_to=self.lookup.table_name(new), defines=False
        )
        self.writes.append(write)

    def _drop(self, tree: exp.Drop) -> None:
        kind = str(tree.args.get("kind") or "").upper()
        if kind not in ("TABLE", "VIEW"):
            return
        for table in tree.args.get("tables") or ([tree.this] if isinstance(tree.this, nodes.Table) else []):
            if isinstance(table, nodes.Table):
                self.writes.append(Write(self.lookup.table_name(table), "drop", "drop", kind.lower(), defines=False))

    def _truncate(self, tree: exp.TruncateTable) -> None:
        for table in tree.expressions:
            if isinstance(table, nodes.Table):
                self.writes.append(Write(self.lookup.table_name(table), "truncate", "truncate", defines=False))


def _assigns_variables(tree: exp.Expr) -> bool:
    """Return whether a SELECT only sets variables: ``SELECT @n = count(*) FROM t``."""
    items = tree.expressions if isinstance(tree, nodes.Select) else []
    return bool(items) and all(isinstance(i, nodes.EQ) and isinstance(i.this, nodes.Parameter) for i in items)


_METHODS: Final[dict[type, str]] = {
    nodes.Create: "_create",
    nodes.Cache: "_cache",
    nodes.Insert: "_insert",
    nodes.MultitableInserts: "_multi_insert",
    nodes.Update: "_update",
    nodes.Delete: "_delete",
    nodes.Merge: "_merge",
    nodes.Copy: "_copy",
    nodes.LoadData: "_load",
    nodes.Export: "_export",
    nodes.Alter: "_alter",
    nodes.Drop: "_drop",
    nodes.TruncateTable: "_truncate",
    nodes.Pivot: "_select",
    nodes.Values: "_select",
    nodes.Declare: "_declare",
    nodes.Set: "_assign",
    nodes.Command: "_unread",
}


def _column_of(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, nodes.Column) else node
