"""Rowsets of T-SQL in forms that the parser reads: files, models, full-text searches.

Source: Transact-SQL reference, "OPENROWSET BULK", "PREDICT", "CONTAINSTABLE", "FREETEXTTABLE".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import STRING_TYPES, closing, like, split, word, word_set
from govtool.capture.sql.walk.relation import BULK_FILE

_SOURCES: Final = word_set("FROM JOIN APPLY , (")
_SEARCHES: Final = word_set("CONTAINS FREETEXT CONTAINSTABLE FREETEXTTABLE")


def bulk_files(tokens: list[Token]) -> list[Token]:
    """``OPENROWSET(BULK 'file', options) [WITH (columns)]`` as a function that reads the file ("OPENROWSET BULK")."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if word(token) == "OPENROWSET" and at + 3 < len(tokens) and word(tokens[at + 2]) == "BULK":
            end = closing(tokens, at + 1)
            files = [tokens[at + 3]]
            if tokens[at + 3].token_type == marks.L_PAREN:
                files = [t for t in tokens[at + 4 : closing(tokens, at + 3)] if t.token_type != marks.COMMA]
            if all(file.token_type in STRING_TYPES for file in files):
                found += [like(token, marks.VAR, BULK_FILE), tokens[at + 1]]
                for number, file in enumerate(files):
                    found += [like(file, marks.COMMA, ",")] * bool(number)
                    found.append(like(file, TokenType.STRING, file.text))
                found.append(tokens[end])
                at = end + 1
                if at + 1 < len(tokens) and word(tokens[at]) == "WITH" and tokens[at + 1].token_type == marks.L_PAREN:
                    at = closing(tokens, at + 1) + 1
                continue
        found.append(token)
        at += 1
    return found if len(found) < len(tokens) else tokens


def predictions(tokens: list[Token]) -> list[Token]:
    """Return ``FROM PREDICT(MODEL = m, DATA = t AS d, …) WITH (score float) AS p`` as t, with columns that depend on
    all of it: ``FROM t AS d CROSS APPLY (SELECT [predict](m, d.*) AS score) AS p``.
    """
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        made = _prediction(tokens, at) if word(tokens[at]) == "PREDICT" and at else None
        if made is None:
            found.append(tokens[at])
            at += 1
        else:
            found += made[0]
            at = made[1]
    return found if len(found) != len(tokens) else tokens


def _prediction(tokens: Sequence[Token], at: int) -> tuple[list[Token], int] | None:
    """Return the text of the PREDICT at ``at``, and its end; None if it is another function."""
    if word(tokens[at - 1]) not in _SOURCES or at + 1 >= len(tokens) or tokens[at + 1].token_type != marks.L_PAREN:
        return None
    end = closing(tokens, at + 1)
    arguments = {word(item[0]): item[2:] for item in split(tokens[at + 2 : end]) if len(item) > 2}
    data, model = arguments.get("DATA", []), arguments.get("MODEL", [])
    named = [i for i, token in enumerate(data) if word(token) == "AS"]
    if not named or not model or end + 2 >= len(tokens) or word(tokens[end + 1]) != "WITH":
        return None
    alias = data[-1]
    close = closing(tokens, end + 2)
    here = tokens[at]
    found = [*data, like(here, TokenType.CROSS, "CROSS"), like(here, TokenType.APPLY, "APPLY")]
    found += [like(here, marks.L_PAREN, "("), like(here, marks.SELECT, "SELECT")]
    for number, column in enumerate(split(tokens[end + 3 : close])):
        found += [like(here, marks.COMMA, ",")] * bool(number)
        found += [like(here, marks.IDENTIFIER, "predict"), like(here, marks.L_PAREN, "("), *model]
        found += [like(here, marks.COMMA, ","), alias, like(here, marks.DOT, "."), like(here, marks.STAR, "*")]
        found += [like(here, marks.R_PAREN, ")"), like(here, marks.ALIAS, "AS"), column[0]]
    found.append(like(here, marks.R_PAREN, ")"))
    return found, close + 1


def without_language(tokens: list[Token]) -> list[Token]:
    """Return full-text searches without ``, LANGUAGE n``."""
    found: list[Token] = []
    at = 0
    searches = 0
    while at < len(tokens):
        text = word(tokens[at])
        searches += text in _SEARCHES
        second = word(tokens[at + 1]) if at + 1 < len(tokens) else ""
        if searches and text == "," and second == "LANGUAGE":
            at += 3
            at += at <= len(tokens) and tokens[at - 1].token_type == marks.PARAMETER
        else:
            found.append(tokens[at])
            at += 1
    return found if len(found) < len(tokens) else tokens
