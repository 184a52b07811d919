"""A FROM item takes its place in a scope: under its alias, behind its pivots."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.expressions import naming
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.queries.pivots import match_recognize, pivoted
from govtool.capture.sql.walk.relation import FunctionRows, QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.functions.facts import SERIES


def place(walk: Walk, source: Source, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
    """Add what the pivots and the MATCH_RECOGNIZE behind a FROM item make of it to a scope."""
    for pivot in node.args.get("pivots") or ():
        source = pivoted(walk, source, pivot, scope, env)
    match = node.args.get("match")
    if match is not None:
        source = match_recognize(walk, source, match, scope, env)
    scope.add(source)


def add_output(
    walk: Walk, node: exp.Expr, output: QueryOutput, scope: Scope, env: Environment | None, *, scalar: bool = False
) -> None:
    """Add a FROM item whose output is known under its alias and column names.

    Args:
        walk: The walk.
        node: The item as it is written.
        output: Its columns.
        scope: Where to add it.
        env: The CTEs in sight.
        scalar: Whether a function returns it, whose only column may be called by the alias.
    """
    alias, columns = walk.alias(node)
    closed = _lists_types(node) or _makes_series(output)
    if columns:
        while len(output.names) < len(columns) and output.open:
            output.add("", output.deps[0] if output.deps else ())
        output = walk.relabelled(output, columns)
    elif scalar and alias and _is_one_value(output) and not (closed and walk.dialect not in naming.DIALECTS):
        output = output.renamed([alias])  # PostgreSQL: the alias of a function names its only column too
    if closed or (columns and node.args.get("view")):  # there is no column but these
        output = output.copy()
        output.open = []
    if not alias and scalar and isinstance(node, nodes.Table) and isinstance(node.this, nodes.Func):
        alias = function_name(node.this)  # a function without an alias has its own name
    place(walk, Source(alias, output=output), node, scope, env)


def _lists_types(node: exp.Expr) -> bool:
    """Return whether a FROM item has a list of columns with types: ``f() AS t(a int)``."""
    alias = node.args.get("alias")
    listed = alias.args.get("columns") or () if isinstance(alias, nodes.TableAlias) else ()
    return any(isinstance(column, nodes.ColumnDef) and column.args.get("kind") for column in listed)


def _is_one_value(output: QueryOutput) -> bool:
    """Return whether rows are single values of a function."""
    return len(output.names) == 1 and any(isinstance(star.table, FunctionRows) for star in output.open)


def _makes_series(output: QueryOutput) -> bool:
    """Return whether rows are those of a series, such as generate_series, which has no fields."""
    return any(isinstance(star.table, FunctionRows) and star.table.id in SERIES for star in output.open)
