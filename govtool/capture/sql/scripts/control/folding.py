"""Expressions of which every operand is a constant, folded to their text: the statements that dynamic SQL makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, like, split

Parts = tuple[Token, ...]
"""String tokens whose texts, joined, are a constant text; none where a text is not constant."""
Known = Callable[[str], Parts]
"""The text that a variable holds, by its name in lower case with the mark before it: ``@name``, ``$name``."""

_MOST: Final = 1_000
"""Strings that a text is joined from at most; of more it is not known."""
_JOINS: Final = frozenset({marks.DPIPE, marks.PLUS})
_MARKS: Final = frozenset({marks.PARAMETER, marks.COLON})
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_$]*")
_DIRECTIVE: Final = re.compile(r"%(?:(\d+)\$)?-?\d*([sdIL%])")


def constant_text(tokens: Sequence[Token], known: Known) -> str | None:
    """The text that an expression makes; None if an operand is no constant."""
    parts = constant_parts(tokens, known)
    return "".join([part.text for part in parts]) if parts else None


def constant_parts(tokens: Sequence[Token], known: Known) -> Parts:
    """The strings that an expression joins: strings, numbers, variables that hold constant text, ``format``,
    ``concat``, ``quote_ident`` and their like. None if an operand is no constant.
    """
    tokens = list(tokens)
    while tokens and tokens[0].token_type == marks.L_PAREN and closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    parts: list[Token] = []
    at = 0
    while at < len(tokens):
        found, behind = _operand(tokens, at, known)
        parts += found
        if not found or len(parts) > _MOST:
            return ()
        if behind < len(tokens):
            if tokens[behind].token_type not in _JOINS or behind + 1 == len(tokens) or _adds(tokens, behind):
                return ()
            behind += 1
        at = behind
    return tuple(parts)


def _adds(tokens: list[Token], at: int) -> bool:
    """Return whether a plus stands beside a number, which it may add."""
    beside = (tokens[at - 1].token_type, tokens[at + 1].token_type)
    return tokens[at].token_type == marks.PLUS and marks.NUMBER in beside


def _operand(tokens: list[Token], at: int, known: Known) -> tuple[Parts, int]:
    """The strings of one operand, and where the next token is."""
    token = tokens[at]
    if token.token_type in STRING_TYPES:
        return (token,), at + 1
    if token.token_type == marks.NUMBER:
        return (like(token, marks.STRING, token.text),), at + 1
    if token.token_type in _MARKS and at + 1 < len(tokens):
        mark = token.text if token.token_type == marks.PARAMETER else ""
        return known(mark + tokens[at + 1].text.lower()), at + 2
    end = at + 1
    if end >= len(tokens) or tokens[end].token_type != marks.L_PAREN:
        return known(token.text.lower()), end
    close = closing(tokens, end)
    function = FUNCTIONS.get(token.text.lower())
    arguments = [constant_text(item, known) for item in split(tokens[end + 1 : close])]
    values = [item for item in arguments if item is not None]
    if function is None or not values or len(values) < len(arguments):
        return (), close + 1
    text = function(values)
    return () if text is None else (like(token, marks.STRING, text),), close + 1


def _format(arguments: list[str]) -> str | None:
    """``format``: %s a text, %d a number, and PostgreSQL's %I an identifier, %L a literal, %1$s by position."""
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


def _bracketed(arguments: list[str]) -> str | None:
    return "[" + arguments[0].replace("]", "]]") + "]" if len(arguments) == 1 else None


def _text(text: str) -> str:
    return text


_CONVERSIONS: Final[Mapping[str, Callable[[str], str]]] = {"s": _text, "d": _text, "I": _identifier, "L": _literal}

FUNCTIONS: Final[Mapping[str, Callable[[list[str]], str | None]]] = {
    "format": _format,
    "concat": lambda arguments: "".join(arguments),
    "quote_ident": lambda arguments: _identifier(arguments[0]) if len(arguments) == 1 else None,
    "quote_literal": lambda arguments: _literal(arguments[0]) if len(arguments) == 1 else None,
    "quotename": _bracketed,
}
"""Functions whose result is known where their arguments are, by their names in lower case."""
