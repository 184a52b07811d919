"""Clauses of oracle"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token


def simplified(tokens: list[Token]) -> list[Token]:
    return tokens
