"""Data-modifying CTEs: what they write counts, and what they return is read."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import FILTER, JOIN
from govtool.capture.sql.walk.expressions.expression import dependencies, refer_to
from govtool.capture.sql.walk.expressions.naming import output_name
from govtool.capture.sql.walk.expressions.rows import source_star, star_of
from govtool.capture.sql.walk.expressions.stars import starred_columns
from govtool.capture.sql.walk.queries.common_tables import environment
from govtool.capture.sql.walk.queries.sources import add_source, add_sources
from govtool.capture.sql.walk.query import QueryWalker
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing.insert import insert
from govtool.capture.sql.walk.writing.merge import merge
from govtool.capture.sql.walk.writing.modify import delete, update
from govtool.capture.sql.walk.writing.recording import target_source


def _modifying(walk: Walk, node: exp.Expr, scope: Scope | None, env: Environment | None) -> QueryOutput:
    """Walk a data-modifying CTE: its write counts, and its RETURNING is its output."""
    saved_rows, walk.rows = walk.rows, {}
    saved_reads, walk.reads = walk.reads, {}
    env = environment(walk, node, None, env)
    write: Write | None = None
    if isinstance(node, nodes.Insert):
        write = insert(walk, node, env)
    elif isinstance(node, nodes.Update):
        write = update(walk, node, env)
    elif isinstance(node, nodes.Delete):
        write = delete(walk, node, env)
    elif isinstance(node, nodes.Merge):
        write = merge(walk, node, env)
    walk.rows, walk.reads = saved_rows, saved_reads
    if write is not None:
        write.tree = node
    output = QueryOutput()
    returning = node.args.get("returning")
    if returning is None or write is None:
        return output
    walk.reads[write.target] = EVERYWHERE
    walk.read(write.reads)
    walk.rows.update(write.rows)  # which rows it returns is decided by what decided which rows it touched
    touched = Scope(None)
    touched.add(target_source(walk, node.this))
    for name in ("old", "new") if walk.lookup.variable("new") is None else ():  # PostgreSQL 18
        touched.by_alias.setdefault(name, touched.sources[0])
    using = node.args.get("using") or []
    for source in using if isinstance(using, list) else [using]:
        add_source(walk, source, touched, env)
    if isinstance(node, nodes.Update):  # whose conditions steer values there, and rows here
        add_sources(walk, node, touched, env)
        where = node.args.get("where")
        if where is not None:
            refer_to(walk, where.this, touched, env, FILTER)
    if isinstance(node, nodes.Merge):
        refer_to(walk, node.args.get("on"), touched, env, JOIN)
        for when in node.args["whens"].expressions:
            refer_to(walk, when.args.get("condition"), touched, env, FILTER)
    for item in returning.expressions:
        star = _star(walk, item, touched, env)
        if star is not None:
            for name, deps in zip(star.names, star.deps, strict=True):
                output.add(name, deps)
            output.open.extend(star.open)
        else:
            output.add(output_name(walk, item), dependencies(walk, item, touched, env))
    return output


def _star(walk: Walk, item: exp.Expr, touched: Scope, env: Environment | None) -> QueryOutput | None:
    """The columns of ``*`` and ``t.*``; None of another item."""
    if isinstance(item, nodes.Star):
        return star_of(walk, touched)
    if not isinstance(item, nodes.Column) or not isinstance(item.this, nodes.Star):
        return None
    source = touched.find(walk.qualifier(item.parts[:-1]))
    return None if source is None else starred_columns(walk, item.this, touched, env, source_star(walk, source))


QUERIES: Final[dict[type, QueryWalker]] = dict.fromkeys(
    (nodes.Insert, nodes.Update, nodes.Delete, nodes.Merge), _modifying
)
