"""sqlglot's tokenizer and parser for one dialect, prepared for reading scripts.

Two things differ from sqlglot's own entry points. Command words (``CALL``, ``BEGIN`` in BigQuery, ``EXPLAIN`` …) do not
swallow the text that follows them, so that every token keeps its place; and the number of nodes that a parse may
build is bounded by the length of its input, because some inputs (``FROM t JOIN t JOIN t …`` without ``ON``) cost the
parser exponential time.
"""

from __future__ import annotations

import difflib
import logging
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, Dialects
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from govtool.errors import UnknownNameError

_NODES_PER_TOKEN = 64
_NODES_MIN = 20_000
_SAFE_TOKENS = 1_000
_MAX_NESTING = 1_000

# Python 3.11 looks a member of an enumeration up by a property each time; these are compared with every token.
_L_PAREN: Final = TokenType.L_PAREN
_R_PAREN: Final = TokenType.R_PAREN
_L_BRACKET: Final = TokenType.L_BRACKET
_R_BRACKET: Final = TokenType.R_BRACKET
_COMMA: Final = TokenType.COMMA
_DOT: Final = TokenType.DOT

QUOTED_TYPES = frozenset(
    {
        TokenType.IDENTIFIER,
        TokenType.STRING,
        TokenType.HEREDOC_STRING,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.BYTE_STRING,
        TokenType.UNICODE_STRING,
    }
)
"""Token types whose text never is a keyword."""

STRING_TYPES = frozenset(
    {
        TokenType.STRING,
        TokenType.HEREDOC_STRING,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.UNICODE_STRING,
    }
)
"""Token types that hold text in quotes."""


_PARAMETER = re.compile(r"(?<![\w$])\$(?=\d)")
_AS_TAG = re.compile(r"\$(?<![\w$]\$)\d[^\s$]*\$")
_STAND_IN = "\ue000"
"""A character without a meaning, for the ``$`` of a parameter: sqlglot takes ``$1,$`` for the beginning of a
dollar-quoted string, whose tag cannot begin with a digit (PostgreSQL's documentation, 4.1.2.4)."""


_EMPTY_HEX = re.compile(r"(?<![\w$])0x(?!\w)")
"""No bytes, which sqlglot takes for a name (T-SQL: "Constants"; Trino at Dune: ``0x`` literals of varbinary)."""
_EMPTY_HEX_DIALECTS = frozenset({"tsql", "fabric", "trino", "presto", "athena", "dune"})


_MONEY = re.compile(r"(?<![\w$@#])\$\d")
"""An amount of money, ``$20.00``, which sqlglot takes for a name and a field (T-SQL: "Constants")."""
_MONEY_DIALECTS = frozenset({"tsql", "fabric"})


class NestingError(Exception):
    """The statement is nested deeper than can be parsed safely."""


