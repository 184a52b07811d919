"""Tools of rewriting statements: words and clauses left out, with a diagnostic where that matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from govtool.capture.sql.scripts.reader import StatementReader
from govtool.capture.sql.scripts.unread import mentioned
from govtool.capture.sql.syntax import marks
from govtool.capture.sql.syntax.lexer import find_word, like, word, word_set

Rewrite: TypeAlias = Callable[["StatementReader", list[Token]], bool]
"""Adds the statement in a form that parses, or returns False and adds nothing."""
QUERY_WORDS = word_set("SELECT FROM JOIN UNION INTERSECT EXCEPT MINUS WHERE INTO USING VALUES SET INSERT")
"""Words by which a clause may read or write a relation."""
_STORAGE_OPTIONS = word_set(
    """WITH BUILD REFRESH COMMENT TBLPROPERTIES OPTIONS PARTITIONED CLUSTERED CLUSTER STORED LOCATION ROW DISTSTYLE
    DISTKEY SORTKEY TABLESPACE PARALLEL COMPRESS NOCOMPRESS LOGGING NOLOGGING USING ENGINE"""
)


def dropped(reader: StatementReader, tokens: list[Token], tree: exp.Expr, left_out: list[Token]) -> None:
    """Add a statement with a diagnostic of the tokens left out; known options of storage need none."""
    if word(left_out[0]) in _STORAGE_OPTIONS and not any(word(t) in QUERY_WORDS - {"USING"} for t in left_out):
        reader.add(tokens, tree, "parsed")
        return
    tree.set("mentions", mentioned(left_out, reader.lex.name, reader.text))
    what = " ".join(word(t) or t.text for t in left_out[:3])[:40]
    message = f"the clause that begins with {what!r} is not understood and was left out"
    reader.add(tokens, tree, "parsed", reader.diagnostic("dropped", "warning", message, left_out[0]))


def past(tokens: list[Token], at: int, words: tuple[str, ...]) -> int:
    """Return the place behind the words at ``at``."""
    while at < len(tokens) and word(tokens[at]) in words:
        at += 1
    return at


def last_with(tokens: list[Token], start: int) -> int:
    """Return the start of ``WITH CHECK OPTION``, ``WITH READ ONLY`` and the like; -1 if nothing of the kind ends the
    statement.
    """
    for index in range(len(tokens) - 1, max(start + 2, len(tokens) - 8), -1):
        if word(tokens[index]) == "WITH":
            return index
    return -1


def without_word(reader: StatementReader, tokens: list[Token], text: str) -> bool:
    """BigQuery's ``CREATE | DROP SNAPSHOT TABLE``: a table like others, for lineage."""
    at = next((i for i, t in enumerate(tokens[1:5], 1) if word(t) == text), -1)
    if at < 0:
        return False
    tree = reader.attempt([*tokens[:at], *tokens[at + 1 :]])
    if tree is None:
        at_time = find_word(tokens, {"FOR"}, at)
        tree = reader.attempt([*tokens[:at], *tokens[at + 1 : at_time]]) if at_time > 0 else None
    if tree is None:
        return False
    reader.add(tokens, tree, "parsed")
    return True


def without(reader: StatementReader, tokens: list[Token], start: int, end: int) -> bool:
    """Add a statement without the tokens of a range; False if it does not parse."""
    tree = reader.attempt(tokens[:start] + tokens[end:])
    if tree is not None:
        reader.add(tokens, tree, "parsed")
    return tree is not None


def moved_rows(reader: StatementReader, tokens: list[Token], target: list[Token], source: list[Token]) -> bool:
    """Add an ALTER that moves rows between tables, as INSERT … SELECT *; False if it does not parse."""
    here = tokens[0]
    head = [like(here, marks.INSERT, "INSERT"), like(here, marks.INTO, "INTO")]
    select = [like(here, marks.SELECT, "SELECT"), like(here, marks.STAR, "*"), like(here, marks.FROM, "FROM")]
    tree = reader.attempt([*head, *target, *select, *source])
    if tree is not None:
        reader.add(tokens, tree, "parsed", head="alter")
    return tree is not None
