"""WITH: common table expressions, and the fixpoint of the recursive ones."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import DISTINCT, UNION_ALL
from govtool.capture.sql.walk.expressions.expression import dependencies
from govtool.capture.sql.walk.queries.arms import arms_of, merged_outputs, reads_itself
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.scope import CommonTable, Environment, Scope

CTES_WHEN_READ: Final = frozenset({"duckdb", "sqlite"})
"""Dialects that resolve the names in a CTE or in a named window only where something reads it."""

MAX_ROUNDS: Final = 50
"""Rounds of a recursive CTE before its dependencies are taken as they stand; each adds at least one or ends it."""


def environment(walk: Walk, node: exp.Expr, scope: Scope | None, env: Environment | None) -> Environment | None:
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
            [walk.name(column) for column in alias.args.get("columns") or ()]
            if isinstance(alias, nodes.TableAlias)
            else []
        )
        name = walk.name(identifier)
        # Each CTE can read the ones before it, and itself where that makes it recursive.
        env = Environment(env)
        body = cte.this.unnest() if isinstance(cte.this, nodes.Subquery) else cte.this
        # Where RECURSIVE is optional, only a UNION can be: WITH t AS (SELECT … FROM t) reads the table.
        may_recurse = recursive or (
            walk.dialect in ("tsql", "oracle", "fabric", "snowflake") and isinstance(body, nodes.Union)
        )
        common = CommonTable(cte.this, columns, env if may_recurse else env.parent, scope, may_recurse)
        env.tables[name] = common
        walk.common_tables.append((name, common))
    return env


def common_output(walk: Walk, cte: CommonTable) -> QueryOutput:
    """Return the output of a CTE, walking it when first read."""
    cte.used = True
    if cte.output is not None:
        walk.rows.update(cte.rows)
        walk.read(cte.reads)
        return cte.output
    if cte.evaluating:
        if cte.working is None:  # read before the anchor has given it columns
            walk.diagnose("cycle", "a CTE reads itself outside of a recursive arm", cte.node)
            return QueryOutput()
        return cte.working
    cte.evaluating = True
    rows, walk.rows = walk.rows, cte.rows
    reads, walk.reads = walk.reads, cte.reads
    try:
        node = cte.node
        body = node.unnest() if isinstance(node, nodes.Subquery) else node
        if cte.recursive and isinstance(body, nodes.Union) and reads_itself(body, cte, walk.dialect):
            output = _recursive(walk, body, cte)
        elif isinstance(node, (nodes.Query, nodes.DML)):
            output = output_of(walk, node, cte.scope, cte.env)
        else:  # ClickHouse's WITH expression AS name
            output = QueryOutput()
            output.add("", dependencies(walk, node, cte.scope or Scope(None), cte.env))
    finally:
        cte.evaluating = False
        cte.rows, walk.rows = walk.rows, rows
        cte.reads, walk.reads = walk.reads, reads
    walk.rows.update(cte.rows)
    walk.read(cte.reads)
    if walk.dialect == "duckdb":
        output = output.unique()
    if cte.columns:
        output = walk.relabelled(output, cte.columns)
    cte.output = output
    return output


def _recursive(walk: Walk, body: exp.Union, cte: CommonTable) -> QueryOutput:
    """Iterate a recursive CTE to its fixpoint: the anchor first, then the recursive arms over what is known so
    far.
    """
    env = environment(walk, body, cte.scope, cte.env)
    arms = arms_of(body, nodes.Union)
    anchors = [arm for arm in arms if not reads_itself(arm, cte, walk.dialect)]
    if not anchors:
        walk.diagnose("cycle", "a recursive CTE has no anchor", body)
        return QueryOutput()
    result = output_of(walk, anchors[0], cte.scope, env)
    for anchor in anchors[1:]:
        result = merged_outputs(result, output_of(walk, anchor, cte.scope, env))
    if cte.columns:
        result = result.renamed(cte.columns)
    for _ in range(MAX_ROUNDS):
        cte.working = result
        before = [set(deps) for deps in result.deps]
        for arm in arms:
            if arm not in anchors:
                result = merged_outputs(result, output_of(walk, arm, cte.scope, env))
        if [set(deps) for deps in result.deps] == before:
            break
    cte.working = None
    kind = UNION_ALL if body.args.get("distinct") is False else DISTINCT
    for deps in result.deps:
        walk.refer(deps, kind)
    return result
