"""Statements that do not parse: anything of what they read may have reached what they write."""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.walk.assignments import AssignmentWalk
from govtool.capture.sql.walk.relation import QueryOutput
from govtool.capture.sql.walk.state import EVERYWHERE
from govtool.capture.sql.walk.writes import Write


class UnreadWalk(AssignmentWalk):
    """Walks what ``scripts/unread`` has read of statements that do not parse."""

    def _unread(self, tree: exp.Expr) -> None:
        if tree.args.get("synonym") is not None:
            self._synonym(tree)
            return
        if tree.args.get("parent") is not None:
            table = self.lookup.table(self.lookup.table_name(tree.args["table"]))
            self.part_of(table, self.lookup.table_name(tree.args["parent"]))
            return
        sources = [self.lookup.table_name(table) for table in tree.args.get("sources") or ()]
        names = [name for name in sources if name]
        self.reads.update(dict.fromkeys(names, EVERYWHERE))
        target = tree.args.get("target")
        if target is None and not names:
            return
        if target is None:
            self.writes.append(self._taken(Write("", "select", "replace", "query")))
            return
        kind = "create_table" if tree.args.get("creates") else "insert"
        self._write(target, QueryOutput(), kind, "append", self._kind_of(target), None, defines=False)

    def _synonym(self, tree: exp.Expr) -> None:
        """Another name of a table is a copy of it to whoever knows only the name."""
        table = self.lookup.table(self.lookup.table_name(tree.args["table"]))
        name = self.lookup.written_name(tree.args["synonym"])
        if name and name != table.id:
            write = Write(name, "create_synonym", "replace", "view", self.table_output(table))
            write.reads = {table.id: EVERYWHERE}
            self.writes.append(write)
