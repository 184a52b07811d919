"""Commas with nothing between them, before the first item or after the last one.

sqlglot reads over them. The databases refuse ``a,, b`` and ``SELECT , a`` everywhere, and ``a, FROM`` where a list may
not end with a comma.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_COMMA: Final = TokenType.COMMA
_SELECT: Final = TokenType.SELECT
_FROM: Final = TokenType.FROM
_ENDS_WITHOUT = frozenset({"postgres", "redshift", "mysql", "oracle", "tsql", "sqlite"})
"""Dialects whose lists of columns do not end with a comma."""


def stray_comma(tokens: list[Token], dialect: str) -> Token | None:
    """Return the first comma of a statement that has no item on one side; None without any.

    Args:
        tokens: The statement's.
        dialect: A sqlglot dialect name.
    """
    kinds = [token.token_type for token in tokens]
    for place, (left, right) in enumerate(pairwise(kinds)):
        if right is _COMMA and (left is _COMMA or left is _SELECT):
            return tokens[place + 1]
        if left is _COMMA and right is _FROM and dialect in _ENDS_WITHOUT:
            return tokens[place]
    return None
