"""Statements whose names mean the same in every schema: their runs in all sessions are one."""

from __future__ import annotations

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.syntax.lexer import QUOTED_TYPES, lexer, word

_HEADS = frozenset({"SELECT", "WITH", "INSERT", "("})
_BEFORE = frozenset({"FROM", "JOIN", "INTO", "TABLE", "USING", "APPLY", "STRAIGHT_JOIN", "OVERWRITE", "UPDATE", "IN"})
_TABLE_PLACES = frozenset({"FROM", "JOIN", "APPLY", "STRAIGHT_JOIN"})
_ENDS = frozenset(
    {"WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "SELECT", "SET", "UNION", "INTERSECT", "EXCEPT", "WINDOW", "QUALIFY"}
)
_BETWEEN = frozenset({"TABLE", "LATERAL", "ONLY", "INTO", "LOCAL", "UNNEST", "VALUES", "SELECT", "WITH"})


def needs_schema(text: str, dialect: str) -> bool:
    """Return whether a statement may have an unqualified table name; True if its tokens do not tell.

    A name stands behind FROM, JOIN, INTO and their like, and behind a comma of a FROM list. It is qualified if a dot
    follows, a function if a parenthesis does, and a CTE if it is somewhere defined by ``name AS (``.
    """
    try:
        tokens = lexer(dialect).tokenize(text)
    except (TokenError, RecursionError, MemoryError):
        return True
    words = ["" if token.token_type in QUOTED_TYPES else token.text.upper() for token in tokens]
    if not tokens or (words[0] or tokens[0].text) not in _HEADS:
        return True
    if any(token.token_type == TokenType.SEMICOLON for token in tokens[:-1]):
        return True
    last = len(tokens) - 1
    defined = _ctes(tokens, words)
    # For each parenthesis that is open: whether a comma in it stands between tables, as in FROM a, b.
    listing = [False]
    for at, upper in enumerate(words):
        kind = tokens[at].token_type
        if kind == TokenType.L_PAREN:
            place = _holds_tables(tokens, words, at, listing[-1])
            listing.append(place)
        elif kind == TokenType.R_PAREN:
            if len(listing) > 1:
                listing.pop()
            continue
        elif upper in _ENDS:
            listing[-1] = False
            continue
        else:
            place = _before_table(upper) or (kind == TokenType.COMMA and listing[-1])
            listing[-1] = listing[-1] or upper == "FROM"
        if place and _bare(tokens, at + 1, last, defined):
            return True
    return False


def _ctes(tokens: list[Token], words: list[str]) -> set[str]:
    """The names that are defined by ``name AS (``, in lower case."""
    return {
        tokens[at].text.lower()
        for at in range(len(tokens) - 2)
        if words[at + 1] == "AS" and tokens[at + 2].token_type == TokenType.L_PAREN
    }


def _holds_tables(tokens: list[Token], words: list[str], at: int, in_list: bool) -> bool:
    """Return whether a parenthesis stands in the place of a table, as in ``FROM (a JOIN b)``."""
    if at == 0:
        return False
    inner = tokens[at - 1].token_type in (TokenType.COMMA, TokenType.L_PAREN)
    return words[at - 1] in _TABLE_PLACES or (inner and in_list)


def _before_table(word: str) -> bool:
    return word in _BEFORE or (" " in word and word.endswith((" JOIN", " INTO", " TABLE")))


def _bare(tokens: list[Token], at: int, last: int, defined: set[str]) -> bool:
    """Return whether an unqualified name of a table stands at an index."""
    if at > last:
        return False
    token = tokens[at]
    if word(token) in _BETWEEN or token.token_type == TokenType.L_PAREN:
        return False  # what follows is looked at in its turn
    following = tokens[at + 1].token_type if at < last else None
    if following in (TokenType.DOT, TokenType.L_PAREN):
        return False
    if token.token_type in QUOTED_TYPES and "." in token.text:
        return False
    return token.text.lower() not in defined
