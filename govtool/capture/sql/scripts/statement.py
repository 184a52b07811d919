"""One statement of a script, parsed."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from govtool.capture.sql.scripts.control.branches import Path
from govtool.capture.sql.scripts.session import SessionChange
from govtool.model.diagnostic import Diagnostic


class ParsedStatement(NamedTuple):
    """One statement of a script."""

    tree: exp.Expr | None
    """The tree; None if it was not understood, or holds no SQL that could be lineage."""
    text: str
    """As written (after templates), without the comments before it."""
    line: int
    """1-based line of its first token in the original file."""
    column: int
    """1-based column of its first token."""
    status: str
    """``parsed``; ``ignored`` (carries no lineage: SET, GRANT, COMMIT …); ``opaque`` (known to be beyond us, such as
    dynamic SQL); ``failed`` (does not parse)."""
    head: str
    """Its first words in lower case: ``select``, ``create``, ``grant``, ``execute immediate``."""
    routine: str | None = None
    """Canonical name of the procedure, function, trigger or task whose body it is in."""
    session: SessionChange | None = None
    """Its effect on how names resolve from here on (``USE``, ``SET search_path``)."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics: why it is opaque or failed, and what was left out of it."""
    raw_line: int = 1
    """Line of the first token as the nodes of ``tree`` count lines."""
    raw_column: int = 1
    """Column of the first token as they count columns: another one in a body that begins inside of a line."""
    shift: int = 0
    """Number to add to a line of ``tree`` to have a line of the text that was read."""
    stands_for: int = 1
    """Number of statements that it stands for: INSERTs in a row that differ only in the constants of their rows."""
    branch: Path = ()
    """The arms of the branches of control flow that it stands in."""
    packed: bytes | None = None
    """The whole tree where ``tree`` is only a stub of it: ``trees.tree_of``."""
    offset: int = -1
    """Where ``text`` begins in the text of which ``tree`` has positions; -1 if that is not known."""
    tests: tuple[exp.Expr, ...] = ()
    """The conditions with queries or variables in them that decide whether it runs: of IF, ELSEIF, WHILE."""
    included: str = ""
    """The path, as written, of the script that it includes."""
    within: SessionChange | None = None
    """What the routine that it makes, or is in the body of, changes in how names resolve: ``SET search_path``."""


class ConditionQuery(NamedTuple):
    """A condition with a query, and the statement that it is if nothing else counts it."""

    test: exp.Expr
    at: int
    """Its place among the statements."""
    statement: ParsedStatement
