"""CREATE statements with clauses that the parser does not support."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.rewrites.tools import dropped, last_with, past, without, without_word
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import closing, find_word, like, name_end, word


def create(reader: StatementReader, tokens: list[Token]) -> bool:
    """A CREATE with clauses that the parser does not support: keep the name, the columns and the query."""
    if without_word(reader, tokens, "SNAPSHOT") or _deep_clone(reader, tokens):
        return True
    kind_at = next(
        (i for i, t in enumerate(tokens[1:8], 1) if word(t) in ("TABLE", "VIEW", "TASK", "PIPE", "STREAM")), -1
    )
    if kind_at < 0 or word(tokens[kind_at - 1]) == "FOR":  # a publication
        return False
    kind = word(tokens[kind_at])
    if kind in ("TASK", "PIPE"):
        index = find_word(tokens, {"AS"}, kind_at)
        if index < 0 or index + 1 >= len(tokens):
            return False
        reader.statement(tokens[index + 1 :])
        return True
    if kind == "STREAM":
        return _stream(reader, tokens, kind_at)
    return _relation(reader, tokens, kind_at)


def _relation(reader: StatementReader, tokens: list[Token], kind_at: int) -> bool:
    """A CREATE of a table or view: with its query, else with its columns alone."""
    name_start = past(tokens, kind_at + 1, ("IF", "NOT", "EXISTS"))
    behind = name_end(tokens, name_start)
    columns_end = behind
    if columns_end < len(tokens) and tokens[columns_end].token_type == marks.L_PAREN:
        columns_end = closing(tokens, columns_end) + 1
    head = _head(tokens, kind_at)
    query_at = _query_start(tokens, columns_end - 1)
    if query_at < 0:
        if columns_end == behind:
            return False
        tree = reader.attempt([*head, *tokens[name_start:columns_end]])
        if tree is not None:
            dropped(reader, tokens, tree, tokens[columns_end:] or tokens[1:kind_at] or tokens[:1])
        return tree is not None
    for columns in (tokens[name_start:columns_end], tokens[name_start:behind]):
        tree = reader.attempt([*head, *columns, *tokens[query_at:]])
        if tree is not None:
            dropped(reader, tokens, tree, tokens[columns_end:query_at] or tokens[1:kind_at] or tokens[behind:])
            return True
        tail = last_with(tokens, query_at)
        tree = reader.attempt([*head, *columns, *tokens[query_at:tail]]) if tail > 0 else None
        if tree is not None:
            dropped(reader, tokens, tree, tokens[tail:])
            return True
    return False


def _head(tokens: list[Token], kind_at: int) -> list[Token]:
    """``CREATE [OR REPLACE] [TEMP] TABLE`` without any other word."""
    head = tokens[:1]
    if len(tokens) > 2 and word(tokens[1]) == "OR" and word(tokens[2]) in ("REPLACE", "ALTER", "REFRESH"):
        head = [tokens[0], tokens[1], like(tokens[2], marks.REPLACE, "REPLACE")]
    modifiers = [t for t in tokens[len(head) : kind_at] if word(t) in ("TEMP", "TEMPORARY", "MATERIALIZED")]
    return [*head, *modifiers, tokens[kind_at]]


def _query_start(tokens: list[Token], at: int) -> int:
    """Return the place of the AS behind ``at`` that a query follows; -1 if there is none."""
    while True:
        at = find_word(tokens, {"AS"}, at + 1)
        if at < 0 or at + 1 >= len(tokens):
            return -1
        following = tokens[at + 1]
        if word(following) in ("SELECT", "WITH", "FROM", "VALUES", "TABLE") or following.token_type == marks.L_PAREN:
            return at


def _deep_clone(reader: StatementReader, tokens: list[Token]) -> bool:
    """Databricks' ``CREATE TABLE t DEEP CLONE s``."""
    at = find_word(tokens, {"DEEP"}, 2)
    return at > 0 and at + 1 < len(tokens) and word(tokens[at + 1]) == "CLONE" and without(reader, tokens, at, at + 1)


def _stream(reader: StatementReader, tokens: list[Token], kind_at: int) -> bool:
    """Snowflake's ``CREATE STREAM s ON TABLE t``: reads as a view of all of t."""
    on = find_word(tokens, {"ON"}, kind_at)
    if on < 0 or on + 2 >= len(tokens) or word(tokens[on + 1]) not in ("TABLE", "VIEW", "DYNAMIC", "EXTERNAL", "EVENT"):
        return False
    start = past(tokens, on + 2, ("TABLE", "VIEW"))
    end = name_end(tokens, start)
    here = tokens[on]
    query = [
        like(here, marks.ALIAS, "AS"),
        like(here, marks.SELECT, "SELECT"),
        like(here, marks.STAR, "*"),
        like(here, marks.FROM, "FROM"),
        *tokens[start:end],
    ]
    name_start = past(tokens[:on], kind_at + 1, ("IF", "NOT", "EXISTS"))
    behind = name_end(tokens[:on], name_start)
    tree = reader.attempt([tokens[0], like(tokens[kind_at], marks.VIEW, "VIEW"), *tokens[name_start:behind], *query])
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed")
    return True
