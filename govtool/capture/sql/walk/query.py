"""Queries: SELECT, WITH, and what else stands where a query may stand, each to its output columns."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from govtool.capture.sql import nodes
from govtool.capture.sql.walk.columns import ROW_KINDS
from govtool.capture.sql.walk.counts import DISTINCT as DISTINCT_VALUES
from govtool.capture.sql.walk.counts import (
    Bound,
    count_bounds,
    counted,
    joins_rows,
    keys_of_groups,
    plain,
    repeats_rows,
)
from govtool.capture.sql.walk.dependencies import AGGREGATION, CHAIN_MASK, CHAIN_SHIFT, KIND_MASK
from govtool.capture.sql.walk.relation import FunctionRows, OpenStar, QueryOutput
from govtool.capture.sql.walk.scope import CommonTable, Environment, Scope
from govtool.capture.sql.walk.set_operations import SetOperationWalk, reads_itself
from govtool.functions.facts import CHOICES

MAX_DEPTH: Final = 1_500
"""Queries that may be walked one for the sake of the other. Compiled, they take the C stack, which nobody guards."""

FILTER: Final = ROW_KINDS["filter"]
JOIN: Final = ROW_KINDS["join"]
DISTINCT: Final = ROW_KINDS["distinct"]
SORT: Final = ROW_KINDS["sort"]

CTES_WHEN_READ: Final = frozenset({"duckdb", "sqlite"})
"""Dialects that resolve the names in a CTE or in a named window only where something reads it."""

NO_ALIASES_IN_HAVING: Final = frozenset({"postgres", "oracle", "tsql", "fabric", "trino", "presto", "athena"})


ALIASES_IN_HAVING: Final = frozenset({"mysql", "bigquery"})
"""Dialects in which a name in HAVING means an output column before a column of FROM.

