"""UPDATE and DELETE: values flow into the columns that are set, conditions steer them or decide about rows."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import (
    FILTER,
    Deps,
    as_conditions,
    bounded,
    possibly,
)
from govtool.capture.sql.walk.expressions.expression import refer_to
from govtool.capture.sql.walk.queries.common_tables import environment
from govtool.capture.sql.walk.queries.sources import add_join, add_source
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.scope import Environment, Scope
from govtool.capture.sql.walk.writes import BY_NAME, Write
from govtool.capture.sql.walk.writing.recording import Statement, add_to, kind_of, target_name, target_source, write_to
from govtool.capture.sql.walk.writing.set_clause import assignments, sides
from govtool.capture.sql.walk.writing.targets import (
    UPDATABLE_CTES,
    assigned_columns,
    base_table,
    item_named,
    no_base,
    target_cte,
    written,
)

MYSQL: Final = frozenset({"mysql", "singlestore", "doris", "starrocks"})


def _update(walk: Walk, tree: exp.Update) -> None:
    update(walk, tree, environment(walk, tree, None, None))


def update(walk: Walk, tree: exp.Update, env: Environment | None) -> Write:
    """Walk an UPDATE: values flow into the SET columns; WHERE and ON steer them."""
    scope = Scope(None)
    table = tree.this
    from_ = tree.args.get("from_")
    aliased = aliased_target(walk, table, from_)
    target_node = aliased if aliased is not None else table
    joined = aliased is None and bool(table.args.get("joins"))
    several = joined or not isinstance(target_node, nodes.Table) or target_cte(walk, target_node, env) is not None
    target = target_name(walk, target_node) if not several else ""
    if aliased is None and several:
        add_source(walk, table, scope, env)
    elif aliased is None:
        scope.add(target_source(walk, table))
    if from_ is not None:
        add_source(walk, from_.this, scope, env)
    for key in ("joins", "laterals"):
        for item in tree.args.get(key) or ():
            if isinstance(item, nodes.Join):
                add_join(walk, item, scope, env)
    where = tree.args.get("where")
    if where is not None:
        refer_to(walk, where.this, scope, env, FILTER)
    steering = as_conditions(walk.rows, walk.interner)
    deciding, walk.rows = walk.rows, {}
    if several:
        return _update_several(walk, tree, scope, env, steering)
    output = QueryOutput()
    for name, deps in assignments(walk, tree.expressions, scope, env):
        add_to(output, name, (*deps, *steering))
    own_read = aliased is None
    write = write_to(walk, target_node, output, "update", "update", kind_of(walk, target_node), None, defines=False)
    write.fills = BY_NAME
    write.steering = deciding
    if own_read or list(write.reads).count(target) == 1:
        write.reads.pop(target, None)
    return write


def _update_several(walk: Walk, tree: exp.Update, scope: Scope, env: Environment | None, steering: Deps) -> Write:
    """The assignments of an UPDATE of joined tables or of a query, each to the table that has the column."""
    outputs: dict[str, QueryOutput] = {}
    for item in tree.expressions:
        target, _ = sides(item)
        lefts = target.expressions if isinstance(target, nodes.Tuple) else [target]
        for left, (_, deps) in zip(lefts, assignments(walk, [item], scope, env), strict=False):
            for dataset, path, sure in assigned_columns(walk, left, scope):
                output = outputs.setdefault(dataset, QueryOutput())
                add_to(output, path, bounded((*deps, *steering) if sure else possibly((*deps, *steering))))
    writes = [written(walk, name, output, "update") for name, output in outputs.items()]
    return writes[0] if writes else written(walk, "", QueryOutput(), "update")


def aliased_target(walk: Walk, table: exp.Expr, from_: exp.Expr | None) -> exp.Expr | None:
    """T-SQL's UPDATE u … FROM t u: the target is the table, or query, behind the alias."""
    if from_ is None or not isinstance(table, nodes.Table) or table.args.get("db"):
        return None
    joins = from_.parent.args.get("joins") or [] if from_.parent is not None else []
    item = item_named(walk, walk.name(table.this), [from_.this, *joins])
    if item is None or walk.dialect in UPDATABLE_CTES:
        return item
    return item if isinstance(item, nodes.Table) and walk.alias(item)[0] else None


def _delete(walk: Walk, tree: exp.Delete) -> None:
    delete(walk, tree, environment(walk, tree, None, None))


def delete(walk: Walk, tree: exp.Delete, env: Environment | None) -> Write:
    """Walk a DELETE: what decides which rows go is referenced by the target's row set."""
    scope = Scope(None)
    several: list[exp.Expr] = tree.args.get("tables") or []
    table = tree.this if isinstance(tree.this, (nodes.Table, nodes.Subquery)) else several[0] if several else None
    if table is None:
        return write_to(walk, tree, QueryOutput(), "delete", "delete", "table", None, defines=False)
    items: list[exp.Expr] = tree.args.get("using") or []
    if items and walk.dialect in MYSQL:  # DELETE FROM t, u USING t JOIN u …: USING is the whole FROM
        several = [table, *(join.this for join in table.args.get("joins") or ())]
    else:
        items = [table, *items]
    for item in items:
        add_source(walk, item, scope, env)
    where = tree.args.get("where")
    if where is not None:
        refer_to(walk, where.this, scope, env, FILTER)
    targets = [item_named(walk, walk.name(node.this), items) or node for node in several] or [table]
    names = [_deleted(walk, item, env) for item in targets]
    writes = [written(walk, name, QueryOutput(), "delete") for name in dict.fromkeys(names)]
    walk.rows, walk.reads = {}, {}
    return writes[0]


def _deleted(walk: Walk, item: exp.Expr, env: Environment | None) -> str:
    """Return the table whose rows a DELETE from a FROM item deletes."""
    if isinstance(item, nodes.Subquery) or target_cte(walk, item, env) is not None:
        if item.args.get("joins"):
            item = item.copy()
            item.set("joins", None)
        return base_table(walk, item, env) or no_base(walk, item)
    return target_name(walk, item)


STATEMENTS: Final[dict[type, Statement]] = {nodes.Update: _update, nodes.Delete: _delete}
