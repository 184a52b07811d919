"""Bounds on the number of trees that a batch holds at once.

A tree takes some hundred times the memory of its text, and a batch has to know all its statements before it can walk
the first. So trees are kept up to a bound; of what comes after that, only the head stays, with the relation that it
defines, and the statement is parsed again when it is walked. Warehouses written by hand stay below the bound; dumps do
not.
"""

from __future__ import annotations

from sqlglot import exp

from govtool.capture.sql.lexer import lexer

ROOM = 8_000_000
"""Characters of SQL whose trees are held; they take about one gigabyte."""


class TreeCache:
    """The room for the trees of one batch."""

    __slots__ = ("held", "requests", "room")

    def __init__(self, room: int | None = None) -> None:
        self.room = ROOM if room is None else room
        self.held = 0
        self.requests: list[int] = []
        """The sizes of the texts, in order."""

    def takes(self, size: int) -> bool:
        """Return whether there is room for the tree of a text of ``size`` characters; if so it is taken."""
        self.requests.append(size)
        if self.held + size > self.room:
            return False
        self.held += size
        return True


def stub(tree: exp.Expr) -> exp.Expr | None:
    """Return the part of a tree that tells which relation it defines or fills; None where that is much of it."""
    this = tree.args.get("this")
    if isinstance(tree, exp.Create) and isinstance(this, (exp.Table, exp.Schema)):
        properties = tree.args.get("properties")
        lasting = [
            item.copy()
            for item in (properties.expressions if properties is not None else ())
            if isinstance(item, (exp.TemporaryProperty, exp.VolatileProperty))
        ]
        table = this.this if isinstance(this, exp.Schema) else this
        return exp.Create(
            this=table.copy(),
            kind=tree.args.get("kind"),
            properties=exp.Properties(expressions=lasting) if lasting else None,
        )
    if tree.__class__ in (exp.Insert, exp.Merge) and isinstance(this, (exp.Table, exp.Schema)):
        return tree.__class__(this=this.copy())
    if isinstance(tree, exp.Query):
        return exp.Select() if tree.args.get("into") is None else None
    return tree.__class__() if tree.__class__ in (exp.Update, exp.Delete) else None


def parse_again(text: str, column: int, dialect: str) -> exp.Expr | None:
    """The tree of a statement that was parsed before.

    Args:
        text: The statement.
        column: 1-based column of its first character, so that nodes have the columns of the script.
        dialect: A sqlglot dialect name.
    """
    lex = lexer(dialect)
    padded = " " * (column - 1) + text
    return lex.parse(lex.tokenize(padded), padded)


def release(tree: exp.Expr) -> None:
    """Free a tree at once: its nodes refer to their parents, and only the cyclic collector could free it otherwise."""
    stack: list[object] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Expr):
            node.parent = None
            stack.extend(node.args.values())
        elif isinstance(node, list):
            stack.extend(node)
