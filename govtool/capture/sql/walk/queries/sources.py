"""FROM: items and joins, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import JOIN
from govtool.capture.sql.walk.dispatch import by_class
from govtool.capture.sql.walk.expressions.expression import dependencies, refer_to
from govtool.capture.sql.walk.expressions.row_makers import refer_values
from govtool.capture.sql.walk.queries.outer_joins import has_outer, read_items
from govtool.capture.sql.walk.queries.using import join_naturally, join_using
from govtool.capture.sql.walk.relation import QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import Reads

FromItem = Callable[[Walk, Any, Scope, Environment | None], None]
"""Adds FROM items of one class to a scope."""

ITEMS: Final[dict[type, FromItem]] = {}
"""How FROM items of a class are added; ``statements`` fills it."""


def add_sources(walk: Walk, select: exp.Expr, scope: Scope, env: Environment | None) -> None:
    """Add FROM, LATERAL VIEWs and JOINs of a SELECT (or UPDATE, DELETE, MERGE) to its scope."""
    args = select.args
    from_ = args.get("from_")
    joins = args.get("joins")
    laterals = args.get("laterals")
    if joins and from_ is not None and not laterals and has_outer(joins):
        _add_outer_joins(walk, from_.this, joins, scope, env)
        return
    if from_ is not None:
        add_source(walk, from_.args.get("this"), scope, env)
    for lateral in laterals or ():
        add_source(walk, lateral, scope, env)
    if joins:
        add_joins(walk, joins, scope, env, 0)


def _add_outer_joins(walk: Walk, first: exp.Expr, joins: list[exp.Join], scope: Scope, env: Environment | None) -> None:
    """Add a FROM with outer joins, and record of each item whether there are rows without it."""
    reads, walk.reads = walk.reads, {}
    parts: list[Reads] = []
    try:
        add_source(walk, first, scope, env)
        parts.append(walk.reads)
        add_joins(walk, joins, scope, env, 0, parts)
    finally:
        walk.reads = reads
    read_items(walk, parts, first, joins)


def add_source(walk: Walk, node: exp.Expr, scope: Scope, env: Environment | None) -> None:
    """Add one FROM item, with the joins and pivots that hang on it."""
    while isinstance(node, (nodes.Stream, nodes.Final, nodes.Paren)):  # Databricks' STREAM(t), ClickHouse's t FINAL
        node = node.this
    start = len(scope.sources)
    add = by_class(ITEMS, type(node))
    if add is None:
        walk.diagnose("opaque", f"FROM item {node.key.upper()} is not understood", node)
        return
    add(walk, node, scope, env)
    args = node.args
    for lateral in args.get("laterals") or ():
        add_source(walk, lateral, scope, env)
    joins = args.get("joins")
    if joins and type(node) is not nodes.Subquery:  # whose joins stand before its LATERAL VIEWs
        add_joins(walk, joins, scope, env, start)


def add_joins(
    walk: Walk,
    joins: list[exp.Join],
    scope: Scope,
    env: Environment | None,
    start: int,
    parts: list[Reads] | None = None,
) -> None:
    """Add joins one after the other, to what is in the scope's sources from ``start`` on.

    Args:
        walk: The walk.
        joins: The joins.
        scope: Where to add them.
        env: The CTEs in sight.
        start: Where in the scope's sources the left side begins.
        parts: Gains what each join reads, which the walk then does not record.
    """
    for join in joins:
        if parts is not None:
            walk.reads = {}
        # A comma binds last, so what is before it is not on the left of the joins behind it. Where a dialect is
        # different, the parser calls it a CROSS JOIN.
        if is_comma(join):
            start = len(scope.sources)
        add_join(walk, join, scope, env, start)
        if parts is not None:
            parts.append(walk.reads)


def add_join(walk: Walk, join: exp.Join, scope: Scope, env: Environment | None, start: int = 0) -> None:
    """Add the right side of a join, and reference the columns of its condition.

    Args:
        walk: The walk.
        join: The join.
        scope: Where to add it.
        env: The CTEs in sight.
        start: Where in the scope's sources the left side begins.
    """
    before = len(scope.sources)
    args = join.args
    right = args["this"]
    # Plain joins have neither; what sqlglot makes of them takes longer to ask for.
    kind, side = join.kind if args.get("kind") else "", join.side if args.get("side") else ""
    if isinstance(right, nodes.Alias) and kind == "ARRAY":  # ClickHouse ARRAY JOIN
        output = QueryOutput()
        deps = dependencies(walk, right.this, scope, env)
        refer_values(walk, [right.this], deps, right)
        output.add(walk.name(right.args["alias"]), deps)
        scope.add(Source(walk.name(right.args["alias"]), output=output))
    elif kind == "ARRAY" and isinstance(right, nodes.Column | nodes.Table):
        array = right if isinstance(right, nodes.Column) else nodes.Column(this=right.this)
        refer_values(walk, [array], dependencies(walk, array, scope, env), right)
        return
    else:
        add_source(walk, right, scope, env)
    added = scope.sources[before:]
    on = args.get("on")
    if on is not None:
        refer_to(walk, on, scope.since(start) if start else scope, env, JOIN)
    refer_to(walk, args.get("match_condition"), scope, env, JOIN)
    if args.get("using"):
        join_using(walk, [walk.name(_using_name(item)) for item in args["using"]], join, scope, start, before)
    elif args.get("method") and join.method == "NATURAL":
        join_naturally(walk, join, scope, start, before)
    if kind in ("SEMI", "ANTI") or side in ("SEMI", "ANTI"):
        for source in added:
            source.hidden = True
        scope.seen.clear()


def is_comma(join: exp.Join) -> bool:
    """Return whether a join is written as a comma."""
    args = join.args
    return not (
        args.get("kind") or args.get("side") or args.get("method") or args.get("on") is not None or args.get("using")
    )


def _using_name(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, nodes.Column) else item
