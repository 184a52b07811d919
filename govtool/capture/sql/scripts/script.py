"""Scripts to statements: tokenise once, split, and parse every statement on its own.

One bad statement never costs the others. Procedures, functions, blocks and control flow are flattened to the
statements in
them; text that is not SQL for the server (psql commands, ``GO``, COPY data) is left out; what cannot be parsed is
rescued
where a part of it carries lineage, and is reported otherwise. Nothing is dropped in silence and nothing raises.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.lexer import Lexer, NestingError, lexer, word
from govtool.capture.sql.scripts import blocks, rescue, session
from govtool.capture.sql.scripts.branches import Branches, Path
from govtool.capture.sql.scripts.client import clean
from govtool.capture.sql.scripts.constants import constant_insert
from govtool.capture.sql.scripts.session import SessionChange
from govtool.capture.sql.scripts.trees import Shelf, release, stub
from govtool.capture.sql.scripts.tsql import split_statements
from govtool.model.diagnostic import Diagnostic

MAX_TEXT = 64 * 1024 * 1024
"""Scripts longer than this many characters are refused: no warehouse writes them by hand."""

WINDOW = 1_000_000
"""Characters of a long script that are tokenised at once: tokens take thirty times the memory of their text."""

_MAX_BODIES = 16
_ESCAPES = re.compile("\x1b\\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PIECE = re.compile(r";[ \t]*(?=\r?\n|$)")
_MISSING = re.compile(r"Required \w+.* missing for .*?(\w+)'>")
_BREAK = re.compile("\n")
_LINE_END = re.compile(r";[ \t\r]*\n")
# Python 3.11 looks a member of an enumeration up by a property each time; these are asked of many tokens.
_SEMICOLON: Final = TokenType.SEMICOLON
_INSERT: Final = TokenType.INSERT

DIRECT = frozenset(
    {"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE", "FROM", "VALUES", "ALTER", "DROP", "TRUNCATE", "("}
)
"""First words that always begin a statement which the parser reads whole."""


@dataclass(frozen=True, slots=True)
class ParsedStatement:
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
    dynamic
    SQL); ``failed`` (does not parse)."""
    head: str
    """Its first words in lower case: ``select``, ``create``, ``grant``, ``execute immediate``."""
    routine: str | None = None
    """Canonical name of the procedure, function, trigger or task whose body it is in."""
    session: SessionChange | None = None
    """What it changes about how names resolve from here on (``USE``, ``SET search_path``)."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Why it is opaque or failed, and what was left out of it."""
    raw_line: int = 1
    """Line of the first token as the nodes of ``tree`` count lines."""
    shift: int = 0
    """What to add to a line of ``tree`` to have a line of the text that was read."""
    count: int = 1
    """How many statements it stands for: INSERTs in a row that differ only in the constants of their rows."""
    branch: Path = ()
    """The arms of the branches of control flow that it stands in."""
    parked: bool = False
    """``tree`` is only a stub, and the whole is to be had by ``trees.parse_again``."""


def parse_script(
    text: str,
    dialect: str,
    *,
    file: str = "",
    line_of: Callable[[int], int] | None = None,
    shelf: Shelf | None = None,
) -> list[ParsedStatement]:
    """Parse a script.

    Args:
        text: SQL, already rendered if it was a template.
        dialect: A sqlglot dialect name; empty for the base dialect.
        file: The file that diagnostics name.
        line_of: Maps a 1-based line of ``text`` to one of the original file; None if they are the same.
        shelf: The room for trees; without one all are kept.

    Returns:
        Its statements in order of text. Never raises on any text.

    Raises:
        UnknownNameError: There is no such dialect.
    """
    reader = ScriptReader(lexer(dialect), file, line_of, shelf)
    if len(text) > MAX_TEXT:
        return [reader.refused(f"the script has {len(text)} characters; at most {MAX_TEXT} are read")]
    cleaned = clean(text, dialect)
    for offset, name in cleaned.databases:
        reader.connections.append((offset, name))
    reader.read(cleaned.text, cleaned.batches)
    for offset, path in cleaned.included:
        reader.included(text, offset, path)
    return reader.statements


