"""Storage of MySQL's tables, which the parser does not support in front of a query.

Source: MySQL Reference Manual, "CREATE TABLE … SELECT Statement".
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, find_word, word, word_set

_OPTIONS: Final = word_set("CHARACTER CHARSET COLLATE COMMENT DEFAULT ENGINE PARTITION AUTO_INCREMENT ROW_FORMAT") | {
    "PARTITION BY",
    "CHARACTER SET",
}


def without_options(tokens: list[Token]) -> list[Token]:
    """Return ``CREATE TABLE t (…)`` without how it is stored, up to the query it is filled from."""
    table = next((i for i, t in enumerate(tokens[1:4], 1) if word(t) == "TABLE"), -1)
    opened = next((i for i, t in enumerate(tokens[:10]) if t.token_type == marks.L_PAREN), -1)
    if word(tokens[0]) != "CREATE" or table < 0 or opened < 0:
        return tokens
    end = closing(tokens, opened) + 1
    query = find_word(tokens, {"SELECT", "AS", "WITH", "TABLE", "VALUES", "IGNORE", "REPLACE"}, end)
    stop = query if query > 0 else len(tokens)
    kept = stop + (query > 0 and word(tokens[query]) in ("IGNORE", "REPLACE"))
    if kept == end or (end < stop and word(tokens[end]) not in _OPTIONS):
        return tokens
    return [*tokens[:end], *tokens[kept:]]
