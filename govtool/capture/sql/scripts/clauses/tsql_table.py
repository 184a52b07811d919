"""Clauses of columns, keys and storage that only T-SQL's table definitions have.

Source: Transact-SQL reference, CREATE TABLE, ALTER TABLE, CREATE TYPE, table (column_definition, table_constraint,
table_index). What is left out is how rows are stored, indexed, encrypted, masked or versioned. Names, types,
defaults, computed columns and keys stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.clauses.patterns import clause, end_of
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, like, split, word, word_set

_TSQL: Final = "tsql fabric"
_WORDS: Final = word_set("ROWGUIDCOL HIDDEN SPARSE FILESTREAM CLUSTERED NONCLUSTERED HASH COLUMNSTORE")
_OF_COLUMNS: Final = (
    clause(_TSQL, "|".join(sorted(_WORDS))),
    clause(_TSQL, "MASKED|ENCRYPTED WITH ()?"),
    clause(_TSQL, "WITH ()"),
    clause(_TSQL, "WITH FILLFACTOR _? _?"),
    clause(_TSQL, "WITH VALUES"),
    clause(_TSQL, "ON $"),
    clause(_TSQL, "ON !DELETE|UPDATE ()?"),
    clause(_TSQL, "NOT FOR _?"),
    clause(_TSQL, "COLUMN_SET _? _?"),
    clause(_TSQL, "()", behind="^ _ XML"),
)
"""Clauses of a column or constraint, beside indexes and keys."""
_OF_TABLES: Final = (
    clause(_TSQL, "WITH ()"),
    clause(_TSQL, "ON|TEXTIMAGE_ON|FILESTREAM_ON _? ()?", outermost=True),
)
"""Clauses behind the columns."""
_INDEX: Final = word_set("UNIQUE CLUSTERED NONCLUSTERED HASH COLUMNSTORE INCLUDE ORDER")
_KEYS: Final = frozenset({"UNIQUE", "KEY", "PRIMARY KEY"})
_STORED: Final = word_set("ON TEXTIMAGE_ON FILESTREAM_ON")


def without_storage(tokens: list[Token]) -> list[Token]:
    """Return a definition of a table, table type or table variable without storage; the same list if it has none."""
    start = _columns(tokens)
    if start < 0:
        return _altered(tokens) if word(tokens[0]) == "ALTER" else tokens
    end = closing(tokens, start)
    found: list[Token] = []
    for element in split(tokens[start + 1 : end]):
        kept = _element(element)
        if kept:
            if found:
                found.append(like(kept[0], marks.COMMA, ","))
            found += kept
    tail = _tail(tokens[end + 1 :]) if word(tokens[0]) == "CREATE" else tokens[end + 1 :]
    shorter = [*tokens[: start + 1], *found, *tokens[end : end + 1], *tail]
    return tokens if len(shorter) == len(tokens) else shorter


def _columns(tokens: Sequence[Token]) -> int:
    """Return the start of the list of columns: behind TABLE and, where there is one, its name; -1 without one."""
    if word(tokens[0]) not in ("CREATE", "DECLARE"):
        return -1
    for index, token in enumerate(tokens[:-1]):
        if word(token) == "TABLE":
            at = index + 1
            while at < len(tokens) and word(tokens[at]) not in ("(", "WITH", "AS"):  # its name
                at += 1
            return at if at < len(tokens) and tokens[at].token_type == marks.L_PAREN else -1
        if token.token_type == marks.L_PAREN:
            return -1
    return -1


def _altered(tokens: list[Token]) -> list[Token]:
    """``ALTER TABLE t ADD`` columns and constraints, without storage."""
    at = next((i for i, t in enumerate(tokens) if word(t) in ("ADD", "COLUMN") and i > 2), -1)
    if at < 0 or at + 1 >= len(tokens):
        return tokens
    if word(tokens[at - 1]) in ("CHECK", "NOCHECK") and word(tokens[at - 2]) == "WITH":
        head = [*tokens[: at - 2], tokens[at]]
    else:
        head = tokens[: at + 1]
    found: list[Token] = []
    for element in split(tokens[at + 1 :]):
        kept = _element(element)
        if kept:
            if found:
                found.append(like(kept[0], marks.COMMA, ","))
            found += kept
    shorter = [*head, *found]
    return tokens if len(shorter) == len(tokens) or not found else shorter


def _element(tokens: list[Token]) -> list[Token]:
    """A column or constraint without storage; nothing of an index or of a period."""
    if not tokens:
        return tokens
    first, second = word(tokens[0]), word(tokens[1]) if len(tokens) > 1 else ""
    if first == "INDEX" or (first == "PERIOD" and second == "FOR"):
        return []
    if first == "CONSTRAINT" and len(tokens) > 2 and word(tokens[2]) == "CONNECTION":
        return []
    found: list[Token] = tokens[:1]
    at = 1
    while at < len(tokens):
        end = _left_out(tokens, at)
        if end > at:
            at = end
        elif tokens[at].token_type == marks.L_PAREN:
            end = closing(tokens, at) + 1
            ordered = word(found[-1]) in _KEYS  # which order a key has; the parser reads it of primary keys alone
            found += [t for t in tokens[at:end] if not (ordered and word(t) in ("ASC", "DESC"))]
            at = end
        else:
            found.append(tokens[at])
            at += 1
    return found


def _left_out(tokens: Sequence[Token], at: int) -> int:
    """Return the end of a clause of storage that begins at ``at``; ``at`` if none does."""
    end = end_of(_OF_COLUMNS, tokens, at)
    if end > at:
        return end
    text = word(tokens[at])
    if text == "INDEX":
        return _index(tokens, at + 2)
    if text == "UNIQUE" and word(tokens[0]) != "CONSTRAINT" and not _has_columns(tokens, at + 1):
        return at + 1
    return at


def _has_columns(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a key whose words end before ``at`` lists its columns."""
    while at < len(tokens) and word(tokens[at]) in _WORDS:
        at += 1
    return at < len(tokens) and tokens[at].token_type == marks.L_PAREN


def _index(tokens: Sequence[Token], at: int) -> int:
    """Return the end of the index of one column whose name ends before ``at``."""
    while at < len(tokens):
        text = word(tokens[at])
        if text == "(":
            at = closing(tokens, at) + 1
        elif text in _INDEX:
            at += 1
        elif text == "WITH" or text in _STORED:
            at = max(_left_out(tokens, at), at + 1)
        else:
            break
    return at


def _tail(tokens: list[Token]) -> list[Token]:
    """Return the text behind the columns, without the place of the rows and options; all of it if a query is there."""
    for each in _OF_TABLES:
        tokens = each.applied(tokens)
    return tokens
