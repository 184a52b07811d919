"""The place of a reader in the control flow of a script, and the constant texts that hold there."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.control.branches import Branches, Path


class Text(NamedTuple):
    """The constant text in a variable."""

    parts: tuple[Token, ...]
    """The string tokens, to be joined."""
    path: Path
    """The branches that it was assigned in."""


class DeclaredHandler(NamedTuple):
    """A handler of MySQL, which stands before the statements whose errors it handles."""

    depth: int
    """Blocks that are open where it is declared."""
    branch: int
    leaves: bool
    """It expects an error that it names, and leaves the block."""
    of_queries: bool
    """It runs only where a query or cursor has no row."""
    guards: bool
    """It leaves the block after any error."""


class Guarded(NamedTuple):
    """A block whose handler of any error is being read."""

    depth: int
    """Blocks that are open in the handler."""
    block: range
    """The statements of the block."""
    start: int
    """How many statements there were when the handler began."""


# No dataclass, as there is one a script: a constructor that is compiled takes a tenth of the time of a dataclass's.


class ControlFlow:
    """The reader's place in the control flow of a script."""

    def __init__(self, *, inside: bool = False, branches: Branches | None = None) -> None:
        """Start without a routine, outside of all blocks unless told otherwise."""
        self.inside = inside
        """Within a routine's body or a block: procedural statements may occur."""
        self.depth = 0
        """Blocks that are open."""
        self.blocks: dict[int, int] = {}
        """By the number of blocks that are open: how many statements there were when the last one of them began."""
        self.tried = 0
        """How many statements there were when the block began that has ended last: the TRY of a CATCH."""
        self.handlers: list[DeclaredHandler] = []
        """Those of MySQL whose blocks are open."""
        self.guarded: list[Guarded] = []
        """Blocks whose handlers of any error are open."""
        self.declarations = False
        """In a declaration section."""
        self.owner = False
        """The routine began in this text, and ends when its block closes."""
        self.package = False
        """In a package: after a routine's block comes the next declaration."""
        self.nested: list[tuple[int, list[str]]] = []
        """Of the routines that are declared in a block or package, and open: how deep that is, and their parameters."""
        self.branches = Branches() if branches is None else branches
        self.fields: dict[str, None] = {}
        """Fields of NEW and OLD that conditions of this body have named."""
        self.names: list[str] = []
        """Variables of a block that is no routine's: they end with it."""
        self.header: list[Token] = []
        """The head of T-SQL's inline table function, whose body is the next statement."""
        self.returns: tuple[str, str] = ("", "")
        """The table variable that T-SQL's table function returns, and its name among those of other functions."""
        self.strings: dict[str, Text] = {}
        """Variables that hold constant text, by their names with the mark before them."""
        self.declared: dict[str, int] = {}
        """Variables that are declared, and how many blocks were open there."""
        self.constants: dict[str, tuple[Token, ...]] = {}
        """Variables of declaration sections that hold one text throughout, by their names in lower case."""
