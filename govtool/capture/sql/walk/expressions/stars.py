"""``*`` with EXCEPT, REPLACE, RENAME and ILIKE, and DuckDB's COLUMNS: in a SELECT list and inside of expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import OPAQUE, Deps, bounded, compose
from govtool.capture.sql.walk.expressions.columns import Unnamed
from govtool.capture.sql.walk.expressions.expression import Handler, Visit, dependencies
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.expressions.rows import extend, passing, source_star, star_of, whole_row
from govtool.capture.sql.walk.relation import OpenStar, QueryOutput, Source, starred
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.functions.facts import ROW_COUNTS
from govtool.linear import LinearRegex
from govtool.names import unquote


def starred_columns(
    walk: Walk, star: exp.Expr, scope: Scope, env: Environment | None, base: QueryOutput | None = None
) -> QueryOutput:
    """Return the output of ``*`` with EXCEPT, REPLACE, RENAME and ILIKE applied; ``base`` is that of ``t.*``."""
    output = base if base is not None else star_of(walk, scope)
    if base is None and not scope.sources:
        walk.diagnose("unresolved", "* without a FROM clause", star)
    args = star.args
    pattern = args.get("ilike")
    changes = _changes(walk, args, scope, env)
    if pattern is None and not any(changes):
        return output
    dropped, renamed, replaced = changes
    # DuckDB takes it when RENAME names a column that is not there.
    note_listed(walk, output, (*dropped, *replaced, *(() if walk.dialect == "duckdb" else renamed)))
    result = QueryOutput()
    for name, deps in zip(output.names, output.deps, strict=True):
        if name not in dropped and (pattern is None or _like(pattern, name)):
            result.add(renamed.get(name, name), replaced.get(name, deps))
    for name, deps in replaced.items():
        if output.open and name not in output.index():
            result.add(name, deps)
    hidden = frozenset(dropped | set(replaced))
    result.open = [OpenStar(s.table, s.except_ | hidden, {**s.rename, **renamed}, s.arm) for s in output.open]
    return result


def _changes(
    walk: Walk, args: dict[str, Any], scope: Scope, env: Environment | None
) -> tuple[set[str], dict[str, str], dict[str, Deps]]:
    """Return the columns that a ``*`` drops, those that it renames, and those that it replaces, by name."""
    dropped = {walk.name(_named(item)) for item in args.get("except_") or args.get("except") or ()}
    renamed = {walk.name(_named(item.this)): walk.name(item.args["alias"]) for item in args.get("rename") or ()}
    replaced = {
        walk.name(item.args["alias"]): dependencies(walk, item.this, scope, env) for item in args.get("replace") or ()
    }
    return dropped, renamed, replaced


def _named(item: exp.Expr) -> exp.Expr:
    named: exp.Expr = item.this if isinstance(item, nodes.Column) else item
    return named


def note_listed(walk: Walk, output: QueryOutput, names: Iterable[str]) -> None:
    """Record the columns that EXCEPT, REPLACE, RENAME or EXCLUDE name: a statement fails without them."""
    listed = Source("", output=output)
    for name in names:
        walk.note_name(listed, name)


def without_columns(output: QueryOutput, dropped: set[str]) -> QueryOutput:
    """Return an output without some of its columns, those behind a ``*`` included."""
    result = _kept_columns(output, lambda name: name not in dropped)
    result.open = [OpenStar(s.table, s.except_ | frozenset(dropped), s.rename, s.arm) for s in output.open]
    return result


def _kept_columns(output: QueryOutput, keep: Callable[[str], bool]) -> QueryOutput:
    result = QueryOutput()
    for name, deps in zip(output.names, output.deps, strict=True):
        if keep(name):
            result.add(name, deps)
    result.open = list(output.open)
    return result


def _like(pattern: exp.Expr, name: str, *, any_case: bool = True) -> bool:
    text = pattern.name if isinstance(pattern, nodes.Expr) else str(pattern)
    flags = "(?is)" if any_case else "(?s)"
    return LinearRegex(flags + re.escape(text).replace("%", ".*").replace("_", ".")).fullmatch(unquote(name))


def columns_item(walk: Walk, node: exp.Columns, scope: Scope, env: Environment | None, output: QueryOutput) -> None:
    """DuckDB's COLUMNS(*), COLUMNS('pattern')."""
    inner = node.this
    every = starred_columns(walk, inner, scope, env) if isinstance(inner, nodes.Star) else star_of(walk, scope)
    if isinstance(inner, nodes.Literal):
        try:
            pattern = LinearRegex(inner.name)
        except ValueError:
            walk.diagnose("opaque", "COLUMNS has a pattern that is not a regular expression", node)
            return
        every = _kept_columns(every, lambda name: pattern.search(name))
    elif not isinstance(inner, nodes.Star):
        walk.diagnose("opaque", "COLUMNS with a computed argument", node)
    extend(output, every)


