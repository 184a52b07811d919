"""SELECT, and what else stands where a query may stand, each to its output columns."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import (
    AGGREGATION,
    CHAIN_MASK,
    CHAIN_SHIFT,
    DISTINCT,
    FILTER,
    JOIN,
    KIND_MASK,
    SORT,
)
from govtool.capture.sql.walk.expressions.columns import resolve_column
from govtool.capture.sql.walk.expressions.expression import dependencies, refer_to
from govtool.capture.sql.walk.expressions.naming import output_name
from govtool.capture.sql.walk.expressions.rows import star_of
from govtool.capture.sql.walk.queries.clauses import refer_group, refer_items, refer_modifiers
from govtool.capture.sql.walk.queries.common_tables import CTES_WHEN_READ, environment
from govtool.capture.sql.walk.queries.counts import DISTINCT as DISTINCT_VALUES
from govtool.capture.sql.walk.queries.counts import (
    Bound,
    count_bounds,
    counted,
    joins_rows,
    keys_of_groups,
    plain,
    repeats_rows,
)
from govtool.capture.sql.walk.queries.pivots import match_recognize, pivoted
from govtool.capture.sql.walk.queries.projections import projections
from govtool.capture.sql.walk.queries.sources import add_source, add_sources
from govtool.capture.sql.walk.queries.values import values_output
from govtool.capture.sql.walk.query import QueryWalker, no_query, output_of
from govtool.capture.sql.walk.relation import FunctionRows, OpenStar, QueryOutput
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.functions.facts import CHOICES

NO_ALIASES_IN_HAVING: Final = frozenset({"postgres", "oracle", "tsql", "fabric", "trino", "presto", "athena"})

ALIASES_IN_HAVING: Final = frozenset({"mysql", "bigquery"})
"""Dialects in which a name in HAVING means an output column before a column of FROM.

MySQL 8.4, "SELECT Statement": HAVING may refer to columns of the SELECT list and of outer queries; a name that is also
in GROUP BY means the column there. BigQuery, "Query syntax", HAVING: aliases override names of the FROM clause.
"""


def _subquery(walk: Walk, node: exp.Subquery, scope: Scope | None, env: Environment | None) -> QueryOutput:
    env = environment(walk, node, scope, env)
    if isinstance(node.this, nodes.Table):
        output = _table(walk, node.this, scope, env)
    else:
        output = output_of(walk, node.this, scope, env)
    refer_modifiers(walk, node, output, scope, env)
    return output


def _table(walk: Walk, node: exp.Table, scope: Scope | None, env: Environment | None) -> QueryOutput:
    inner = Scope(scope)
    add_source(walk, node, inner, env)
    return star_of(walk, inner)


def _pivot(walk: Walk, node: exp.Pivot, scope: Scope | None, env: Environment | None) -> QueryOutput:
    """DuckDB's PIVOT statement."""
    if node.args.get("this") is None:
        return no_query(walk, node)
    inner = Scope(scope)
    add_source(walk, node.this, inner, environment(walk, node, scope, env))
    return pivoted(walk, inner.sources[0], node, inner, env).output or QueryOutput()


def _paren(walk: Walk, node: exp.Paren, scope: Scope | None, env: Environment | None) -> QueryOutput:
    return output_of(walk, node.this, scope, env)


def _row(walk: Walk, node: exp.Tuple, scope: Scope | None, env: Environment | None) -> QueryOutput:
    output = QueryOutput()
    for item in node.expressions:
        output.add(output_name(walk, item), dependencies(walk, item, scope or Scope(None), env))
    return output


def _select(walk: Walk, node: exp.Select, parent: Scope | None, env: Environment | None) -> QueryOutput:
    """The columns of one SELECT; its clauses are walked in the order in which they see each other's names."""
    env = environment(walk, node, parent, env)
    scope = _scope_of(walk, node, parent, env)
    output = projections(walk, node, scope, env)
    _name_only(walk, node.args, scope, env)
    _filter_rows(walk, node.args, scope, env)
    group = node.args.get("group")
    if group is not None:
        refer_group(walk, group, node, output, scope, env)
    _filter_groups(walk, node, output, scope, env)
    _arrange(walk, node.args, output, scope, env)
    kind = node.args.get("kind")
    return _value_table(output, str(kind)) if kind == "STRUCT" or kind == "VALUE" else output


def _scope_of(walk: Walk, node: exp.Select, parent: Scope | None, env: Environment | None) -> Scope:
    """Return the scope that FROM, MATCH_RECOGNIZE and WINDOW open."""
    scope = Scope(parent)
    if walk.dialect == "clickhouse":  # prefer_column_name_to_alias is 0 by default: aliases replace columns
        scope.aliases_first = frozenset()
    add_sources(walk, node, scope, env)
    match = node.args.get("match")
    if match is not None and scope.sources:
        last = scope.sources.pop()
        scope.by_alias.pop(last.alias, None)
        scope.add(match_recognize(walk, last, match, scope, env))
    for window in node.args.get("windows") or ():
        scope.windows[walk.name(window.this)] = window
    return scope


