"""Commas with nothing between them, before the first item or after the last one.

sqlglot reads over them. The databases refuse ``a,, b`` and ``SELECT , a`` everywhere, and ``a, FROM`` where a list may
not end with a comma.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_COMMA: Final = TokenType.COMMA
_SELECT: Final = TokenType.SELECT
_FROM: Final = TokenType.FROM
_ENDS_WITHOUT = frozenset({"postgres", "redshift", "mysql", "oracle", "tsql", "sqlite"})
"""Dialects whose lists of columns do not end with a comma."""


_MAY_BE_STRAY: Final = re.compile(r",\s*(?:[,#]|--|/\*|//|from\b)|\bselect\s*(?:[,#]|--|/\*|//)", re.IGNORECASE)
"""A comma or SELECT with a comma, a FROM or a comment behind it: most texts have none, and their tokens are not looked
at."""


def stray_comma(tokens: list[Token], text: str, dialect: str) -> Token | None:
    """Return the first comma of a statement that has no item on one side; None without any.

    Args:
        tokens: The statement's.
        text: What they are tokens of.
        dialect: A sqlglot dialect name.
    """
    if _MAY_BE_STRAY.search(text, tokens[0].start, tokens[-1].end + 1) is None:
        return None
    before: TokenType | None = None
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind is _COMMA:
            if before is _COMMA or before is _SELECT:
                return token
        elif kind is _FROM and before is _COMMA and dialect in _ENDS_WITHOUT:
            return tokens[place - 1]
        before = kind
    return None
