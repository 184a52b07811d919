"""T-SQL's ``OUTPUT … INTO``: the rows that a statement touches, into a second table."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import FILTER, JOIN
from govtool.capture.sql.walk.expressions.expression import refer_to
from govtool.capture.sql.walk.queries.common_tables import common_output, environment
from govtool.capture.sql.walk.queries.projections import projections
from govtool.capture.sql.walk.queries.sources import add_source, add_sources
from govtool.capture.sql.walk.relation import Source
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import BY_NAME, BY_POSITION
from govtool.capture.sql.walk.writing.insert import by_target
from govtool.capture.sql.walk.writing.modify import aliased_target
from govtool.capture.sql.walk.writing.recording import column_list, kind_of, target_name, target_source, write_to
from govtool.capture.sql.walk.writing.targets import item_named, target_cte


def output_into(walk: Walk, tree: exp.Expr) -> None:
    """T-SQL's ``OUTPUT inserted.a, deleted.b INTO log``: the rows that were touched, into a second table."""
    returning = tree.args.get("returning")
    if returning is None or not walk.writes or not walk.writes[0].target:
        return
    into = returning.args.get("into")
    if not isinstance(into, (nodes.Table, nodes.Schema)):
        return
    touched = walk.writes[0]
    before = len(walk.common_tables)
    env = environment(walk, tree, None, None)
    del walk.common_tables[before:]  # the same, once more: what of them is read was seen
    item = _changed(walk, tree)
    changed = target_cte(walk, item, env) if item is not None else None
    scope = Scope(None)
    for alias in ("inserted", "deleted"):
        if changed is not None:
            source = Source(alias, output=common_output(walk, changed))
        else:
            source = Source(alias, table=walk.lookup.table(touched.target))
        source.hidden = True  # named with its alias only
        scope.add(source)
    _touching(walk, tree, scope, env)
    given = nodes.Select(expressions=returning.expressions)
    output = projections(walk, given, scope, None)
    columns, _ = column_list(walk, into)
    name = target_name(walk, into)
    output = by_target(walk, output, name, columns, {}, [], False, tree, given)
    node = into.this if isinstance(into, nodes.Schema) else into
    write = write_to(walk, into, output, "insert", "append", kind_of(walk, node), None, defines=False)
    write.fills = BY_NAME if columns else BY_POSITION
    write.rows.update(touched.rows)
    write.reads[touched.target] = EVERYWHERE


def _changed(walk: Walk, tree: exp.Expr) -> exp.Expr | None:
    """Return the FROM item whose rows a statement changes."""
    if isinstance(tree, nodes.Delete) and tree.args.get("tables"):
        named = tree.args["tables"][0]
        items = [tree.this] if isinstance(tree.this, nodes.Expr) else []
        return item_named(walk, walk.name(named.this), items) or named
    if isinstance(tree, nodes.Update):
        aliased = aliased_target(walk, tree.this, tree.args.get("from_"))
        if aliased is not None:
            return aliased
    target = tree.this
    return target if isinstance(target, nodes.Expr) else None


def _touching(walk: Walk, tree: exp.Expr, scope: Scope, env: Environment | None) -> None:
    """Add what an OUTPUT may name besides the rows, and reference what decided which rows were touched."""
    from_ = tree.args.get("from_")
    where = tree.args.get("where")
    if isinstance(tree, nodes.Merge):
        scope.add(target_source(walk, tree.this))
        add_source(walk, tree.args["using"], scope, env)
        refer_to(walk, tree.args.get("on"), scope, env, JOIN)
    elif isinstance(tree, nodes.Update):
        if from_ is None:
            scope.add(target_source(walk, tree.this))
        add_sources(walk, tree, scope, env)
        if where is not None:
            refer_to(walk, where.this, scope, env, FILTER)
    elif isinstance(tree, nodes.Delete) and isinstance(tree.this, nodes.Expr):
        add_source(walk, tree.this, scope, env)
