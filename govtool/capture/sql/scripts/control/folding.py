"""Expressions of which every operand is a constant, folded to their text: the statements that dynamic SQL makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, split

_NOTHING: Final[Mapping[str, str]] = {}
_JOINS: Final = frozenset({marks.DPIPE, marks.PLUS})
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_$]*")
_DIRECTIVE: Final = re.compile(r"%(?:(\d+)\$)?-?\d*([sIL%])")


def constant_text(tokens: Sequence[Token], known: Mapping[str, str] = _NOTHING) -> str | None:
    """The text that an expression makes: strings and numbers joined, ``format``, ``concat``, ``quote_ident``.

    Args:
        tokens: The expression.
        known: The texts of constants, by their names in lower case.

    Returns:
        None if an operand is no constant.
    """
    tokens = list(tokens)
    while tokens and tokens[0].token_type == marks.L_PAREN and closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    parts: list[str] = []
    at = 0
    while at < len(tokens):
        found = _operand(tokens, at, known)
        if found is None:
            return None
        text, at = found
        parts.append(text)
        if at < len(tokens):
            if tokens[at].token_type not in _JOINS or at + 1 == len(tokens):
                return None
            at += 1
    return "".join(parts) if parts else None


def _operand(tokens: list[Token], at: int, known: Mapping[str, str]) -> tuple[str, int] | None:
    """The text of one operand, and where the next token is."""
    token = tokens[at]
    if token.token_type in STRING_TYPES or token.token_type == marks.NUMBER:
        return token.text, at + 1
    end = at + 1
    if end >= len(tokens) or tokens[end].token_type != marks.L_PAREN:
        constant = known.get(token.text.lower())
        return None if constant is None else (constant, end)
    close = closing(tokens, end)
    function = FUNCTIONS.get(token.text.lower())
    arguments = [constant_text(item, known) for item in split(tokens[end + 1 : close])]
    values = [item for item in arguments if item is not None]
    if function is None or not values or len(values) < len(arguments):
        return None
    text = function(values)
    return None if text is None else (text, close + 1)


def _format(arguments: list[str]) -> str | None:
    """PostgreSQL's format: %s a text, %I an identifier, %L a literal, %1$s by position."""
    values = arguments[1:]
    given = iter(range(len(values)))
    missing = False

    def replaced(match: re.Match[str]) -> str:
        nonlocal missing
        if match.group(2) == "%":
            return "%"
        number = int(match.group(1)) - 1 if match.group(1) else next(given, -1)
        if not 0 <= number < len(values):
            missing = True
            return ""
        return _CONVERSIONS[match.group(2)](values[number])

    text = _DIRECTIVE.sub(replaced, arguments[0])
    return None if missing else text


def _identifier(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else '"' + text.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _text(text: str) -> str:
    return text


_CONVERSIONS: Final[Mapping[str, Callable[[str], str]]] = {"s": _text, "I": _identifier, "L": _literal}

FUNCTIONS: Final[Mapping[str, Callable[[list[str]], str | None]]] = {
    "format": _format,
    "concat": lambda arguments: "".join(arguments),
    "quote_ident": lambda arguments: _identifier(arguments[0]) if len(arguments) == 1 else None,
    "quote_literal": lambda arguments: _literal(arguments[0]) if len(arguments) == 1 else None,
}
"""Functions whose result is known where their arguments are, by their names in lower case."""
