"""Scripts to statements: tokenise once, split, and parse every statement on its own.

One bad statement never costs the others. Procedures, functions, blocks and control flow are flattened to the
statements in
them; text that is not SQL for the server (psql commands, ``GO``, COPY data) is left out; what cannot be parsed is
rescued
where a part of it carries lineage, and is reported otherwise. Nothing is dropped in silence and nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts import session
from govtool.capture.sql.scripts.clients.client import clean
from govtool.capture.sql.scripts.control import bindings, blocks, idle_conditions, row_counts, strings
from govtool.capture.sql.scripts.control.control_flow import ControlFlow
from govtool.capture.sql.scripts.control.dynamic import CALLS_ROUTINE
from govtool.capture.sql.scripts.packed_trees import packed
from govtool.capture.sql.scripts.pieces import read_pieces
from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.rewrites import rescue
from govtool.capture.sql.scripts.rewrites.stray_commas import stray_comma
from govtool.capture.sql.scripts.session import SessionChange
from govtool.capture.sql.scripts.source_positions import printable
from govtool.capture.sql.scripts.statement import ParsedStatement
from govtool.capture.sql.scripts.trees import TreeCache, release, stub
from govtool.capture.sql.scripts.triggers import end_of_rule
from govtool.capture.sql.scripts.tsql import split_statements
from govtool.capture.sql.syntax import marks, nodes
from govtool.capture.sql.syntax.lexer import lexer, word
from govtool.model.diagnostic import Diagnostic

MAX_TEXT = 64 * 1024 * 1024
"""Scripts longer than this many characters are refused: no warehouse writes them by hand."""

WINDOW = 1_000_000
"""Characters of a long script that are tokenised at once: tokens take thirty times the memory of their text."""

_LINE_END = re.compile(r";[ \t\r]*\n")

DIRECT = frozenset(
    {"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE", "FROM", "VALUES", "ALTER", "DROP", "TRUNCATE", "("}
)
"""First words that always begin a statement which the parser reads whole."""


def parse_script(
    text: str,
    dialect: str,
    *,
    file: str = "",
    line_of: Callable[[int], int] | None = None,
    tree_cache: TreeCache | None = None,
) -> list[ParsedStatement]:
    """Parse a script.

    Args:
        text: SQL, already rendered if it was a template.
        dialect: A sqlglot dialect name; empty for the base dialect.
        file: The file that diagnostics name.
        line_of: Maps a 1-based line of ``text`` to one of the original file; None if they are the same.
        tree_cache: The room for trees; without one all are kept.

    Returns:
        Its statements in order of text. Never raises on any text.

    Raises:
        UnknownNameError: There is no such dialect.
    """
    reader = ScriptReader(lexer(dialect), file, line_of, tree_cache)
    if len(text) > MAX_TEXT:
        return [reader.refused(f"the script has {len(text)} characters; at most {MAX_TEXT} are read")]
    cleaned = clean(text, dialect)
    for offset, name in cleaned.databases:
        reader.connections.append((offset, name))
    if row_counts.mentioned(cleaned.text, dialect):
        reader.counter = row_counts.note
    reader.read(cleaned.text, cleaned.batches)
    if reader.conditions:
        idle_conditions.listed(reader)
    for offset, path in cleaned.included:
        reader.included(cleaned.text, offset, path)
    for offset in cleaned.executed:
        reader.executed(cleaned.text, offset)
    if cleaned.unknown:
        reader.without_value(cleaned.text, cleaned.unknown)
    return reader.statements


class ScriptReader(StatementReader):
    """Reads one script."""

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
            read_pieces(self, text, error)
            return
        except (RecursionError, MemoryError):
            self.statements.append(self.refused("nested too deeply to read", code="nesting"))
            return
        self.read_tokens(tokens, batches)

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
                    read_pieces(self, piece, error)
                else:
                    self.statements.append(self.refused("nested too deeply to read", code="nesting"))
                return
            closed = piece.rstrip()
            if end < len(text) and not (tokens and tokens[-1].start == len(closed) - 1 and closed[-1] == ";"):
                size *= 2
                continue
            self.connections = [(offset - start, name) for offset, name in connections if start <= offset < end]
            self.read_tokens(tokens, tuple([batch - start for batch in batches if start <= batch < end]))
            self.first_line, self.first_column = self.raw_place(len(piece))
            start, size = end, WINDOW

    def read_tokens(self, tokens: list[Token], batches: tuple[int, ...]) -> None:
        """Split the tokens of the current text at semicolons, and read each statement."""
        ends = self._semicolons(tokens)
        start = 0
        batch = 0
        for end in (*ends, len(tokens)):
            if end < start:
                continue
            chunk = tokens[start:end] if start or end < len(tokens) else tokens
            while batch < len(batches) and start and tokens[start - 1].start >= batches[batch]:
                batch += 1
                self.flow = ControlFlow(inside=self.bodies > 0)
                if not self.bodies:
                    self.routine = None
            if len(chunk) > 1 and word(chunk[0]) == "WITH" and word(chunk[1]) == "FUNCTION" and end < len(tokens):
                end = self._inline_functions(tokens, start, [e for e in ends if e > end])
                start = end + 1
                continue
            if chunk and word(chunk[0]) == "CREATE" and (behind := end_of_rule(tokens, start, end)) > end:
                end = behind
                chunk = tokens[start:end]
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
            return [i for i, token in enumerate(tokens) if token.token_type == marks.SEMICOLON]
        low = 0
        while offset >= 0:
            high = len(tokens)
            while low < high:  # the first token behind the offset
                middle = (low + high) // 2
                if tokens[middle].start <= offset:
                    low = middle + 1
                else:
                    high = middle
            if low and tokens[low - 1].start == offset and tokens[low - 1].token_type == marks.SEMICOLON:
                found.append(low - 1)
            offset = text.find(";", offset + 1)
        return found

    def _chunk(self, tokens: list[Token]) -> None:
        """One piece between semicolons: a statement, or control flow with statements in it."""
        while self.connections and self.connections[0][0] <= tokens[0].start:
            _, name = self.connections.pop(0)
            self._connect(name, tokens[0])
        if not self.flow.inside and word(tokens[0]) in DIRECT and self.lex.name not in _CLOSELY:
            self.statement(strings.with_names(self, tokens))
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

    # -- statements ---------------------------------------------------------------------------------------------------

    def statement(self, tokens: list[Token]) -> None:
        """Parse one statement's tokens and add it."""
        if tokens[0].token_type == marks.INSERT and self.constants(tokens):
            return
        try:
            tree = self.lex.parse(tokens, self.text)
        except Exception as error:  # the parser raises many kinds on odd input; none may cost the rest of the script
            rescue.failed(self, tokens, error)
            return
        if tree is None:
            return
        if type(tree) is nodes.Command:
            rescue.command(self, tokens)
            return
        if type(tree) is exp.Create and tree.args.get("clone") is not None and tree.kind in ("SCHEMA", "DATABASE"):
            message = "clones a schema: which tables it copies is not known here"
            self.add(tokens, None, "opaque", self.diagnostic("opaque", "warning", message, tokens[0]))
            return
        if type(tree) not in _WHOLE and isinstance(tree, _EXPRESSIONS) and not self._may_be_call(tokens, tree):
            self.add(tokens, None, "failed", self.diagnostic("parse-error", "error", "not a SQL statement", tokens[0]))
            return
        if self._is_bare_call(tokens, tree):
            strings.called(self, tokens[0].text)
            note = self.diagnostic("opaque", "info", CALLS_ROUTINE, tokens[0])
            self.add(tokens, bindings.arguments(self, tokens, 0), "ignored", note, head="call")
            if self.lex.name == "oracle":
                bindings.called(self, tokens, 0)
            return
        comma = stray_comma(tokens, self.text, self.lex.name)
        message = "a comma without an item before or after it: read as if it were not there"
        notes = () if comma is None else (self.diagnostic("parse-error", "warning", message, comma),)
        at = len(self.statements)
        self.add(tokens, tree, "parsed", *notes)
        if self.tree_cache is not None:
            size = tokens[-1].end - tokens[0].start
            if not self.tree_cache.takes(size):
                self._pack(at)
            self.tree_cache.parsed(size)

    def _pack(self, number: int) -> None:
        """Keep no more than a stub of a statement's tree, and the whole as bytes."""
        tree = self.statements[number].tree
        kept = None if tree is None else stub(tree)
        data = None if tree is None or kept is None else packed(tree)
        if tree is not None and data is not None:
            self.statements[number] = self.statements[number]._replace(tree=kept, packed=data)
            release(tree)

    def _is_bare_call(self, tokens: list[Token], tree: exp.Expr) -> bool:
        """Return whether a statement calls a routine by its name alone: at the head of a batch of T-SQL, in PL/SQL."""
        if type(tree) not in _BARE or blocks.ignored(word(tokens[0])):
            return False
        inside = self.flow.inside or self.routine is not None
        if self.lex.name == "oracle":
            last = tree.expression if isinstance(tree, exp.Dot) else tree
            return inside and last.name.upper() not in _METHODS
        return self.lex.name in _UNSEPARATED and type(tree) is exp.Column and not inside

    def _may_be_call(self, tokens: list[Token], tree: exp.Expr) -> bool:
        """True if text that reads as a bare expression (``selec a``, ``this is not sql``) can stand as a statement.

        In blocks and routines procedures are called by their name alone, in T-SQL at the head of a batch, too.
        """
        if blocks.ignored(word(tokens[0])) or self.routine is not None or self.flow.inside or self.bodies:
            return True
        return self.lex.name in _UNSEPARATED and isinstance(tree, (exp.Column, exp.Dot, exp.Alias))

    def _connect(self, name: str, token: Token) -> None:
        line, column = self.token_place(token)
        change = SessionChange(catalog=session.canonical(name, self.lex.name))
        self._runs = {}
        self.statements.append(
            ParsedStatement(None, f"\\connect {name}", line, column, "ignored", "connect", None, change)
        )

    def included(self, text: str, offset: int, path: str) -> None:
        """Note that the script includes another."""
        self.text, self.first_line, self.first_column = text, 1, 1
        line, column = self.place(offset)
        if "&" in path or path.startswith(":"):
            message = f"includes a script that only a variable names: {printable(path)}"
            note = Diagnostic("opaque", "warning", message, self.file or None, line, column)
            self.statements.append(ParsedStatement(None, "", line, column, "opaque", "include", None, None, (note,)))
            return
        message = f"includes {printable(path)}, which is read only if it is ingested too"
        note = Diagnostic("dropped", "info", message, self.file or None, line, column)
        self.statements.append(
            ParsedStatement(None, "", line, column, "ignored", "include", diagnostics=(note,), included=path)
        )

    def executed(self, text: str, offset: int) -> None:
        """Note that what a query returns is run as SQL."""
        self.text, self.first_line, self.first_column = text, 1, 1
        line, column = self.place(offset)
        message = "\\gexec runs the SQL that the query returns: it is not known here"
        note = Diagnostic("opaque", "warning", message, self.file or None, line, column)
        self.statements.append(ParsedStatement(None, "", line, column, "opaque", "gexec", None, None, (note,)))

    def without_value(self, text: str, names: tuple[tuple[int, str], ...]) -> None:
        """Note which variables of the client have no value: names stand for them, or parameters."""
        self.text, self.first_line, self.first_column = text, 1, 1
        line, column = self.place(names[0][0])
        some = ", ".join(f"&{printable(name)}" for _, name in names[:5])
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        message = f"no value for {some}{more}: give one with --var {printable(names[0][1])}=…"
        note = Diagnostic("template", "info", message, self.file or None, line, column)
        self.statements.append(ParsedStatement(None, "", line, column, "ignored", "define", None, None, (note,)))


