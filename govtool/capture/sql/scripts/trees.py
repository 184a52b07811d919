"""Bounds on the number of trees that a batch holds at once.

A tree takes some fifty times the memory of its text, and a batch has to know all its statements before it can walk
the first. So trees are kept up to a bound; of what comes after that, only the head stays, with the relation that it
defines, and the tree as bytes (``packed_trees``) until the statement is walked. Most warehouses stay below the bound;
the largest, and dumps, do not. Where there are many trees, each is freed after the last walk of its statement
(``Batch.let_go``).
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from govtool.capture.sql.collector import ParserGarbage
from govtool.capture.sql.scripts.packed_trees import unpacked
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.walk.relation import into_of

ROOM = 1_000_000
"""Characters of SQL whose trees are held; they take about 50 MB."""

MANY = 500_000
"""Characters of SQL whose trees are not worth the time that it takes to free them one by one."""

_LASTING: Final = (
    *(exp.TemporaryProperty, exp.VolatileProperty),
    *(exp.PartitionedOfProperty, exp.PartitionedByProperty, exp.InheritsProperty),
)
"""Properties of tables that matter to other statements."""
_LEAVES: Final = (exp.Identifier, exp.Literal)
"""The parser's nodes, more than half of all, that have no others below them."""


class TreeCache:
    """The room for the trees of one batch."""

    __slots__ = ("_garbage", "_released", "held", "room")

    def __init__(self, room: int | None = None) -> None:
        self.room = ROOM if room is None else room
        self.held = 0
        self._garbage = ParserGarbage()
        self._released = 0
        """Characters of ``held`` whose trees were freed after their walks."""

    def released(self, size: int) -> None:
        """A tree was freed after its walk."""
        self._released += size

    def takes_again(self, size: int) -> bool:
        """Return whether trees that were freed left room for one that was unpacked and is walked once more."""
        fits = self.held - self._released + size <= self.room
        self._released -= size if fits else 0
        return fits

    def takes(self, size: int) -> bool:
        """Return whether there is room for the tree of a text of ``size`` characters; if so it is taken."""
        if self.held + size > self.room:
            return False
        self.held += size
        return True

    def parsed(self, size: int) -> None:
        """Free what the parser left behind now and then, if there is much.

        Args:
            size: Characters of a text that was parsed, also of one whose tree is not held.
        """
        if self.holds_many:
            self._garbage.parsed(size)

    @property
    def holds_many(self) -> bool:
        """Whether there are so many trees that each is freed when it is of no more use."""
        return self.held > MANY


def stub(tree: exp.Expr) -> exp.Expr | None:
    """Return the part of a tree that others ask for before and after its walk; None where that is much of it."""
    this = tree.args.get("this")
    if isinstance(tree, exp.Create) and isinstance(this, (exp.Table, exp.Schema)):
        if str(tree.args.get("kind")).upper() not in ("TABLE", "VIEW"):
            return None
        properties = tree.args.get("properties")
        lasting = [item.copy() for item in (properties.expressions if properties else ()) if isinstance(item, _LASTING)]
        table = this.this if isinstance(this, exp.Schema) else this
        return exp.Create(
            this=table.copy(),
            kind=tree.args["kind"],
            replace=tree.args.get("replace"),
            properties=exp.Properties(expressions=lasting) if lasting else None,
        )
    if tree.__class__ in (exp.Insert, exp.Merge) and isinstance(this, (exp.Table, exp.Schema)):
        return tree.__class__(this=this.copy())
    if isinstance(tree, exp.Query):
        return exp.Select() if into_of(tree) is None else None
    return tree.__class__() if tree.__class__ in (exp.Update, exp.Delete) else None


def tree_of(statement: ParsedStatement) -> exp.Expr | None:
    """Return the whole tree of a statement; made anew where only a stub of it is held."""
    return statement.tree if statement.packed is None else unpacked(statement.packed)


def release(tree: exp.Expr) -> None:
    """Free a tree at once: its nodes refer to their parents, and only the cyclic collector could free it otherwise."""
    stack: list[exp.Expr] = [tree]
    while stack:
        node = stack.pop()
        node.parent = None
        if type(node) in _LEAVES:
            continue
        for value in node.args.values():
            if isinstance(value, nodes.Expr):
                stack.append(value)
            elif type(value) is list:
                stack.extend([part for part in value if isinstance(part, nodes.Expr)])
