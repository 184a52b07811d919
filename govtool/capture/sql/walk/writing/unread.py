"""Statements that do not parse: anything of what they read may have reached what they write."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.context import Walk
from govtool.capture.sql.walk.expressions.rows import table_output
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import Write
from govtool.capture.sql.walk.writing.constraints import need_expressions, need_fields
from govtool.capture.sql.walk.writing.create import part_of
from govtool.capture.sql.walk.writing.handed import call
from govtool.capture.sql.walk.writing.recording import Statement, kind_of, write_to


def _unread_statement(walk: Walk, tree: exp.Expr) -> None:
    """A synonym, a part of a table, a policy, a trigger's condition, a call, or names that a text reads and writes."""
    if tree.args.get("routine") is not None:
        call(walk, tree)
        return
    if tree.args.get("synonym") is not None:
        _synonym(walk, tree)
        return
    if tree.args.get("parent") is not None:
        table = walk.lookup.table(walk.lookup.table_name(tree.args["table"]))
        part_of(walk, table, walk.lookup.table_name(tree.args["parent"]))
        return
    if tree.args.get("role") is not None:
        need_expressions(walk, tree)
        return
    if tree.args.get("row_fields") is not None:
        need_fields(walk, tree.args["row_fields"], decide=bool(tree.args.get("skips")))
        return
    sources = [walk.lookup.table_name(table) for table in tree.args.get("sources") or ()]
    names = [name for name in sources if name]
    walk.reads.update(dict.fromkeys(names, EVERYWHERE))
    target = tree.args.get("target")
    if target is None and not names:
        return
    if target is None:
        walk.writes.append(walk.taken(Write("", "select", "replace", "query")))
        return
    kind = "create_table" if tree.args.get("creates") else "insert"
    write_to(walk, target, QueryOutput(), kind, "append", kind_of(walk, target), None, defines=False)


def _synonym(walk: Walk, tree: exp.Expr) -> None:
    """Another name of a table counts as a copy of it where only the name is known."""
    table = walk.lookup.table(walk.lookup.table_name(tree.args["table"]))
    name = walk.lookup.written_name(tree.args["synonym"])
    if name and name != table.id:
        write = Write(name, "create_synonym", "replace", "view", table_output(walk, table))
        write.reads = {table.id: EVERYWHERE}
        walk.writes.append(write)


STATEMENTS: Final[dict[type, Statement]] = {nodes.Command: _unread_statement}
