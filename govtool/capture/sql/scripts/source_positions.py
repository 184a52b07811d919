"""Positions in the original file, and diagnostics of what was not understood there."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.syntax.lexer import STRING_TYPES, NestingError
from govtool.model.diagnostic import Diagnostic
from govtool.redaction import clean_text

_ESCAPES: Final = re.compile("\x1b\\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MISSING: Final = re.compile(r"Required \w+.* missing for .*?(\w+)'>")
_BREAK: Final = re.compile("\n")


class SourcePositions:
    """The text that is read, and where in its file it stands."""

    def __init__(self, file: str, line_of: Callable[[int], int] | None) -> None:
        """Start at the beginning of a file."""
        self.file = file
        self.line_of = line_of
        self.text = ""
        self.first_line = 1
        self.first_column = 1
        self._measured: str | None = None
        self._breaks: list[int] = []
        """Offsets of the line breaks of the text that was measured, if its tokens may not know their lines."""

    def token_place(self, token: Token) -> tuple[int, int]:
        """Line and column of a token's first character in the original file."""
        line, column = self.raw_token_place(token)
        return (self.line_of(line) if self.line_of else line), column

    def raw_token_place(self, token: Token) -> tuple[int, int]:
        """The same as the reader counts lines."""
        text = token.text
        if self._measured is not self.text:
            self._measure()
        # The tokenizer loses count of the lines where it looks for the end of a dollar quote that is none (``$1``).
        if not self._breaks and token.end - token.start + 1 == len(text):
            column = token.col - len(text) + 1
            if column > 0:
                line = token.line
                return line + self.first_line - 1, column + self.first_column - 1 if line == 1 else column
        return self.raw_place(token.start)

    def _measure(self) -> None:
        text = self._measured = self.text
        self._breaks = [match.start() for match in _BREAK.finditer(text)] if "$" in text else []

    def raw_place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset in the current text, as the reader counts lines."""
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
        line, column = self.raw_place(offset)
        return (self.line_of(line) if self.line_of else line), column

    def diagnostic(self, code: str, severity: str, message: str, token: Token) -> Diagnostic:
        """Return a diagnostic at a token; text of the script in it is printable and without secrets."""
        line, column = self.token_place(token)
        return Diagnostic(code, severity, printable(clean_text(message)), self.file or None, line, column)

    def parse_error(self, error: Exception, tokens: list[Token]) -> Diagnostic:
        """The diagnostic of a failed parse, at the token that the parser stopped at."""
        if isinstance(error, (RecursionError, MemoryError)):
            return self.diagnostic("nesting", "error", "nested too deeply to parse", tokens[0])
        if isinstance(error, NestingError):
            return self.diagnostic("nesting", "error", str(error), tokens[0])
        token = error_token(error, tokens)
        if isinstance(error, ParseError) and error.errors:
            message = parser_message(error)
            if "Maximum number of AST nodes" in message:
                return self.diagnostic(
                    "nesting", "error", "too ambiguous to parse: joins without ON, or deep nesting", tokens[0]
                )
        else:
            message = "cannot be parsed: the parser failed"
        # A literal may be about a person; one in $$ is words where the dialect does not have it.
        literal = token.token_type in STRING_TYPES or any("$" in each.text for each in tokens)
        near = "a literal" if literal else repr(token.text[:40]) if token.text else ""
        if near:
            message = f"{message} near {near}"
        return self.diagnostic("parse-error", "error", message, token)


def parser_message(error: ParseError) -> str:
    """What a parser found wrong, without the names of its classes."""
    message = (error.errors[0].get("description") if error.errors else None) or "cannot be parsed"
    missing = _MISSING.search(message)
    if missing is not None:
        return f"something is missing in {_in_words(missing[1])}"
    return message.split(" but got")[0] if "<Token" in message else message


def _in_words(name: str) -> str:
    """Describe a class of the tree for people."""
    plain = {"Paren": "parentheses", "Neg": "a negation", "PropertyEQ": "an entry", "EQ": "a comparison"}
    return plain.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def printable(text: str) -> str:
    """A text without terminal escapes and control characters."""
    if text.isidentifier():
        return text
    return _ESCAPES.sub("", text)


def error_token(error: Exception, tokens: list[Token]) -> Token:
    """The token that a parse error is about."""
    if isinstance(error, ParseError) and error.errors:
        line, column = error.errors[0].get("line"), error.errors[0].get("col")
        for token in tokens:
            if token.line == line and token.col == column:
                return token
    return tokens[0]
