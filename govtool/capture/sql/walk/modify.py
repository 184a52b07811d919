"""UPDATE, DELETE and MERGE: values flow into the columns that are set, conditions steer them or decide about rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.columns import ROW_KINDS
from govtool.capture.sql.walk.dependencies import (
    ARM_MASK,
    CONDITIONAL,
    KIND_MASK,
    TRANSFORMATION,
    Deps,
    Interner,
    arm_of,
    bounded,
    compose,
    possibly,
    with_arm,
)
from govtool.capture.sql.walk.functions import function_name
from govtool.capture.sql.walk.relation import QueryOutput, Source, starred
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import EVERYWHERE, Lookup
from govtool.capture.sql.walk.targets import UPDATABLE_CTES, TargetWalk
from govtool.capture.sql.walk.writes import BY_NAME, NOT_NAMED, Write

FILTER: Final = ROW_KINDS["filter"]

_SQL_COLUMN: Final = re.compile(r'sql:column\(\s*"([^"]+)"\s*\)')
"""A column inside of XQuery (T-SQL: "sql:column() function")."""

MYSQL: Final = frozenset({"mysql", "singlestore", "doris", "starrocks"})


class ModifyWalk(TargetWalk):
    """Walks statements that change rows in place."""

    def __init__(self, dialect: str, interner: Interner, lookup: Lookup) -> None:
        super().__init__(dialect, interner, lookup)
        self._targets: frozenset[str] = frozenset()

    def _update(self, tree: exp.Update) -> None:
        self.update(tree, self.environment(tree, None, None))

    def update(self, tree: exp.Update, env: Environment | None) -> Write:
        """Walk an UPDATE: values flow into the SET columns; WHERE and ON steer them."""
        scope = Scope(None)
        table = tree.this
        from_ = tree.args.get("from_")
        aliased = self._aliased_target(table, from_)
        target_node = aliased if aliased is not None else table
        joined = aliased is None and bool(table.args.get("joins"))
        several = joined or not isinstance(target_node, nodes.Table) or self.target_cte(target_node, env) is not None
        target = self._target(target_node) if not several else ""
        if aliased is None and several:
            self.add_source(table, scope, env)
        elif aliased is None:
            scope.add(self._target_source(table))
        if from_ is not None:
            self.add_source(from_.this, scope, env)
        for key in ("joins", "laterals"):
            for item in tree.args.get(key) or ():
                if isinstance(item, nodes.Join):
                    self.add_join(item, scope, env)
        where = tree.args.get("where")
        if where is not None:
            self.refer_to(where.this, scope, env, FILTER)
        steering = tuple([compose(dep & ~KIND_MASK, CONDITIONAL, 0, self.interner) for dep in self.rows])
        deciding, self.rows = self.rows, {}
        if several:
            return self._update_several(tree, scope, env, steering)
        output = QueryOutput()
        for name, deps in self._assignments(tree.expressions, scope, env):
            self._add_to(output, name, (*deps, *steering))
        own_read = aliased is None
        write = self._write(target_node, output, "update", "update", self._kind_of(target_node), None, defines=False)
        write.fills = BY_NAME
        write.steering = deciding
        if own_read or list(write.reads).count(target) == 1:
            write.reads.pop(target, None)
        return write

    def _update_several(self, tree: exp.Update, scope: Scope, env: Environment | None, steering: Deps) -> Write:
        """The assignments of an UPDATE of joined tables or of a query, each to the table that has the column."""
        outputs: dict[str, QueryOutput] = {}
        for item in tree.expressions:
            target, _ = _sides(item)
            lefts = target.expressions if isinstance(target, nodes.Tuple) else [target]
            for left, (_, deps) in zip(lefts, self._assignments([item], scope, env), strict=False):
                for dataset, path, sure in self.assigned_columns(left, scope):
                    output = outputs.setdefault(dataset, QueryOutput())
                    self._add_to(output, path, bounded((*deps, *steering) if sure else possibly((*deps, *steering))))
        writes = [self.written(name, output, "update") for name, output in outputs.items()]
        return writes[0] if writes else self.written("", QueryOutput(), "update")

    def _aliased_target(self, table: exp.Expr, from_: exp.Expr | None) -> exp.Expr | None:
        """T-SQL's UPDATE u … FROM t u: the target is the table, or query, behind the alias."""
        if from_ is None or not isinstance(table, nodes.Table) or table.args.get("db"):
            return None
        joins = from_.parent.args.get("joins") or [] if from_.parent is not None else []
        item = self.item_named(self.name(table.this), [from_.this, *joins])
        if item is None or self.dialect in UPDATABLE_CTES:
            return item
        return item if isinstance(item, nodes.Table) and self._alias(item)[0] else None

    def _assignments(self, items: Iterable[exp.Expr], scope: Scope, env: Environment | None) -> list[tuple[str, Deps]]:
        """Return the columns that SET assigns, with what flows into each; rows of subqueries steer their column."""
        found: list[tuple[str, Deps]] = []
        for item in items:
            called = _method(item)
            if called is not None:
                name = self._assigned(called)
                found.append((name, self._method_value(called, item.expression, scope, env)))
                continue
            if not isinstance(item, (nodes.EQ, nodes.PropertyEQ)):
                self.diagnose("opaque", "an assignment of SET is not understood", item)
                continue
            left, right = _sides(item)
            if isinstance(left, nodes.Parameter):
                continue
            saved, self.rows = self.rows, {}
            if isinstance(left, nodes.Tuple):
                names = [self._assigned(part) for part in left.expressions]
                values = self._tuple_values(right, len(names), scope, env)
            else:
                names = [self._assigned(left)]
                values = [self.dependencies(right, scope, env)]
            steering = [compose(dep & ~KIND_MASK, CONDITIONAL, 0, self.interner) for dep in self.rows]
            self.rows = saved
            found.extend((name, bounded((*deps, *steering))) for name, deps in zip(names, values, strict=False))
        return found

    def _method_value(self, column: exp.Expr, call: exp.Expr, scope: Scope, env: Environment | None) -> Deps:
        """T-SQL's ``SET c.modify('… sql:column("t.d") …')``: c as it was, and what the text and arguments name."""
        chain = self.interner.prepend(function_name(call, self.dialect), 0)
        update = call.find_ancestor(nodes.Update)
        table = update.this if update is not None else None
        target = nodes.Column(this=column.copy())
        if isinstance(table, nodes.Table) and isinstance(table.this, nodes.Identifier) and len(scope.sources) > 1:
            alias = table.args.get("alias")
            target.set("table", (alias.this if alias is not None else table.this).copy())
        deps = self.collect(target, scope, env, TRANSFORMATION, chain)
        for argument in call.expressions:
            deps.extend(self.collect(argument, scope, env, TRANSFORMATION, chain))
            text = argument.name if isinstance(argument, nodes.Literal) else str(argument.this or "")
            for path in _SQL_COLUMN.findall(text):
                parts = [nodes.Identifier(this=part.strip("[]"), quoted="[" in part) for part in path.split(".")[-2:]]
                named = nodes.Column(this=parts[-1], table=parts[0] if len(parts) > 1 else None)
                deps.extend(self.collect(named, scope, env, TRANSFORMATION, chain))
            if "sql:variable" in text:
                self.diagnose("opaque", "a variable inside of an XML method is not followed", call)
        return bounded(deps)

    def _tuple_values(self, right: exp.Expr, count: int, scope: Scope, env: Environment | None) -> list[Deps]:
        plain = right.unnest() if isinstance(right, (nodes.Subquery, nodes.Paren)) else right
        if isinstance(plain, nodes.Query):
            return self.query(plain, scope, env).deps
        if isinstance(plain, nodes.Tuple):
            return [self.dependencies(value, scope, env) for value in plain.expressions]
        return [self.dependencies(right, scope, env)] * count

    def _assigned(self, node: exp.Expr) -> str:
        """Return the column (or field path) that an assignment names, without the table's alias."""
        if isinstance(node, nodes.Column):
            parts = self.qualifier(node.parts)
            return (
                parts[-1]
                if len(parts) < 2 or self.dialect not in ("bigquery", "spark", "databricks")
                else self._assigned_path(parts)
            )
        if isinstance(node, (nodes.Dot, nodes.Bracket)):
            base, path = self._path(node)
            return f"{self._assigned(base)}.{path}" if not path.startswith("[") else f"{self._assigned(base)}{path}"
        return self.name(node)

    def _assigned_path(self, parts: tuple[str, ...]) -> str:
        return ".".join(parts[1:]) if parts[0] in self._target_names else ".".join(parts)

    @property
    def _target_names(self) -> frozenset[str]:
        return self._targets

    def _delete(self, tree: exp.Delete) -> None:
        self.delete(tree, self.environment(tree, None, None))

    def delete(self, tree: exp.Delete, env: Environment | None) -> Write:
        """Walk a DELETE: what decides which rows go is referenced by the target's row set."""
        scope = Scope(None)
        several: list[exp.Expr] = tree.args.get("tables") or []
        table = tree.this if isinstance(tree.this, (nodes.Table, nodes.Subquery)) else several[0] if several else None
        if table is None:
            return self._write(tree, QueryOutput(), "delete", "delete", "table", None, defines=False)
        items: list[exp.Expr] = tree.args.get("using") or []
        if items and self.dialect in MYSQL:  # DELETE FROM t, u USING t JOIN u …: USING is the whole FROM
            several = [table, *(join.this for join in table.args.get("joins") or ())]
        else:
            items = [table, *items]
        for item in items:
            self.add_source(item, scope, env)
        where = tree.args.get("where")
        if where is not None:
            self.refer_to(where.this, scope, env, FILTER)
        targets = [self.item_named(self.name(node.this), items) or node for node in several] or [table]
        names = [self._deleted(item, env) for item in targets]
        writes = [self.written(name, QueryOutput(), "delete") for name in dict.fromkeys(names)]
        self.rows, self.reads = {}, {}
        return writes[0]

    def _deleted(self, item: exp.Expr, env: Environment | None) -> str:
        """Return the table whose rows a DELETE from a FROM item deletes."""
        if isinstance(item, nodes.Subquery) or self.target_cte(item, env) is not None:
            if item.args.get("joins"):
                item = item.copy()
                item.set("joins", None)
            return self.base(item, env) or self.no_base(item)
        return self._target(item)

    def _merge(self, tree: exp.Merge) -> None:
        env = self.environment(tree, None, None)
        table = tree.this
        scope = Scope(None)
        derived = self.target_cte(table, env) is not None
        if derived:
            target = self.base(table, env) or self.no_base(table)
            self.add_source(table, scope, env)
        else:
            target = self._target(table)
            scope.add(self._target_source(table))
        before = len(scope.sources)
        self.add_source(tree.args["using"], scope, env)
        source = scope.sources[before] if len(scope.sources) > before else None
        inner_rows, self.rows = self.rows, {}
        on = self.collect(tree.args["on"], scope, env, CONDITIONAL, 0) if tree.args.get("on") is not None else []
        on_rows, self.rows = self.rows, {}
        on_rows = {**inner_rows, **on_rows}
        output = QueryOutput()
        rows: dict[int, exp.Expr | None] = {}
        group = self.number()
        # A row that an earlier branch takes never comes to a later one of its sort: conditions add up.
        earlier: dict[tuple[bool, bool], tuple[list[int], dict[int, exp.Expr | None]]] = {}
        for number, when in enumerate(tree.args["whens"].expressions):
            arm = arm_of(group, number)
            then = when.args["then"]
            # Oracle writes the condition of a branch behind it: UPDATE SET … WHERE …, INSERT … WHERE ….
            where = then.args.get("where") if isinstance(then, nodes.DML) else None
            conditions = [c for c in (when.args.get("condition"), where) if isinstance(c, nodes.Expr)]
            sort = bool(when.args.get("matched")), bool(when.args.get("source"))
            deciding, deciding_rows = earlier.setdefault(sort, ([], {}))
            for condition in conditions:
                deciding.extend(self.collect(condition, scope, env, CONDITIONAL, 0))
            deciding_rows.update(self.rows)
            self.rows = {}
            if isinstance(then, nodes.Update):
                steering = [
                    compose(dep & ~KIND_MASK, CONDITIONAL, 0, self.interner)
                    for dep in (*on, *deciding, *on_rows, *deciding_rows)
                ]
                for name, deps in self._branch_values(then, scope, env, source, target):
                    self._add_to(output, name, with_arm((*deps, *steering), arm))
                continue
            if isinstance(then, nodes.Insert):
                for name, deps in self._branch_insert(then, scope, env, source, target):
                    self._add_to(output, name, with_arm(deps, arm))
            self.refer(on, ROW_KINDS["join"], tree.args.get("on"))
            self.refer(deciding, FILTER)
            for row, node in (*self.rows.items(), *on_rows.items(), *deciding_rows.items()):
                rows[(row & ~ARM_MASK) | arm if arm else row] = node
            self.rows = {}
        self.rows = rows
        if derived:
            output = self.renamed_to_base(output, scope.sources[0], target, table) if target else QueryOutput()
        write = self._write(table, output, "merge", "update", self._kind_of(table), None, defines=False)
        write.target = target
        write.fills = BY_NAME if _names_columns(tree) else NOT_NAMED
        write.reads.pop(target, None)
        if source is not None and source.table is not None:
            write.reads[source.table.id] = EVERYWHERE

    def _branch_values(
        self, then: exp.Update, scope: Scope, env: Environment | None, source: Source | None, target: str
    ) -> list[tuple[str, Deps]]:
        assigned = then.args.get("expressions")
        if isinstance(assigned, nodes.Star) or any(isinstance(item, nodes.Star) for item in assigned or ()):
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
        if not isinstance(values, nodes.Expr) and isinstance(columns, nodes.Tuple) and len(columns.expressions) == 1:
            call = columns.expressions[0]
            if isinstance(call, nodes.Anonymous) and call.name.upper() == "VALUES":  # INSERT VALUES (…) without a list
                columns, values = None, nodes.Tuple(expressions=call.expressions)
        if isinstance(columns, (nodes.Star, nodes.Var)) and not isinstance(values, nodes.Expr):
            if isinstance(columns, nodes.Var) and source is not None:  # BigQuery's INSERT ROW: by position
                output = self.source_star(source)
                known = self.lookup.table(target)
                if known.complete and not output.open:
                    return list(zip(known.columns, output.deps, strict=False))
            return self._same_names(source, target, then)
        items = (
            values.expressions
            if isinstance(values, nodes.Tuple)
            else [values]
            if isinstance(values, nodes.Expr)
            else []
        )
        if isinstance(columns, nodes.Tuple):
            names = [self._assigned(c) for c in columns.expressions]
        elif isinstance(columns, (nodes.Column, nodes.Identifier, nodes.Paren)):
            inner = columns.this if isinstance(columns, nodes.Paren) else columns
            names = [self._assigned(inner)]
        else:
            known = self.lookup.table(target)
            if isinstance(values, nodes.Var) or not items:
                return self._same_names(source, target, then)
            if not known.complete:
                names = [self.output_name(item) for item in items]
                if not all(names):
                    text = f"the columns of {target} are not known, and the INSERT of a MERGE lists none"
                    self.diagnose("unresolved", text, then)
                    return []
                text = f"the columns of {target} are not known: taken from the names of the values"
                self.diagnose("assumed", text, then, severity="info")
                return [(name, self.dependencies(item, scope, env)) for name, item in zip(names, items, strict=True)]
            names = list(known.columns)
        items = [item.this if isinstance(item, nodes.Paren) else item for item in items]
        return [(name, self.dependencies(item, scope, env)) for name, item in zip(names, items, strict=False)]


