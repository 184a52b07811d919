"""Queries: SELECT, set operations, CTEs and recursion, each to its output columns with their dependencies."""

from __future__ import annotations

import re
from typing import cast

from sqlglot import exp

from govtool.capture.sql.columns import ROW_KINDS
from govtool.capture.sql.dependencies import CHAIN_MASK, KIND_MASK, OPAQUE, REF_SHIFT, STAR, Deps, arm_of, bounded, with_arm
from govtool.capture.sql.relation import ArrayElements, FunctionRows, OpenStar, Output, Source, TableInfo, starred
from govtool.capture.sql.scope import CommonTable, Environment, Scope
from govtool.capture.sql.shapes import SHAPED
from govtool.capture.sql.sources import SourceWalk
from govtool.names import fold

_SHAPED = frozenset(SHAPED)

MAX_ROUNDS = 50
"""Rounds of a recursive CTE before its dependencies are taken as they stand; each adds at least one or ends it."""


class QueryWalk(SourceWalk):
    """Walks query expressions."""

    def query(self, node: exp.Expr, scope: Scope | None, env: Environment | None) -> Output:
        """Return the output of a query expression; ``scope`` is what it may be correlated with."""
        if isinstance(node, exp.Select):
            return self.select(node, scope, env)
        if isinstance(node, exp.SetOperation):
            return self.set_operation(node, scope, env)
        if isinstance(node, exp.Subquery):
            env = self.environment(node, scope, env)
            if isinstance(node.this, exp.Table):
                inner = Scope(scope)
                self.add_source(node.this, inner, env)
                output = self.star(inner)
            else:
                output = self.query(node.this, scope, env)
            self.modifiers(node, output, scope, env)
            return output
        if isinstance(node, exp.Values):
            return self.values(node, scope, env)
        if isinstance(node, exp.Table):
            inner = Scope(scope)
            self.add_source(node, inner, env)
            return self.star(inner)
        if isinstance(node, exp.Pivot) and node.args.get("this") is not None:  # DuckDB's PIVOT statement
            inner = Scope(scope)
            self.add_source(node.this, inner, self.environment(node, scope, env))
            source = self.pivot(inner.sources[0], node, inner, env)
            return source.output or Output()
        if isinstance(node, (exp.Insert, exp.Update, exp.Delete, exp.Merge)):
            return self.modifying(node, env)
        if isinstance(node, exp.Paren):
            return self.query(node.this, scope, env)
        if isinstance(node, exp.Tuple):
            output = Output()
            for item in node.expressions:
                output.add(self.output_name(item), self.dependencies(item, scope or Scope(None), env))
            return output
        self.diagnose("opaque", f"{node.key.upper()} is not understood as a query", node)
        return Output()

    # ---- WITH --------------------------------------------------------------------------------------

    def environment(self, node: exp.Expr, scope: Scope | None, env: Environment | None) -> Environment | None:
        """Return the environment that WITH opens, or ``env`` itself."""
        with_ = node.args.get("with_")
        if with_ is None:
            return env
        recursive = bool(with_.args.get("recursive"))
        for cte in with_.expressions:
            if not isinstance(cte, exp.CTE):
                continue
            alias = cte.args.get("alias")
            identifier = alias.this if isinstance(alias, exp.TableAlias) else alias
            columns = [self.name(column) for column in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
            name = self.name(identifier)
            # Each CTE sees the ones before it, and itself where that makes it recursive.
            env = Environment(env)
            may_recurse = recursive or self.dialect in ("tsql", "oracle", "fabric", "snowflake")
            common = CommonTable(cte.this, columns, env if may_recurse else cast(Environment, env.parent), scope, may_recurse)
            env.tables[name] = common
            self.common_tables.append((name, common))
        return env

    def common_table(self, cte: CommonTable) -> Output:
        """Return the output of a CTE, walking it when first read."""
        cte.used = True
        if cte.output is not None:
            return cte.output
        if cte.evaluating:
            if cte.working is None:  # read before the anchor has given it columns
                self.diagnose("cycle", "a CTE reads itself outside of a recursive arm", cte.node)
                return Output()
            return cte.working
        cte.evaluating = True
        try:
            node = cte.node
            body = node.unnest() if isinstance(node, exp.Subquery) else node
            if cte.recursive and isinstance(body, exp.Union) and _reads_itself(body, cte, self):
                output = self._recursive(body, cte)
            elif isinstance(node, exp.Query) or isinstance(node, exp.DML):
                output = self.query(node, cte.scope, cte.env)
            else:  # ClickHouse's WITH expression AS name
                output = Output()
                output.add("", self.dependencies(node, cte.scope or Scope(None), cte.env))
        finally:
            cte.evaluating = False
        if cte.columns:
            output = output.renamed(cte.columns)
        cte.output = output
        return output

    def _recursive(self, body: exp.Union, cte: CommonTable) -> Output:
        """Iterate a recursive CTE to its fixpoint: the anchor first, then the recursive arms over what is known so far."""
        env = self.environment(body, cte.scope, cte.env)
        arms = _arms(body, exp.Union)
        anchors = [arm for arm in arms if not _mentions(arm, cte, self)]
        if not anchors:
            self.diagnose("cycle", "a recursive CTE has no anchor", body)
            return Output()
        result = self.query(anchors[0], cte.scope, env)
        for anchor in anchors[1:]:
            result = _merge(result, self.query(anchor, cte.scope, env))
        if cte.columns:
            result = result.renamed(cte.columns)
        for _ in range(MAX_ROUNDS):
            cte.working = result
            before = [set(deps) for deps in result.deps]
            for arm in arms:
                if arm not in anchors:
                    result = _merge(result, self.query(arm, cte.scope, env))
            if [set(deps) for deps in result.deps] == before:
                break
        cte.working = None
        kind = "union_all" if body.args.get("distinct") is False else "distinct"
        for deps in result.deps:
            self.refer(deps, ROW_KINDS[kind])
        return result

    # ---- set operations -------------------------------------------------------------------------------

    def set_operation(self, node: exp.SetOperation, scope: Scope | None, env: Environment | None) -> Output:
        """UNION, INTERSECT, EXCEPT: by position, or BY NAME."""
        env = self.environment(node, scope, env)
        kind = exp.Union if isinstance(node, exp.Union) else None
        arms = _arms(node, exp.Union) if kind else [node.this, node.expression]
        by_name = bool(node.args.get("by_name"))
        group = self.number()
        outputs: list[Output] = []
        for number, arm in enumerate(arms):
            output, rows = self.separately(lambda arm=arm: self.query(arm, scope, env))  # type: ignore[misc]
            mark = arm_of(group, number) if kind else 0
            for row in with_arm(rows, mark):
                self.rows[row] = None
            outputs.append(_in_arm(output, mark))
        row_kind = "set" if not kind else "union_all" if _all_keep_duplicates(node) else "distinct"
        for output in outputs:
            for deps in output.deps:
                self.refer(deps, ROW_KINDS[row_kind])
        result = outputs[0] if not kind else self._union(outputs, by_name, node)
        self.modifiers(node, result, scope, env)
        return result

    def _union(self, outputs: list[Output], by_name: bool, node: exp.Expr) -> Output:
        if by_name:
            result = Output()
            names = dict.fromkeys(name for output in outputs for name in output.names)
            for name in names:
                deps = [dep for output in outputs if name in output.index() for dep in output.deps[output.index()[name]]]
                result.add(name, bounded(deps))
            result.open = [star for output in outputs for star in output.open]
            return result
        closed = [output for output in outputs if not output.open]
        if len(closed) == len(outputs) and len({len(output.names) for output in outputs}) > 1:
            counts = ", ".join(str(len(output.names)) for output in outputs)
            self.diagnose("arity", f"the arms of a set operation have different numbers of columns: {counts}", node)
        if len(closed) == len(outputs):
            result = outputs[0]
            for output in outputs[1:]:
                result = _merge(result, output)
            return result
        return self._open_union(outputs, node)

    def _open_union(self, outputs: list[Output], node: exp.Expr) -> Output:
        """A UNION with an arm whose columns are not all known: positions are certain only where no ``*`` comes before.

        The first arm names the columns. What the other arms put into a column is matched by name where a ``*`` hides
        the positions, and recorded as a candidate, not as an edge.
        """
        first = outputs[0]
        result = Output()
        known = next((output for output in outputs if not output.open), None)
        names = list(first.names) if first is known or known is None or first.names else list(known.names)
        if first.open and known is not None:
            names = list(dict.fromkeys([*first.names, *known.names]))
        uncertain = False
        for position, name in enumerate(names):
            deps: list[int] = []
            for output in outputs:
                if not output.open and not first.open:
                    if position < len(output.deps):
                        deps.extend(output.deps[position])
                    continue
                index = output.index().get(name)
                if index is not None:
                    deps.extend(output.deps[index] if output is first else _candidates(output.deps[index]))
                    uncertain = uncertain or output is not first
                else:
                    for star in output.open:
                        found = star.lookup(name, self.interner) or ()
                        deps.extend(found if output is first else _candidates(found))
                        uncertain = uncertain or output is not first
            result.add(name, bounded(deps))
        if first.open:
            result.open = [OpenStar(s.table, s.except_, s.rename, s.arm) for s in first.open]
            for output in outputs[1:]:
                result.open.extend(OpenStar(s.table, s.except_, s.rename, s.arm, candidate=True) for s in output.open)
        if uncertain:
            self.diagnose("star-unresolved", "columns of a UNION are matched by name: a * hides their positions", node)
        return result

    def modifiers(self, node: exp.Expr, output: Output, scope: Scope | None, env: Environment | None) -> None:
        """Record ORDER BY (and DISTRIBUTE, CLUSTER, SORT BY) over the columns of an output."""
        orders = [node.args.get(key) for key in ("order", "sort", "cluster", "distribute")]
        if not any(orders):
            return
        inner = Scope(scope)
        inner.add(Source("", output=output))
        for order in orders:
            for item in order.expressions if order is not None else ():
                self._refer_item(item, output, inner, env, ROW_KINDS["sort"])

    # ---- SELECT ----------------------------------------------------------------------------------------

    def select(self, node: exp.Select, parent: Scope | None, env: Environment | None) -> Output:
        """Walk one SELECT."""
        args = node.args
        env = self.environment(node, parent, env)
        scope = Scope(parent)
        self.add_sources(node, scope, env)
        if args.get("match") is not None and scope.sources:
            last = scope.sources.pop()
            scope.by_alias.pop(last.alias, None)
            scope.add(self.match_recognize(last, args["match"], scope, env))
        for window in args.get("windows") or ():
            scope.windows[self.name(window.this)] = window
        output = self._projections(node, scope, env)
        for key in ("prewhere", "where"):
            clause = args.get(key)
            if clause is not None:
                self.refer_to(clause.this, scope, env, ROW_KINDS["filter"])
        connect = args.get("connect")
        if connect is not None:
            self.refer_to(connect.args.get("start"), scope, env, ROW_KINDS["filter"])
            self.refer_to(connect.args.get("connect"), scope, env, ROW_KINDS["join"])
        group = args.get("group")
        if group is not None:
            self._group(group, node, output, scope, env)
        for key in ("having", "qualify"):
            clause = args.get(key)
            if clause is not None:
                self.refer_to(clause.this, scope, env, ROW_KINDS["filter"])
        distinct = args.get("distinct")
        if distinct is not None:
            on = distinct.args.get("on")
            if on is not None:
                self._refer_items(on.expressions if isinstance(on, exp.Tuple) else [on], output, scope, env, ROW_KINDS["distinct"])
            else:
                for deps in output.deps:
                    self.refer(deps, ROW_KINDS["distinct"])
        for key in ("order", "sort", "cluster", "distribute"):
            order = args.get(key)
            if order is not None:
                self._refer_items(order.expressions, output, scope, env, ROW_KINDS["sort"])
        limit = args.get("limit")
        if limit is not None and limit.expressions:  # ClickHouse LIMIT n BY columns
            self._refer_items(limit.expressions, output, scope, env, ROW_KINDS["distinct"])
        if args.get("kind") == "STRUCT" or args.get("kind") == "VALUE":
            output = self._as_struct(output, str(args["kind"]))
        return output

    def _as_struct(self, output: Output, kind: str) -> Output:
        """SELECT AS STRUCT is one column with the projections as its fields; SELECT AS VALUE is the value itself."""
        if kind == "VALUE":
            shape = output.fields.get(0)
            if shape is None and len(output.deps) == 1:
                output.open.append(OpenStar(FunctionRows("a struct", output.deps[0])))
            return shape if shape is not None else output
        result = Output()
        result.add("", bounded(dep for deps in output.deps for dep in deps))
        result.fields[0] = output
        self.has_shapes = True
        return result

    def _projections(self, node: exp.Select, scope: Scope, env: Environment | None) -> Output:
        output = Output()
        aliases = scope.aliases
        for item in node.args["expressions"]:
            cls = item.__class__
            if cls is exp.Alias:
                value = item.args["this"]
                name = self.name(item.args["alias"])
                if value.__class__ is exp.Columns:
                    self._columns_item(value, name, scope, env, output)
                    continue
                deps = self.dependencies(value, scope, env)
                output.add(name, deps)
                if value.__class__ in _SHAPED or self.has_shapes:
                    self.remember_shape(value, output, scope, env)
                aliases.setdefault(name, deps)
            elif cls is exp.Column:
                if item.args["this"].__class__ is exp.Star:
                    self._qualified_star(item, scope, env, output)
                else:
                    output.add(self.name(item.args["this"]), self.dependencies(item, scope, env))
                    if self.has_shapes:
                        self.remember_shape(item, output, scope, env)
            elif cls is exp.Star:
                _extend(output, self.starred_columns(item, scope, env))
            elif cls is exp.Columns:
                self._columns_item(item, "", scope, env, output)
            elif cls is exp.Aliases:
                self._several(item, scope, env, output)
            elif cls is exp.Dot and isinstance(item.expression, exp.Star):
                self._struct_star(item, scope, env, output)
            else:
                output.add(self.output_name(item), self.dependencies(item, scope, env))
        for position, name in enumerate(output.names):
            if not name:
                output.names[position] = f"_c{position}"
        exclude = node.args.get("exclude")
        if exclude:
            dropped = {self.name(column.this if isinstance(column, exp.Column) else column) for column in exclude}
            output = _without(output, dropped)
        return output

    def output_name(self, item: exp.Expr) -> str:
        """Return the name a projection gives its column without an alias; empty where it gives none."""
        if isinstance(item, exp.Alias):
            return self.name(item.args["alias"])
        if isinstance(item, exp.Column):
            return self.name(item.this)
        if isinstance(item, exp.Dot):
            return self.name(item.expression) if isinstance(item.expression, exp.Identifier) else ""
        if isinstance(item, exp.Paren):
            return self.output_name(item.this)
        if isinstance(item, exp.Subquery):
            inner = item.unnest()
            if isinstance(inner, exp.Select) and len(inner.expressions) == 1:
                return self.output_name(inner.expressions[0])
            return ""
        if isinstance(item, exp.Cast) and self.dialect in ("postgres", "redshift", "spark", "databricks", "hive", "spark2", "duckdb", "bigquery"):
            return self.output_name(item.this) if self.dialect != "bigquery" else ""
        if isinstance(item, exp.JSONExtract) and item.args.get("variant_extract") and isinstance(item.expression, exp.JSONPath):
            last = item.expression.expressions[-1]
            return self.name(str(last.this)) if isinstance(last, exp.JSONPathKey) else ""
        if isinstance(item, exp.Anonymous) and self.dialect in ("postgres", "redshift"):
            return self.name(item.name)
        if isinstance(item, exp.Func) and self.dialect in ("postgres", "redshift") and not isinstance(item, (exp.Case, exp.Binary, exp.If)):
            return _postgres_name(item)
        if isinstance(item, exp.Window) and self.dialect in ("postgres", "redshift"):
            return self.output_name(item.this)
        if isinstance(item, exp.Case) and self.dialect in ("postgres", "redshift"):
            return "case"
        if isinstance(item, (exp.Filter, exp.WithinGroup)):
            return self.output_name(item.this)
        return ""

    # ---- stars ------------------------------------------------------------------------------------------

    def star(self, scope: Scope) -> Output:
        """Return the output of a bare ``*`` over a scope: merged columns once and first, then each source in order."""
        output = Output()
        for name, deps in scope.merged.items():
            output.add(name, starred(deps))
        skip = set(scope.merged)
        for source in scope.sources:
            if not source.hidden:
                _extend(output, self.source_star(source), skip)
        return output

    def source_star(self, source: Source) -> Output:
        """Return the output of ``source.*``."""
        if source.table is not None:
            return self.table_output(source.table)
        return source.output or Output()

    def starred_columns(self, star: exp.Expr, scope: Scope, env: Environment | None, base: Output | None = None) -> Output:
        """Return the output of ``*`` with EXCEPT, REPLACE, RENAME and ILIKE applied."""
        output = base if base is not None else self.star(scope)
        if base is None and not scope.sources:
            self.diagnose("unresolved", "* without a FROM clause", star)
        args = star.args
        except_ = args.get("except_") or args.get("except")
        replace = args.get("replace")
        rename = args.get("rename")
        pattern = args.get("ilike")
        if not (except_ or replace or rename or pattern):
            return output
        dropped = {self.name(c.this if isinstance(c, exp.Column) else c) for c in except_ or ()}
        renamed = {self.name(a.this.this if isinstance(a.this, exp.Column) else a.this): self.name(a.args["alias"]) for a in rename or ()}
        replaced = {self.name(a.args["alias"]): self.dependencies(a.this, scope, env) for a in replace or ()}
        result = Output()
        for name, deps in zip(output.names, output.deps, strict=True):
            if name in dropped or (pattern is not None and not _like(pattern, name)):
                continue
            result.add(renamed.get(name, name), replaced.get(name, deps))
        for name, deps in replaced.items():
            if output.open and name not in output.index():
                result.add(name, deps)
        hidden = frozenset(dropped | set(replaced))
        result.open = [OpenStar(s.table, s.except_ | hidden, {**s.rename, **renamed}, s.arm) for s in output.open]
        return result

    def _qualified_star(self, item: exp.Column, scope: Scope, env: Environment | None, output: Output) -> None:
        qualifier = self.qualifier(item.parts[:-1])
        source = scope.find(qualifier)
        if source is not None:
            _extend(output, self.starred_columns(item.this, scope, env, self.source_star(source)))
            return
        # Not a source: the fields of a struct column.
        parts = item.parts[:-1]
        column = exp.Column(this=parts[-1].copy(), **dict(zip(("table", "db", "catalog"), (p.copy() for p in reversed(parts[:-1])), strict=False)))
        _extend(output, self.starred_columns(item.this, scope, env, self._struct_fields(column, scope, env)))

    def _struct_star(self, item: exp.Dot, scope: Scope, env: Environment | None, output: Output) -> None:
        """(expression).*: the fields of a struct."""
        _extend(output, self.starred_columns(item.expression, scope, env, self._struct_fields(item.this, scope, env)))

    def _struct_fields(self, node: exp.Expr, scope: Scope, env: Environment | None) -> Output:
        deps = self.dependencies(node, scope, env)
        shape = self.aside(lambda: self.shape(node, scope, env))
        if shape is not None:
            return shape
        output = Output()
        if len(deps) == 1 and not deps[0] & (KIND_MASK | CHAIN_MASK):
            ref = self.interner.refs[deps[0] >> REF_SHIFT]
            output.open.append(OpenStar(ArrayElements(ref.dataset, ref.path)))
        else:
            output.open.append(OpenStar(FunctionRows("a struct", deps)))
        return output

    def _columns_item(self, node: exp.Columns, alias: str, scope: Scope, env: Environment | None, output: Output) -> None:
        """DuckDB's COLUMNS(*), COLUMNS('pattern')."""
        inner = node.this
        every = self.starred_columns(inner, scope, env) if isinstance(inner, exp.Star) else self.star(scope)
        if isinstance(inner, exp.Literal):
            try:
                pattern = re.compile(inner.name)
            except re.error:
                self.diagnose("opaque", "COLUMNS has a pattern that is not a regular expression", node)
                return
            every = _kept(every, lambda name: bool(pattern.search(name)))
        elif not isinstance(inner, exp.Star):
            self.diagnose("opaque", "COLUMNS with a computed argument", node)
        _extend(output, every)

    def _several(self, node: exp.Aliases, scope: Scope, env: Environment | None, output: Output) -> None:
        """A generator with several columns: stack(…) AS (k, v), posexplode(…) AS (pos, col)."""
        names = [self.name(alias) for alias in node.expressions]
        inner = self._function_output(node.this, scope, env) if isinstance(node.this, exp.Func) else Output()
        spread = len(inner.names) == len(names) and not inner.open
        everything = bounded(dep for deps in inner.deps for dep in deps)
        for position, name in enumerate(names):
            output.add(name, inner.deps[position] if spread else everything)

    # ---- GROUP BY, ORDER BY --------------------------------------------------------------------------------

    def _group(self, group: exp.Group, node: exp.Select, output: Output, scope: Scope, env: Environment | None) -> None:
        items: list[exp.Expr] = list(group.expressions)
        for key in ("grouping_sets", "cube", "rollup"):
            for part in group.args.get(key) or ():
                items.extend(part.expressions if isinstance(part, exp.Expr) and part.expressions else [])
        if group.args.get("all"):
            for item, deps in zip(node.expressions, output.deps, strict=False):
                if not isinstance(item, exp.Star) and not any(item.find_all(exp.AggFunc)):
                    self.refer(deps, ROW_KINDS["group"])
        self._refer_items(items, output, scope, env, ROW_KINDS["group"])

    def _refer_items(self, items: list[exp.Expr], output: Output, scope: Scope, env: Environment | None, kind: int) -> None:
        for item in items:
            self._refer_item(item, output, scope, env, kind)

    def _refer_item(self, item: exp.Expr, output: Output, scope: Scope, env: Environment | None, kind: int) -> None:
        """Reference an item of GROUP BY or ORDER BY: a position, an alias of the output, or an expression."""
        if isinstance(item, (exp.Cube, exp.Rollup, exp.GroupingSets, exp.Tuple)):
            self._refer_items(list(item.expressions), output, scope, env, kind)
            return
        plain = item
        while isinstance(plain, (exp.Ordered, exp.Paren)):
            plain = plain.this
        if isinstance(plain, exp.Tuple):
            self._refer_items(list(plain.expressions), output, scope, env, kind)
            return
        if isinstance(plain, exp.Literal) and not plain.is_string and plain.name.isdigit():
            position = int(plain.name) - 1
            if 0 <= position < len(output.deps):
                self.refer(output.deps[position], kind)
            return
        if isinstance(plain, exp.Column) and not plain.args.get("table"):
            name = self.name(plain.this)
            if name == "all" and name not in output.index():
                for deps in output.deps:
                    self.refer(deps, kind)
                return
            alias = scope.aliases.get(name)
            if alias is not None and (kind == ROW_KINDS["sort"] or not any(s.get(name, self.interner) for s in scope.sources)):
                self.refer(alias, kind)
                return
        self.refer_to(item, scope, env, kind)

    # ---- implemented by StatementWalk -----------------------------------------------------------------------

    def modifying(self, node: exp.Expr, env: Environment | None) -> Output:
        """Return what a data-modifying CTE returns."""
        raise NotImplementedError


def _arms(node: exp.Expr, kind: type[exp.SetOperation]) -> list[exp.Expr]:
    """Return the arms of a chain of UNIONs of the same sort, left to right, without recursion."""
    distinct = node.args.get("distinct")
    arms: list[exp.Expr] = []
    stack: list[exp.Expr] = [node]
    while stack:
        item = stack.pop()
        plain = item
        while isinstance(plain, exp.Subquery) and plain.is_wrapper and not plain.args.get("with_"):
            plain = plain.this
        same = isinstance(plain, kind) and plain.args.get("distinct") == distinct and not plain.args.get("by_name")
        if same and (plain is node or not (plain.args.get("with_") or plain.args.get("order") or plain.args.get("limit"))):
            stack.append(plain.args["expression"])
            stack.append(plain.args["this"])
        elif item is node:
            stack.append(node.args["expression"])
            stack.append(node.args["this"])
            node = exp.Null()
        else:
            arms.append(item)
    return arms


def _all_keep_duplicates(node: exp.SetOperation) -> bool:
    return node.args.get("distinct") is False or not node.args.get("distinct")


def _mentions(arm: exp.Expr, cte: CommonTable, walk: QueryWalk) -> bool:
    names = {name for name, table in cte.env.tables.items() if table is cte}
    return any(
        fold(table.name, quoted=bool(getattr(table.this, "args", {}).get("quoted")), dialect=walk.dialect) in names
        for table in arm.find_all(exp.Table)
        if not table.args.get("db")
    )


def _reads_itself(body: exp.Expr, cte: CommonTable, walk: QueryWalk) -> bool:
    return _mentions(body, cte, walk)


def _merge(left: Output, right: Output) -> Output:
    result = Output()
    for position, name in enumerate(left.names):
        more = right.deps[position] if position < len(right.deps) else ()
        result.add(name, bounded((*left.deps[position], *more)))
    result.open = [*left.open, *right.open]
    result.types = left.types
    return result


def _in_arm(output: Output, arm: int) -> Output:
    if not arm:
        return output
    result = Output()
    for name, deps in zip(output.names, output.deps, strict=True):
        result.add(name, with_arm(deps, arm))
    result.open = [OpenStar(s.table, s.except_, s.rename, arm, candidate=s.candidate) for s in output.open]
    result.fields = output.fields
    return result


def _candidates(deps: Deps) -> list[int]:
    return [(dep >> REF_SHIFT << REF_SHIFT) | OPAQUE for dep in deps]


def _extend(output: Output, more: Output, skip: set[str] | None = None) -> None:
    offset = len(output.names)
    for position, (name, deps) in enumerate(zip(more.names, more.deps, strict=True)):
        if skip and name in skip:
            continue
        output.add(name, deps)
        if position in more.fields:
            output.fields[len(output.names) - 1] = more.fields[position]
    for position, type_ in more.types.items():
        output.types[offset + position] = type_
    for star in more.open:
        output.open.append(OpenStar(star.table, star.except_ | frozenset(skip or ()), star.rename, star.arm, candidate=star.candidate))


def _without(output: Output, dropped: set[str]) -> Output:
    result = _kept(output, lambda name: name not in dropped)
    result.open = [OpenStar(s.table, s.except_ | frozenset(dropped), s.rename, s.arm) for s in output.open]
    return result


def _kept(output: Output, keep: object) -> Output:
    result = Output()
    for name, deps in zip(output.names, output.deps, strict=True):
        if keep(name):  # type: ignore[operator]
            result.add(name, deps)
    result.open = list(output.open)
    return result


def _like(pattern: exp.Expr, name: str) -> bool:
    text = pattern.name if isinstance(pattern, exp.Expr) else str(pattern)
    return re.fullmatch(re.escape(text).replace("%", ".*").replace("_", "."), name, re.IGNORECASE | re.DOTALL) is not None


def _postgres_name(item: exp.Expr) -> str:
    """PostgreSQL names an unaliased column after its function (FigureColname in its parser)."""
    names = {"currentdate": "current_date", "currenttimestamp": "current_timestamp"}
    from govtool.capture.sql.functions import function_name

    name = function_name(item)
    return names.get(name, name)


__all__ = ["STAR", "QueryWalk", "TableInfo"]
