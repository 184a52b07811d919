"""A reader of scripts as the readers of control flow, routines and dialects see it.

It collects statements, and has the text, the routine and the branch that they stand in. How a text is cut into
statements, and who reads each, is in ``script``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts import session
from govtool.capture.sql.scripts.clauses.table import simplified
from govtool.capture.sql.scripts.constants import constant_insert
from govtool.capture.sql.scripts.control.branches import Branches
from govtool.capture.sql.scripts.control.control_flow import ControlFlow
from govtool.capture.sql.scripts.session import SessionChange
from govtool.capture.sql.scripts.source_positions import SourcePositions, printable
from govtool.capture.sql.scripts.statement import ConditionQuery, ParsedStatement
from govtool.capture.sql.scripts.trees import TreeCache
from govtool.capture.sql.scripts.unread import unread_tree
from govtool.capture.sql.syntax import nodes
from govtool.capture.sql.syntax.lexer import Lexer, word
from govtool.model.diagnostic import Diagnostic

_MAX_BODIES = 16

_new: Final[Callable[..., Any]] = tuple.__new__
"""Makes a named tuple in a third of the time of its constructor."""


class StatementReader(SourcePositions):
    """Collects the statements of one script."""

    def __init__(
        self, lex: Lexer, file: str, line_of: Callable[[int], int] | None, tree_cache: TreeCache | None = None
    ) -> None:
        """Start with no statements."""
        super().__init__(file, line_of)
        self.lex = lex
        self.tree_cache = tree_cache
        self.statements: list[ParsedStatement] = []
        self.connections: list[tuple[int, str]] = []
        self.routine: str | None = None
        self.bodies = 0
        self.branches = 0
        """Branches of control flow so far."""
        self.flow = ControlFlow()
        self.errors = 0
        """Statements so far whose errors decide about handlers."""
        self.counter: Callable[[StatementReader, list[Token], exp.Expr | None, str], None] | None = None
        """Takes each statement that is added, where the script reads how many rows a statement changed."""
        self.conditions: list[ConditionQuery] = []
        """Conditions of IFs with queries in them."""
        self._runs: dict[tuple[object, ...], int] = {}
        """INSERTs of constants since the last other statement, by what they mean."""

    # -- where texts and statements are cut: in ``script`` --------------------------------------------------------

    @abstractmethod
    def read(self, text: str, batches: tuple[int, ...] = ()) -> None:
        """Read a whole text: tokenise, split at semicolons, parse each statement."""

    @abstractmethod
    def read_tokens(self, tokens: list[Token], batches: tuple[int, ...]) -> None:
        """Split the tokens of the current text at semicolons, and read each statement."""

    @abstractmethod
    def statement(self, tokens: list[Token]) -> None:
        """Parse one statement's tokens and add it."""

    # -- for those who read the parts of scripts ------------------------------------------------------------------

    def body(self, text: str, token: Token, offset: int, routine: str | None) -> None:
        """Read the text inside a string or dollar-quoted token as a script of its own, at the right place.

        Args:
            text: The body.
            token: The token that holds it.
            offset: Where in the current text the body begins.
            routine: The routine it is the body of, or None to stay in the current one.
        """
        if self.bodies >= _MAX_BODIES:
            self.statements.append(self.refused("bodies are nested too deeply", code="nesting"))
            return
        outer = (self.text, self.first_line, self.first_column, self.routine, self.flow, self.connections)
        line, column = self.raw_place(offset)
        self.bodies += 1
        self.connections = []
        self.first_line, self.first_column = line, column
        self.flow = ControlFlow(inside=True, branches=Branches(self.flow.branches.path, self.flow.branches.tests))
        if routine is not None:
            self.routine = routine
        try:
            self.read(text)
        finally:
            self.bodies -= 1
            self.text, self.first_line, self.first_column, self.routine, self.flow, self.connections = outer

    def constants(self, tokens: list[Token]) -> bool:
        """Add an INSERT of constants: to the run that it goes on, or by its first row."""
        found = constant_insert(tokens)
        if found is None:
            return False
        key = (*found.constant_values, self.routine, self.flow.branches.path)
        at = self._runs.get(key)
        if at is not None:
            statement = self.statements[at]
            self.statements[at] = statement._replace(stands_for=statement.stands_for + 1)
            return True
        tree = self.attempt(tokens[: found.first_row])
        if tree is None:
            return False
        runs = self._runs
        self.add(tokens, tree, "parsed")
        self._runs = runs
        runs[key] = len(self.statements) - 1
        return True

    def attempt(self, tokens: list[Token], *, simplify: bool = False) -> exp.Expr | None:
        """The tree of these tokens, or None if they do not parse to something better than a command.

        Args:
            tokens: A statement's.
            simplify: Try again without clauses that the parser does not know.
        """
        if not tokens:
            return None
        try:
            tree = self.lex.parse(tokens, self.text)
        except Exception:
            tree = None
        if tree is not None and type(tree) is not nodes.Command:
            return tree
        shorter = simplified(tokens, self.lex.name) if simplify else tokens
        return None if shorter is tokens else self.attempt(shorter)

    def attempt_text(self, text: str) -> exp.Expr | None:
        """The tree of a text that is one statement by itself; None if it does not parse."""
        try:
            return self.lex.parse(self.lex.tokenize(text), text)
        except Exception:
            return None

    def add(
        self,
        tokens: list[Token],
        tree: exp.Expr | None,
        status: str,
        *diagnostics: Diagnostic,
        head: str | None = None,
        change: SessionChange | None = None,
    ) -> None:
        """Add a statement that spans these tokens."""
        first = tokens[0]
        if tree is None and status in ("failed", "opaque"):
            tree = unread_tree(tokens, self.lex.name, self.text)
        raw, column = self.raw_token_place(first)
        if head is None:
            head = printable(word(first).lower()) or first.text[:20]
        if change is None and head in session.HEADS:
            change = session.change(tokens, self.lex.name)
        if tree is not None or change is not None:
            self._runs = {}
        at = self.line_of(raw) if self.line_of else raw
        text = self.text[first.start : tokens[-1].end + 1]
        line = first.line
        branches = self.flow.branches
        self.statements.append(
            _new(
                ParsedStatement,
                (
                    tree,
                    text,
                    at,
                    column,
                    status,
                    head,
                    self.routine,
                    change,
                    diagnostics,
                    line,
                    first.col - first.end + first.start,
                    raw - line,
                    1,
                    branches.path,
                    None,
                    first.start,
                    branches.tests,
                    "",
                    None,
                ),
            )
        )
        if self.counter is not None:
            self.counter(self, tokens, tree, status)

    def refused(self, message: str, *, code: str = "parse-error") -> ParsedStatement:
        """A statement that stands for a text which is not read."""
        line, column = self.place(0)
        diagnostic = Diagnostic(code, "error", message, self.file or None, line, column)
        return ParsedStatement(None, "", line, column, "failed", "", self.routine, None, (diagnostic,))
