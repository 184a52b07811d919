"""GROUP BY, ORDER BY and their like: items that are positions, aliases of the output, or expressions."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import FILTER, GROUP_BY, SORT, STAR, Deps
from govtool.capture.sql.walk.expressions.expression import refer_to
from govtool.capture.sql.walk.relation import QueryOutput, Source
from govtool.capture.sql.walk.scope import Environment, Scope

ALIASES_FIRST: Final = frozenset({"bigquery", "clickhouse"})
"""Dialects in which a name in GROUP BY means an alias of the SELECT before a column of FROM.

BigQuery, "Query syntax", GROUP BY: aliases of the SELECT clause override names in the FROM clause. ClickHouse,
``prefer_column_name_to_alias``: 0 by default, so that names of columns are replaced by aliases, in every clause.
"""

_NUMBER: Final = re.compile(r"(?:_\d+)+(?=\"?$)")
"""The numbers of columns whose names a ``*`` brings several times; see ``QueryOutput.unique``."""


def refer_group(
    walk: Walk, group: exp.Group, node: exp.Select, output: QueryOutput, scope: Scope, env: Environment | None
) -> None:
    """Reference the columns by which rows are grouped, those of grouping sets included."""
    items: list[exp.Expr] = list(group.expressions)
    for key in ("grouping_sets", "cube", "rollup"):
        for part in group.args.get(key) or ():
            items.extend(part.expressions if isinstance(part, nodes.Expr) and part.expressions else [])
    if group.args.get("all"):
        for item, deps in zip(node.expressions, output.deps, strict=False):
            if not isinstance(item, nodes.Star) and not any(item.find_all(nodes.AggFunc)):
                walk.refer(deps, GROUP_BY)
    refer_items(walk, items, output, scope, env, GROUP_BY)


def refer_items(
    walk: Walk, items: list[exp.Expr], output: QueryOutput, scope: Scope, env: Environment | None, kind: int
) -> None:
    """Reference the items of a GROUP BY, ORDER BY or DISTINCT ON."""
    for item in items:
        _refer_item(walk, item, output, scope, env, kind)


def _refer_item(
    walk: Walk, item: exp.Expr, output: QueryOutput, scope: Scope, env: Environment | None, kind: int
) -> None:
    """Reference an item of GROUP BY or ORDER BY: a position, an alias of the output, or an expression."""
    if isinstance(item, (nodes.Cube, nodes.Rollup, nodes.GroupingSets, nodes.Tuple)):
        refer_items(walk, list(item.expressions), output, scope, env, kind)
        return
    plain = item
    while isinstance(plain, (nodes.Ordered, nodes.Paren)):
        plain = plain.this
    if isinstance(plain, nodes.Tuple):
        refer_items(walk, list(plain.expressions), output, scope, env, kind)
    elif isinstance(plain, nodes.Literal) and not plain.is_string and plain.name.isdigit():
        _refer_position(walk, int(plain.name), output, kind, plain)
    elif _is_all(walk, plain, output):
        for deps in output.deps:
            walk.refer_unnamed(deps, kind)
    else:
        named = _output_column(walk, plain, output, scope, kind)
        if named is not None:
            walk.refer(named, kind, plain)
        else:
            refer_to(walk, item, scope, env, kind)


def _refer_position(walk: Walk, number: int, output: QueryOutput, kind: int, node: exp.Expr) -> None:
    """Reference the column that a position means; where it may be the last, the statement needs all before it, too.

    One column that is dropped takes away those that a ``*`` calls by its name, numbered ones such as ``id_1`` among
    them, and no others. As long as enough are left, the position means another column and the statement does not fail.
    """
    count = len(output.deps)
    if not 0 < number <= count:
        return
    own = output.deps[number - 1]
    if kind == GROUP_BY or output.open:  # a group's columns are all there; behind an open * the count is not known
        walk.refer(own, kind, node)
        return
    bases = [_NUMBER.sub("", name) for name in output.names]
    of_name = Counter(bases)
    left = [count - of_name[base] for base in bases]
    if left[number - 1] >= number:
        walk.refer_unnamed(own, kind)
    else:
        walk.refer(own, kind, node)
    for at in range(number - 1):
        if left[at] < number:
            walk.noted(tuple([dep for dep in output.deps[at] if dep & STAR]))


def _is_all(walk: Walk, item: exp.Expr, output: QueryOutput) -> bool:
    """Return whether an item is ALL, which stands for every column of the output."""
    if isinstance(item, nodes.Var):
        return item.name.upper() == "ALL"
    return isinstance(item, nodes.Column) and walk.name(item.args["this"]) == "all" and "all" not in output.index()


def _output_column(walk: Walk, item: exp.Expr, output: QueryOutput, scope: Scope, kind: int) -> Deps | None:
    """Return the dependencies of the output column that an item names; None where it names none, or one of FROM."""
    if not isinstance(item, nodes.Column) or item.args.get("table"):
        return None
    name = walk.name(item.args["this"])
    if kind == SORT:  # output columns come first, whether or not they are aliases
        position = output.index().get(name)
        if position is not None:
            return output.deps[position]
    owners = sum(source.get(name, walk.interner) is not None for source in scope.sources)
    alias = scope.aliases.get(name)
    if alias is not None:
        if kind == GROUP_BY and walk.dialect in ALIASES_FIRST:
            return alias
        return alias if not owners or (owners > 1 and name not in scope.merged) else None
    # x.a in the output and a here: if only x has it they are the same, else a could mean nothing but that.
    if owners != 1 and name not in scope.merged and output.names.count(name) == 1:
        return output.deps[output.index()[name]]
    return None


def refer_modifiers(
    walk: Walk, node: exp.Expr, output: QueryOutput, scope: Scope | None, env: Environment | None
) -> None:
    """Record ORDER BY (and DISTRIBUTE, CLUSTER, SORT BY) over the columns of an output."""
    orders = [node.args.get(key) for key in ("order", "sort", "cluster", "distribute")]
    counts = [clause.args.get("expression") for key in ("limit", "offset") if (clause := node.args.get(key))]
    for count in counts:
        if isinstance(count, nodes.Expr) and not isinstance(count, nodes.Literal):
            refer_to(walk, count, Scope(scope), env, FILTER)
    if not any(orders):
        return
    inner = Scope(scope)
    inner.add(Source("", output=output))
    for order in orders:
        for item in order.expressions if order is not None else ():
            _refer_item(walk, item, output, inner, env, SORT)
