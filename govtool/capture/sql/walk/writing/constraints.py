"""Expressions that rows are not made of, but that every write evaluates: constraints and the keys of indexes."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dependencies import REF_SHIFT
from govtool.capture.sql.walk.expressions.expression import dependencies
from govtool.capture.sql.walk.expressions.functions import function_name
from govtool.capture.sql.walk.relation import Source, TableInfo
from govtool.capture.sql.walk.scope import Scope
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing.recording import kind_of, target_name


def note_calls(walk: Walk, table: TableInfo, node: exp.Expr) -> bool:
    """Record the columns that the functions called in an expression name; return whether there are any.

    The own columns of the table are none of them: a constraint or an index goes when one of its columns does.
    """
    called = node.find_all(nodes.Anonymous)
    calls = [call for call in called if walk.lookup.function(function_name(call, walk.dialect)) is not None]
    if not calls:
        return False
    scope = Scope(None)
    scope.add(Source("", table=table))
    known = set(walk.named)
    for call in calls:
        walk.without_effects(lambda call=call: dependencies(walk, call, scope, None))  # type: ignore[misc]
    added = {dep for dep in walk.named - known if walk.interner.refs[dep >> REF_SHIFT].dataset != table.id}
    walk.named = known | added
    return bool(added)


def note_checks(walk: Walk, table: TableInfo, items: list[exp.Expr]) -> bool:
    """Record what the functions in the CHECK constraints of columns and tables name."""
    checks = [check for item in items for check in item.find_all(nodes.CheckColumnConstraint)]
    return any([note_calls(walk, table, check) for check in checks])  # noqa: C419


def index(walk: Walk, tree: exp.Create) -> None:
    """CREATE INDEX: every write to the table evaluates its keys and its condition."""
    node = tree.this
    table = node.args.get("table") if isinstance(node, nodes.Index) else None
    params = node.args.get("params") if table is not None else None
    if isinstance(table, nodes.Table) and isinstance(params, nodes.Expr):
        name = target_name(walk, table)
        if name and note_calls(walk, walk.lookup.table(name), params):
            walk.writes.append(Write(name, "create_index", "declare", kind_of(walk, table), defines=False))
