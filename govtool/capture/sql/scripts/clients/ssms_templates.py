"""Parameters of templates of SQL Server Management Studio: ``<name, type, value>`` stands for its value.

Source: "Replace template parameters" (SQL Server Management Studio): what is written third is what stands there until
somebody chooses something else. They are looked for only where a statement does not parse as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import QUOTED_TYPES, word

_LONGEST: Final = 200
"""Tokens that a parameter has at most."""
_PARTS: Final = 12
"""Tokens that its name or type has at most."""
_NAME: Final = re.compile(r"[\w@#$/-]+")


def rendered(tokens: list[Token]) -> list[Token]:
    """Return a statement with the values of its template parameters; the same list if it has none."""
    if not any(token.token_type == TokenType.LT for token in tokens):
        return tokens
    found: list[Token] = []
    at = kept = 0
    glue = False  # the value before ends where the next token begins: fn_<name, sysname, x>_all
    while at < len(tokens):
        token = tokens[at]
        value = _value(tokens, at) if token.token_type == TokenType.LT else None
        if value is None:
            joined = glue and found and token.start == tokens[at - 1].end + 1 and _is_word(token)
            if joined and _is_word(found[-1]):
                found[-1] = _joined(found[-1], token)
            else:
                found.append(token)
            glue = False
            at += 1
            kept += 1
            continue
        start, end = value
        inner = tokens[start:end]
        beside = bool(found) and at > 0 and tokens[at - 1].end + 1 == token.start and _is_word(found[-1])
        if beside and len(inner) == 1 and _is_word(inner[0]):
            found[-1] = _joined(found[-1], inner[0])
        else:
            found += inner
        glue = len(inner) == 1
        at = end + 1
    return found if kept < len(tokens) else tokens


def _value(tokens: Sequence[Token], start: int) -> tuple[int, int] | None:
    """Return the range of the value of the parameter that ``<`` begins; None if it begins none."""
    first = _comma(tokens, start + 1)
    second = _comma(tokens, first + 1) if first > 0 else -1
    if second < 0 or not _is_name(tokens[start + 1 : first]) or not _is_type(tokens[first + 1 : second]):
        return None
    depth = 0
    for at in range(second + 1, min(start + _LONGEST, len(tokens))):
        kind = tokens[at].token_type
        depth += (kind == marks.L_PAREN) - (kind == marks.R_PAREN)
        if depth < 0 or kind == TokenType.LT:
            return None
        if kind == TokenType.GT and not depth:
            return second + 1, at
    return None


def _comma(tokens: Sequence[Token], start: int) -> int:
    """The first comma outside of parentheses, if it is near; else -1."""
    depth = 0
    for at in range(start, min(start + _PARTS, len(tokens))):
        kind = tokens[at].token_type
        depth += (kind == marks.L_PAREN) - (kind == marks.R_PAREN)
        if kind == marks.COMMA and not depth:
            return at
    return -1


def _is_name(tokens: Sequence[Token]) -> bool:
    """Return whether tokens stand together like ``schema_name``, ``@param1``, ``contract-name``."""
    if not tokens or not all(t.token_type not in QUOTED_TYPES and _NAME.fullmatch(t.text) for t in tokens):
        return False
    apart = [one.end + 1 != other.start for one, other in pairwise(tokens)]
    return not any(apart) and not tokens[0].text[:1].isdigit()


def _is_type(tokens: Sequence[Token]) -> bool:
    """Return whether tokens are the name of a type, such as ``nvarchar(50)``, or nothing."""
    if not tokens:
        return True
    return _is_word(tokens[0]) and (len(tokens) == 1 or tokens[1].token_type == marks.L_PAREN)


def _is_word(token: Token) -> bool:
    return token.token_type not in QUOTED_TYPES and word(token).replace("_", "").isalnum()


def _joined(one: Token, other: Token) -> Token:
    return Token(marks.VAR, one.text + other.text, one.line, one.col, one.start, other.end)