class _NoWarnings(logging.Filter):
    """Drops sqlglot's warnings (commands, odd JSON paths): what matters of them becomes diagnostics, with file and
    line.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR


logging.getLogger("sqlglot").addFilter(_NoWarnings())


@dataclass(frozen=True, slots=True)
class Lexer:
    """The tokenizer and parser of one dialect. They hold state: one instance serves one thread."""

    name: str
    dialect: Dialect
    tokenizer: Tokenizer
    parser: Parser
    commands: frozenset[TokenType]
    """Token types that sqlglot reads as opaque commands when they begin a statement."""

    def tokenize(self, text: str) -> list[Token]:
        """The tokens of a text; raises ``sqlglot.errors.TokenError``."""
        tokens = self._tokens(text)
        if self.name in _EMPTY_HEX_DIALECTS and _EMPTY_HEX.search(text) is not None:
            for token in tokens:
                if token.token_type is TokenType.IDENTIFIER and token.end - token.start == 1 and token.text == "0x":
                    token.token_type, token.text = TokenType.HEX_STRING, ""
        if "$" in text and self.name in _MONEY_DIALECTS and _MONEY.search(text) is not None:
            return _with_money(tokens)
        return tokens

    def _tokens(self, text: str) -> list[Token]:
        tokenizer = self.tokenizer
        if "$" not in text or not tokenizer.HEREDOC_TAG_IS_IDENTIFIER:
            return tokenizer.tokenize(text)
        if not _AS_TAG.search(text) or _STAND_IN in text:
            return tokenizer.tokenize(text)
        tokens = tokenizer.tokenize(_PARAMETER.sub(_STAND_IN, text))
        for token in tokens:
            if _STAND_IN in token.text:
                token.text = token.text.replace(_STAND_IN, "$")
            if token.comments:
                token.comments = [comment.replace(_STAND_IN, "$") for comment in token.comments]
        return tokens

    def parse(self, tokens: list[Token], text: str) -> exp.Expr | None:
        """The tree of one statement without semicolons.

        Raises:
            NestingError: It is nested too deeply for the parser's stack.
            sqlglot.errors.ParseError: It is not understood.
        """
        size = len(tokens)
        if size > _SAFE_TOKENS:
            check_nesting(tokens, text)
        parser = self.parser
        parser.max_nodes = _NODES_MIN + _NODES_PER_TOKEN * size
        trees = parser.parse(tokens, text)
        return trees[0] if trees else None


def _with_money(tokens: list[Token]) -> list[Token]:
    """The tokens with amounts of money as the numbers that they are."""
    found: list[Token] = []
    for token in tokens:
        text = token.text
        if token.token_type is TokenType.VAR and text[:1] == "$" and text[1:].isdigit():
            token = Token(TokenType.NUMBER, text[1:], token.line, token.col, token.start, token.end)
        elif token.token_type is TokenType.NUMBER and len(found) > 1 and found[-1].token_type is TokenType.DOT:
            whole = found[-2]  # $20 . 00
            if whole.token_type is TokenType.NUMBER and whole.end + 1 == found[-1].start == token.start - 1:
                found[-2:] = []
                text = f"{whole.text}.{text}"
                token = Token(TokenType.NUMBER, text, token.line, token.col, whole.start, token.end)
        found.append(token)
    return found


def check_nesting(tokens: Sequence[Token], text: str) -> None:
    """Refuse what would overflow the parser's C stack (it does not guard all its recursions).

    Raises:
        NestingError: Brackets nest, or subscripts and assignments chain, too deeply.
    """
    part = text[tokens[0].start : tokens[-1].end + 1]
    if part.count("][") > _MAX_NESTING * 5 or part.count(":=") > _MAX_NESTING * 5:
        raise NestingError("too many chained operations")
    if max(part.count("("), part.count("["), part.count("{"), part.count("<")) < _MAX_NESTING:
        return
    depth = deepest = 0
    for char in part:
        if char in "([{<":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}>":
            depth = max(depth - 1, 0)
    if deepest >= _MAX_NESTING and _token_depth(tokens) >= _MAX_NESTING:
        raise NestingError(f"brackets are nested {deepest} deep")


def _token_depth(tokens: Sequence[Token]) -> int:
    """The deepest bracket nesting by tokens, so that brackets in strings and comparisons do not count."""
    depth = deepest = 0
    for token in tokens:
        text = token.text
        if token.token_type in QUOTED_TYPES:
            continue
        if text in ("(", "[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif text in (")", "]", "}"):
            depth = max(depth - 1, 0)
    angles = sum(1 for a, b in pairwise(tokens) if b.text == "<" and a.text.isalpha())
    return max(deepest, angles)


_local = threading.local()


def lexer(dialect: str) -> Lexer:
    """The lexer of a dialect for this thread.

    Args:
        dialect: A sqlglot dialect name, optionally with settings; empty for sqlglot's base dialect.

    Raises:
        UnknownNameError: There is no such dialect.
    """
    cache: dict[str, Lexer] | None = getattr(_local, "lexers", None)
    if cache is None:
        cache = _local.lexers = {}
    found = cache.get(dialect)
    if found is None:
        found = cache[dialect] = _make(dialect)
    return found


def _make(name: str) -> Lexer:
    try:
        dialect = Dialect.get_or_raise(name or None)
    except Exception as error:
        known = sorted(d.value for d in Dialects if d.value)
        near = difflib.get_close_matches(name.lower().strip(), known, n=3, cutoff=0.5)
        raise UnknownNameError(
            f"unknown SQL dialect {name!r}",
            code="usage.unknown-dialect",
            nearest=tuple(near),
            hint="known dialects: " + ", ".join(known),
        ) from error
    base = dialect.tokenizer_class
    words = {**base.SINGLE_TOKENS, _STAND_IN: TokenType.PARAMETER}
    plain: Any = type(
        "ScriptTokenizer", (base,), {"COMMANDS": set(), "COMMAND_PREFIX_TOKENS": set(), "SINGLE_TOKENS": words}
    )
    tokenizer = plain(dialect=dialect)
    return Lexer(name, dialect, tokenizer, dialect.parser(), frozenset(base.COMMANDS))


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def word(token: Token) -> str:
    """The token's text in upper case if it can be a keyword, else an empty string."""
    return "" if token.token_type in QUOTED_TYPES else token.text.upper()


def closing(tokens: Sequence[Token], start: int) -> int:
    """The index of the parenthesis that closes the one at ``start``; the last index if none does."""
    depth = 0
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        if kind == _L_PAREN:
            depth += 1
        elif kind == _R_PAREN:
            depth -= 1
            if depth == 0:
                return index
    return len(tokens) - 1


def name_end(tokens: Sequence[Token], start: int) -> int:
    """The index behind the dotted name that begins at ``start``."""
    end = start + 1
    while end + 1 < len(tokens) and tokens[end].token_type == _DOT:
        end += 2
    return end


def split(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at the commas outside of brackets; what is empty is left out."""
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        kind = token.token_type
        if kind in (_L_PAREN, _L_BRACKET):
            depth += 1
        elif kind in (_R_PAREN, _R_BRACKET):
            depth -= 1
        if kind == _COMMA and depth <= 0:
            items.append([])
        else:
            items[-1].append(token)
    return [item for item in items if item]


def like(token: Token, kind: TokenType, text: str) -> Token:
    """A token that stands where another does."""
    return Token(kind, text, token.line, token.col, token.start, token.end)


def find_word(tokens: Sequence[Token], words: frozenset[str] | set[str], start: int = 0) -> int:
    """The index of the first of ``words`` outside parentheses at or after ``start``, or -1.

    ``CASE … END`` expressions are skipped: their ``THEN`` and ``ELSE`` are not control flow.
    """
    depth = cases = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        kind = token.token_type
        if kind == _L_PAREN:
            depth += 1
        elif kind == _R_PAREN:
            depth -= 1
        elif depth <= 0 and kind not in QUOTED_TYPES:
            text = token.text.upper()
            if text == "CASE" and index > start:
                cases += 1
            elif cases and text == "END":
                cases -= 1
            elif not cases and text in words:
                return index
    return -1
