"""Clauses of Databricks that declare who may see values and rows; `govtool.capture.sql.access_rules` reads them."""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token

from govtool.capture.sql import marks
from govtool.capture.sql.lexer import closing, name_end, word

_BEFORE_NAMES: Final = frozenset({marks.COMMA, marks.L_PAREN})
"""Behind these ``mask`` is the name of a column."""


def simplified(tokens: list[Token]) -> list[Token]:
    """Return the tokens of a CREATE without column masks and row filters; the same list if it has none."""
    if word(tokens[0]) != "CREATE":
        return tokens
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        end = _rule_end(tokens, at)
        if end == at:
            out.append(tokens[at])
            end += 1
        at = end
    return out if len(out) < len(tokens) else tokens


def _rule_end(tokens: list[Token], at: int) -> int:
    """Return the place behind ``MASK f [USING COLUMNS (…)]`` or ``[WITH] ROW FILTER f ON (…)``; else ``at``."""
    words = [word(token) for token in tokens[at : at + 2]]
    if words[:1] == ["MASK"] and at + 1 < len(tokens) and tokens[at - 1].token_type not in _BEFORE_NAMES:
        end = name_end(tokens, at + 1)
        using = [word(token) for token in tokens[end : end + 2]] == ["USING", "COLUMNS"]
        return _closed(tokens, end + 2) if using else end
    start = at + 1 if words[:1] == ["WITH"] else at
    if [word(token) for token in tokens[start : start + 2]] == ["ROW", "FILTER"]:
        end = name_end(tokens, start + 2)
        return _closed(tokens, end + 1) if end < len(tokens) and word(tokens[end]) == "ON" else end
    return at


def _closed(tokens: list[Token], at: int) -> int:
    """Return the place behind the parentheses that open at ``at``."""
    opens = at < len(tokens) and tokens[at].token_type == marks.L_PAREN
    return closing(tokens, at) + 1 if opens else at