def _filter_rows(walk: Walk, args: dict[str, Any], scope: Scope, env: Environment | None) -> None:
    """Reference what decides about rows before they are grouped: WHERE, and CONNECT BY, which joins rows."""
    for key in ("prewhere", "where"):
        clause = args.get(key)
        if clause is not None:
            refer_to(walk, clause.args.get("this"), scope, env, FILTER)
    connect = args.get("connect")
    if connect is not None:
        refer_to(walk, connect.args.get("start"), scope, env, FILTER)
        refer_to(walk, connect.args.get("connect"), scope, env, JOIN)


def _filter_groups(walk: Walk, node: exp.Select, output: QueryOutput, scope: Scope, env: Environment | None) -> None:
    """Reference what HAVING and QUALIFY read: in most dialects they may name columns of the output."""
    args = node.args
    scope.aliases_visible = walk.dialect not in NO_ALIASES_IN_HAVING
    having = args.get("having")
    if having is not None:
        if walk.dialect in ALIASES_IN_HAVING:
            group = args.get("group")
            keys = group.expressions if group is not None else ()
            scope.aliases_first = frozenset([walk.name(key.this) for key in keys if isinstance(key, nodes.Column)])
            scope.seen.clear()
        refer_to(walk, having.this, scope, env, FILTER)
        _bounds(walk, node, having.this, output, scope, env)
    qualify = args.get("qualify")
    if qualify is not None:
        refer_to(walk, qualify.this, scope, env, FILTER)


def _arrange(walk: Walk, args: dict[str, Any], output: QueryOutput, scope: Scope, env: Environment | None) -> None:
    """Reference what DISTINCT compares, what ORDER BY and its like sort by, and by what LIMIT counts."""
    distinct = args.get("distinct")
    if distinct is not None:
        on = distinct.args.get("on")
        if on is not None:
            refer_items(walk, on.expressions if isinstance(on, nodes.Tuple) else [on], output, scope, env, DISTINCT)
        else:
            for deps in output.deps:
                walk.refer_unnamed(deps, DISTINCT)
    for key in ("order", "sort", "cluster", "distribute"):
        order = args.get(key)
        if order is not None:
            refer_items(walk, order.expressions, output, scope, env, SORT)
    limit = args.get("limit")
    if limit is not None and limit.expressions:  # ClickHouse LIMIT n BY columns
        refer_items(walk, limit.expressions, output, scope, env, DISTINCT)


def _name_only(walk: Walk, args: dict[str, Any], scope: Scope, env: Environment | None) -> None:
    """Record what unused windows name, which hand nothing on, and reference what LIMIT and OFFSET read."""
    for key in ("limit", "offset"):
        clause = args.get(key)
        count = clause.args.get("expression") if clause is not None else None
        if isinstance(count, nodes.Expr) and not isinstance(count, nodes.Literal):
            refer_to(walk, count, scope, env, FILTER)
    for node in (args.get("windows") or ()) if walk.dialect not in CTES_WHEN_READ else ():
        walk.without_effects(lambda node=node: refer_to(walk, node, scope, env, SORT))  # type: ignore[misc]


def _bounds(
    walk: Walk, node: exp.Select, having: exp.Expr, output: QueryOutput, scope: Scope, env: Environment | None
) -> None:
    """Note how many of what there are in each group."""
    found: list[Bound] = []
    for least, count in count_bounds(having):
        what, of = counted(count)
        deps = plain(dependencies(walk, of, scope, env)) if of is not None else ()
        found.append((least, what, deps, False))
    if found and not _is_whole(walk, node, output, scope):
        found = []
    if any([bound[1] != DISTINCT_VALUES for bound in found]) and repeats_rows(node):  # noqa: C419
        found = [bound for bound in found if bound[1] == DISTINCT_VALUES]
    if found and joins_rows(node):
        found = [(least, what, deps, True) for least, what, deps, _ in found]
    walk.bounds[id(node)] = found


def _is_whole(walk: Walk, node: exp.Select, output: QueryOutput, scope: Scope) -> bool:
    """Return whether every aggregate that a SELECT puts out is one over all rows of its own groups."""
    keys = keys_of_groups(node.expressions)
    if keys is None:
        return False
    for deps in output.deps:  # sum(x), where a subquery has chosen what x is
        for dep in deps:
            chain = walk.interner.chains[(dep & CHAIN_MASK) >> CHAIN_SHIFT]
            if not CHOICES.isdisjoint(chain[:-1]):
                return False
    found = walk.without_effects(lambda: [dep for key in keys for dep in resolve_column(walk, key, scope)])
    return not any([dep & KIND_MASK == AGGREGATION for dep in found])  # noqa: C419


def _value_table(output: QueryOutput, kind: str) -> QueryOutput:
    """SELECT AS STRUCT and AS VALUE: the rows are values, whose fields are the columns."""
    if kind == "STRUCT":
        output.value_table = True
        return output
    shape = output.fields.get(0)
    if shape is None and len(output.deps) == 1:
        output.open.append(OpenStar(FunctionRows("a struct", output.deps[0])))
    return shape if shape is not None else output


QUERIES: Final[dict[type, QueryWalker]] = {
    nodes.Select: _select,
    nodes.Subquery: _subquery,
    nodes.Values: values_output,
    nodes.Table: _table,
    nodes.Pivot: _pivot,
    nodes.Paren: _paren,
    nodes.Tuple: _row,
}
