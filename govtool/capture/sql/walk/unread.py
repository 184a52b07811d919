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