MySQL 8.4, "SELECT Statement": HAVING may refer to columns of the SELECT list and of outer queries; a name that is also
in GROUP BY means the column there. BigQuery, "Query syntax", HAVING: aliases override names of the FROM clause.
"""


class QueryWalk(SetOperationWalk):
    """Walks query expressions."""

    def query(self, node: exp.Expr, scope: Scope | None, env: Environment | None) -> QueryOutput:
        """Return the output of a query expression; ``scope`` is what it may be correlated with.

        Raises:
            RecursionError: Subqueries, CTEs and views nest too deeply.
        """
        interner = self.interner
        if interner.depth >= MAX_DEPTH:
            raise RecursionError
        interner.depth += 1
        if interner.depth > interner.deepest:
            interner.deepest = interner.depth
        try:
            if type(node) is nodes.Select:
                return self.select(node, scope, env)
            return self._query(node, scope, env)
        finally:
            interner.depth -= 1

    def _query(self, node: exp.Expr, scope: Scope | None, env: Environment | None) -> QueryOutput:
        if isinstance(node, nodes.Select):
            return self.select(node, scope, env)
        if isinstance(node, nodes.SetOperation):
            return self.set_operation(node, scope, env)
        if isinstance(node, nodes.Subquery):
            env = self.environment(node, scope, env)
            if isinstance(node.this, nodes.Table):
                inner = Scope(scope)
                self.add_source(node.this, inner, env)
                output = self.star(inner)
            else:
                output = self.query(node.this, scope, env)
            self.modifiers(node, output, scope, env)
            return output
        if isinstance(node, nodes.Values):
            return self.values(node, scope, env)
        if isinstance(node, nodes.Table):
            inner = Scope(scope)
            self.add_source(node, inner, env)
            return self.star(inner)
        if isinstance(node, nodes.Pivot) and node.args.get("this") is not None:  # DuckDB's PIVOT statement
            inner = Scope(scope)
            self.add_source(node.this, inner, self.environment(node, scope, env))
            source = self.pivot(inner.sources[0], node, inner, env)
            return source.output or QueryOutput()
        if isinstance(node, (nodes.Insert, nodes.Update, nodes.Delete, nodes.Merge)):
            return self.modifying(node, env)
        if isinstance(node, nodes.Paren):
            return self.query(node.this, scope, env)
        if isinstance(node, nodes.Tuple):
            output = QueryOutput()
            for item in node.expressions:
                output.add(self.output_name(item), self.dependencies(item, scope or Scope(None), env))
            return output
        self.diagnose("opaque", f"{node.key.upper()} is not understood as a query", node)
        return QueryOutput()

    # ---- WITH --------------------------------------------------------------------------------------

    def environment(self, node: exp.Expr, scope: Scope | None, env: Environment | None) -> Environment | None:
        """Return the environment that WITH opens, or ``env`` itself."""
        with_ = node.args.get("with_")
        if with_ is None:
            return env
        recursive = bool(with_.args.get("recursive"))
        for cte in with_.expressions:
            if not isinstance(cte, nodes.CTE):
                continue
            alias = cte.args.get("alias")
            identifier = alias.this if isinstance(alias, nodes.TableAlias) else alias
            columns = (
                [self.name(column) for column in alias.args.get("columns") or ()]
                if isinstance(alias, nodes.TableAlias)
                else []
            )
            name = self.name(identifier)
            # Each CTE sees the ones before it, and itself where that makes it recursive.
            env = Environment(env)
            body = cte.this.unnest() if isinstance(cte.this, nodes.Subquery) else cte.this
            # Where RECURSIVE need not be said, only a UNION can be: WITH t AS (SELECT … FROM t) reads the table.
            may_recurse = recursive or (
                self.dialect in ("tsql", "oracle", "fabric", "snowflake") and isinstance(body, nodes.Union)
            )
            common = CommonTable(cte.this, columns, env if may_recurse else env.parent, scope, may_recurse)
            env.tables[name] = common
            self.common_tables.append((name, common))
        return env

    def common_table(self, cte: CommonTable) -> QueryOutput:
        """Return the output of a CTE, walking it when first read."""
        cte.used = True
        if cte.output is not None:
            self.rows.update(cte.rows)
            self.read(cte.reads)
            return cte.output
        if cte.evaluating:
            if cte.working is None:  # read before the anchor has given it columns
                self.diagnose("cycle", "a CTE reads itself outside of a recursive arm", cte.node)
                return QueryOutput()
            return cte.working
        cte.evaluating = True
        rows, self.rows = self.rows, cte.rows
        reads, self.reads = self.reads, cte.reads
        try:
            node = cte.node
            body = node.unnest() if isinstance(node, nodes.Subquery) else node
            if cte.recursive and isinstance(body, nodes.Union) and reads_itself(body, cte, self.dialect):
                output = self._recursive(body, cte)
            elif isinstance(node, (nodes.Query, nodes.DML)):
                output = self.query(node, cte.scope, cte.env)
            else:  # ClickHouse's WITH expression AS name
                output = QueryOutput()
                output.add("", self.dependencies(node, cte.scope or Scope(None), cte.env))
        finally:
            cte.evaluating = False
            cte.rows, self.rows = self.rows, rows
            cte.reads, self.reads = self.reads, reads
        self.rows.update(cte.rows)
        self.read(cte.reads)
        if self.dialect == "duckdb":
            output = output.unique()
        if cte.columns:
            output = self.relabelled(output, cte.columns)
        cte.output = output
        return output

    # ---- SELECT ----------------------------------------------------------------------------------------

    def select(self, node: exp.Select, parent: Scope | None, env: Environment | None) -> QueryOutput:
        """Walk one SELECT."""
        args = node.args
        env = self.environment(node, parent, env)
        scope = Scope(parent)
        if self.dialect == "clickhouse":  # prefer_column_name_to_alias is 0 by default: aliases replace columns
            scope.aliases_first = frozenset()
        self.add_sources(node, scope, env)
        if args.get("match") is not None and scope.sources:
            last = scope.sources.pop()
            scope.by_alias.pop(last.alias, None)
            scope.add(self.match_recognize(last, args["match"], scope, env))
        for window in args.get("windows") or ():
            scope.windows[self.name(window.this)] = window
        output = self._projections(node, scope, env)
        self._name_only(args, scope, env)
        for key in ("prewhere", "where"):
            clause = args.get(key)
            if clause is not None:
                self.refer_to(clause.this, scope, env, FILTER)
        connect = args.get("connect")
        if connect is not None:
            self.refer_to(connect.args.get("start"), scope, env, FILTER)
            self.refer_to(connect.args.get("connect"), scope, env, JOIN)
        group = args.get("group")
        if group is not None:
            self._group(group, node, output, scope, env)
        scope.aliases_visible = self.dialect not in NO_ALIASES_IN_HAVING
        if self.dialect in ALIASES_IN_HAVING and args.get("having") is not None:
            keys = [item for item in (group.expressions if group is not None else ()) if isinstance(item, nodes.Column)]
            scope.aliases_first = frozenset([self.name(item.this) for item in keys])
            scope.seen.clear()
        for key in ("having", "qualify"):
            clause = args.get(key)
            if clause is not None:
                self.refer_to(clause.this, scope, env, FILTER)
                if key == "having":
                    self._bounds(node, clause.this, output, scope, env)
        distinct = args.get("distinct")
        if distinct is not None:
            on = distinct.args.get("on")
            if on is not None:
                self._refer_items(on.expressions if isinstance(on, nodes.Tuple) else [on], output, scope, env, DISTINCT)
            else:
                for deps in output.deps:
                    self.refer_unnamed(deps, DISTINCT)
        for key in ("order", "sort", "cluster", "distribute"):
            order = args.get(key)
            if order is not None:
                self._refer_items(order.expressions, output, scope, env, SORT)
        limit = args.get("limit")
        if limit is not None and limit.expressions:  # ClickHouse LIMIT n BY columns
            self._refer_items(limit.expressions, output, scope, env, DISTINCT)
        if args.get("kind") == "STRUCT" or args.get("kind") == "VALUE":
            output = self._value_table(output, str(args["kind"]))
        return output

    def _name_only(self, args: dict[str, Any], scope: Scope, env: Environment | None) -> None:
        """Record what unused windows name, which hand nothing on, and reference what LIMIT and OFFSET read."""
        for key in ("limit", "offset"):
            clause = args.get(key)
            count = clause.args.get("expression") if clause is not None else None
            if isinstance(count, nodes.Expr) and not isinstance(count, nodes.Literal):
                self.refer_to(count, scope, env, FILTER)
        for node in (args.get("windows") or ()) if self.dialect not in CTES_WHEN_READ else ():
            self.without_effects(lambda node=node: self.refer_to(node, scope, env, SORT))  # type: ignore[misc]

    def _bounds(
        self, node: exp.Select, having: exp.Expr, output: QueryOutput, scope: Scope, env: Environment | None
    ) -> None:
        """Note how many of what there are in each group."""
        found: list[Bound] = []
        for least, count in count_bounds(having):
            what, of = counted(count)
            deps = plain(self.dependencies(of, scope, env)) if of is not None else ()
            found.append((least, what, deps, False))
        if found and not self._is_whole(node, output, scope):
            found = []
        if any([bound[1] != DISTINCT_VALUES for bound in found]) and repeats_rows(node):  # noqa: C419
            found = [bound for bound in found if bound[1] == DISTINCT_VALUES]
        if found and joins_rows(node):
            found = [(least, what, deps, True) for least, what, deps, _ in found]
        self.bounds[id(node)] = found

    def _is_whole(self, node: exp.Select, output: QueryOutput, scope: Scope) -> bool:
        """Return whether every aggregate that a SELECT puts out is one over all rows of its own groups."""
        keys = keys_of_groups(node.expressions)
        if keys is None:
            return False
        for deps in output.deps:  # sum(x), where a subquery has chosen what x is
            for dep in deps:
                chain = self.interner.chains[(dep & CHAIN_MASK) >> CHAIN_SHIFT]
                if not CHOICES.isdisjoint(chain[:-1]):
                    return False
        found = self.without_effects(lambda: [dep for key in keys for dep in self.column(key, scope)])
        return not any([dep & KIND_MASK == AGGREGATION for dep in found])  # noqa: C419

    def _value_table(self, output: QueryOutput, kind: str) -> QueryOutput:
        """SELECT AS STRUCT and AS VALUE: the rows are values, whose fields are the columns."""
        if kind == "STRUCT":
            output.value_table = True
            return output
        shape = output.fields.get(0)
        if shape is None and len(output.deps) == 1:
            output.open.append(OpenStar(FunctionRows("a struct", output.deps[0])))
        return shape if shape is not None else output

    # ---- implemented by StatementWalk -----------------------------------------------------------------------

    def modifying(self, node: exp.Expr, env: Environment | None) -> QueryOutput:
        """Return what a data-modifying CTE returns."""
        raise NotImplementedError
