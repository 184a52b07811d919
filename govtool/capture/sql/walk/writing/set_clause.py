"""SET: what UPDATE, MERGE and ON CONFLICT assign to which columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import (
    TRANSFORMATION,
    Deps,
    as_conditions,
    bounded,
)
from govtool.capture.sql.walk.expressions.expression import collect, dependencies
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.expressions.written_paths import path_below
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.scope import Environment, Scope

_SQL_COLUMN: Final = re.compile(r'sql:column\(\s*"([^"]+)"\s*\)')
"""A column inside of XQuery (T-SQL: "sql:column() function")."""


def assignments(walk: Walk, items: Iterable[exp.Expr], scope: Scope, env: Environment | None) -> list[tuple[str, Deps]]:
    """Return the columns that SET assigns, with what flows into each; rows of subqueries steer their column."""
    found: list[tuple[str, Deps]] = []
    for item in items:
        called = _changed_by_method(item)
        if called is not None:
            name = assigned_name(walk, called)
            found.append((name, _method_value(walk, called, item.expression, scope, env)))
            continue
        if not isinstance(item, (nodes.EQ, nodes.PropertyEQ)):
            walk.diagnose("opaque", "an assignment of SET is not understood", item)
            continue
        left, right = sides(item)
        if isinstance(left, nodes.Parameter):
            continue
        saved, walk.rows = walk.rows, {}
        if isinstance(left, nodes.Tuple):
            names = [assigned_name(walk, part) for part in left.expressions]
            values = _tuple_values(walk, right, len(names), scope, env)
        else:
            names = [assigned_name(walk, left)]
            values = [_value(walk, right, scope, env)]
        steering = as_conditions(walk.rows, walk.interner)
        walk.rows = saved
        found.extend((name, bounded((*deps, *steering))) for name, deps in zip(names, values, strict=False))
    return found


def _method_value(walk: Walk, column: exp.Expr, call: exp.Expr, scope: Scope, env: Environment | None) -> Deps:
    """T-SQL's ``SET c.modify('… sql:column("t.d") …')``: c as it was, and what the text and arguments name."""
    chain = walk.interner.prepend(function_name(call, walk.dialect), 0)
    statement = call.find_ancestor(nodes.Update)
    table = statement.this if statement is not None else None
    target = nodes.Column(this=column.copy())
    if isinstance(table, nodes.Table) and isinstance(table.this, nodes.Identifier) and len(scope.sources) > 1:
        alias = table.args.get("alias")
        target.set("table", (alias.this if alias is not None else table.this).copy())
    deps = collect(walk, target, scope, env, TRANSFORMATION, chain)
    for argument in call.expressions:
        deps.extend(collect(walk, argument, scope, env, TRANSFORMATION, chain))
        text = argument.name if isinstance(argument, nodes.Literal) else str(argument.this or "")
        for path in _SQL_COLUMN.findall(text):
            parts = [nodes.Identifier(this=part.strip("[]"), quoted="[" in part) for part in path.split(".")[-2:]]
            named = nodes.Column(this=parts[-1], table=parts[0] if len(parts) > 1 else None)
            deps.extend(collect(walk, named, scope, env, TRANSFORMATION, chain))
        if "sql:variable" in text:
            walk.diagnose("opaque", "a variable inside of an XML method is not followed", call)
    return bounded(deps)


def _tuple_values(walk: Walk, right: exp.Expr, count: int, scope: Scope, env: Environment | None) -> list[Deps]:
    plain = right.unnest() if isinstance(right, (nodes.Subquery, nodes.Paren)) else right
    if isinstance(plain, nodes.Query):
        return output_of(walk, plain, scope, env).deps
    if isinstance(plain, nodes.Tuple):
        return [_value(walk, value, scope, env) for value in plain.expressions]
    return [dependencies(walk, right, scope, env)] * count


def _value(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None) -> Deps:
    """Return the dependencies of an assigned value; DEFAULT is no column, though it is read as one."""
    if isinstance(node, nodes.Column) and len(node.parts) == 1:
        name = node.this
        if isinstance(name, nodes.Identifier) and not name.args.get("quoted") and name.name.upper() == "DEFAULT":
            return ()
    return dependencies(walk, node, scope, env)


def assigned_name(walk: Walk, node: exp.Expr) -> str:
    """Return the column (or field path) that an assignment names, without the table's alias."""
    if isinstance(node, nodes.Column):
        parts = walk.qualifier(node.parts)
        return (
            parts[-1]
            if len(parts) < 2 or walk.dialect not in ("bigquery", "spark", "databricks")
            else _assigned_path(walk, parts)
        )
    if isinstance(node, (nodes.Dot, nodes.Bracket)):
        base, path = path_below(walk, node)
        return (
            f"{assigned_name(walk, base)}.{path}" if not path.startswith("[") else f"{assigned_name(walk, base)}{path}"
        )
    return walk.name(node)


def _assigned_path(walk: Walk, parts: tuple[str, ...]) -> str:
    return ".".join(parts[1:]) if parts[0] in walk.targets else ".".join(parts)


def _changed_by_method(item: exp.Expr) -> exp.Expr | None:
    """Return the column that T-SQL's ``SET c.method(…)`` changes; None for an assignment."""
    if not isinstance(item, nodes.Dot) or not isinstance(item.expression, nodes.Anonymous):
        return None
    owner = item.this
    name = owner.expression if isinstance(owner, nodes.Dot) else owner
    return name if isinstance(name, nodes.Identifier) else None


def sides(item: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return what an assignment sets and to what; of T-SQL's ``@variable = column = value`` the inner one."""
    left, right = item.this, item.expression
    if isinstance(left, nodes.Parameter) and isinstance(right, nodes.EQ):
        return right.this, right.expression
    return left, right
