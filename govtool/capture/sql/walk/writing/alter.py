"""DDL on what exists: ALTER, DROP, TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.dispatch import by_class
from govtool.capture.sql.walk.expressions.functions import type_text
from govtool.capture.sql.walk.query import output_of
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing.constraints import need_constraints, note_checks
from govtool.capture.sql.walk.writing.create import call_deps, computed_value, default_of, over_columns
from govtool.capture.sql.walk.writing.recording import Statement, kind_of, write_to


def _alter(walk: Walk, tree: exp.Alter) -> None:
    if not isinstance(tree.this, nodes.Table):
        return
    for action in tree.args.get("actions") or ():
        change = by_class(_ACTIONS, type(action))
        if change is not None:
            change(walk, tree.this, action)


def _rename_table(walk: Walk, table: exp.Table, action: exp.AlterRename) -> None:
    _rename(walk, table, action.this)


def _swap_table(walk: Walk, table: exp.Table, action: exp.SwapTable) -> None:
    _rename(walk, table, action.this, swap=True)


def _define_view(walk: Walk, table: exp.Table, action: exp.Query) -> None:
    """ALTER VIEW v AS SELECT …."""
    write_to(walk, table, output_of(walk, action, None, None), "create_view", "replace", "view", action)


def _rename_column(walk: Walk, table: exp.Table, action: exp.RenameColumn) -> None:
    output = QueryOutput()
    name = walk.lookup.table_name(table)
    old, new = walk.name(_column_of(action.this)), walk.name(_column_of(action.args["to"]))
    output.add(new, walk.lookup.table(name).deps(old, walk.interner) if name else ())
    if name and walk.dialect in VIEWS_FOLLOW:
        output.add(old, walk.lookup.table(name).deps(new, walk.interner))
    write_to(walk, table, output, "alter", "update", kind_of(walk, table), None, defines=False)


def _add_columns(walk: Walk, table: exp.Table, action: exp.ColumnDef | exp.Schema) -> None:
    plain, computed = QueryOutput(), QueryOutput()
    for column in action.expressions if isinstance(action, nodes.Schema) else [action]:
        if isinstance(column, nodes.ColumnDef):
            value = computed_value(column)
            own = walk.lookup.table(walk.lookup.table_name(table))
            note_checks(walk, own, [column])
            deps = default_of(walk, column) if value is None else over_columns(walk, own, value)
            output = computed if value is not None or deps else plain
            output.add(walk.name(column.this), deps)
            kind = column.args.get("kind")
            if kind is not None:
                output.types[len(output.names) - 1] = type_text(kind, walk.dialect) or ""
    for output, mode in ((plain, "declare"), (computed, "update")):
        if output.names:
            write_to(walk, table, output, "alter", mode, kind_of(walk, table), None, defines=False)
    own = walk.lookup.table(walk.lookup.table_name(table))
    need_constraints(walk, own, kind_of(walk, table), [action])


def _change_column(walk: Walk, table: exp.Table, action: exp.AlterColumn) -> None:
    """SET DEFAULT f(), and TYPE … USING f(c): what comes of a call of a function or of other columns goes into it."""
    deps = call_deps(walk, action.args.get("default"))
    using = action.args.get("using")
    if isinstance(using, nodes.Expr) and _brings_more(walk, walk.name(action.this), using):
        deps = over_columns(walk, walk.lookup.table(walk.lookup.table_name(table)), using)
    if deps:
        output = QueryOutput()
        output.add(walk.name(action.this), deps)
        write_to(walk, table, output, "alter", "update", kind_of(walk, table), None, defines=False)


def _brings_more(walk: Walk, column: str, using: exp.Expr) -> bool:
    """Return whether an expression has more in it than the column itself: a call, other columns."""
    others = (walk.name(other.this) != column for other in using.find_all(nodes.Column))
    return using.find(nodes.Anonymous) is not None or any(others)


def _add_constraint(walk: Walk, table: exp.Table, action: exp.AddConstraint) -> None:
    """ADD CONSTRAINT … CHECK (f(c)), FOREIGN KEY (a) REFERENCES t (b)."""
    own = walk.lookup.table(walk.lookup.table_name(table))
    if note_checks(walk, own, action.expressions):
        write_to(walk, table, QueryOutput(), "alter", "declare", kind_of(walk, table), None, defines=False)
    need_constraints(walk, own, kind_of(walk, table), action.expressions)


def _rename(walk: Walk, old: exp.Table, new: exp.Expr, *, swap: bool = False) -> None:
    if not isinstance(new, nodes.Table):
        return
    source = walk.lookup.table_name(old)
    if not new.args.get("db") and old.args.get("db"):
        new = new.copy()
        new.set("db", old.args["db"].copy())
        if old.args.get("catalog"):
            new.set("catalog", old.args["catalog"].copy())
    write = Write(source, "swap" if swap else "rename", "rename", renamed_to=walk.lookup.table_name(new), defines=False)
    walk.writes.append(write)


def _drop(walk: Walk, tree: exp.Drop) -> None:
    kind = str(tree.args.get("kind") or "").upper()
    if kind not in ("TABLE", "VIEW"):
        return
    for table in tree.args.get("tables") or ([tree.this] if isinstance(tree.this, nodes.Table) else []):
        if isinstance(table, nodes.Table):
            walk.writes.append(Write(walk.lookup.table_name(table), "drop", "drop", kind.lower(), defines=False))


def _truncate(walk: Walk, tree: exp.TruncateTable) -> None:
    for table in tree.expressions:
        if isinstance(table, nodes.Table):
            walk.writes.append(Write(walk.lookup.table_name(table), "truncate", "truncate", defines=False))


def _column_of(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, nodes.Column) else node


VIEWS_FOLLOW: Final = frozenset({"postgres", "redshift", "materialize", "risingwave", "sqlite"})
"""Dialects whose views read a renamed column under its new name: what comes into it later is in them, too."""

_ACTIONS: Final[dict[type, Callable[[Walk, exp.Table, Any], None]]] = {
    nodes.AlterRename: _rename_table,
    nodes.SwapTable: _swap_table,
    nodes.Query: _define_view,
    nodes.RenameColumn: _rename_column,
    nodes.ColumnDef: _add_columns,
    nodes.Schema: _add_columns,
    nodes.AlterColumn: _change_column,
    nodes.AddConstraint: _add_constraint,
}
"""What the actions of ALTER TABLE do; the others change no column."""

STATEMENTS: Final[dict[type, Statement]] = {nodes.Alter: _alter, nodes.Drop: _drop, nodes.TruncateTable: _truncate}