def _names_columns(tree: exp.Merge) -> bool:
    """Return whether a MERGE lists what it sets and inserts: no ``UPDATE SET *``, no ``INSERT *`` or ``INSERT ROW``."""
    for when in tree.args["whens"].expressions:
        then = when.args["then"]
        if isinstance(then, nodes.Update):
            assigned = then.args.get("expressions")
            if isinstance(assigned, nodes.Star) or any(isinstance(item, nodes.Star) for item in assigned or ()):
                return False
        elif isinstance(then, nodes.Insert) and not isinstance(
            then.this, (nodes.Tuple, nodes.Column, nodes.Identifier, nodes.Paren)
        ):
            return False
    return True


def _method(item: exp.Expr) -> exp.Expr | None:
    """Return the column that T-SQL's ``SET c.method(…)`` changes; None for an assignment."""
    if not isinstance(item, nodes.Dot) or not isinstance(item.expression, nodes.Anonymous):
        return None
    owner = item.this
    name = owner.expression if isinstance(owner, nodes.Dot) else owner
    return name if isinstance(name, nodes.Identifier) else None


def _sides(item: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return what an assignment sets and to what; of T-SQL's ``@variable = column = value`` the inner one."""
    left, right = item.this, item.expression
    if isinstance(left, nodes.Parameter) and isinstance(right, nodes.EQ):
        return right.this, right.expression
    return left, right