class ScriptReader:
    """Reads one script; collects its statements."""

    def __init__(self, lex: Lexer, file: str, line_of: Callable[[int], int] | None, shelf: Shelf | None = None) -> None:
        """Start with no statements."""
        self.lex = lex
        self.file = file
        self.line_of = line_of
        self.shelf = shelf
        self.statements: list[ParsedStatement] = []
        self.connections: list[tuple[int, str]] = []
        self.text = ""
        self.first_line = 1
        self.first_column = 1
        self.routine: str | None = None
        self.bodies = 0
        self.branches = 0
        """Branches of control flow so far."""
        self.flow = blocks.Flow()
        self._runs: dict[tuple[object, ...], int] = {}
        """INSERTs of constants since the last other statement, by what they say."""
        self._measured: str | None = None
        self._breaks: list[int] = []
        """Offsets of the line breaks of the text that was measured, if its tokens may not know their lines."""

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, text: str, batches: tuple[int, ...] = ()) -> None:
        """Read a whole text: tokenise, split at semicolons, parse each statement."""
        if len(text) > WINDOW:
            self._read_windows(text, batches)
            return
        self.text = text
        try:
            tokens = self.lex.tokenize(text)
        except TokenError as error:
            self._read_pieces(text, error)
            return
        except (RecursionError, MemoryError):
            self.statements.append(self.refused("nested too deeply to read", code="nesting"))
            return
        self._read_tokens(tokens, batches)

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
        line, column = self._raw_place(offset)
        self.bodies += 1
        self.connections = []
        self.first_line, self.first_column = line, column
        self.flow = blocks.Flow(inside=True, branches=Branches(self.flow.branches.path))
        if routine is not None:
            self.routine = routine
        try:
            self.read(text)
        finally:
            self.bodies -= 1
            self.text, self.first_line, self.first_column, self.routine, self.flow, self.connections = outer

    def _read_windows(self, text: str, batches: tuple[int, ...]) -> None:
        """Read a long text piece by piece, each up to a semicolon that ends a statement.

        A piece is as good as the whole: a tokenizer goes from left to right, so if the last token of a piece is the
        semicolon at its end, that is a token of the whole text, too.
        """
        connections = self.connections
        start, size = 0, WINDOW
        while start < len(text):
            end = _window_end(text, start + size)
            piece = text[start:end]
            self.text = piece
            try:
                tokens = self.lex.tokenize(piece)
            except (TokenError, RecursionError, MemoryError) as error:
                if end < len(text):
                    size *= 2
                    continue
                if isinstance(error, TokenError):
                    self._read_pieces(piece, error)
                else:
                    self.statements.append(self.refused("nested too deeply to read", code="nesting"))
                return
            closed = piece.rstrip()
            if end < len(text) and not (tokens and tokens[-1].start == len(closed) - 1 and closed[-1] == ";"):
                size *= 2
                continue
            self.connections = [(offset - start, name) for offset, name in connections if start <= offset < end]
            self._read_tokens(tokens, tuple([batch - start for batch in batches if start <= batch < end]))
            self.first_line, self.first_column = self._raw_place(len(piece))
            start, size = end, WINDOW

    def _read_tokens(self, tokens: list[Token], batches: tuple[int, ...]) -> None:
        ends = self._semicolons(tokens)
        start = 0
        batch = 0
        for end in (*ends, len(tokens)):
            if end < start:
                continue
            chunk = tokens[start:end] if start or end < len(tokens) else tokens
            while batch < len(batches) and start and tokens[start - 1].start >= batches[batch]:
                batch += 1
                self.flow = blocks.Flow(inside=self.bodies > 0)
                if not self.bodies:
                    self.routine = None
            if len(chunk) > 1 and word(chunk[0]) == "WITH" and word(chunk[1]) == "FUNCTION" and end < len(tokens):
                end = self._inline_functions(tokens, start, [e for e in ends if e > end])
                start = end + 1
                continue
            start = end + 1
            if chunk:
                self._chunk(chunk)

    def _inline_functions(self, tokens: list[Token], start: int, ends: list[int]) -> int:
        """Trino's ``WITH FUNCTION … BEGIN …; END SELECT …`` is one statement with semicolons in it.

        Returns:
            The index of the token that ends it.
        """
        tried = [*ends[:100], len(tokens)]
        for end in tried:
            tree = self.attempt(tokens[start:end])
            if tree is not None:
                self.add(tokens[start:end], tree, "parsed")
                return end
        self.statement(tokens[start : tried[0]])
        return tried[0]

    def _semicolons(self, tokens: list[Token]) -> list[int]:
        """Indices of the semicolon tokens. Looks at the text's semicolons only: most tokens are none."""
        text = self.text
        if ";" not in text or not tokens:
            return []
        found: list[int] = []
        offset = text.find(";")
        if text.count(";") * 8 > len(tokens):
            return [i for i, token in enumerate(tokens) if token.token_type == _SEMICOLON]
        while offset >= 0:
            index = bisect_right(tokens, offset, key=_start) - 1
            if index >= 0 and tokens[index].start == offset and tokens[index].token_type == _SEMICOLON:
                found.append(index)
            offset = text.find(";", offset + 1)
        return found

    def _chunk(self, tokens: list[Token]) -> None:
        """One piece between semicolons: a statement, or control flow with statements in it."""
        while self.connections and self.connections[0][0] <= tokens[0].start:
            _, name = self.connections.pop(0)
            self._connect(name, tokens[0])
        if not self.flow.inside and word(tokens[0]) in DIRECT and self.lex.name not in _UNSEPARATED:
            self.statement(tokens)
            return
        pieces = split_statements(tokens) if self.lex.name in _UNSEPARATED else [tokens]
        for piece in pieces:
            try:
                blocks.flatten(self, piece)
            except RecursionError:
                self.add(
                    piece, None, "failed", self.diagnostic("nesting", "error", "nested too deeply to read", piece[0])
                )
            except Exception as error:  # whatever a script holds, it must not cost the statements around it
                self.add(piece, None, "failed", self.parse_error(error, piece))

    def _read_pieces(self, text: str, error: TokenError) -> None:
        """The text does not tokenise as a whole (say, a quote is not closed): read what does, line group by line
        group.
        """
        outer_line, outer_column = self.first_line, self.first_column
        pieces: list[tuple[int, str]] = []
        start = 0
        for match in _PIECE.finditer(text):
            pieces.append((start, text[start : match.start()]))
            start = match.end()
        pieces.append((start, text[start:]))
        breaks = [match.start() for match in _BREAK.finditer(text)]

        def place(offset: int) -> tuple[int, int]:
            lines = bisect_left(breaks, offset)
            column = offset - (breaks[lines - 1] if lines else -1)
            return outer_line + lines, column if lines else column + outer_column - 1

        pending: tuple[int, str] | None = None
        attempts = 0
        for offset, piece in pieces:
            if pending is not None and attempts < 200:
                # A semicolon inside a literal: what fails alone may do together with what follows.
                attempts += 1
                joined = text[pending[0] : offset + len(piece)]
                if len(joined) < 100_000 and self._tokens_or_none(joined) is not None:
                    self._read_at(place(pending[0]), joined)
                    pending = None
                    continue
            if self._tokens_or_none(piece) is not None:
                if pending is not None:
                    self._broken(place, *pending, error)
                    pending = None
                self._read_at(place(offset), piece)
            elif pending is None:
                pending = (offset, piece)
            elif text.count("\n", pending[0], offset) > 400:
                self._broken(place, *pending, error)
                pending = (offset, piece)
        if pending is not None:
            self._broken(place, *pending, error)
        self.text, self.first_line, self.first_column = text, outer_line, outer_column

    def _tokens_or_none(self, text: str) -> list[Token] | None:
        try:
            return self.lex.tokenize(text)
        except (TokenError, RecursionError, MemoryError):
            return None

    def _read_at(self, place: tuple[int, int], piece: str) -> None:
        line, column = self.first_line, self.first_column
        tokens = self._tokens_or_none(piece)
        self.first_line, self.first_column = place
        self.text = piece
        if tokens:
            self._read_tokens(tokens, ())
        self.first_line, self.first_column = line, column

    def _broken(self, place: Callable[[int], tuple[int, int]], offset: int, piece: str, error: TokenError) -> None:
        stripped = piece.lstrip()
        line, column = place(offset + len(piece) - len(stripped))
        line = self.line_of(line) if self.line_of else line
        message = "a quote, a comment or a bracket is not closed"
        cause = error.__cause__
        if cause is not None and str(cause):
            message = printable(str(cause))[:200]
        diagnostic = Diagnostic("parse-error", "error", message, self.file or None, line, column)
        head = stripped.split(None, 1)[0].lower()[:40] if stripped else ""
        self.statements.append(
            ParsedStatement(
                None, stripped.rstrip(), line, column, "failed", printable(head), self.routine, None, (diagnostic,)
            )
        )

    # -- statements ---------------------------------------------------------------------------------------------------

    def statement(self, tokens: list[Token]) -> None:
        """Parse one statement's tokens and add it."""
        if tokens[0].token_type == _INSERT and self._constants(tokens):
            return
        try:
            tree = self.lex.parse(tokens, self.text)
        except Exception as error:  # the parser raises many kinds on odd input; none may cost the rest of the script
            rescue.failed(self, tokens, error)
            return
        if tree is None:
            return
        if tree.__class__ is exp.Command:
            rescue.command(self, tokens)
            return
        if isinstance(tree, _EXPRESSIONS) and not self._may_be_call(tokens, tree):
            self.add(tokens, None, "failed", self.diagnostic("parse-error", "error", "not a SQL statement", tokens[0]))
            return
        self.add(tokens, tree, "parsed")
        if self.shelf is not None and not self.shelf.takes(tokens[-1].end - tokens[0].start):
            self._park()

    def _constants(self, tokens: list[Token]) -> bool:
        """Add an INSERT of constants: to the run that it goes on, or by its first row."""
        found = constant_insert(tokens)
        if found is None:
            return False
        key = (*found.says, self.routine, self.flow.branches.path)
        at = self._runs.get(key)
        if at is not None:
            statement = self.statements[at]
            self.statements[at] = replace(statement, count=statement.count + 1)
            return True
        tree = self.attempt(tokens[: found.first_row])
        if tree is None:
            return False
        runs = self._runs
        self.add(tokens, tree, "parsed")
        self._runs = runs
        runs[key] = len(self.statements) - 1
        return True

    def _park(self) -> None:
        """Keep no more than a stub of the last statement's tree."""
        statement = self.statements[-1]
        tree = statement.tree
        kept = stub(tree) if tree is not None else None
        if tree is not None and kept is not None:
            shift = statement.shift + statement.raw_line - 1
            self.statements[-1] = replace(statement, tree=kept, raw_line=1, shift=shift, parked=True)
            release(tree)

    def _may_be_call(self, tokens: list[Token], tree: exp.Expr) -> bool:
        """Whether text that reads as a bare expression (``selec a``, ``this is not sql``) can stand as a statement.

        In blocks and routines procedures are called by their name alone, in T-SQL at the head of a batch, too.
        """
        if blocks.ignored(word(tokens[0])) or self.routine is not None or self.flow.inside or self.bodies:
            return True
        return self.lex.name in _UNSEPARATED and isinstance(tree, (exp.Column, exp.Dot, exp.Alias))

    def attempt(self, tokens: list[Token]) -> exp.Expr | None:
        """The tree of these tokens, or None if they do not parse to something better than a command."""
        if not tokens:
            return None
        try:
            tree = self.lex.parse(tokens, self.text)
        except Exception:
            return None
        return None if tree.__class__ is exp.Command else tree

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
        raw, column = self._raw_token_place(first)
        if head is None:
            head = printable(word(first).lower()) or first.text[:20]
        if change is None and head in session.HEADS:
            change = session.change(tokens, self.lex.name)
        if tree is not None or change is not None:
            self._runs = {}
        self.statements.append(
            ParsedStatement(
                tree,
                self.text[first.start : tokens[-1].end + 1],
                self.line_of(raw) if self.line_of else raw,
                column,
                status,
                head,
                self.routine,
                change,
                diagnostics,
                first.line,
                raw - first.line,
                branch=self.flow.branches.path,
            )
        )

    def _connect(self, name: str, token: Token) -> None:
        line, column = self.token_place(token)
        change = SessionChange(catalog=session.canonical(name, self.lex.name))
        self._runs = {}
        self.statements.append(
            ParsedStatement(None, f"\\connect {name}", line, column, "ignored", "connect", None, change)
        )

    # -- places and diagnostics
    # -----------------------------------------------------------------------------------------

    def token_place(self, token: Token) -> tuple[int, int]:
        """Line and column of a token's first character in the original file."""
        line, column = self._raw_token_place(token)
        return (self.line_of(line) if self.line_of else line), column

    def _raw_token_place(self, token: Token) -> tuple[int, int]:
        text = token.text
        if self._measured is not self.text:
            self._measure()
        # The tokenizer loses count of the lines where it looks for the end of a dollar quote that is none (``$1``).
        if not self._breaks and token.end - token.start + 1 == len(text):
            column = token.col - len(text) + 1
            if column > 0:
                line = token.line
                return line + self.first_line - 1, column + self.first_column - 1 if line == 1 else column
        return self._raw_place(token.start)

    def _measure(self) -> None:
        text = self._measured = self.text
        self._breaks = [match.start() for match in _BREAK.finditer(text)] if "$" in text else []

    def _raw_place(self, offset: int) -> tuple[int, int]:
        if self._measured is self.text and self._breaks:
            lines = bisect_left(self._breaks, offset)
            before = self._breaks[lines - 1] if lines else -1
        else:
            before = self.text.rfind("\n", 0, offset)
            lines = self.text.count("\n", 0, offset)
        column = offset - before
        if not lines:
            column += self.first_column - 1
        return self.first_line + lines, column

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, in the original file, of an offset in the current text."""
        line, column = self._raw_place(offset)
        return (self.line_of(line) if self.line_of else line), column

    def diagnostic(self, code: str, severity: str, message: str, token: Token) -> Diagnostic:
        """Return a diagnostic at a token; what the script says in it is made printable."""
        line, column = self.token_place(token)
        return Diagnostic(code, severity, printable(message), self.file or None, line, column)

    def parse_error(self, error: Exception, tokens: list[Token]) -> Diagnostic:
        """The diagnostic of a failed parse, at the token that the parser stopped at."""
        if isinstance(error, (RecursionError, MemoryError)):
            return self.diagnostic("nesting", "error", "nested too deeply to parse", tokens[0])
        if isinstance(error, NestingError):
            return self.diagnostic("nesting", "error", str(error), tokens[0])
        token = error_token(error, tokens)
        if isinstance(error, ParseError) and error.errors:
            message = error.errors[0].get("description") or "cannot be parsed"
            missing = _MISSING.search(message)
            if missing is not None:
                message = f"something is missing in {_in_words(missing[1])}"
            if "Maximum number of AST nodes" in message:
                return self.diagnostic(
                    "nesting", "error", "too ambiguous to parse: joins without ON, or deep nesting", tokens[0]
                )
        else:
            message = "cannot be parsed: the parser failed"
        near = token.text[:40]
        if near and "<Token" not in message:
            message = f"{message} near {near!r}"
        elif "<Token" in message:
            message = f"{message.split(' but got')[0]} near {near!r}"
        return self.diagnostic("parse-error", "error", message, token)

    def refused(self, message: str, *, code: str = "parse-error") -> ParsedStatement:
        """A statement that stands for a text which is not read."""
        line, column = self.place(0)
        diagnostic = Diagnostic(code, "error", message, self.file or None, line, column)
        return ParsedStatement(None, "", line, column, "failed", "", self.routine, None, (diagnostic,))

    def included(self, text: str, offset: int, path: str) -> None:
        """Note that the script includes another."""
        self.text, self.first_line, self.first_column = text, 1, 1
        line, column = self.place(offset)
        message = f"includes {printable(path)}, which is read only if it is ingested too"
        diagnostic = Diagnostic("dropped", "info", message, self.file or None, line, column)
        self.statements.append(ParsedStatement(None, "", line, column, "ignored", "include", None, None, (diagnostic,)))


_UNSEPARATED = frozenset({"tsql", "fabric"})
_EXPRESSIONS = (exp.Condition, exp.Alias, exp.Tuple, exp.Star, exp.Interval)
"""What the parser makes of text that begins like no statement."""


def _start(token: Token) -> int:
    return token.start


def _in_words(name: str) -> str:
    """What a class of the tree is called by people."""
    plain = {"Paren": "parentheses", "Neg": "a negation", "PropertyEQ": "an entry", "EQ": "a comparison"}
    return plain.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def _window_end(text: str, at: int) -> int:
    """Where a window may end at or behind an offset: behind a semicolon, better one at the end of a line."""
    found = _LINE_END.search(text, at, at + WINDOW)
    if found is not None:
        return found.end()
    end = text.find(";", at)
    return end + 1 if end >= 0 else len(text)


def printable(text: str) -> str:
    """A text without terminal escapes and control characters."""
    return _ESCAPES.sub("", text)


def error_token(error: Exception, tokens: list[Token]) -> Token:
    """The token that a parse error is about."""
    if isinstance(error, ParseError) and error.errors:
        line, column = error.errors[0].get("line"), error.errors[0].get("col")
        for token in tokens:
            if token.line == line and token.col == column:
                return token
    return tokens[0]
