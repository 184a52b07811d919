"""Patterns of clauses: each kind of item, what stands around a clause, and text that ends too early."""

from __future__ import annotations

import pytest
from sqlglot.dialects.dialect import Dialects

from govtool.capture.sql.scripts.clauses.patterns import ClausePattern, clause, end_of
from govtool.capture.sql.scripts.clauses.table import CLAUSES
from govtool.capture.sql.syntax.lexer import lexer

TOKENS = lexer("postgres").tokenize


def left(pattern: ClausePattern, text: str) -> str:
    return " ".join(token.text for token in pattern.applied(TOKENS(text)))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (clause("x", "SKIP LOCKED $"), "a skip locked", "a"),
        (clause("x", "SKIP LOCKED $"), "a skip locked b", "a skip locked b"),
        (clause("x", "WITH ()"), "a with (b (c), d) e with (f)", "a e"),
        (clause("x", "WITH ()"), "a with (b (c", "a"),
        (clause("x", "SCOPE IS name"), "a scope is b.c.d e", "a e"),
        (clause("x", "SCOPE IS name"), 'a "scope" is b', "a scope is b"),
        (clause("x", "A|B+"), "a x b a c", "x c"),
        (clause("x", "FOR !UPDATE|SHARE"), "for update for q", "for update"),
        (clause("x", "TO _? $"), "a to 'f'", "a"),
        (clause("x", "LOG …"), "a log b (c", "a"),
        (clause("x", "INTO _ …FROM|FOR"), "a into f (x from y) z from t", "a from t"),
        (clause("x", "< <EQ>", "LTE:<="), "a < = b", "a <= b"),
        (clause("x", "<NUMBER> P", "VAR:n{1} 2"), "a 7 p b", "a n7 p b"),
        (clause("x", "WITH () ,", "1"), "with (a), q as (b)", "with q as ( b )"),
        (clause("x", "A", behind="^ B|C"), "b a c a", "b c a"),
        (clause("x", "A", behind="!,|("), "x a , a ( a", "x , a ( a"),
        (clause("x", "A", of="CREATE|ALTER"), "drop a", "drop a"),
        (clause("x", "WITH ()", inside="A )|,"), "with (a) with (a b) with (a, b)", "with ( a b )"),
        (clause("x", "A _", outermost=True), "a b (a c) a", "( a c ) a"),
    ],
)
def test_patterns(pattern: ClausePattern, text: str, expected: str) -> None:
    assert left(pattern, text) == expected


def test_a_statement_without_the_clause_is_the_same_list() -> None:
    tokens = TOKENS("select a from t")
    assert clause("x", "SKIP LOCKED $").applied(tokens) is tokens
    assert clause("x", "A", of="CREATE").applied(tokens) is tokens


def test_made_tokens_stand_where_the_clause_stood() -> None:
    tokens = TOKENS("a <\n = b")
    made = clause("x", "< <EQ>", "LTE:<=").applied(tokens)[1]
    assert (made.text, made.line, made.start) == ("<=", tokens[1].line, tokens[1].start)


def test_the_first_place_and_the_end_of_one_of_several() -> None:
    tokens = TOKENS("a (b c) b c d b c")
    assert [t.start for t in clause("x", "B C", outermost=True).first(tokens)] == [8, 10]
    assert clause("x", "E").first(tokens) == []
    assert end_of([clause("x", "A B"), clause("x", "A ()")], tokens, 0) == 5
    assert end_of([clause("x", "A B")], tokens, 0) == 0


def test_the_table_names_dialects_of_sqlglot() -> None:
    known = {dialect.value for dialect in Dialects}
    assert all(rule.dialects and rule.dialects <= known for rule in CLAUSES)
