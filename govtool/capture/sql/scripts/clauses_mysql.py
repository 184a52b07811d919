"""MySQL's words that the parser does not know: priorities, what becomes of errors, storage, files that a query writes.

Source: MySQL Reference Manual, "SQL Statements".
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token

from govtool.capture.sql import marks
from govtool.capture.sql.lexer import closing, find_word, word, word_set

_MODIFIERS: Final = word_set("LOW_PRIORITY HIGH_PRIORITY DELAYED IGNORE")
_CHANGES: Final = word_set("INSERT UPDATE ALTER")
_FILES: Final = word_set("OUTFILE DUMPFILE")
_AFTER_FILE: Final = word_set("FROM UNION FOR LOCK")
_OPTIONS: Final = word_set("CHARACTER CHARSET COLLATE COMMENT DEFAULT ENGINE PARTITION AUTO_INCREMENT ROW_FORMAT") | {
    "PARTITION BY",
    "CHARACTER SET",
}


def simplified(tokens: list[Token]) -> list[Token]:
    """Return a statement's tokens without what the parser of MySQL does not know; the same list if there is nothing."""
    return _without_options(_without_file(_without_modifiers(tokens)))


def unread(tokens: list[Token]) -> list[Token]:
    """Return the tokens of ``INTO OUTFILE 'file' …``: rows go where no relation is."""
    at, end = _file(tokens)
    return tokens[at:end]


def _without_modifiers(tokens: list[Token]) -> list[Token]:
    """``INSERT LOW_PRIORITY IGNORE INTO``, ``UPDATE IGNORE t``, ``ALTER IGNORE TABLE`` without the words."""
    if word(tokens[0]) not in _CHANGES:
        return tokens
    end = 1
    while end < len(tokens) - 1 and word(tokens[end]) in _MODIFIERS:
        end += 1
    return tokens if end == 1 else [tokens[0], *tokens[end:]]


def _file(tokens: list[Token]) -> tuple[int, int]:
    """Return the range of ``INTO OUTFILE …`` of a query; twice 0 if it has none."""
    if word(tokens[0]) not in ("SELECT", "WITH", "TABLE", "VALUES", "("):
        return 0, 0
    start = 0
    while (start := find_word(tokens, {"INTO"}, start + 1)) > 0:
        if start + 2 < len(tokens) and word(tokens[start + 1]) in _FILES:
            end = find_word(tokens, _AFTER_FILE, start + 3)
            return start, end if end > 0 else len(tokens)
    return 0, 0


def _without_file(tokens: list[Token]) -> list[Token]:
    at, end = _file(tokens)
    return [*tokens[:at], *tokens[end:]] if at else tokens


def _without_options(tokens: list[Token]) -> list[Token]:
    """``CREATE TABLE t (…)`` without how it is stored, up to the query it is filled from."""
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
