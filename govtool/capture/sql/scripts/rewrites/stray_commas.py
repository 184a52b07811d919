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


_BEHIND_COMMA: Final = re.compile(r",\s*(?:[,#]|--|/\*|//|[fF][rR][oO][mM]\b)")
_BEHIND_SELECT: Final = re.compile(r"[sS][eE][lL][eE][cC][tT]\s*(?:[,#]|--|/\*|//)")
"""A comma or SELECT with a comma, a FROM or a comment behind it: most texts have none, and their tokens are not looked
at. As one pattern without regard to case it takes three times as long."""


def stray_comma(tokens: list[Token], text: str, dialect: str) -> Token | None:
    """Return the first comma of a statement that has no item on one side; None without any.

    Args:
        tokens: The statement's.
        text: What they are tokens of.
        dialect: A sqlglot dialect name.
    """
    start, end = tokens[0].start, tokens[-1].end + 1
    if _BEHIND_COMMA.search(text, start, end) is None and _BEHIND_SELECT.search(text, start, end) is None:
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
