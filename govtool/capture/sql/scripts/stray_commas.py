"""Commas with nothing between them, before the first item or after the last one.

sqlglot reads over them. The databases refuse ``a,, b`` and ``SELECT , a`` everywhere, and ``a, FROM`` where a list may
not end with a comma.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_COMMA: Final = TokenType.COMMA
_SELECT: Final = TokenType.SELECT
_FROM: Final = TokenType.FROM
_BLANK = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_MAYBE = re.compile(rf",{_BLANK},|\bselect{_BLANK},|,{_BLANK}from\b", re.IGNORECASE | re.DOTALL)
_ENDS_WITHOUT = frozenset({"postgres", "redshift", "mysql", "oracle", "tsql", "sqlite"})
"""Dialects whose lists of columns do not end with a comma."""


def stray_comma(tokens: list[Token], text: str, dialect: str) -> Token | None:
    """Return the first comma of a statement that has no item on one side; None without any.

    Args:
        tokens: The statement's.
        text: The text that the tokens are of.
        dialect: A sqlglot dialect name.
    """
    if _MAYBE.search(text, tokens[0].start, tokens[-1].end + 1) is None:
        return None
    for left, right in pairwise(tokens):
        if right.token_type is _COMMA and left.token_type in (_COMMA, _SELECT):
            return right
        if left.token_type is _COMMA and right.token_type is _FROM and dialect in _ENDS_WITHOUT:
            return left
    return None
