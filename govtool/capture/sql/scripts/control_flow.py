"""The place of a reader in the control flow of a script, and the constant texts that hold there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.branches import Branches, Path


class Text(NamedTuple):
    """The text in a variable."""

    parts: tuple[Token, ...]
    """The string tokens, to be joined."""
    path: Path
    """The branches that it was assigned in."""


@dataclass(slots=True)
class ControlFlow:
    """The reader's place in the control flow of a script."""

    inside: bool = False
    """Within a routine's body or a block: procedural statements may occur."""
    depth: int = 0
    """Blocks that are open."""
    declarations: bool = False
    """In a declaration section."""
    owner: bool = False
    """The routine began in this text, and ends when its block closes."""
    package: bool = False
    """In a package: after a routine's block comes the next declaration."""
    nested: list[tuple[int, list[str]]] = field(default_factory=list)
    """Of the routines that are declared in a block or package, and open: how deep that is, and their parameters."""
    branches: Branches = field(default_factory=Branches)
    names: list[str] = field(default_factory=list)
    """Variables of a block that is no routine's: they end with it."""
    header: list[Token] = field(default_factory=list)
    """The head of T-SQL's inline table function, whose body is the next statement."""
    returns: tuple[str, str] = ("", "")
    """The table variable that T-SQL's table function returns, and what it is called among those of other functions."""
    strings: dict[str, Text] = field(default_factory=dict)
    """T-SQL's variables that hold constant text."""
    constants: dict[str, str] = field(default_factory=dict)
    """Variables of declaration sections that hold one text throughout, by their names in lower case."""
