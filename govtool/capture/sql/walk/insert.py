"""INSERT in all its forms: by position, column list or name, into partitions, several at once, with ON CONFLICT."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.columns import ROW_KINDS
from govtool.capture.sql.walk.dependencies import CONDITIONAL, Deps, arm_of, possibly, with_arm
from govtool.capture.sql.walk.modify import ModifyWalk
from govtool.capture.sql.walk.relation import FunctionRows, OpenStar, QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.writes import BY_NAME, BY_POSITION, Write

FILTER: Final = ROW_KINDS["filter"]


class InsertWalk(ModifyWalk):
    """Walks INSERTs."""

    def _insert(self, tree: exp.Insert) -> None:
        self.insert(tree, self.environment(tree, None, None))

    def insert(self, tree: exp.Insert, env: Environment | None, source: exp.Expr | None = None) -> Write | None:
        """Walk one INSERT; ``source`` is the FROM of Hive's multi-insert."""
        query = tree.args.get("expression")
        target = tree.this
        if not isinstance(target, (nodes.Table, nodes.Schema, nodes.Directory)):
            self.diagnose("opaque", "the target of an INSERT is not a table", tree)
            return None
        if (
            isinstance(query, nodes.Expr)
            and not isinstance(query, nodes.DML)
            and source is not None
            and isinstance(query, nodes.Select)
        ):
            if query.args.get("from_") is None:
                query.set("from_", nodes.From(this=source.copy()))
            output = self.query(query, None, env)
        elif isinstance(query, (nodes.Query, nodes.Table, nodes.Values, nodes.Pivot)):
            output = self.query(query, None, env)
        else:
            output = QueryOutput()
        overwrite = bool(tree.args.get("overwrite"))
        if isinstance(target, nodes.Directory):
            return self._write(target, output, "insert", "replace", "file", query)
        columns, _ = self._column_list(target)
        table = target.this if isinstance(target, nodes.Schema) else target
        partition = table.args.get("partition") or tree.args.get("partition")
        static, dynamic = self._partition(partition)
        cte = self.target_cte(table, env)
        name = self._target(table) if cte is None else self.base(table, env) or self.no_base(table)
        output = self._by_target(output, name, columns, static, dynamic, bool(tree.args.get("by_name")), tree, query)
        for column, deps in static.items():
            output.add(column, deps)
        if cte is not None:
            rows = Source(name, output=self.without_effects(lambda: self.common_table(cte)))
            output = self.renamed_to_base(output, rows, name, table)
        replaces = overwrite and not partition and tree.args.get("where") is None
        write = self._write(
            table, output, "insert", "replace" if replaces else "append", self._kind_of(table), query, defines=False
        )
        write.target = name
        write.fills = BY_NAME if columns or tree.args.get("by_name") else BY_POSITION
        conflict = tree.args.get("conflict")
        if conflict is not None:
            self._on_conflict(conflict, table, write, env, query)
        return write

    def _partition(self, node: object) -> tuple[dict[str, Deps], list[str]]:
        """Split PARTITION (a = 'x', b) into static columns and dynamic ones."""
        static: dict[str, Deps] = {}
        dynamic: list[str] = []
        for item in node.expressions if isinstance(node, nodes.Expr) else ():
            if isinstance(item, nodes.EQ):
                left = item.this
                static[self.name(left.this if isinstance(left, nodes.Column) else left)] = ()
            else:
                dynamic.append(self.name(item.this if isinstance(item, nodes.Column) else item))
        return static, dynamic

    def _by_target(
        self,
        output: QueryOutput,
        target: str,
        columns: list[str],
        static: dict[str, Deps],
        dynamic: list[str],
        by_name: bool,
        tree: exp.Expr,
        query: exp.Expr | None,
    ) -> QueryOutput:
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
            if output.names and target and not isinstance(query, nodes.Values):
                self.diagnose(
                    "assumed",
                    f"the columns of {target} are not known: taken from the names of the query",
                    tree,
                    severity="info",
                )
            elif output.names:
                self.diagnose(
                    "unresolved",
                    f"the columns of {target} are not known, and VALUES has no names",
                    tree,
                    severity="info",
                )
                return _unnamed(output, target)
            return output
        if output.open:
            return self._matched_by_name(output, names, tree)
        if len(output.names) > len(names):
            self.diagnose("arity", f"{len(output.names)} values for {len(names)} columns of {target}", tree)
            return output.renamed(names).first(len(names))
        if columns and len(output.names) < len(names) and output.names:
            self.diagnose("arity", f"{len(output.names)} values for {len(names)} columns of {target}", tree)
        return output.renamed(names[: len(output.names)])

    def _matched_by_name(self, output: QueryOutput, names: list[str], tree: exp.Expr) -> QueryOutput:
        """A ``*`` hides the positions: columns of the same name are candidates only."""
        self.diagnose(
            "star-unresolved", "the positions behind a * are not known: the inserted columns cannot be matched", tree
        )
        result = QueryOutput()
        made = [dep for s in output.open if isinstance(s.table, FunctionRows) for dep in s.table.arguments]
        for name in names:
            result.add(name, possibly(made))
        result.open = [OpenStar(s.table, s.except_, s.rename, s.arm, candidate=True) for s in output.open]
        return result

    def _on_conflict(
        self, node: exp.OnConflict, table: exp.Expr, write: Write, env: Environment | None, query: exp.Expr | None
    ) -> None:
        """ON CONFLICT DO UPDATE: SET values come from ``excluded`` (the inserted row) or the target."""
        scope = Scope(None)
        inserted = Source("excluded", output=write.output)
        scope.add(self._target_source(table))
        scope.add(inserted)
        inserted.hidden = True
        for alias in ("values", "new"):
            scope.by_alias.setdefault(alias, inserted)
        if node.args.get("duplicate") and query is not None:
            self._inserted(query, inserted, scope, env)
        sets = [item for item in node.expressions if isinstance(item, nodes.EQ)]
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

    def _inserted(self, query: exp.Expr, inserted: Source, scope: Scope, env: Environment | None) -> None:
        """MySQL: what else ON DUPLICATE KEY UPDATE may name, but only by its alias: the row, what was selected from."""
        alias, columns = self._alias(query)
        if alias:
            written = inserted.output or QueryOutput()
            row = Source(alias, output=written.renamed(columns) if columns else written)
            row.hidden = True
            scope.add(row)
        elif isinstance(query, nodes.Select):
            start = len(scope.sources)
            self.without_effects(lambda: self.add_sources(query, scope, env))
            for source in scope.sources[start:]:
                source.hidden = True

    def _multi_insert(self, tree: exp.MultitableInserts) -> None:
        """Hive's FROM … INSERT … INSERT …, and Oracle's and Snowflake's INSERT ALL / FIRST."""
        source = tree.args["source"]
        env = self.environment(tree, None, None)
        hive = [item for item in tree.expressions if isinstance(item, nodes.Insert)]
        if hive:
            for item in hive:
                self.insert(item, env, source)
            return
        output, rows = self.separately(lambda: self.query(source, None, env))
        reads, self.reads = self.reads, {}
        conditions: list[exp.Expr] = []
        for item in tree.expressions:
            insert = item.this
            if not isinstance(insert, nodes.Insert):
                continue
            scope = Scope(None)
            scope.add(Source("", output=output))
            values = insert.args.get("expression")
            row = values.expressions[0] if isinstance(values, nodes.Values) and values.expressions else None
            written = QueryOutput()
            if row is None:
                for name, deps in zip(output.names, output.deps, strict=True):
                    written.add(name, deps)
            else:
                for value in row.expressions if isinstance(row, nodes.Tuple) else [row]:
                    written.add(self.output_name(value), self.dependencies(value, scope, env))
            columns, _ = self._column_list(insert.this)
            table = insert.this.this if isinstance(insert.this, nodes.Schema) else insert.this
            written = self._by_target(written, self._target(table), columns, {}, [], False, insert, None)
            own = item.args.get("expression")
            # ELSE, and with FIRST every later branch, is reached by what the earlier conditions let through.
            deciding = conditions if item.args.get("else_") or str(tree.args.get("kind")).upper() == "FIRST" else []
            for condition in [*deciding, own]:
                self.refer_to(condition, scope, env, FILTER)
            if own is not None:
                conditions.append(own)
            write = self._write(table, written, "insert", "append", self._kind_of(table), source, defines=False)
            write.fills = BY_NAME if columns else BY_POSITION
            write.rows.update(rows)
            write.reads.update(reads)


def _unnamed(output: QueryOutput, target: str) -> QueryOutput:
    """Values that go into columns which are not known: what they are made of reaches some of them."""
    found = QueryOutput()
    made = tuple(dict.fromkeys(dep for deps in output.deps for dep in deps))
    if made:
        found.open.append(OpenStar(FunctionRows(target, made)))
    return found