def repeated(
    walk: Walk, item: exp.Expr, columns: exp.Columns, scope: Scope, env: Environment | None, output: QueryOutput
) -> None:
    """max(COLUMNS(*)): the projection once for each column that COLUMNS stands for."""
    every = QueryOutput()
    columns_item(walk, columns, scope, env, every)
    for name in every.names:
        walk.expanding = name
        output.add(name, starred(dependencies(walk, item, scope, env)))  # its name is the column's: nobody wrote it
    walk.expanding = None
    output.open.extend(every.open)


def matching(walk: Walk, item: exp.Expr, scope: Scope, env: Environment | None, output: QueryOutput) -> bool:
    """DuckDB's ``* LIKE 'a%'``, also NOT, ILIKE, and ``t.*``: the columns with such names; False for anything else.

    With GLOB and SIMILAR TO all columns are taken for possible ones. (DuckDB, "Star Expression".)
    """
    test = item.this if type(item) is nodes.Not else item
    star = test.args.get("this") if isinstance(test, (nodes.Like, nodes.ILike, nodes.Glob, nodes.SimilarTo)) else None
    source = None
    if type(star) is nodes.Column and type(star.this) is nodes.Star:
        source, star = scope.find(walk.qualifier(star.parts[:-1])), star.this
    if type(star) is not nodes.Star:
        return False
    every = starred_columns(walk, star, scope, env, None if source is None else source_star(walk, source))
    pattern = test.args.get("expression")
    if isinstance(pattern, nodes.Literal) and isinstance(test, (nodes.Like, nodes.ILike)):
        wanted = type(item) is not nodes.Not and not test.args.get("negate")
        any_case = isinstance(test, nodes.ILike)
        every = _kept_columns(every, lambda name: _like(pattern, name, any_case=any_case) is wanted)
    else:
        walk.diagnose("opaque", "which columns a * with GLOB or SIMILAR TO stands for is not followed", item)
    extend(output, every)
    return True


def _star_in_expression(
    walk: Walk, node: exp.Expr, star: exp.Star, qualifier: tuple[str, ...] | None, scope: Scope
) -> Deps:
    """``count(t.*)``, ``hash(t.* EXCEPT (a))``: every column of a FROM item, or of the scope."""
    source = scope.find(qualifier) if qualifier else None
    if source is None:
        return bounded(dep for item in scope.sources for dep in whole_row(walk, item, node))
    if any(star.args.values()):  # t.* EXCEPT (a)
        return passing(walk, starred_columns(walk, star, scope, None, source_star(walk, source)), node)
    return whole_row(walk, source, node)


def _star(walk: Walk, node: exp.Star, kind: int, chain: int, at: Visit) -> None:
    """``hash(*)``, ``struct(* EXCEPT (a))``: every column of the scope. ``count(*)`` counts rows."""
    parent = node.parent
    if isinstance(parent, (nodes.Count, nodes.Bracket)) or (  # v[*]: the elements of v
        isinstance(parent, (nodes.Anonymous, nodes.AnonymousAggFunc))
        and function_name(parent, walk.dialect) in ROW_COUNTS
    ):
        return
    every = passing(walk, starred_columns(walk, node, at.scope, at.env), node)
    at.out.extend(compose(dep, kind, chain, walk.interner) for dep in every)


def _columns(walk: Walk, node: exp.Columns, kind: int, chain: int, at: Visit) -> None:
    """COLUMNS('pattern') inside an expression: every matching column of the at.scope."""
    for source in at.scope.sources:
        for name in source.names():
            if walk.expanding is not None and name != walk.expanding:
                continue
            at.out.extend(compose(dep, kind, chain, walk.interner) for dep in source.get(name, walk.interner) or ())


def _numbered_column(walk: Walk, node: exp.PositionalColumn, kind: int, chain: int, at: Visit) -> None:
    """DuckDB's ``#2``: the second column of what FROM brings."""
    output = walk.without_effects(lambda: star_of(walk, at.scope))
    number = int(node.name) - 1 if node.name.isdigit() else -1
    if not 0 <= number < len(output.names):
        walk.diagnose("opaque", f"column #{node.name} of what FROM brings is not known", node)
        made = tuple(dep for deps in output.deps for dep in deps)
        at.out.extend(dep | OPAQUE for dep in made)
        return
    at.out.extend(compose(dep, kind, chain, walk.interner) for dep in walk.noted(output.deps[number]))


HANDLERS: Final[dict[type, Handler]] = {
    nodes.Star: _star,
    nodes.Columns: _columns,
    nodes.PositionalColumn: _numbered_column,
}

UNNAMED: Final[dict[type, Unnamed]] = {nodes.Star: _star_in_expression}