_UNSEPARATED = frozenset({"tsql", "fabric"})
_CLOSELY = _UNSEPARATED | {"mysql", "singlestore", "doris", "starrocks"}
"""Dialects whose SELECT may give variables their values anywhere."""
_BARE: Final = frozenset({exp.Column, exp.Dot, exp.Anonymous})
"""The parser's nodes for a routine's name, with or without arguments, where a statement should be."""
_METHODS: Final = frozenset({"EXTEND", "DELETE", "TRIM", "EXIT", "CONTINUE", "RAISE", "RETURN", "COMMIT", "ROLLBACK"})
"""Methods of collections of PL/SQL, and statements of one word."""
_EXPRESSIONS = (exp.Condition, exp.Alias, exp.Tuple, exp.Star, exp.Interval)
"""The parser's nodes for text that begins like no statement."""

_WHOLE: Final = frozenset({exp.Select, exp.Create, exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Drop, exp.Alter})
"""The parser's nodes for most statements: none of the above, which takes longer to find out."""


def _window_end(text: str, at: int) -> int:
    """Return the end of a window at or behind an offset: behind a semicolon, better one at the end of a line."""
    found = _LINE_END.search(text, at, at + WINDOW)
    if found is not None:
        return found.end()
    end = text.find(";", at)
    return end + 1 if end >= 0 else len(text)
