"""BigQuery's legacy SQL: tables in brackets, and a comma between them that is a UNION ALL.

Source: BigQuery documentation, "Legacy SQL query reference" (FROM clause, table decorators).
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import like, word

_DECORATORS: Final = frozenset({"$", "@"})


def with_standard_tables(tokens: list[Token]) -> list[Token]:
    """Return a statement's tokens with legacy tables in the standard form; the same list if there are none."""
    out: list[Token] = []
    changed = False
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if word(token) in ("FROM", "JOIN") and _bracketed(tokens, index + 1) is not None:
            names, index = _names(tokens, index + 1, several=word(token) == "FROM")
            out.append(token)
            out.extend(names[0] if len(names) == 1 else _union(names))
            changed = True
            continue
        out.append(token)
        index += 1
    return out if changed else tokens


def _bracketed(tokens: list[Token], start: int) -> int | None:
    """Return the end of the bracket that opens at ``start``; None if none closes it, or it is no table's."""
    if start >= len(tokens) or tokens[start].token_type != marks.L_BRACKET:
        return None
    for index in range(start + 1, min(len(tokens), start + 40)):
        if tokens[index].token_type == TokenType.R_BRACKET:
            return index if index > start + 1 else None
        if tokens[index].token_type in (marks.COMMA, marks.L_PAREN):
            return None
    return None


def _names(tokens: list[Token], start: int, *, several: bool) -> tuple[list[list[Token]], int]:
    """The tables from ``start`` on, and the index behind them."""
    found: list[list[Token]] = []
    while (end := _bracketed(tokens, start)) is not None:
        found.append([_name(tokens[start + 1 : end])])
        start = end + 1
        if not several or start >= len(tokens) or tokens[start].token_type != marks.COMMA:
            break
        if _bracketed(tokens, start + 1) is None:
            break
        start += 1
    return found, start


def _name(tokens: list[Token]) -> Token:
    """``project:dataset.table$partition@time`` as a name."""
    text = ""
    for token in tokens:
        if token.text[:1] in _DECORATORS:
            break
        text += "." if token.token_type == marks.COLON else token.text
    for mark in _DECORATORS:
        text = text.partition(mark)[0]
    return like(tokens[0], marks.IDENTIFIER, text)


def _union(names: list[list[Token]]) -> list[Token]:
    here = names[0][0]
    out = [like(here, marks.L_PAREN, "(")]
    for number, name in enumerate(names):
        if number:
            out.extend((like(here, TokenType.UNION, "UNION"), like(here, TokenType.ALL, "ALL")))
        out.extend((like(here, marks.SELECT, "SELECT"), like(here, marks.STAR, "*"), like(here, marks.FROM, "FROM")))
        out.extend(name)
    return [*out, like(here, marks.R_PAREN, ")")]
